"""The last lines of a run say which tests were skipped and which slow ones were left out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parent / "conftest.py"
# the fixtures of the conftest are defined in modules next to it
PATH = os.pathsep.join(
    filter(None, (str(CONFTEST.parent.parent), os.environ.get("PYTHONPATH", "")))
)
TESTS = """
import pytest

def test_runs():
    pass

@pytest.mark.parametrize("number", range(3))
def test_needs_a_browser(number):
    pytest.skip("needs a browser: apt-get install chromium")

def test_is_allowed():
    pytest.skip("a LangChain vector store has no corpus order")

@pytest.mark.slow("trainings")
@pytest.mark.parametrize("number", range(2))
def test_trains(number):
    pass

@pytest.mark.slow("kills")
def test_kills():
    pass

@pytest.fixture
def browser():
    return None

def test_opens_a_page(browser):
    pass
"""
SLOW = "`make test-all` adds 4 slow tests: 2 trainings, 1 kills, 1 browsers"


def run(
    folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    (folder / "test_some.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-qq",
        "-p",
        "no:cacheprovider",
        *arguments,
        str(folder),
    ]
    inherited = {
        name: value for name, value in os.environ.items() if name != "PYTEST_NO_SKIPS"
    }
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**inherited, **environment, "PYTHONPATH": PATH},
        cwd=folder,
    )


def run_with_endings(
    folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    # only this plugin: the conftest and all others take seconds to import
    return run(
        folder,
        "-p",
        "tests.endings",
        *arguments,
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        **environment,
    )


def test_our_own_runs_end_with_what_was_skipped_and_with_the_slow_tests_that_were_left_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text("utf-8"), "utf-8")
    done = run(tmp_path, "-m", "not slow")
    assert done.returncode == 0
    assert "    3  needs a browser: apt-get install chromium" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1] == SLOW


def test_the_end_of_a_run_lists_what_was_skipped_and_how_to_get_it(
    tmp_path: Path,
) -> None:
    done = run_with_endings(tmp_path)
    assert done.returncode == 0
    title, *lines = done.stdout.rstrip().splitlines()[-3:]
    assert title.strip("=") == " skipped tests, and what they need "
    assert lines == [
        "    3  needs a browser: apt-get install chromium",
        "    1  a LangChain vector store has no corpus order",
    ]


@pytest.mark.parametrize(("chosen", "code"), [("test", 1), ("runs or allowed", 0)])
def test_where_no_skips_are_expected_one_that_is_not_allowed_fails_the_run(
    tmp_path: Path, chosen: str, code: int
) -> None:
    done = run_with_endings(tmp_path, "-k", chosen, PYTEST_NO_SKIPS="1")
    assert done.returncode == code
    assert (
        "PYTEST_NO_SKIPS is set: tests skipped for these reasons are failures"
        in done.stdout
    ) == bool(code)


@pytest.mark.parametrize(
    "parallel", [(), ("-p", "xdist", "--numprocesses", "2")], ids=["one", "two"]
)
def test_the_last_line_counts_the_slow_tests_that_were_left_out_by_kind(
    tmp_path: Path, parallel: tuple[str, ...]
) -> None:
    done = run_with_endings(tmp_path, "-m", "not slow", *parallel)
    assert done.returncode == 0
    # a test is slow by its mark, or by a fixture such as a browser
    assert done.stdout.rstrip().splitlines()[-1] == SLOW


@pytest.mark.parametrize("arguments", [(), ("-m", "slow")], ids=["all", "slow"])
def test_a_run_that_leaves_out_no_slow_test_says_nothing_of_them(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    assert "make test-all" not in run_with_endings(tmp_path, *arguments).stdout

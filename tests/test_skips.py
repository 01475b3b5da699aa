"""What is skipped is said at the end of a run, and is a failure where everything should be there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parent / "conftest.py"
# the fixtures of the conftest are defined in modules beside it
PATH = os.pathsep.join(filter(None, (str(CONFTEST.parent.parent), os.environ.get("PYTHONPATH", ""))))
TESTS = """
import pytest

def test_runs():
    pass

@pytest.mark.parametrize("number", range(3))
def test_needs_a_browser(number):
    pytest.skip("needs a browser: apt-get install chromium")

def test_is_allowed():
    pytest.skip("a LangChain vector store has no corpus order")
"""


def run(folder: Path, chosen: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST.read_text("utf-8"), "utf-8")
    (folder / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, str(folder)]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_NO_SKIPS"}
    return subprocess.run(
        command, capture_output=True, text=True, env={**inherited, **environment, "PYTHONPATH": PATH}, cwd=folder
    )


def test_the_end_of_a_run_lists_what_was_skipped_and_how_to_get_it(tmp_path: Path) -> None:
    done = run(tmp_path, "test")
    assert done.returncode == 0
    assert "    3  needs a browser: apt-get install chromium" in done.stdout
    assert "    1  a LangChain vector store has no corpus order" in done.stdout


@pytest.mark.parametrize(("chosen", "code"), [("test", 1), ("runs or allowed", 0)])
def test_where_no_skips_are_expected_one_that_is_not_allowed_fails_the_run(
    tmp_path: Path, chosen: str, code: int
) -> None:
    assert run(tmp_path, chosen, PYTEST_NO_SKIPS="1").returncode == code

"""Modules that are run as programs print their errors in one line, and run once all of them is defined."""

import re
from pathlib import Path

import pytest

import ras_agent
from ras_agent.contracts.errors import IngestError
from ras_agent.running.program import run_program


@pytest.mark.parametrize(
    ("raised", "printed"),
    [
        (IngestError("a.jsonl line 3: no text"), "error: a.jsonl line 3: no text"),
        (
            FileNotFoundError(2, "No such file or directory", "b.jsonl"),
            "No such file or directory: 'b.jsonl'",
        ),
    ],
)
def test_an_error_with_a_remedy_is_one_line(raised: Exception, printed: str) -> None:
    def main() -> None:
        raise raised

    with pytest.raises(SystemExit) as ended:
        run_program(main)
    assert printed in str(ended.value.code)  # Python prints it and exits with 1


def test_a_fault_of_the_program_keeps_its_traceback() -> None:
    def main() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_program(main)


def test_a_program_runs_after_everything_in_its_module_is_defined() -> None:
    package = Path(ras_agent.__file__).parent
    folders = (package, *(link for link in package.iterdir() if link.is_symlink()))
    texts = {
        path: path.read_text("utf-8")
        for folder in folders
        for path in folder.rglob("*.py")
    }
    programs = {
        path: text for path, text in texts.items() if "run_program(main)" in text
    }
    assert len(programs) > 10
    early = [
        path
        for path, text in programs.items()
        if not re.search(r"^    run_program\(main\)\n\Z", text, re.MULTILINE)
    ]
    assert not early

"""Modules that are run as programs print their errors in one line."""

import pytest

from ras_agent.errors import IngestError
from ras_agent.program import run_program


@pytest.mark.parametrize(
    ("raised", "printed"),
    [
        (IngestError("a.jsonl line 3: no text"), "error: a.jsonl line 3: no text"),
        (FileNotFoundError(2, "No such file or directory", "b.jsonl"), "No such file or directory: 'b.jsonl'"),
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

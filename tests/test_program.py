"""Modules run as programs tell their errors in a line."""

import pytest

from ras_agent.errors import IngestError
from ras_agent.program import run_program


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (IngestError("a.jsonl line 3: no text"), "error: a.jsonl line 3: no text"),
        (FileNotFoundError(2, "No such file or directory", "b.jsonl"), "No such file or directory: 'b.jsonl'"),
    ],
)
def test_what_names_its_remedy_is_one_line(raised: Exception, told: str) -> None:
    def main() -> None:
        raise raised

    with pytest.raises(SystemExit) as ended:
        run_program(main)
    assert told in str(ended.value.code)  # which Python prints, and exits with 1


def test_a_fault_of_the_program_keeps_its_traceback() -> None:
    def main() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_program(main)

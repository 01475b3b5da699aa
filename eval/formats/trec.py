"""Writes TREC's two files, a run and its judgements, which trec_eval, pytrec_eval and ir_measures read.

    run.trec        query Q0 passage rank score name
    run.trec.qrels  query 0 passage grade

A grade of relevance is a whole number. Evaluators sort a run by its scores. Passages are ranked hop by hop, and
the scores of different hops cannot be compared, so the written score counts down by rank. Spaces separate
fields, so spaces and "%" in names are written as in a URL: "Alan Turing" is Alan%20Turing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from ras_agent.contracts.errors import RunError
from ras_agent.eval.formats.exported import Exported, write_text
from ras_agent.eval.formats.registry import Format, registered
from ras_agent.eval.run.result import Result

_DIVIDING = re.compile(r"[\s%]+")


def field(name: str) -> str:
    """Return a name as one field, with white space and "%" quoted as in a URL. `urllib.parse.unquote` restores the
    name."""
    return _DIVIDING.sub(lambda found: quote(found[0]), name)


def run_lines(results: Sequence[Result], name: str) -> Iterator[str]:
    """Yield a line of the run for each retrieved passage that has a name, at its first rank. `name` is the
    run's name.
    """
    for result in results:
        ranked = list(filter(None, dict.fromkeys(result.retrieved)))
        for rank, passage in enumerate(ranked, 1):
            yield f"{field(result.id)} Q0 {field(passage)} {rank} {len(ranked) - rank + 1} {field(name)}\n"


def judgement_lines(results: Sequence[Result]) -> Iterator[str]:
    """Yield a line for each gold passage with its grade, or 1 if the question set has no grades.

    Raises:
        RunError: if a grade is not a whole number.
    """
    for result in results:
        grades = result.relevance or dict.fromkeys(result.supporting, 1)
        for passage in filter(None, grades):
            if (grade := grades[passage]) % 1:  # also true of infinities and NaN
                raise RunError(
                    f"question {result.id!r}: the grade of {passage!r} is {grade}, but TREC's grades are whole numbers; "
                    "scale the grades of the question set, and ask it again"
                )
            yield f"{field(result.id)} 0 {field(passage)} {int(grade)}\n"


def _write(run: Exported, path: Path) -> Sequence[Path]:
    judgements = "".join(judgement_lines(run.results))
    return [
        *write_text(path, "".join(run_lines(run.results, run.name))),
        *write_text(path.with_name(f"{path.name}.qrels"), judgements),
    ]


TREC = registered(
    Format(name="trec", title="TREC runs and judgements", write_results=_write)
)

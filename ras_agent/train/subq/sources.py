"""Questions to make samples of, with the documents that each needs and, where they are known, the sub-queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ras_agent.errors import IngestError, RunError
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import OnBad
from ras_agent.eval.study.oracles import decomposed
from ras_agent.records import Passage


@dataclass(frozen=True, slots=True)
class SubqQuestion:
    """Holds a question, the documents that hold its answer together, and a sub-query for each if they are known."""

    source: str
    question: Question
    documents: tuple[Passage, ...]
    subqueries: tuple[str, ...] = ()


def musique(file: Path, on_bad: OnBad) -> Iterator[SubqQuestion]:
    """Yield MuSiQue's questions with their gold decompositions, in which #1, #2 are replaced by the gold answers.

    on_bad: given what is wrong with a record or a question that is left out.
    """
    for question in benchmark("musique").load(file, on_bad=on_bad):
        try:
            yield _decomposed(question)
        except (IngestError, RunError) as error:
            on_bad(IngestError(f"{file}: {error}"))


def _decomposed(question: Question) -> SubqQuestion:
    if not question.answers:
        raise IngestError(f"{question.id}: no answer")
    # "The Collegian >> owned by" is a relation of Wikidata, asked for in words
    asked = tuple(subquery.replace(" >> ", " ") for subquery in decomposed(question))
    if not asked:
        raise IngestError(f"{question.id}: no decomposition")
    given = {passage.id: passage for passage in question.contexts}
    names = [str(step["supporting_id"]) for step in question.decomposition]
    if any(name not in given for name in names):
        raise IngestError(f"{question.id}: a step names no paragraph that supports it")
    return SubqQuestion("musique", question, tuple(given[name] for name in names), asked)

"""Questions to make samples of, with the documents that each needs and, where they are known, the sub-queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ras_agent.errors import IngestError, RunError
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import OnBad
from ras_agent.eval.study.oracles import decomposed
from ras_agent.records import Passage
from ras_agent.tools.index.load import Skipped
from ras_agent.tools.index.stated_facts import STATED
from ras_agent.tools.kg.formats.openie import load_openie
from ras_agent.train.data import questions_and_corpus


@dataclass(frozen=True, slots=True)
class SubqQuestion:
    """Holds a question, the documents that hold its answer together, and a sub-query for each if they are known.

    The documents of a question without sub-queries are in no particular order, and may be more than it needs.
    """

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


def hotpotqa(file: Path, on_bad: OnBad) -> Iterator[SubqQuestion]:
    """Yield questions with their supporting documents, of HotpotQA or another set in one of its two forms.

    The documents come from the questions' contexts, or from a corpus.jsonl next to the file. on_bad: as for `musique`.
    """
    found = questions_and_corpus("hotpotqa", file, on_bad)
    for question in found.questions:
        documents = tuple(found.gold(question))
        if not question.answers:
            on_bad(IngestError(f"{file}: {question.id}: no answer"))
        elif not documents or len(documents) < len(question.supporting):
            on_bad(IngestError(f"{file}: {question.id}: a supporting document is in neither context nor corpus"))
        else:
            yield SubqQuestion("hotpotqa", question, documents)


ReadyTriples = Mapping[tuple[str, str], list[list[str]]]
"""The triples of documents, by title and text, as a passage lists what it states."""


def ready_triples(files: Iterable[Path], on_bad: OnBad) -> ReadyTriples:
    """Read files of OpenIE results, {"id", "title", "text", "triples"} a line; on_bad is given what is wrong."""
    found: dict[tuple[str, str], list[list[str]]] = {}
    for file in files:
        for one in load_openie(file, str(file)):
            if isinstance(one, Skipped):
                on_bad(IngestError(f"{one.place}: {one.reason}"))
            elif one.facts.triples:
                rows = [[fact.subject, fact.predicate, fact.object, file.name] for fact in one.facts.triples]
                found.setdefault(_content(one.passage), rows)
    return found


def with_triples(document: Passage, ready: ReadyTriples) -> Passage:
    """Return a document that states the triples that are ready for it, the document itself where none are."""
    rows = ready.get(_content(document))
    return replace(document, metadata={**document.metadata, STATED: rows}) if rows else document


def _content(passage: Passage) -> tuple[str, str]:
    return passage.title.strip(), passage.text.strip()

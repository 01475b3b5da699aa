"""Facts that were read: what an extractor returned, held against the passages it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import index
from typing import Any

from ras_agent.records import Extraction, Failure, Passage, Source, Triple

__all__ = ["checked"]

NO_TRIPLE = "dropped: no Triple of three texts with Sources"
BLANK = "dropped: a blank subject, predicate or object"
NOWHERE = "dropped: read in none of the passages that were given"
ELSEWHERE = "kept without one of its sources: a passage that was not given"
NO_SUCH_PLACE = "kept without its place: characters that the passage does not have"

_SHOWN = 3


def checked(
    extraction: Extraction, passages: Mapping[str, Passage], extractor: str, hop: int, subquery: str
) -> Extraction:
    """The facts that can be, with hop and sub-query in every source, and a Failure for each kind of what cannot be.

    `extractor` is the extractor's name: failures tell it, and so do sources that name none. A place that its passage
    does not have becomes characters 0 to 0.
    """
    triples: list[Triple] = []
    wrong: dict[str, list[Triple]] = {}
    for triple in extraction.triples:
        problems = _unusable(triple)
        if not problems:
            found = [source for source in triple.sources if source.passage_id in passages]
            if len(found) < len(triple.sources) or not found:
                problems.add(ELSEWHERE if found else NOWHERE)
            sources = []
            for source in found:
                span = _span(source, passages[source.passage_id])
                if span is None:
                    problems.add(NO_SUCH_PLACE)
                sources.append(
                    Source(source.passage_id, *(span or (0, 0)), hop, subquery, source.extractor or extractor)
                )
            if sources:
                triples.append(Triple(triple.subject, triple.predicate, triple.object, tuple(sources)))
        for problem in sorted(problems):
            wrong.setdefault(problem, []).append(triple)
    failures = [replace(failure, role="extractor", hop=hop) for failure in extraction.failures]
    for problem, facts in wrong.items():
        message = f"{extractor}: {len(facts)} {'fact' if len(facts) == 1 else 'facts'} {problem}"
        failures.append(Failure("extractor", message, hop, "\n".join(f"{fact!r:.300}" for fact in facts[:_SHOWN])))
    return Extraction(tuple(triples), tuple(failures))


def _unusable(triple: Any) -> set[str]:
    """Why a fact cannot be used at all."""
    if not isinstance(triple, Triple) or not isinstance(triple.sources, (tuple, list)):
        return {NO_TRIPLE}
    texts = [triple.subject, triple.predicate, triple.object]
    for source in triple.sources:
        texts += [source.passage_id, source.extractor] if isinstance(source, Source) else [None]
    if not all(isinstance(text, str) for text in texts):
        return {NO_TRIPLE}
    return {BLANK} if "" in triple.key else set()


def _span(source: Source, passage: Passage) -> tuple[int, int] | None:
    """Where in its passage a fact stands, if there is such a place."""
    try:
        start, end = index(source.start), index(source.end)  # numpy's integers are no JSON
    except TypeError:
        return None
    return (start, end) if 0 <= start <= end <= len(passage.text) else None

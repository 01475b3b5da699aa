"""Facts that were read: what an extractor returned, held against the passages it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ras_agent.graphs.plain import place_in, whole
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
        try:
            problems, sources = _located(triple, passages, extractor, hop, subquery)
        except (TypeError, AttributeError):  # a canonical key is made of strings alone, and a Source has its fields
            problems, sources = [NO_TRIPLE], ()
        if sources:
            triples.append(Triple(whole(triple.subject), whole(triple.predicate), whole(triple.object), sources))
        for problem in set(problems) if problems else ():
            wrong.setdefault(problem, []).append(triple)
    failures = [replace(failure, role="extractor", hop=hop) for failure in extraction.failures]
    for problem, facts in sorted(wrong.items()):
        message = f"{extractor}: {len(facts)} {'fact' if len(facts) == 1 else 'facts'} {problem}"
        failures.append(Failure("extractor", message, hop, "\n".join(f"{fact!r:.300}" for fact in facts[:_SHOWN])))
    return Extraction(tuple(triples), tuple(failures))


def _located(
    triple: Triple, passages: Mapping[str, Passage], extractor: str, hop: int, subquery: str
) -> tuple[list[str], tuple[Source, ...]]:
    """What is wrong with a fact, and its sources in `passages`; none for a fact that cannot be used."""
    if "" in triple.key:
        return [BLANK], ()
    problems, sources = [], []
    for source in triple.sources:
        passage = passages.get(source.passage_id)
        if passage is None:
            continue
        place = place_in(passage.text, source.start, source.end)
        if place is None:
            problems.append(NO_SUCH_PLACE)
            place = (0, 0)
        sources.append(Source(passage.id, *place, hop, subquery, str(source.extractor or extractor)))
    if len(sources) < len(triple.sources) or not sources:
        problems.append(ELSEWHERE if sources else NOWHERE)
    return problems, tuple(sources)

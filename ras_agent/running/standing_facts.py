"""Removes extracted facts that the words of their passages do not state. It works for every extractor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ras_agent.contracts.records import (
    Extraction,
    Passage,
    RefusedFacts,
    Source,
    Triple,
)
from ras_agent.text.standing import FactText, Standing, fact_text

STATED_BY = "stated: "
"""The prefix of the extractor's name for facts that came with a record instead of being extracted."""
_SHOWN = 10


def keep_standing(
    extraction: Extraction, passages: Iterable[Passage], hop: int = 0
) -> Extraction:
    """Return the extraction without facts that no passage states, and with a failure for each passage that lost
    facts.

    A fact keeps only the sources that state it. A source that cannot be checked is kept and marked `unchecked`,
    as is a source of a fact that came with a record and is not in the record's text. A source in a passage
    outside `passages` is kept unchanged.
    """
    cited = set().union(*[triple.passage_ids for triple in extraction.triples])
    texts: dict[str, FactText] = {}
    for passage in passages:
        if passage.id in cited:
            texts[passage.id] = fact_text(passage.text, passage.heading)
    kept: list[Triple] = []
    refused: dict[str, list[Triple]] = {}
    for triple in extraction.triples:
        sources = tuple(_checked(triple, texts))
        if sources == triple.sources:
            kept.append(triple)
        elif sources:
            kept.append(replace(triple, sources=sources))
        else:
            refused.setdefault(triple.sources[0].passage_id, []).append(triple)
    failures = [
        _refusal(name, texts[name], facts, hop) for name, facts in refused.items()
    ]
    return replace(
        extraction, triples=tuple(kept), failures=(*extraction.failures, *failures)
    )


def _checked(triple: Triple, texts: Mapping[str, FactText]) -> Iterable[Source]:
    for source in triple.sources:
        text = texts.get(source.passage_id)
        if text is None:
            yield source
            continue
        standing = text.standing(triple.subject, triple.predicate, triple.object)
        if standing is Standing.STANDS:
            yield source
        elif standing is Standing.UNKNOWN or source.extractor.startswith(STATED_BY):
            yield replace(source, unchecked=True)


def _refusal(
    passage_id: str, text: FactText, facts: list[Triple], hop: int
) -> RefusedFacts:
    lines = []
    for fact in facts[:_SHOWN]:
        words = " ".join(term.text for term in text.missing(fact.subject, fact.object))
        said = f"{fact.subject} {fact.predicate} {fact.object}"
        lines.append(f"“{said}” (missing: {words!r})")
    if len(facts) == 1:
        problem = (
            f"a fact is left out, because its words are not in passage {passage_id}: "
        )
    else:
        problem = f"{len(facts)} facts are left out, because their words are not in passage {passage_id}, such as "
    message = f"{problem}{lines[0]:.300}"
    return RefusedFacts("extractor", message, hop, "\n".join(lines)[:500])

"""Finds the facts that passages state in their metadata, as those of a knowledge graph do, so that no extractor is
needed.
"""

from __future__ import annotations

from collections.abc import Iterable

from ras_agent.contracts.records import Passage, Triple
from ras_agent.tools.index.stated_facts import stated_facts


def given_triples(
    passages: Iterable[Passage],
) -> tuple[tuple[Triple, ...], list[Passage]]:
    """Return the triples in the metadata of passages, and the passages without any, which an extractor has to read."""
    triples: list[Triple] = []
    unread: list[Passage] = []
    for passage in passages:
        facts = stated_facts(passage)
        triples.extend(facts or ())
        if not facts:
            unread.append(passage)
    return tuple(triples), unread

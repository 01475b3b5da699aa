"""Hits that were found: what a retriever returned, as the state can hold it."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from ras_agent.graphs.plain import whole
from ras_agent.records import Hit, Passage

__all__ = ["hit_of", "passage_of"]


def hit_of(found: object) -> Hit:
    """A retriever's hit, its score a number that JSON knows. Raises TypeError for what is no Hit of a Passage."""
    if not isinstance(found, Hit) or (passage := passage_of(found.passage)) is None:
        raise TypeError(f"a retriever must return hits, Hit(Passage(id, text), score), got {found!r:.200}")
    score = float(found.score)
    return Hit(passage, score if isfinite(score) else 0.0, tuple(whole(str(line)) for line in found.why))


def passage_of(found: object) -> Passage | None:
    """A passage of whole characters, or None for what is no Passage of texts."""
    if not isinstance(found, Passage):
        return None
    texts = found.id, found.text, found.title, found.document_id
    if not all(isinstance(text, str) for text in texts):
        return None
    clean = tuple(map(whole, texts))
    if clean == texts:
        return found
    return replace(found, id=clean[0], text=clean[1], title=clean[2], document_id=clean[3])

"""What is searched and found: passages, hits, spans of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ras_agent.records.json_form import JSON

__all__ = ["Hit", "Passage", "Span"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that a retriever returns whole. `id` is unique in its index."""

    id: str
    text: str
    title: str = ""
    document_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> JSON:
        return {
            "id": self.id,
            "text": self.text,
            "title": self.title,
            "document_id": self.document_id,
            "metadata": dict(self.metadata),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Missing title, document_id and metadata are empty."""
        return cls(
            str(data["id"]),
            data["text"],
            data.get("title", ""),
            data.get("document_id", ""),
            dict(data.get("metadata", {})),
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage; the higher the score the better, comparable within one query only.

    `why`: reasons to read, a line each, where a retriever gives any: for instance the chain of facts that led there.
    """

    passage: Passage
    score: float
    why: tuple[str, ...] = ()

    def to_dict(self) -> JSON:
        """As a step's JSON holds it: the passage is named, not repeated."""
        data: JSON = {"passage_id": self.passage.id, "title": self.passage.title, "score": self.score}
        return {**data, "why": list(self.why)} if self.why else data


@dataclass(frozen=True, slots=True)
class Span:
    """Where a reader sees an answer: characters `start` to `end` of a text.

    `score` is the span's logit and `no_answer` the logit of the text holding none; both compare across the texts of
    one question only.
    """

    start: int
    end: int
    score: float
    no_answer: float = 0.0

    @property
    def margin(self) -> float:
        """How much likelier the span is than no answer, in logits; above 0 the text is held to answer."""
        return self.score - self.no_answer

"""The course of a run: what was planned, what each hop brought, what was answered on which evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from ras_agent.records.facts import Failure
from ras_agent.records.json_form import JSON
from ras_agent.records.text import Hit, Passage

__all__ = ["Action", "Answer", "Citation", "Plan", "Step", "StopReason"]

Action = Literal["subq", "sufficient", "no_retrieval"]
StopReason = Literal[
    "sufficient",
    "no_retrieval",
    "max_hops",
    "max_llm_calls",
    "max_tokens",
    "max_seconds",
    "repeated_subquery",
    "no_new_facts",
    "static",
    "single_shot",
    "planner_failed",
    "recursion_limit",
]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do next: ask `subquery`, stop because the graph is sufficient, or answer without retrieval."""

    action: Action
    subquery: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if self.action not in get_args(Action):
            raise ValueError(f"unknown plan action {self.action!r}; known: {', '.join(get_args(Action))}")
        if self.action == "subq" and not self.subquery.strip():
            raise ValueError("a [SUBQ] plan needs a sub-query")

    def to_dict(self) -> JSON:
        return {"action": self.action, "subquery": self.subquery, "reason": self.reason}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Step:
    """One hop: its sub-query, what came back, which facts were new.

    `triple_ids` are all facts read at this hop, `new_triple_ids` those the graph had not held before. `thought` is
    IRCoT's sentence.
    """

    hop: int
    subquery: str
    hits: tuple[Hit, ...] = ()
    triple_ids: tuple[str, ...] = ()
    new_triple_ids: tuple[str, ...] = ()
    thought: str = ""
    seconds: float = 0.0

    def to_dict(self) -> JSON:
        """Passages are named, not repeated: a trace keeps each passage once, under `passages`."""
        return {
            "hop": self.hop,
            "subquery": self.subquery,
            "hits": [hit.to_dict() for hit in self.hits],
            "triple_ids": list(self.triple_ids),
            "new_triple_ids": list(self.new_triple_ids),
            "thought": self.thought,
            "seconds": self.seconds,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], passages: Mapping[str, Passage]) -> Self:
        """`passages` maps passage ids to passages; a KeyError names one that is missing."""
        return cls(
            data["hop"],
            data["subquery"],
            tuple(Hit(passages[hit["passage_id"]], hit["score"], tuple(hit.get("why", ()))) for hit in data["hits"]),
            tuple(data["triple_ids"]),
            tuple(data["new_triple_ids"]),
            data.get("thought", ""),
            data.get("seconds", 0.0),
        )


@dataclass(frozen=True, slots=True)
class Citation:
    """Evidence for an answer: characters `start` to `end` of a passage, and the facts read there."""

    number: int
    passage_id: str
    title: str = ""
    start: int = 0
    end: int = 0
    quote: str = ""
    triple_ids: tuple[str, ...] = ()

    def to_dict(self) -> JSON:
        return {
            "number": self.number,
            "passage_id": self.passage_id,
            "title": self.title,
            "start": self.start,
            "end": self.end,
            "quote": self.quote,
            "triple_ids": list(self.triple_ids),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "triple_ids": tuple(data.get("triple_ids", ()))})


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its evidence. `abstained` means: the text is none, for the evidence does not hold it.

    failed: why no answer could be made, whatever the evidence holds: the answerer broke down, a limit forbade its call,
    its reply was unreadable. Such an answer has abstained too.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    abstained: bool = False
    confidence: float | None = None
    failures: tuple[Failure, ...] = ()
    failed: str = ""

"""What an agent made of one question: all that a metric looks at beside the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ras_agent.eval.run.questions import Question
from ras_agent.records import Citation, Passage, Triple

__all__ = ["Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer and its evidence.

    passages: in the order of retrieval (by hop, then by rank within the hop). facts: the question graph's, by id.
    """

    answer: str
    abstained: bool = False
    citations: tuple[Citation, ...] = ()
    passages: tuple[Passage, ...] = ()
    facts: Mapping[str, Triple] = field(default_factory=dict)
    hops: int = 0
    stop_reason: str = ""

    @classmethod
    def from_output(cls, out: Mapping[str, Any]) -> Self:
        """From what an agent returned, or from a trace's `to_dict()`."""
        facts = out.get("graph", {}).get("facts", ()) if out.get("graph") else ()
        return cls(
            answer=out["answer"],
            abstained=bool(out.get("abstained")),
            citations=tuple(Citation.from_dict(citation) for citation in out.get("citations") or ()),
            passages=tuple(Passage.from_dict(passage) for passage in (out.get("passages") or {}).values()),
            facts={fact["id"]: Triple(fact["subject"], fact["predicate"], fact["object"]) for fact in facts},
            hops=len(out.get("steps") or ()),
            stop_reason=out.get("stop_reason") or "",
        )

    def ranked(self, question: Question) -> list[str]:
        """What was retrieved, named as the question names its gold passages; the first place of a repeated title."""
        names = [passage.title if question.by_title else passage.id for passage in self.passages]
        return list(dict.fromkeys(names))

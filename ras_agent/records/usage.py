"""Model calls and what they took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ras_agent.records.json_form import JSON

__all__ = ["Call", "Usage"]


@dataclass(frozen=True, slots=True)
class Call:
    """One model call. Tokens as the endpoint reported them, 0 where it did not. `replayed`: from the response cache."""

    role: str
    hop: int
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    replayed: bool = False

    def to_dict(self) -> JSON:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Usage:
    """All model calls of a run and their sums."""

    calls: tuple[Call, ...] = ()

    @property
    def input_tokens(self) -> int:
        return sum(call.input_tokens for call in self.calls)

    @property
    def output_tokens(self) -> int:
        return sum(call.output_tokens for call in self.calls)

    @property
    def cached_tokens(self) -> int:
        return sum(call.cached_tokens for call in self.calls)

    def to_dict(self) -> JSON:
        """Sums for a reader, calls for an accountant."""
        return {
            "llm_calls": len(self.calls),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "calls": [call.to_dict() for call in self.calls],
        }

    @classmethod
    def from_calls(cls, calls: Sequence[Mapping[str, Any]]) -> Self:
        return cls(tuple(Call.from_dict(call) for call in calls))

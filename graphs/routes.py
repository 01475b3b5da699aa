"""Where a run goes next: pure functions of the state."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

__all__ = ["retrieve_or_answer"]


class Decided(TypedDict):
    """What `plan` and `reason` leave; a route reads no more of the state than this."""

    subquery: str


def retrieve_or_answer(state: Decided) -> Literal["retrieve", "answer"]:
    """Go on while there is a sub-query."""
    return "retrieve" if state["subquery"] else "answer"

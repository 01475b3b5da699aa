"""Where a run goes next: pure functions of the state."""

from __future__ import annotations

from typing import Literal

from ras_agent.graphs.state import State

__all__ = ["retrieve_or_answer"]


def retrieve_or_answer(state: State) -> Literal["retrieve", "answer"]:
    """Go on while there is a sub-query."""
    return "retrieve" if state["subquery"] else "answer"

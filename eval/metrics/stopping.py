"""Did the planner stop when it had enough? Its own stops only; a budget's end says nothing about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

__all__ = ["Stop", "judged_stop", "sufficiency_precision"]

Stop = Literal["early", "on_time", "late"]


def judged_stop(stop_reason: str, hops: int, gold_hops: int | None) -> Stop | None:
    """Where a planner's own stop stands against the gold hops; None if a limit stopped it or gold is unknown.

    One search may find what takes two hops, so beside this stands whether the gold passages were there at the stop.

    `[SUFFICIENT]` after fewer retrievals than the question has gold hops is early, after more is late. `[NO_RETRIEVAL]`
    is a claim too, made at hop 0.
    """
    if gold_hops is None or stop_reason not in ("sufficient", "no_retrieval"):
        return None
    return "on_time" if hops == gold_hops else "early" if hops < gold_hops else "late"


def sufficiency_precision(stops: Sequence[Stop | None]) -> float:
    """Share of the planner's own stops that are on time, in 0..1; 0.0 if it never stopped."""
    own = [stop for stop in stops if stop]
    return own.count("on_time") / len(own) if own else 0.0

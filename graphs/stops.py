"""What ends a loop before its planner does."""

from __future__ import annotations

from ras_agent.budget import Limits
from ras_agent.graphs.state import State
from ras_agent.records import StopReason
from ras_agent.text.canonical import canonical_key

__all__ = ["budget_end", "loop_end", "repeats"]

# from `plan` on: retrieve, structure, merge, plan, answer
STEPS_OF_A_HOP = 5


def budget_end(state: State, limits: Limits) -> StopReason | None:
    """The budget that forbids another hop, or None.

    Seconds and tokens are looked at here, before every hop, and by the ledger before every model call.
    """
    if limits.max_seconds is not None and state["seconds"] >= limits.max_seconds:
        return "max_seconds"
    usage = state["usage"]
    if limits.max_tokens is not None and usage["input_tokens"] + usage["output_tokens"] >= limits.max_tokens:
        return "max_tokens"
    if state["remaining_steps"] <= STEPS_OF_A_HOP:
        return "recursion_limit"
    return None


def loop_end(state: State, limits: Limits) -> StopReason | None:
    """Whether the hops are used up, or the last one taught nothing.

    A hop in which retrieval or extraction failed does not count as one without new facts: the next may do better.
    """
    hop = len(state["steps"])
    if hop >= limits.max_hops:
        return "max_hops"
    if limits.stop_on_no_new_facts and hop and not state["steps"][-1]["new_triple_ids"]:
        failed = {failure["role"] for failure in state["failures"] if failure["hop"] == hop}
        return None if failed & {"retriever", "extractor"} else "no_new_facts"
    return None


def repeats(state: State, subquery: str) -> bool:
    """Whether `subquery` was asked before and found passages."""
    key = canonical_key(subquery)
    return any(step["hits"] and canonical_key(step["subquery"]) == key for step in state["steps"])

"""What a run remembers: plain JSON under a few keys, each passage's text once.

What grows grows through reducers, so that a node returns only what it adds; `None` empties it, which is how `begin`
makes a thread ready for its next question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langgraph.managed import RemainingSteps
from typing_extensions import TypedDict  # typing's own will do for pydantic, which makes JSON schemas, from Python 3.12

from ras_agent.records import JSON, Passage

__all__ = ["Beginning", "Inputs", "Outputs", "State", "Update"]

Update = dict[str, Any]


def extend(old: list[Any], new: Sequence[Any] | None) -> list[Any]:
    """`old` with `new` at its end."""
    return [] if new is None else [*old, *new]


def first_wins(old: dict[str, Any], new: Mapping[str, Any] | None) -> dict[str, Any]:
    """`old` with what is new in `new` at its end: the order of first retrieval."""
    return {} if new is None else {**old, **{key: value for key, value in new.items() if key not in old}}


class Inputs(TypedDict, total=False):
    """What a caller gives.

    question: required.
    seed_passages: passages for the first hop, in place of its retrieval; then the loop goes on as ever.
    static_passages: the only passages; nothing is planned or retrieved (see static_iterations).
    static_iterations: hops over which static_passages are spread in order; 5 unless given, as in the RAS paper.

    A passage is a `Passage`, its `to_dict()`, or just its text.
    """

    question: str
    seed_passages: Sequence[Passage | JSON | str] | None
    static_passages: Sequence[Passage | JSON | str] | None
    static_iterations: int | None


class Outputs(TypedDict, total=False):
    """What a caller gets; also what a trace is made of. See ras_agent.records for the shapes behind `JSON`."""

    question: str
    answer: str
    citations: list[JSON]
    abstained: bool
    failed: str
    """why no answer could be made (Answer.failed); empty where one was, and where the evidence holds none"""
    confidence: float | None
    graph: JSON
    """QuestionGraph.to_dict()"""
    steps: Annotated[list[JSON], extend]
    """Step.to_dict(), one a hop"""
    plans: Annotated[list[JSON], extend]
    """Plan.to_dict() with the `hop` that it was made for; in IRCoT a plan's text is the sentence"""
    passages: Annotated[dict[str, JSON], first_wins]
    """Passage.to_dict() by id, ranked by hop, then by rank within the hop"""
    usage: JSON
    """Usage.to_dict()"""
    stop_reason: str
    failures: Annotated[list[JSON], extend]
    """Failure.to_dict()"""
    seconds: float
    """time spent inside nodes; a pause between them does not count"""


class Beginning(Inputs, total=False):
    """What the first node reads."""

    remaining_steps: RemainingSteps


class State(Outputs, total=False):
    """Outputs so far, and what one node leaves for the next."""

    given: list[list[JSON]]
    """passages that take the place of retrieval, for the next hop, the one after, ..."""
    static: bool
    """whether the given passages are all there is"""
    subquery: str
    """what to retrieve for next; empty when the loop has ended"""
    hits: list[JSON]
    """this hop's hits, as a Step holds them"""
    triples: list[JSON]
    """facts read in this hop's passages"""
    read: list[str]
    """ids of passages whose facts are in the graph"""
    remaining_steps: RemainingSteps

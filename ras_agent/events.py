"""Typed events of a running agent.

`for event in agent.stream(inputs, stream_mode="custom")` yields these; the command line's trace is drawn from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ras_agent.records import Answer, Failure, Hit, Plan, Triple


@dataclass(frozen=True, slots=True)
class Planned:
    """The planner's decision before hop `hop`. thought: whether it is a sentence of a chain of thought.

    The sentence is the plan's sub-query, or, where it ends the loop, the plan's reason.
    """

    hop: int
    plan: Plan
    thought: bool = False


@dataclass(frozen=True, slots=True)
class Hits:
    """Passages found for a sub-query."""

    hop: int
    subquery: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Triples:
    """Facts read in this hop's passages, before merging."""

    hop: int
    triples: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class GraphDelta:
    """How a hop changed the question graph: its new facts, its size after the hop, its conflicts after the hop."""

    hop: int
    added: tuple[Triple, ...]
    facts: int
    entities: int
    conflicts: int


@dataclass(frozen=True, slots=True)
class AnswerToken:
    """A piece of the answer's text as the model writes it."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of the run. grounded: whether the answer rests on evidence that was found."""

    answer: Answer
    stop_reason: str
    grounded: bool = True


@dataclass(frozen=True, slots=True)
class Failed:
    """Something went wrong; the run goes on."""

    failure: Failure


Event = Planned | Hits | Triples | GraphDelta | AnswerToken | Answered | Failed

_sink: ContextVar[Callable[[Event], None] | None] = ContextVar("ras_agent_events", default=None)


def emit(event: Event) -> None:
    """Send an event to the stream of the running agent; do nothing where there is none."""
    sink = _sink.get()
    if sink is not None:
        sink(event)


def streaming() -> bool:
    """Tell whether events are streamed to anybody: a model streams its answer only then."""
    return _sink.get() is not None


@contextmanager
def emitting(sink: Callable[[Event], None] | None) -> Iterator[None]:
    """Send events emitted inside the block to `sink`; None drops them."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


@contextmanager
def emitting_until_the_end() -> Iterator[None]:
    """Stream what is emitted inside the block, and nothing that its threads and tasks emit after its end."""
    sink, over = _sink.get(), False

    def pass_on(event: Event) -> None:
        if sink is not None and not over:
            sink(event)

    with emitting(None if sink is None else pass_on):
        try:
            yield
        finally:
            over = True

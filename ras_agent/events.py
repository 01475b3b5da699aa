"""What a running agent says about itself, as typed events.

`for event in agent.stream(inputs, stream_mode="custom")` yields these; the command line's trace is drawn from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ras_agent.records import Answer, Failure, Hit, Plan, Triple

__all__ = [
    "AnswerToken",
    "Answered",
    "Event",
    "Failed",
    "GraphDelta",
    "Hits",
    "Planned",
    "Thought",
    "Triples",
    "emit",
    "emitting",
    "listening",
]


@dataclass(frozen=True, slots=True)
class Planned:
    """The planner's decision before hop `hop`."""

    hop: int
    plan: Plan


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
    """How the question graph changed: facts it had not held, its size now, conflicts now."""

    hop: int
    added: tuple[Triple, ...]
    facts: int
    entities: int
    conflicts: int


@dataclass(frozen=True, slots=True)
class Thought:
    """IRCoT's next sentence."""

    hop: int
    sentence: str


@dataclass(frozen=True, slots=True)
class AnswerToken:
    """A piece of the answer's text as the model writes it."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of the run."""

    answer: Answer
    stop_reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Something went wrong; the run goes on."""

    failure: Failure


Event = Planned | Hits | Triples | GraphDelta | Thought | AnswerToken | Answered | Failed

_sink: ContextVar[Callable[[Event], None] | None] = ContextVar("ras_agent_events", default=None)


def emit(event: Event) -> None:
    """Hand an event to whoever listens to the running agent; without a listener, do nothing."""
    sink = _sink.get()
    if sink is not None:
        sink(event)


def listening() -> bool:
    """Whether somebody listens: a model's answer is streamed only then."""
    return _sink.get() is not None


@contextmanager
def emitting(sink: Callable[[Event], None] | None) -> Iterator[None]:
    """Events emitted inside the block go to `sink`."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)

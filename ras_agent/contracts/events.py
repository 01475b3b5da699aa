"""Defines the typed events of a running agent.

`for event in agent.stream(inputs, stream_mode="custom")` yields them. The command line draws its trace from
them.

The JSON of an event has the event's fields, `type` first: `to_dict` writes it, `event_from_dict` reads it.
LangGraph Server sends the same JSON, because it writes records by their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from ras_agent.contracts.errors import TraceError
from ras_agent.contracts.records import JSON, Answer, Failure, Hit, Plan, Triple
from ras_agent.contracts.scoped_value import ScopedValue
from ras_agent.text.markup import markup_start

if TYPE_CHECKING:
    from pydantic import TypeAdapter


_LEAVES = frozenset((str, int, float, bool, type(None)))


class _Event:
    """Writes an event as JSON. All events inherit from it."""

    __slots__ = ()

    def to_dict(self) -> JSON:
        """Return plain JSON: the fields of the event, `type` first. Records in the fields become JSON too."""
        data: JSON = _to_json_value(self)
        return data


def _to_json_value(value: Any) -> Any:
    if type(value) in _LEAVES:  # nearly all are
        return value
    if is_dataclass(value):
        return {
            field.name: _to_json_value(getattr(value, field.name))
            for field in fields(value)
        }
    if isinstance(value, Mapping):
        return {name: _to_json_value(item) for name, item in value.items()}
    return (
        [_to_json_value(item) for item in value]
        if isinstance(value, tuple | list)
        else value
    )


@dataclass(frozen=True, slots=True)
class Rewritten(_Event):
    """Reports that a follow-up `question` was rewritten to `standalone`, which can be understood without
    earlier turns.
    """

    type: Literal["rewritten"] = field(default="rewritten", kw_only=True)
    question: str
    standalone: str


@dataclass(frozen=True, slots=True)
class Planned(_Event):
    """Reports the planner's decision before hop `hop`."""

    json_keys: ClassVar = ("hop", "plan.*", "thought?", "by?")
    """the keys of a plan in a trace"""

    type: Literal["planned"] = field(default="planned", kw_only=True)
    hop: int
    plan: Plan
    thought: bool = False
    """Whether the decision is a sentence of a chain of thought. The sentence is the plan's sub-query, or the plan's
    reason if it ends the loop."""
    by: str = ""
    """the person who changed the plan, "person" or "person:Ada"; "" for the planner's unchanged plan"""

    def to_dict(self) -> JSON:
        """Return plain JSON, in which `plan` has the same keys as in the agent's output."""
        return {**_Event.to_dict(self), "plan": self.plan.to_dict()}


@dataclass(frozen=True, slots=True)
class Hits(_Event):
    """Reports the passages that a search returned for a sub-query."""

    type: Literal["hits"] = field(default="hits", kw_only=True)
    hop: int
    subquery: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Triples(_Event):
    """Reports the facts that were extracted from this hop's passages, before they are merged into the question
    graph.
    """

    type: Literal["triples"] = field(default="triples", kw_only=True)
    hop: int
    triples: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class GraphDelta(_Event):
    """Reports how a hop changed the question graph: its new facts, and the numbers of facts, entities and
    conflicts now.
    """

    type: Literal["graph_delta"] = field(default="graph_delta", kw_only=True)
    hop: int
    added: tuple[Triple, ...]
    facts: int
    entities: int
    conflicts: int
    ids: tuple[str, ...] = ()
    """the ids of the new facts, in the order of `added`; steps and citations use them"""


@dataclass(frozen=True, slots=True)
class AnswerToken(_Event):
    """Reports a piece of the answer's text while the model writes it."""

    type: Literal["answer_token"] = field(default="answer_token", kw_only=True)
    text: str


@dataclass(frozen=True, slots=True)
class WaitingForModel(_Event):
    """Reports that a step waits for a model's server."""

    type: Literal["waiting_for_model"] = field(
        default="waiting_for_model", kw_only=True
    )
    asked: int
    """the number of calls that were sent"""
    of: int
    """the number of calls that the step makes in all"""
    answered: int = 0
    """the number of calls that have returned"""


@dataclass(frozen=True, slots=True)
class Answered(_Event):
    """Reports the end of the run, with its answer."""

    type: Literal["answered"] = field(default="answered", kw_only=True)
    answer: Answer
    stop_reason: str
    grounded: bool = True
    """whether a cited sentence supports the answer, or may support it"""


@dataclass(frozen=True, slots=True)
class Failed(_Event):
    """Reports a problem that does not end the run."""

    type: Literal["failed"] = field(default="failed", kw_only=True)
    failure: Failure


Event = (
    Rewritten
    | Planned
    | Hits
    | Triples
    | GraphDelta
    | WaitingForModel
    | AnswerToken
    | Answered
    | Failed
)


def event_from_dict(data: Mapping[str, Any]) -> Event:
    """Return the event whose JSON `to_dict` wrote or a server sent. Raises TraceError, which names the wrong key."""
    from pydantic import ValidationError

    try:
        return _shape().validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise TraceError(
            f"this JSON is not an event: {f'{place}: ' if place else ''}{first['msg']}"
        ) from error


@cache
def _shape() -> TypeAdapter[Event]:
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[Event, Field(discriminator="type")])


_sink: ContextVar[Callable[[Event], None] | None] = ContextVar(
    "ras_agent_events", default=None
)


def emit(event: Event) -> None:
    """Send an event to the stream of the running agent. Outside a run, do nothing."""
    sink = _sink.get()
    if sink is not None:
        sink(event)


def streaming() -> bool:
    """Tell whether a caller reads the running agent's events. Only then does a model stream its answer."""
    return _sink.get() is not None


def emitting(
    sink: Callable[[Event], None] | None,
) -> ScopedValue[Callable[[Event], None] | None]:
    """Return a context manager that sends the events emitted in its block to `sink`; None drops them."""
    return ScopedValue(_sink, sink)


class InertTokens:
    """Forwards events to a sink, but holds back tokens of an answer that might begin markup by which a page
    loads something.

    Only the complete answer shows which markup it may keep. So the text from such a token on is sent just
    before the Answered event.
    """

    def __init__(self, sink: Callable[[Event], None]) -> None:
        self._sink = sink
        self._text = ""
        self._sent = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, AnswerToken):
            self._text += event.text
            self._send(self._text, markup_start(self._text, self._sent))
            return
        if (
            isinstance(event, Answered)
            and self._text
            and event.answer.text.startswith(self._text[: self._sent])
        ):
            self._send(event.answer.text, len(event.answer.text))
        self._sink(event)

    def _send(self, text: str, end: int) -> None:
        if end > self._sent:
            self._sink(AnswerToken(text[self._sent : end]))
            self._sent = end


@contextmanager
def emitting_until_the_end() -> Iterator[None]:
    """Drop events that threads and tasks started inside the `with` block emit after the block has ended."""
    sink = _sink.get()
    over = False

    def pass_on(event: Event) -> None:
        if sink is not None and not over:
            sink(event)

    with emitting(None if sink is None else pass_on):
        try:
            yield
        finally:
            over = True

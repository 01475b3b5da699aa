"""One code path for synchronous and asynchronous runs.

The body of a node is a generator: it reads the state, yields each call it wants made, and returns its update.

    def retrieve(state, limits):
        hits = yield Ask("retriever", hop, retriever, "retrieve", (state["subquery"], limits.k), list)
        return {"hits": ...}

One that calls nothing is a plain function. `Node` drives a body from `invoke` and from `ainvoke`. Around every call it
holds model calls against the limits, streams events, and turns an exception into a recorded failure: the generator
then receives None and goes on without.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from types import FunctionType
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime

from ras_agent.budget import Ledger, Limits, metered
from ras_agent.calling import acall, call
from ras_agent.errors import BudgetExceeded, IndexMismatch, PromptError, SettingsError, UnknownName
from ras_agent.events import Failed, emit, emitting
from ras_agent.graphs.plain import whole
from ras_agent.graphs.rehydrate import Records
from ras_agent.graphs.state import Update
from ras_agent.records import JSON, Failure, Usage

__all__ = ["Ask", "Body", "Node", "Work", "recorded"]

# Everything else that a tool raises is recorded. These are raised: mistakes in the wiring or the set-up, which no
# later hop can heal, and LangGraph's own signals (an interrupt asked for by a tool).
RAISED = (
    TypeError,
    AttributeError,
    NameError,
    NotImplementedError,
    AssertionError,
    ImportError,
    MemoryError,
    UnknownName,
    SettingsError,
    PromptError,
    IndexMismatch,
    GraphBubbleUp,
)


@dataclass(frozen=True, slots=True)
class Ask:
    """A call to make: `role.method(*args)`, which returns `returns`. `kind` and `hop` say whose it is and when."""

    kind: str
    hop: int
    role: object
    method: str
    args: tuple[Any, ...]
    returns: type


Work = Generator[Ask, Any, Update]
Body = Callable[[Any, Limits], Work | Update]


def recorded(failures: Iterable[Failure]) -> list[JSON]:
    """Failures for the state, told to whoever listens."""
    failures = tuple(replace(one, message=whole(str(one.message)), detail=whole(str(one.detail))) for one in failures)
    for failure in failures:
        emit(Failed(failure))
    return [failure.to_dict() for failure in failures]


class Node(Runnable[Any, Update]):
    """A step of a graph around `body`. `bounds` turns a run's own limits, None if it has none, into those in force."""

    def __init__(self, body: Body, bounds: Callable[[Limits | None], Limits], records: Records) -> None:
        self._body, self._bounds, self._records = body, bounds, records

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        with self._turn(input) as turn:
            while (ask := turn.advance()) is not None:
                try:
                    turn.receive(ask, call(ask.role, ask.method, *ask.args))
                except Exception as error:
                    turn.fail(ask, error)
        return turn.update

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        with self._turn(input) as turn:
            while (ask := turn.advance()) is not None:
                try:
                    turn.receive(ask, await acall(ask.role, ask.method, *ask.args))
                except Exception as error:
                    turn.fail(ask, error)
        return turn.update

    @contextmanager
    def _turn(self, state: Any) -> Iterator[_Turn]:
        runtime = get_runtime(Limits)
        # inside a bigger graph the context is that graph's own, of whatever type
        limits = self._bounds(runtime.context if isinstance(runtime.context, Limits) else None)
        began, spent = monotonic(), state.get("seconds", 0.0)
        calls = tuple(map(self._records.call, state["usage"]["calls"])) if "usage" in state else ()
        ledger = Ledger(limits=limits, started=began - spent, earlier=calls)
        with metered(ledger), emitting(_listener(runtime.stream_writer)):
            turn = _Turn(self._body(state, limits), ledger)
            yield turn
        turn.update.setdefault("seconds", spent + monotonic() - began)


def _listener(writer: Callable[[Any], None]) -> Callable[[Any], None] | None:
    """The stream writer, or None if it leads nowhere: without stream_mode "custom" LangGraph passes an empty function.

    That saves the work of describing, and of streaming, what nobody sees. A function that reaches a stream closes over
    it, so one without a closure cannot.
    """
    return None if isinstance(writer, FunctionType) and writer.__closure__ is None else writer


class _Turn:
    """One run of a node's body: what it asked, what failed, what it returned."""

    def __init__(self, work: Work | Update, ledger: Ledger) -> None:
        self.update: Update = {}
        self._work = work
        self._ledger = ledger
        self._reply: object = None
        self._failures: list[JSON] = []

    def advance(self) -> Ask | None:
        """The next call to make, or None when the body has returned."""
        if isinstance(self._work, dict):
            self.update = self._work
            return None
        try:
            ask = self._work.send(self._reply)
        except StopIteration as done:
            self.update = self._completed(done.value)
            return None
        self._ledger.role, self._ledger.hop = ask.kind, ask.hop
        self._reply = None
        return ask

    def receive(self, ask: Ask, reply: object) -> None:
        if not isinstance(reply, ask.returns):
            raise TypeError(
                f"{type(ask.role).__name__}.{ask.method} must return {ask.returns.__name__}, "
                f"got {type(reply).__name__}: {reply!r:.200}"
            )
        self._reply = reply

    def fail(self, ask: Ask, error: Exception) -> None:
        """Record what a call raised; raise it again if it is no failure of a tool."""
        if isinstance(error, RAISED):
            raise error
        if isinstance(error, BudgetExceeded):
            self._ledger.refused = error.limit
        else:
            self._failures += recorded([Failure(ask.kind, f"{type(error).__name__}: {error}"[:500], ask.hop)])

    def _completed(self, update: Update) -> Update:
        """The node's update with what its calls cost and what failed in them."""
        if self._failures:
            update["failures"] = [*self._failures, *update.get("failures", ())]
        if self._ledger.calls:
            update["usage"] = Usage((*self._ledger.earlier, *self._ledger.calls)).to_dict()
        if self._ledger.refused:
            update["stop_reason"] = self._ledger.refused
        return update

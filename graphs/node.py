"""Runs the nodes of a graph, with one code path for synchronous and asynchronous runs.

The body of a node is a generator: it reads the state, yields each call that it needs, and returns its update.

    def retrieve(state, limits, records):
        hits = yield RoleCall("retriever", hop, retriever, "retrieve", (state["subquery"], limits.k), list)
        return {"hits": ...}

A body without calls is a plain function. A body may also yield several calls in a list, as `together` does: they are
made at the same time, and the body receives their replies in the order of the list.

`Node` runs a body from `invoke` and from `ainvoke`. For every call it checks model calls against the limits, streams
events, and turns an exception into a recorded failure; the generator then receives None and continues without a reply.
The same happens when max_seconds are over and the call has not ended: the failure names the role that was still
running, and a later reply is dropped.

A role on a chat model is written in the same way, one layer below: its dialogue is a generator that yields Requests,
and ras_agent.tools.chat.dialogue runs it. The two runners are separate because they make different calls, handle
different errors, and work without each other: a body also calls roles without a model, and a role is also called
outside a graph, for example by the builder of a knowledge graph. A model call has six layers: the node, the role, its
dialogue, the Chat (budget, cache, tries, limits), LangChain's model, and HTTP (tests/graphs/test_layers_of_a_call.py
holds this).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from threading import TIMEOUT_MAX
from time import monotonic
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime

from ras_agent.contracts.errors import (
    BudgetExceeded,
    FilterError,
    IndexMismatch,
    ModelRefused,
    ParseError,
    PromptError,
    ReplayMiss,
    SettingsError,
    UnknownName,
    message_of,
)
from ras_agent.contracts.events import Failed, InertTokens, emit, emitting
from ras_agent.contracts.records import JSON, Call, Failure, Usage
from ras_agent.graphs.observe import asearch, log_node, search
from ras_agent.graphs.records import Records
from ras_agent.graphs.state import Update
from ras_agent.running.budget import Ledger, Limits, metered
from ras_agent.running.calling import StillRunning, acall, call, in_thread
from ras_agent.text.normal_form import storable
from ras_agent.tools.chat.counting import counting
from ras_agent.tools.chat.secrets import without_secrets
from ras_agent.tools.retrieve.search import searched_by
from ras_agent.tools.roles import role_name

# Errors of tools that are raised instead of recorded: mistakes in code or set-up, which no later hop can mend, a replay
# without a reply, and LangGraph's own signals (a tool's interrupt).
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
    FilterError,
    ReplayMiss,
    GraphBubbleUp,
)


# seconds that a role which watches the time itself, as one on a chat model does, has to return its result
_TO_HAND_OVER = 0.5
# seconds of a call that begins when all time is over, such as the question's own search if no plan came in time
_AT_LEAST = 0.25
# the most seconds that a question waits for a store, since an answer needs no earlier facts
_OF_STORE = 1.0


class RoleCall(NamedTuple):
    """Describes a call for a node to make: `role.method(*args)`, which must return an instance of `returns`.

    `kind` and `hop` say in failures and costs which role was called, and at which hop.
    """

    kind: str
    hop: int
    role: object
    method: str
    args: tuple[Any, ...]
    returns: type
    fallback: object = None
    """Plays the role if no reply of the model could be read; None if there is no fallback."""


_T = TypeVar("_T")

Calls = RoleCall | list[RoleCall]
"""The calls that a body yields: one call, or several calls that are made at the same time."""
NodeSteps = Generator[Calls, Any, Update]
NodeBody = Callable[[Any, Limits, Records], NodeSteps | Update]
"""A node's work. Its arguments are the state, the limits in force, and the memory that turns the state's JSON into
records."""


def together(
    works: Sequence[Generator[RoleCall, Any, _T]],
) -> Generator[Calls, Any, list[_T]]:
    """Run several generators of role calls to their end, and return their results in the same order.

    In each round, every generator that has not ended advances to its next call. These calls are yielded as one list,
    to be made at the same time.
    """
    if len(works) == 1:
        result = yield from works[0]
        return [result]
    results: dict[int, _T] = {}
    replies: dict[int, Any] = dict.fromkeys(range(len(works)))
    while replies:
        calls: dict[int, RoleCall] = {}
        for number, reply in replies.items():
            try:
                calls[number] = works[number].send(reply)
            except StopIteration as done:
                results[number] = done.value
        if not calls:
            break
        received = yield list(calls.values())
        replies = dict(zip(calls, received, strict=True))
    return [results[number] for number in range(len(works))]


def instead_of_model(role: object) -> str:
    """Return the part of a message that says which role takes over after an unreadable reply, and which setting
    decides it.
    """
    return (
        f"this step is left to the role {role_name(role)!r} (fallback = stop ends it)"
    )


def record_failures(failures: Iterable[Failure]) -> list[JSON]:
    """Return failures in the form of the state, without secrets, and emit each as an event."""
    recorded = []
    for failure in failures:
        clean = replace(
            failure, message=redacted(failure.message), detail=redacted(failure.detail)
        )
        recorded.append(clean)
    for failure in recorded:
        emit(Failed(failure))
    return [failure.to_dict() for failure in recorded]


def redacted(message: object) -> str:
    """Return an error's message without secret keys: a tool's error may quote an address that contains one."""
    return without_secrets(storable(str(message)))


class Node(Runnable[Any, Update]):
    """Runs the body of a node as a step of a LangGraph graph."""

    def __init__(
        self,
        title: str,
        body: NodeBody,
        bounds: Callable[[Limits | None], Limits],
        records: Records,
    ) -> None:
        """Take a body and what it needs to run.

        Args:
            title: the node's name.
            body: the node's work.
            bounds: takes the limits of a run, or None; returns the limits in force.
            records: turns the state's JSON into records.
        """
        self._title = title
        self._body = body
        self._bounds = bounds
        self._records = records

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Update:
        """Run the body and return the update of the state."""
        run = self._new_run(input)
        with metered(run.ledger), counting(), emitting(run.stream):
            run.begin(self._body, self._records)
            while run.advance():
                if len(run.asked) == 1:
                    self._make(run.asked[0], config)
                else:
                    self._make_all(run.asked, config)
                run.receive()
        return run.end(self._title, config)

    def _make_all(self, asked: Sequence[_Asked], config: RunnableConfig | None) -> None:
        """Make several calls, each in a thread, and wait for all of them. Then raise the first error in the order of
        the calls."""
        futures = []
        for one in asked:
            with metered(one.ledger):
                futures.append(in_thread(partial(self._make, one, config)))
        errors = [future.exception() for future in futures]
        for error in filter(None, errors):
            raise error

    def _make(self, asked: _Asked, config: RunnableConfig | None) -> None:
        while (role_call := asked.role_call) is not None:
            make_call: Callable[..., Any] = call
            if role_call.kind == "retriever":
                make_call = partial(search, config)
            try:
                reply = make_call(
                    role_call.role,
                    role_call.method,
                    *role_call.args,
                    within=asked.within(),
                )
                asked.receive(reply)
            except Exception as error:
                asked.fail(error)

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Update:
        """Do the same as `invoke`, as a coroutine."""
        run = self._new_run(input)
        with metered(run.ledger), counting(), emitting(run.stream):
            run.begin(self._body, self._records)
            while run.advance():
                if len(run.asked) == 1:
                    await self._amake(run.asked[0], config)
                else:
                    await self._amake_all(run.asked, config)
                run.receive()
        return run.end(self._title, config)

    async def _amake_all(
        self, asked: Sequence[_Asked], config: RunnableConfig | None
    ) -> None:
        """Do the same as `_make_all`, in tasks."""

        async def make(one: _Asked) -> None:
            with metered(one.ledger):
                await self._amake(one, config)

        errors = await asyncio.gather(*map(make, asked), return_exceptions=True)
        for error in filter(None, errors):
            raise error

    async def _amake(self, asked: _Asked, config: RunnableConfig | None) -> None:
        while (role_call := asked.role_call) is not None:
            make_call: Callable[..., Awaitable[Any]] = acall
            if role_call.kind == "retriever":
                make_call = partial(asearch, config)
            try:
                reply = await make_call(
                    role_call.role,
                    role_call.method,
                    *role_call.args,
                    within=asked.within(),
                )
                asked.receive(reply)
            except Exception as error:
                asked.fail(error)

    def _new_run(self, state: Any) -> _NodeRun:
        runtime = get_runtime(Limits)
        # inside a bigger graph the context is that graph's, of any type
        limits = self._bounds(
            runtime.context if isinstance(runtime.context, Limits) else None
        )
        calls: tuple[Call, ...] = ()
        if "usage" in state:
            calls = tuple(map(self._records.call, state["usage"]["calls"]))
        return _NodeRun(state, limits, calls, runtime.stream_writer)


def _does_nothing(writer: Callable[[Any], None]) -> bool:
    """Tell whether a stream writer drops all events, so that the node need not make them.

    Without stream_mode "custom" LangGraph passes an empty function as the writer, and there is no other sign of
    it. So the function's code is inspected: without global names, attributes, closed-over variables and
    defaults it cannot reach a stream. An empty function that this check misses only costs time; a test would
    then fail.
    """
    if not isinstance(writer, FunctionType):
        return False
    code = writer.__code__
    return not (
        code.co_names
        or code.co_freevars
        or writer.__defaults__
        or writer.__kwdefaults__
    )


class _NodeRun:
    """Holds one run of a node's body: the calls that it makes, their failures, and its update."""

    def __init__(
        self,
        state: Any,
        limits: Limits,
        earlier: tuple[Call, ...],
        writer: Callable[[Any], None],
    ) -> None:
        self.update: Update = {}
        if _does_nothing(writer):
            self.stream = None
        else:
            self.stream = InertTokens(writer)
        self._state = state
        self._began = monotonic()
        self._spent = state.get("seconds", 0.0)
        self.ledger = Ledger(
            limits=limits,
            started=self._began - self._spent,
            earlier=earlier,
            reviews=state.get("reviews", ()),
            in_need={call.role for call in earlier if call.unread},
        )
        self._steps: NodeSteps | Update = {}
        self.asked: list[_Asked] = []
        self._is_one = True
        self._reply: object = None
        self._failures: list[JSON] = []

    def begin(self, body: NodeBody, records: Records) -> None:
        """Start the body. A plain function, which makes no calls, is then already complete."""
        self._steps = body(self._state, self.ledger.limits, records)

    def end(self, title: str, config: RunnableConfig | None) -> Update:
        """Return the node's update with the time that the node took, and log the run."""
        took = monotonic() - self._began
        self.update.setdefault("seconds", self._spent + took)
        log_node(title, config, self._state, self.update, self.ledger, took)
        return self.update

    def advance(self) -> bool:
        """Continue the body until it yields its next calls, and store these in `asked`. Return False if it has
        returned instead.
        """
        if isinstance(self._steps, dict):
            self.update = self._steps
            return False
        try:
            calls = self._steps.send(self._reply)
        except StopIteration as done:
            self.update = self._completed(done.value)
            return False
        self._reply = None
        if isinstance(calls, RoleCall):
            self.ledger.role = calls.kind
            self.ledger.hop = calls.hop
            self.asked = [_Asked(calls, self.ledger)]
        else:
            self.asked = [
                _Asked(one, self.ledger.part(one.kind, one.hop)) for one in calls
            ]
        self._is_one = isinstance(calls, RoleCall)
        return True

    def receive(self) -> None:
        """Collect the replies for the body in the order of its calls. The reply of a failed call is None."""
        replies = []
        for one in self.asked:
            replies.append(one.reply)
            self._failures += one.failures
        self._reply = replies
        if self._is_one:
            self._reply = replies[0]
        else:
            self.ledger.join([one.ledger for one in self.asked])

    def _completed(self, update: Update) -> Update:
        """Return the node's update with the cost and the failures of its calls."""
        if self.ledger.notes:
            self._failures += record_failures(self.ledger.notes)
        if self._failures:
            update["failures"] = [*self._failures, *update.get("failures", ())]
        if self.ledger.calls:
            update["usage"] = Usage(
                (*self.ledger.earlier, *self.ledger.calls)
            ).to_dict()
        if self.ledger.refused:
            update["stop_reason"] = self.ledger.refused
        return update


class _Asked:
    """Holds one call of a node with its reply (None if it failed) and the failures on the way.

    `role_call` is the next call to make, which may be a fallback, or None when no call is left. `ledger` counts
    the costs of this call.
    """

    def __init__(self, role_call: RoleCall, ledger: Ledger) -> None:
        self.role_call: RoleCall | None = role_call
        self.ledger = ledger
        self.reply: object = None
        self.failures: list[JSON] = []

    def within(self) -> float:
        """Return how many seconds the call may take: infinity if the run has no limit, and a fixed time for a
        store.

        After max_seconds a call still gets a short time, so that a fast answer can be completed.
        """
        if self.ledger.role == "store":
            return _OF_STORE
        seconds_left = self.ledger.seconds_left()
        limits = self.ledger.limits
        if (
            limits.max_seconds is None
            or limits.loop_seconds is None
            or seconds_left > TIMEOUT_MAX / 2
        ):
            return inf
        for_answer = limits.max_seconds - limits.loop_seconds
        return max(seconds_left + min(_TO_HAND_OVER, for_answer / 2), _AT_LEAST)

    def receive(self, reply: object) -> None:
        """Store the reply. Raises TypeError for a reply of the wrong type."""
        role_call = self.role_call
        assert role_call is not None
        if not isinstance(reply, role_call.returns):
            raise TypeError(
                f"{type(searched_by(role_call.role)).__name__}.{role_call.method} must return "
                f"{role_call.returns.__name__}, got {type(reply).__name__}: {reply!r:.200}"
            )
        self.reply = reply
        self.role_call = None

    def fail(self, error: Exception) -> None:
        """Record an exception as a failure, or as the limit that was reached, and make the fallback, if there
        is one, the next call.

        Raises the error again if its type is in RAISED.
        """
        role_call = self.role_call
        assert role_call is not None
        if isinstance(error, RAISED):
            raise error
        self.role_call = None
        if isinstance(error, BudgetExceeded):
            self.ledger.refused = error.limit
            return
        if isinstance(error, StillRunning) and role_call.kind == "store":
            message = f"the store did not answer within {_OF_STORE:g} s: this thread's earlier facts are left out"
        elif isinstance(error, StillRunning):
            self.ledger.refused = "max_seconds"
            over = f"max_seconds = {self.ledger.limits.max_seconds:g} were over"
            if role_call.kind != "answerer":
                over = f"{over} but for the answer's part"
            message = f"the {role_call.kind} was still running when {over}; what it finds later is dropped"
        elif isinstance(error, ModelRefused):
            self.ledger.refused = "model_refused"
            message = redacted(error)[:500]
        else:
            message = redacted(f"{type(error).__name__}: {message_of(error)}")[:500]
            if isinstance(error, ParseError) and role_call.fallback is not None:
                instead = role_call._replace(role=role_call.fallback, fallback=None)
                message = f"{message}; {instead_of_model(instead.role)}"
                self.role_call = instead
        failure = Failure(role_call.kind, message, role_call.hop)
        self.failures += record_failures([failure])

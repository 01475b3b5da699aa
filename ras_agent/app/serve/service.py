"""What all requests of a server share: the agent, the checkpointer, the runs under way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ras_agent.app.serve.runs import Run
from ras_agent.app.serve.wire import AskRequest, RequestLimits
from ras_agent.budget import Limits
from ras_agent.checkpoints import aopen_checkpointer
from ras_agent.errors import RasError
from ras_agent.graphs.from_settings import Roles, agent_of, roles_of
from ras_agent.settings import Settings

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

# what one question may take where the settings say nothing: a server must not work for nobody for ever
_MAX_SECONDS = 300.0


class Busy(RasError, RuntimeError):
    """Raised when no further run can be started now."""


class ThreadBusy(RasError, RuntimeError):
    """Raised when a thread has a run under way."""


class Service:
    """Holds the agent of a server and starts its runs."""

    def __init__(self, settings: Settings, roles: Roles, checkpointer: BaseCheckpointSaver[Any]) -> None:
        self.settings = settings
        self.limits = replace(roles.limits, max_seconds=roles.limits.max_seconds or _MAX_SECONDS)
        self.agent = agent_of(roles, checkpointer)
        self._threads: set[str] = set()

    @property
    def runs(self) -> int:
        """Return how many runs are under way."""
        return len(self._threads)

    def ask(self, request: AskRequest) -> tuple[str, Run]:
        """Start the run of a request, and return its thread. Raises Busy and ThreadBusy."""
        thread = request.thread or uuid4().hex
        return thread, self._start(thread, {"question": _question(request)}, request.limits)

    def _start(self, thread: str, inputs: Any, limits: RequestLimits | None) -> Run:
        if len(self._threads) >= self.settings.max_runs:
            raise Busy(f"{self.settings.max_runs} questions are being answered: try again soon")
        if thread in self._threads:
            raise ThreadBusy(f"thread {thread!r} is being answered: wait for its end, or ask in another thread")
        self._threads.add(thread)
        return Run(
            self.agent,
            inputs,
            {"configurable": {"thread_id": thread}},
            _lowered(self.limits, limits),
            ended=lambda: self._threads.discard(thread),
        )


def _question(request: AskRequest) -> str:
    if request.question is not None:
        return request.question
    return next((one.text for one in reversed(request.messages or ()) if one.role == "user"), "")


def _lowered(limits: Limits, asked: RequestLimits | None) -> Limits:
    """Return `limits`, each lowered to what was asked for."""
    chosen = asked.model_dump(exclude_none=True) if asked else {}
    return replace(limits, **{name: min(value, getattr(limits, name) or value) for name, value in chosen.items()})


@asynccontextmanager
async def open_service(settings: Settings, *, sample: bool = False) -> AsyncIterator[Service]:
    """Open what the settings name, and close it at the end of the block. Raises RasError children."""
    index: Any = None
    if sample:
        from ras_agent.app.sample import sample_passages

        index = sample_passages()
    roles = roles_of(settings.graph, settings, index)
    async with aopen_checkpointer(settings.checkpoint) as checkpointer:
        yield Service(settings, roles, checkpointer)

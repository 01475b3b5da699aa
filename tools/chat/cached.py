"""Keeps a model's replies: an equal request is answered from the cache, or shares the call in progress."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ras_agent.address import Address
from ras_agent.budget import current_ledger
from ras_agent.errors import ModelCallError, PromptTooLong, RasError
from ras_agent.prompts import ToolCall
from ras_agent.tools.chat.asking import graph_of
from ras_agent.tools.chat.cache import FAILED, ReplyCache, ReplySlot, SingleFlight
from ras_agent.tools.chat.call import Model, Reply, Request
from ras_agent.tools.chat.deadline import Deadline
from ras_agent.tools.chat.endings import LENGTH
from ras_agent.tools.chat.names import sampling_parameters
from ras_agent.tools.chat.replay import miss_of
from ras_agent.tools.chat.runnables import our_model
from ras_agent.tools.chat.sizes import Sizes
from ras_agent.tools.chat.window import estimate_turns

_REFUSED = "refused"
"""Key of a stored reply that does not exist: its value is the window that the prompt was too long for"""
_NOT_KEPT = frozenset(("seconds", "replayed", "key"))
_KEPT_IF_ANY = frozenset(("calls", "thoughts", "unread", "ending", "refusal"))


class Cached:
    """Asks the model inside where the cache has no reply, and keeps its reply, or its refusal of a long prompt."""

    def __init__(
        self,
        model: Model,
        asked: Any,
        sizes: Sizes,
        place: str | Path | Address,
        identity: Mapping[str, Any],
        *,
        replay: bool,
        believes_sizes: bool,
    ) -> None:
        """Open the cache at a place.

        asked: the model of LangChain's; its parameters are part of the key of a reply.
        identity: further parts of the key.
        replay: whether a request without a reply there is a ReplayMiss, and no model is asked.
        believes_sizes: whether a refusal of a long prompt is asked again, as a user set the window.
        """
        self._model = model
        self._asked = asked
        self._sizes = sizes
        self._place = place
        self._identity = identity
        self._replay = replay
        self._believes_sizes = believes_sizes
        self._cache = ReplyCache(place)
        self._in_flight: SingleFlight[Reply] = SingleFlight()
        # a configurable model takes them from the running call's configuration
        self._parameters = sampling_parameters(asked) if our_model(asked) else None

    async def ask(self, request: Request, deadline: Deadline) -> Reply:
        """Return the cached reply, the reply to an equal request in progress, or a fresh one, which is then kept."""
        slot = self._slot(request)
        while (ahead := self._in_flight.join(slot.key)) is not None:
            # shielded: a caller that stops waiting must not cancel the call for the others
            found = await deadline.wait(asyncio.shield(asyncio.wrap_future(ahead)))
            if found is not None:
                return replace(found, replayed=True, seconds=0.0)
        reply = None
        try:
            reply = await self._known(request, slot)
            if reply is None:
                reply = await self._fresh(request, slot, deadline)
            reply = replace(reply, key=slot.key)
            return reply
        finally:
            self._in_flight.finish(slot.key, reply)

    async def _known(self, request: Request, slot: ReplySlot) -> Reply | None:
        """Return a cached reply. Raises PromptTooLong if the server refused the prompt when it was asked."""
        if slot.is_local:
            found = slot.get(_replayed)
        else:
            found = await asyncio.to_thread(slot.get, _replayed)
        if not isinstance(found, int):
            return found
        if self._believes_sizes:  # the server may have another window by now
            return None
        self._sizes.learnt.shrink(found)
        asked = f"{self._sizes.name} refused a prompt of about {estimate_turns(request.turns):,} tokens as too long"
        raise PromptTooLong(f"{asked}, by the replies in {self._place}")

    async def _fresh(
        self, request: Request, slot: ReplySlot, deadline: Deadline
    ) -> Reply:
        if self._replay:
            raise await asyncio.to_thread(self._not_recorded, slot)
        try:
            reply = await self._model.ask(request, deadline)
        except PromptTooLong:
            # kept, as a replayed run asks for the same prompts as the first
            await asyncio.to_thread(slot.put, {_REFUSED: self._sizes.window})
            raise
        except ModelCallError as error:
            # kept only for replays: a run that goes on asks again
            await asyncio.to_thread(slot.of_failure.put, {FAILED: str(error)})
            raise
        await asyncio.to_thread(slot.put, _to_json(reply))
        return reply

    def _not_recorded(self, slot: ReplySlot) -> RasError:
        """Return the error for a request that a replay has no reply to: as the call failed then, or a ReplayMiss."""
        failure = slot.of_failure.get(lambda reply: str(reply[FAILED]))
        return ModelCallError(failure) if failure else miss_of(slot, self._place)

    def _slot(self, request: Request) -> ReplySlot:
        more: dict[str, Any] = dict(self._identity)
        if request.max_tokens is not None:
            more["most"] = request.max_tokens
        given = graph_of(self._asked, request)
        if given:
            more["graph"] = [list(map(str, facts)) for facts in given["graph"]]
        if request.tools:
            more["tools"] = list(request.tools)
        if request.form:
            more["pattern"] = request.form.pattern
        if request.varied:
            more["varied"] = True
        if request.stop:
            more["stop"] = list(request.stop)
        parameters = self._parameters or sampling_parameters(self._asked)
        ledger = current_ledger()
        return self._cache.slot(
            parameters | more, request.turns, ledger.role, ledger.hop
        )


def _replayed(cached: dict[str, Any]) -> Reply | int:
    """Return a cached reply, or the window that a refusal left. Raises TypeError for another form."""
    if _REFUSED in cached:
        return int(cached[_REFUSED])
    if cached.pop("truncated", False):  # of a cache of an earlier version
        cached["ending"] = LENGTH
    for name in ("calls", "unread"):
        cached[name] = tuple(ToolCall(**call) for call in cached.get(name, ()))
    reply = Reply(**cached, replayed=True)
    tokens = (reply.input_tokens, reply.output_tokens, reply.cached_tokens)
    if not isinstance(reply.text, str) or not all(
        isinstance(count, int) for count in tokens
    ):
        raise TypeError("a reply is a text with numbers of tokens")
    return reply


def _to_json(reply: Reply) -> dict[str, Any]:
    """Return a reply as it is cached: without the time it took."""
    kept = {}
    for name, value in asdict(reply).items():
        if name not in _NOT_KEPT and (value or name not in _KEPT_IF_ANY):
            kept[name] = value
    return kept

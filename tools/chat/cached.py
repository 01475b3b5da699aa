"""Stores a model's replies: an equal request gets the stored reply, or shares the call in progress."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import zip_longest
from os.path import commonprefix
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ras_agent.config.address import Address
from ras_agent.contracts.errors import (
    ModelCallError,
    PromptTooLong,
    RasError,
    ReplayMiss,
    SettingsError,
)
from ras_agent.contracts.records import JSON
from ras_agent.running.budget import current_ledger
from ras_agent.tools.chat.asking import graph_of
from ras_agent.tools.chat.cache import FAILED, ReplyCache, ReplySlot, SingleFlight
from ras_agent.tools.chat.call import Model, Reply, Request
from ras_agent.tools.chat.deadline import Deadline
from ras_agent.tools.chat.names import sampling_parameters
from ras_agent.tools.chat.runnables import our_model
from ras_agent.tools.chat.window import Sizes, estimate_turns
from ras_agent.tools.workers.remote_cache import REMOTE

_REFUSED = "refused"
"""Key of a cached entry for a prompt that was refused as too long; its value is the window's size in tokens."""
_REPLY = TypeAdapter(Reply)
_NOT_KEPT = frozenset(("seconds", "replayed", "key"))
_KEPT_IF_ANY = frozenset(("calls", "thoughts", "unread", "ending", "refusal"))


class Cached:
    """Wraps a model: a request with a stored reply is not sent, and new replies are stored, as are refusals of long
    prompts.
    """

    def __init__(
        self,
        model: Model,
        asked: Any,
        sizes: Sizes,
        place: str | Path | Address,
        identity: JSON,
        *,
        replay: bool,
        believes_sizes: bool,
    ) -> None:
        """Open the cache at `place`.

        Args:
            model: the model to call.
            asked: the LangChain model inside it; its parameters are part of a reply's key.
            sizes: the model's window and the refusals of its endpoint.
            identity: further parts of the key.
            replay: whether a request without a stored reply raises ReplayMiss instead of being sent.
            believes_sizes: whether a prompt that was once refused as too long is sent again, since the user set the
                window.
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
        # parameters of a configurable model depend on the running call, so they are not computed here
        self._parameters = sampling_parameters(asked) if our_model(asked) else None

    async def ask(self, request: Request, deadline: Deadline) -> Reply:
        """Return the stored reply, the reply to an equal request in progress, or a new reply, which is then stored."""
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
        """Return a stored reply, or None.

        Raises PromptTooLong if the stored entry is a refusal of the prompt.
        """
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
        raise PromptTooLong(f"{asked}, as the replies stored in {self._place} show")

    async def _fresh(
        self, request: Request, slot: ReplySlot, deadline: Deadline
    ) -> Reply:
        if self._replay:
            raise await asyncio.to_thread(self._not_recorded, slot)
        try:
            reply = await self._model.ask(request, deadline)
        except PromptTooLong:
            # stored, so that a replayed run shortens its prompts as the recorded run did
            await asyncio.to_thread(slot.put, {_REFUSED: self._sizes.window})
            raise
        except ModelCallError as error:
            # stored only for replays: a resumed run asks again
            await asyncio.to_thread(slot.of_failure.put, {FAILED: str(error)})
            raise
        await asyncio.to_thread(slot.put, _to_json(reply))
        return reply

    def _not_recorded(self, slot: ReplySlot) -> RasError:
        """Return the error for a request without a stored reply in a replay: the recorded failure, or a ReplayMiss."""
        failure = slot.of_failure.get(lambda reply: str(reply[FAILED]))
        if failure:
            return ModelCallError(failure)
        return miss_of(slot, self._place)

    def _slot(self, request: Request) -> ReplySlot:
        given = graph_of(self._asked, request)
        facts = []
        for some in given.get("graph", ()):
            facts.append(list(map(str, some)))
        parts = {
            "most": request.max_tokens,
            "graph": facts,
            "tools": list(request.tools),
            "pattern": request.form and request.form.pattern,
            "varied": request.varied,
            "sample": request.sample,
            "stop": list(request.stop),
        }
        more = {name: value for name, value in parts.items() if value}
        parameters = self._parameters or sampling_parameters(self._asked)
        ledger = current_ledger()
        return self._cache.slot(
            parameters | self._identity | more, request.turns, ledger.role, ledger.hop
        )


def _replayed(cached: JSON) -> Reply | int:
    """Return a stored reply, or the window size of a stored refusal.

    Raises TypeError or ValueError if the entry has another form.
    """
    if _REFUSED in cached:
        return int(cached[_REFUSED])
    reply = Reply(**cached, replayed=True)
    return _REPLY.validate_python(asdict(reply))


def _to_json(reply: Reply) -> JSON:
    """Return a reply as it is stored: without the fields that belong to one call, such as its seconds."""
    kept = {}
    for name, value in asdict(reply).items():
        if name not in _NOT_KEPT and (value or name not in _KEPT_IF_ANY):
            kept[name] = value
    return kept


# ---- why a replay has no reply


_CONTEXT = 40  # characters shown on either side of a difference


def check_recorded(place: object) -> None:
    """Raise SettingsError if a replay has no cache, or its file does not exist. Opening would create an empty one."""
    if place is None:
        raise SettingsError(
            "--replay answers from stored replies: name their file, --cache FILE"
        )
    if (
        not str(place).startswith(REMOTE)
        and isinstance(place, str | Path)
        and not Path(place).exists()
    ):
        remedy = "record replies by a run without --replay, or name the file of such a run, --cache FILE"
        raise SettingsError(f"--replay: there are no replies at {place}: {remedy}")


def miss_of(slot: ReplySlot, place: str | Path | Address | None) -> ReplayMiss:
    """Return the ReplayMiss for the request of `slot`, which the cache at `place` does not hold. It names the nearest
    request there.
    """
    request: JSON = json.loads(slot.request)
    asked = f"the request of {request['role'] or 'a call'} at hop {request['hop']}"
    remedy = "run without --replay to call the model and record its reply"
    recorded = [] if place is None else ReplyCache(place).recordings()
    nearest = nearest_request(request, recorded)
    if nearest is None:
        return ReplayMiss(
            f"replay: no reply to {asked}, since {place} is empty: {remedy}"
        )
    where = f"{nearest.get('role') or 'of no role'}, hop {nearest.get('hop', '?')}"
    difference = (
        first_difference(nearest, request) or "is equal, but its reply cannot be used"
    )
    nearest_there = f"The nearest request there ({where}) {difference}"
    return ReplayMiss(
        f"replay: no reply in {Path(str(place)).name} to {asked}. {nearest_there}: {remedy}"
    )


def nearest_request(request: JSON, recorded: Iterable[JSON]) -> JSON | None:
    """Return the recorded request that is most like `request`; None if nothing is recorded.

    One of the same role and hop is preferred, then one with more shared words.
    """
    words = _words(request)

    def likeness(other: JSON) -> tuple[bool, bool, float]:
        theirs = _words(other)
        shared = (words & theirs).total()
        both = words.total() + theirs.total()
        same_role = other.get("role") == request["role"]
        same_hop = same_role and other.get("hop") == request["hop"]
        return same_role, same_hop, 2 * shared / max(both, 1)

    return max(recorded, key=likeness, default=None)


def first_difference(there: JSON, here: JSON) -> str:
    """Describe the first difference between two requests, as a clause with `there` as subject; "" if they are equal."""
    ours = here["parameters"]
    theirs = there["parameters"]
    for name in sorted(ours.keys() | theirs.keys()):
        old = theirs.get(name)
        new = ours.get(name)
        if old != new:
            return f"has {name} = {_short(old)} where this one has {_short(new)}"
    pairs = zip_longest(there["messages"], here["messages"], fillvalue=("nothing", ""))
    for number, (old, new) in enumerate(pairs, 1):
        if old != new:
            return _difference(number, old, new)
    return ""


def _difference(number: int, old: Sequence[Any], new: Sequence[Any]) -> str:
    """Describe the first difference between two messages with the same number."""
    old_role, old_text, *old_calls = old
    new_role, new_text, *new_calls = new
    if old_role != new_role:
        return f"has as message {number} one of {old_role} where this one has one of {new_role}"
    where = f"differs first in message {number} ({new_role})"
    if old_text == new_text:
        return f"{where}, in the call of a tool: {_short(old_calls)} there, {_short(new_calls)} here"
    same = len(commonprefix([old_text, new_text]))  # noqa: RUF071  (characters are meant)
    there = _excerpt(old_text, same)
    here = _excerpt(new_text, same)
    return f"{where}, character {same + 1}: {there} there, {here} here"


def _words(request: JSON) -> Counter[str]:
    return Counter(
        word for message in request["messages"] for word in message[1].split()
    )


def _excerpt(text: str, place: int) -> str:
    """Return the text around an offset, in quotes."""
    start = max(0, place - _CONTEXT)
    end = place + _CONTEXT
    shown = text[start:end]
    if start:
        shown = f"…{shown}"
    if end < len(text):
        shown = f"{shown}…"
    return repr(shown)


def _short(value: object) -> str:
    text = repr(value)
    if len(text) <= 2 * _CONTEXT:
        return text
    return f"{text[: 2 * _CONTEXT]}…"

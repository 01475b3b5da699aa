"""Explains why a replay has no reply: shows the nearest recorded request and the first difference."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from os.path import commonprefix
from pathlib import Path
from typing import Any

from ras_agent.address import Address
from ras_agent.errors import ReplayMiss, SettingsError
from ras_agent.records import JSON
from ras_agent.tools.chat.cache import ReplyCache, ReplySlot
from ras_agent.tools.workers.remote_cache import REMOTE

_CONTEXT = 40  # characters shown on either side of a difference


def check_recorded(place: object) -> None:
    """Raise SettingsError where a replay has no cache, or a file that does not exist, which would be created empty."""
    if place is None:
        raise SettingsError(
            "replay answers from stored replies: name them, --cache FILE"
        )
    if (
        not str(place).startswith(REMOTE)
        and isinstance(place, str | Path)
        and not Path(place).exists()
    ):
        remedy = (
            "record them by a run without --replay, or name those of one, --cache FILE"
        )
        raise SettingsError(f"replay: there are no replies at {place}; {remedy}")


def miss_of(slot: ReplySlot, place: str | Path | Address | None) -> ReplayMiss:
    """Return the error for a request, that of `slot`, without a reply in the cache at `place`."""
    request: JSON = json.loads(slot.request)
    asks = f"{request['role'] or 'call'} asks at hop {request['hop']}"
    remedy = "without --replay the model is asked, and its reply recorded"
    recorded = [] if place is None else ReplyCache(place).recordings()
    nearest = nearest_request(request, recorded)
    if nearest is None:
        return ReplayMiss(
            f"replay: {place} holds no replies, so none to what the {asks}; {remedy}"
        )
    where = f"{nearest.get('role') or 'of no role'}, hop {nearest.get('hop', '?')}"
    difference = (
        first_difference(nearest, request) or "is equal, but its reply cannot be used"
    )
    nearest_there = f"The nearest request there ({where}) {difference}"
    return ReplayMiss(
        f"replay: no reply in {Path(str(place)).name} to what the {asks}. {nearest_there}; {remedy}"
    )


def nearest_request(request: JSON, recorded: Iterable[JSON]) -> JSON | None:
    """Return the request that shares the most words with `request`, of its role and hop where there is one of these."""
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
    """Say in which parameter or message two requests differ first, in words about `there`; "" where they do not."""
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
    """Say where the messages of one number differ first."""
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
    """Return the text around a place, in quotes."""
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

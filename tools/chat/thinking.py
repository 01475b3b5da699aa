"""Local reasoning models write their thoughts into the reply; nothing in them is part of it."""

from __future__ import annotations

import re

__all__ = ["without_thinking"]

_OPEN = re.compile(r"<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(think|thinking|thought|reasoning)>", re.IGNORECASE)


def without_thinking(reply: str) -> str:
    """The reply behind its last closed thought, up to one that is still open.

    Chat templates often write the opening tag themselves, so a closing tag alone ends a thought too.

    >>> without_thinking("<think>[SUFFICIENT]?</think> [SUBQ] Who?")
    ' [SUBQ] Who?'
    """
    closes = list(_CLOSE.finditer(reply))
    visible = reply[closes[-1].end() :] if closes else reply
    still_open = _OPEN.search(visible)
    return visible[: still_open.start()] if still_open else visible

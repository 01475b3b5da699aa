"""The thoughts that local reasoning models write into their replies, and the turns of others behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ras_agent.marks import FLAGS, THOUGHT_MARKS, TURN_OPENINGS

_THOUGHTS = tuple(
    (marks, re.compile(marks.opening, FLAGS), re.compile(marks.closing, FLAGS))
    for marks in THOUGHT_MARKS
)
_TURN_BEGINS = re.compile(rf"(?:\s*+(?:{'|'.join(TURN_OPENINGS)}))++")
_TURN_ENDS = re.compile(
    r"</s>|\[/?INST\]|<[|｜](?=[^\W\d])(?!(?:begin|end)_of_box\|)|</?(?:start|end)_of_turn>|<(?:eos|sep|channel\|)>",
    re.IGNORECASE,
)


def without_thinking(reply: str) -> str:
    """Return a reply without the thoughts that local reasoning models write into it, and without a next turn.

    It begins behind the last closed thought and ends where a thought is still open. Chat templates often write the
    opening tag themselves, so a single closing tag ends a thought too. A server with another template than the model's lets
    the tokens through that end a turn; the model plays others behind one.

    >>> without_thinking("<think>[SUFFICIENT]?</think> [SUBQ] Who?</s>[INST] Thanks!")
    ' [SUBQ] Who?'
    """
    start, end = spoken_span(reply)
    return reply[start:end]


def spoken_span(reply: str) -> tuple[int, int]:
    """Return the beginning and the end, in a reply, of the part that `without_thinking` leaves of it."""
    start, end = _span_after_thoughts(reply)
    begins = _TURN_BEGINS.match(reply, start, end)
    if begins:
        start = begins.end()
    ends = _TURN_ENDS.search(reply, start, end)
    if ends:
        end = ends.start()
    return start, end


def after_thoughts(reply: str) -> str:
    """Return a reply without its thoughts, but with the tokens of its template, between which calls of tools stand."""
    start, end = _span_after_thoughts(reply)
    return reply[start:end]


def is_thinking(reply: str) -> bool:
    """Return whether a thought is open at the end of a reply."""
    _, end = _span_after_thoughts(reply)
    return end < len(reply)


def has_unmarked_thoughts(reply: str) -> bool:
    """Return whether a reply closes thoughts that it did not open, as where the chat template opens them."""
    for marks, opening, closing in _THOUGHTS:
        if not marks.closes_alone:
            continue
        closes = closing.search(reply)
        if closes and not opening.search(reply, 0, closes.start()):
            return True
    return False


def _span_after_thoughts(reply: str) -> tuple[int, int]:
    start = max(_thought_ends(reply), default=0)
    beginnings = _thought_beginnings(reply, start)
    end = min(beginnings, default=len(reply))
    return start, end


def _thought_ends(reply: str) -> Iterator[int]:
    """Yield where each kind of thoughts in a reply ends for the last time."""
    for marks, opening, closing in _THOUGHTS:
        closings = list(closing.finditer(reply))
        if not closings:
            continue
        last = closings[-1]
        if marks.closes_alone or opening.search(reply, 0, last.start()):
            yield last.end()


def _thought_beginnings(reply: str, start: int) -> Iterator[int]:
    """Yield where each kind of thoughts that nothing closes begins, from `start` on."""
    for marks, opening, _ in _THOUGHTS:
        if not marks.stays_open:
            continue
        begins = opening.search(reply, start)
        if begins:
            yield begins.start()

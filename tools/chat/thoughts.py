"""Removes from replies the thoughts of local reasoning models, and the turns of other speakers that they invent."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ras_agent.contracts.marks import FLAGS, THOUGHT_MARKS, TURN_OPENINGS

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
    """Return a reply without the model's thoughts, and without any turn that it wrote after the reply.

    The reply begins after the last closed thought and ends at a thought that is still open. A single closing tag
    also ends a thought, because chat templates often write the opening tag themselves. If a server uses another
    chat template than the model's, the tokens that end a turn appear in the text; everything after one is dropped.

    >>> without_thinking("<think>[SUFFICIENT]?</think> [SUBQ] Who?</s>[INST] Thanks!")
    ' [SUBQ] Who?'
    """
    start, end = spoken_span(reply)
    return reply[start:end]


def spoken_span(reply: str) -> tuple[int, int]:
    """Return the start and end offsets of the part of a reply that `without_thinking` returns."""
    start, end = _span_after_thoughts(reply)
    begins = _TURN_BEGINS.match(reply, start, end)
    if begins:
        start = begins.end()
    ends = _TURN_ENDS.search(reply, start, end)
    if ends:
        end = ends.start()
    return start, end


def after_thoughts(reply: str) -> str:
    """Return a reply without its thoughts, but with the tokens of its chat template, which may enclose tool calls."""
    start, end = _span_after_thoughts(reply)
    return reply[start:end]


def is_thinking(reply: str) -> bool:
    """Return whether a thought is still open at the end of a reply."""
    _, end = _span_after_thoughts(reply)
    return end < len(reply)


def has_unmarked_thoughts(reply: str) -> bool:
    """Return whether a reply closes a thought that it did not open, as if the chat template wrote the opening tag."""
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
    """Yield, for each kind of thought marks, the offset after the last closed thought in a reply."""
    for marks, opening, closing in _THOUGHTS:
        closings = list(closing.finditer(reply))
        if not closings:
            continue
        last = closings[-1]
        if marks.closes_alone or opening.search(reply, 0, last.start()):
            yield last.end()


def _thought_beginnings(reply: str, start: int) -> Iterator[int]:
    """Yield the offsets from `start` on at which thoughts without an end may begin: the first opening mark of each kind.

    Kinds of marks that always have an end are left out.
    """
    for marks, opening, _ in _THOUGHTS:
        if not marks.stays_open:
            continue
        begins = opening.search(reply, start)
        if begins:
            yield begins.start()

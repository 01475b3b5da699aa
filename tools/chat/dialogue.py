"""A role's conversation with a model, written once for sync and async.

A dialogue is a generator: it yields a Request, is sent the Reply, and returns its result. It does no I/O, so the same
dialogue runs under threads, under an event loop, and in a test without either. A failed call raises at its `yield`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import TypeVar

from ras_agent.errors import BudgetExceeded, ModelCallError, PromptTooLong
from ras_agent.marks import FLAGS, THOUGHT_MARKS, TURN_OPENINGS
from ras_agent.prompts import Prompt, Turn
from ras_agent.text.tokens import cut_to_tokens
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import Chat
from ras_agent.tools.chat.window import SHOWN_TOKENS, fit_into

T = TypeVar("T")
P = TypeVar("P")
Dialogue = Generator[Request, Reply, T]

_THOUGHTS = tuple(
    (marks, re.compile(marks.opening, FLAGS), re.compile(marks.closing, FLAGS)) for marks in THOUGHT_MARKS
)
_TURN_BEGINS = re.compile(rf"(?:\s*+(?:{'|'.join(TURN_OPENINGS)}))++")
_TURN_ENDS = re.compile(
    r"</s>|\[/?INST\]|<[|｜](?=[^\W\d])(?!(?:begin|end)_of_box\|)|</?(?:start|end)_of_turn>|<(?:eos|sep|channel\|)>",
    re.IGNORECASE,
)


def fitted(
    chat: Chat, max_tokens: int | None, render: Callable[[int], Request]
) -> Generator[Request, Reply, tuple[Request, Reply]]:
    """Ask with the prompt that `render` makes for the tokens there are; return the request and its reply.

    max_tokens: of the reply. A server whose window is smaller than was known says so, and is asked again with what
    `render` makes for less, until it takes the prompt. Raises PromptTooLong if `render` can leave nothing more out.
    """
    request = replace(render(chat.room(max_tokens)), max_tokens=max_tokens)
    while True:
        limit = chat.limit(request)
        try:
            return request, (yield request)
        except PromptTooLong:
            smaller = replace(render(chat.room(max_tokens)), max_tokens=max_tokens)
            if smaller.turns == request.turns and chat.limit(request) == limit:
                raise
            request = smaller


def in_parts(
    chat: Chat,
    whole: P,
    render: Callable[[P], Request],
    split: Callable[[P], Sequence[P]],
    read: Callable[[P, Request, Reply], Dialogue[None]],
) -> Dialogue[None]:
    """Ask about `whole`, or about parts of it, in order, where its prompt does not fit into the model's window.

    split: returns smaller parts, or none. read: goes on with each reply, for which half of a small window is kept.
    Raises PromptTooLong for a part that cannot be split and that the server refuses.
    """
    parts = [whole]
    while parts:
        part = parts.pop()
        request = render(part)
        smaller = () if fit_into(request.turns, chat.room(request.max_tokens, share=2)) else split(part)
        if not smaller:
            limit = chat.limit(request)
            try:
                reply = yield request
            except PromptTooLong:
                smaller = (part,) if chat.limit(request) != limit else split(part)
                if not smaller:
                    raise
            else:
                yield from read(part, request, reply)
        parts += reversed(smaller)


def repair(request: Request, reply: Reply, prompt: Prompt, problem: str, example: str) -> Request:
    """Return the request that asks again: the conversation so far, the problem with its reply, and a reply in form.

    Of a long reply the beginning is shown. It is sampled otherwise: many models repeat what they said.
    """
    shown = cut_to_tokens(without_thinking(reply.text).strip(), SHOWN_TOKENS) or "(no text)"
    told = {"problem": problem} if "problem" in prompt.variables else {}
    turns = (*request.turns, Turn("assistant", shown), *prompt.fill(form=example, **told))
    return replace(request, turns=turns, on_text=None, tools=(), varied=True)


def converse(chat: Chat, dialogue: Dialogue[T]) -> T:
    """Run a dialogue to its end and return its result."""
    chat.learn_size()
    try:
        request = next(dialogue)
        while True:
            try:
                reply = chat.complete(request)
                if _cut_in_its_thoughts(request, reply):
                    reply = chat.complete(chat.with_room_for_thoughts(request))
                    _note_thoughts(chat, request, reply)
                _check_ending(request, reply)
            except (BudgetExceeded, ModelCallError) as error:
                request = dialogue.throw(error)
            else:
                chat.note_unmarked_thoughts(has_unmarked_thoughts(reply.text))
                request = dialogue.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


async def aconverse(chat: Chat, dialogue: Dialogue[T]) -> T:
    """Do the same as `converse`, for coroutines."""
    await chat.alearn_size()
    try:
        request = next(dialogue)
        while True:
            try:
                reply = await chat.acomplete(request)
                if _cut_in_its_thoughts(request, reply):
                    reply = await chat.acomplete(chat.with_room_for_thoughts(request))
                    _note_thoughts(chat, request, reply)
                _check_ending(request, reply)
            except (BudgetExceeded, ModelCallError) as error:
                request = dialogue.throw(error)
            else:
                chat.note_unmarked_thoughts(has_unmarked_thoughts(reply.text))
                request = dialogue.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


def _cut_in_its_thoughts(request: Request, reply: Reply) -> bool:
    """Return whether the limit of a reply ended it inside an open thought, before its first other word.

    A reply without any text is a thought that the server does not show.
    """
    if request.max_tokens is None or not reply.truncated:
        return False
    return not reply.text.strip() or (is_thinking(reply.text) and not without_thinking(reply.text).strip())


def _note_thoughts(chat: Chat, request: Request, reply: Reply) -> None:
    """Remember that a model writes thoughts where more room for them has brought a reply."""
    if not _cut_in_its_thoughts(request, reply):
        chat.note_thoughts()


def _check_ending(request: Request, reply: Reply) -> None:
    """Raise ModelCallError for a reply that was cut off, ended or withheld, unless its beginning is of use."""
    has_begun = bool(reply.text.strip() or reply.calls)
    is_of_use = has_begun and (reply.truncated or request.takes_part)
    if reply.shortfall and not is_of_use:
        raise ModelCallError(reply.shortfall)


def converse_all(chat: Chat, dialogues: Sequence[Dialogue[T]], at_once: int) -> list[T]:
    """Run several dialogues, at most `at_once` at the same time, and return their results in order."""
    if len(dialogues) <= 1:
        return [converse(chat, dialogue) for dialogue in dialogues]
    with ThreadPoolExecutor(min(at_once, len(dialogues)), thread_name_prefix="ras-agent-model") as pool:
        # each thread needs its own copy of the context, which holds the ledger and LangChain's callbacks
        running = [pool.submit(copy_context().run, converse, chat, dialogue) for dialogue in dialogues]
        return [future.result() for future in running]


async def aconverse_all(chat: Chat, dialogues: Sequence[Dialogue[T]], at_once: int) -> list[T]:
    """Do the same as `converse_all`, for coroutines."""
    free = asyncio.Semaphore(at_once)

    async def one(dialogue: Dialogue[T]) -> T:
        async with free:
            return await aconverse(chat, dialogue)

    return list(await asyncio.gather(*map(one, dialogues)))


def without_thinking(reply: str) -> str:
    """Return a reply without the thoughts that local reasoning models write into it, and without a next turn.

    What is left begins behind the last closed thought and ends where a thought is still open. Chat templates often
    write the opening tag themselves, so a closing tag alone ends a thought too. A server whose template is not the
    model's lets the tokens through that end a turn; what the model writes behind one, it plays for others.

    >>> without_thinking("<think>[SUFFICIENT]?</think> [SUBQ] Who?</s>[INST] Thanks!")
    ' [SUBQ] Who?'
    """
    start, end = spoken_span(reply)
    return reply[start:end]


def is_thinking(reply: str) -> bool:
    """Return whether a thought is open at the end of a reply."""
    _, end = _span_after_thoughts(reply)
    return end < len(reply)


def has_unmarked_thoughts(reply: str) -> bool:
    """Return whether a reply closes thoughts that it did not open, as where the chat template opens them."""
    for marks, opening, closing in _THOUGHTS:
        closes = closing.search(reply) if marks.closes_alone else None
        if closes and not opening.search(reply, 0, closes.start()):
            return True
    return False


def spoken_span(reply: str) -> tuple[int, int]:
    """Return where in a reply that begins and ends which `without_thinking` leaves of it."""
    start, end = _span_after_thoughts(reply)
    begins = _TURN_BEGINS.match(reply, start, end)
    if begins:
        start = begins.end()
    ends = _TURN_ENDS.search(reply, start, end)
    return start, ends.start() if ends else end


def after_thoughts(reply: str) -> str:
    """Return a reply without its thoughts, but with the tokens of its template, between which calls of tools stand."""
    start, end = _span_after_thoughts(reply)
    return reply[start:end]


def _span_after_thoughts(reply: str) -> tuple[int, int]:
    start = max(_thought_ends(reply), default=0)
    return start, min(_thought_beginnings(reply, start), default=len(reply))


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
        begins = opening.search(reply, start) if marks.stays_open else None
        if begins:
            yield begins.start()

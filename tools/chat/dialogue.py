"""Runs conversations of a role with a model, written once for synchronous and asynchronous callers.

A dialogue is a generator: it yields a Request, is sent the Reply, and returns its result. It does no I/O, so the
same dialogue runs in threads, in an event loop, and in tests. A failed call raises its error at the `yield`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import TypeVar

from ras_agent.contracts.errors import (
    BudgetExceeded,
    ModelCallError,
    ParseError,
    PromptTooLong,
)
from ras_agent.prompts import Prompt, Turn
from ras_agent.running.calling import arun_steps, run_steps
from ras_agent.text.tokens import cut_to_tokens
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import Chat
from ras_agent.tools.chat.endings import EMPTY_REPLY
from ras_agent.tools.chat.thoughts import (
    has_unmarked_thoughts,
    is_thinking,
    without_thinking,
)
from ras_agent.tools.chat.window import SHOWN_TOKENS, fit_into

_SHOWN = 200  # characters of a reply in a message
T = TypeVar("T")
P = TypeVar("P")
Dialogue = Generator[Request, Reply, T]
_CALL_ERRORS = (BudgetExceeded, ModelCallError)


def fitted(
    chat: Chat, max_tokens: int | None, render: Callable[[int], Request]
) -> Generator[Request, Reply, tuple[Request, Reply]]:
    """Ask with a prompt that fits into the model's window. Returns the request and its reply.

    If the server turns out to have a smaller window, it is asked again with a shorter prompt, until one is
    accepted. Raises PromptTooLong if `render` cannot shorten the prompt further.

    Args:
        max_tokens: the maximum number of tokens of the reply; None for no limit.
        render: takes the number of tokens that the prompt may have; returns the request.
    """

    def request_that_fits() -> Request:
        room = chat.sizes.room(max_tokens)
        return replace(render(room), max_tokens=max_tokens)

    request = request_that_fits()
    while True:
        limit = chat.sizes.limit(request)
        try:
            return request, (yield request)
        except PromptTooLong:
            smaller = request_that_fits()
            if smaller.turns == request.turns and chat.sizes.limit(request) == limit:
                raise
            request = smaller


def in_parts(
    chat: Chat,
    whole: P,
    render: Callable[[P], Request],
    split: Callable[[P], Sequence[P]],
    read: Callable[[P, Request, Reply], Dialogue[None]],
) -> Dialogue[None]:
    """Ask about `whole`, or about its parts in order if its prompt does not fit into the model's window.

    Half of a small window is kept free for the reply. Raises PromptTooLong if the server refuses a part that cannot
    be split.

    Args:
        render: returns the request for a part.
        split: returns smaller parts of a part, or () if it cannot be split.
        read: a dialogue that processes the reply about a part.
    """
    parts = [whole]
    while parts:
        part = parts.pop()
        request = render(part)
        if not fit_into(request.turns, chat.sizes.room(request.max_tokens, share=2)):
            smaller = split(part)
            if smaller:
                parts += reversed(smaller)
                continue
        limit = chat.sizes.limit(request)
        try:
            reply = yield request
        except PromptTooLong:
            smaller = (part,) if chat.sizes.limit(request) != limit else split(part)
            if not smaller:
                raise
            parts += reversed(smaller)
        else:
            yield from read(part, request, reply)


def repair(
    request: Request, reply: Reply, prompt: Prompt, problem: str, example: str
) -> Request:
    """Return a request to ask again: the conversation so far, the problem, and an example of a good reply.

    Only the beginning of a long reply is shown. The new request is sampled with a higher temperature, since many
    models repeat themselves.

    Args:
        request, reply: the first request and its unreadable reply.
        prompt: the prompt that asks again.
    """
    shown = (
        cut_to_tokens(without_thinking(reply.text).strip(), SHOWN_TOKENS) or "(no text)"
    )
    fields = {"form": example}
    if "problem" in prompt.variables:
        fields["problem"] = problem
    turns = (*request.turns, Turn("assistant", shown), *prompt.fill(**fields))
    return replace(request, turns=turns, on_text=None, tools=(), varied=True)


def parsed_twice(
    asked: tuple[Request, Reply], parse: Callable[[str], P], prompt: Prompt, form: str
) -> Dialogue[P]:
    """Return the parsed reply. If it cannot be parsed, ask a second time and return that reply, parsed.

    Raises ParseError if the second reply cannot be parsed either.

    Args:
        asked: the first request and its reply.
        parse: raises ParseError for a reply that it cannot read.
        prompt: the prompt that asks again.
        form: an example of a readable reply.
    """
    request, reply = asked
    try:
        return parse(reply.text)
    except ParseError as error:
        reply = yield repair(request, reply, prompt, str(error), form)
    said = reply.text.strip()
    try:
        return parse(said)
    except ParseError as error:
        if not said:
            raise ParseError(EMPTY_REPLY) from error
        shown = f"{said[:_SHOWN]!r}"
        raise ParseError(
            f"{error}, although the model was asked twice: {shown}"
        ) from error


def converse(chat: Chat, dialogue: Dialogue[T]) -> T:
    """Run a dialogue to its end and return its result."""
    chat.learn_size()
    steps = _with_room_for_thoughts(chat, dialogue)
    return run_steps(steps, chat.complete, _CALL_ERRORS)


async def aconverse(chat: Chat, dialogue: Dialogue[T]) -> T:
    """Do the same as `converse`, as a coroutine."""
    await chat.alearn_size()
    steps = _with_room_for_thoughts(chat, dialogue)
    return await arun_steps(steps, chat.acomplete, _CALL_ERRORS)


def _with_room_for_thoughts(chat: Chat, dialogue: Dialogue[T]) -> Dialogue[T]:
    """Run a dialogue; if a reply is cut off inside the model's thoughts, ask once more with a higher limit.

    A reply that ends too early to be useful is raised as an error in the dialogue. Signs that the model writes thoughts
    are remembered for its endpoint.
    """
    learnt = chat.sizes.learnt
    try:
        request = next(dialogue)
        while True:
            try:
                reply = yield request
                if _cut_in_its_thoughts(request, reply):
                    reply = yield chat.sizes.with_room_for_thoughts(request)
                    learnt.thinks |= not _cut_in_its_thoughts(request, reply)
                _check_ending(request, reply)
            except _CALL_ERRORS as error:
                request = dialogue.throw(error)
            else:
                learnt.unmarked_thoughts = has_unmarked_thoughts(reply.text)
                request = dialogue.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


def _cut_in_its_thoughts(request: Request, reply: Reply) -> bool:
    """Return whether a reply hit its token limit inside an open thought, before any other word.

    A truncated reply without text counts, since the server then hides the thoughts.
    """
    if request.max_tokens is None or not reply.truncated:
        return False
    if not reply.text.strip():
        return True
    return is_thinking(reply.text) and not without_thinking(reply.text).strip()


def _check_ending(request: Request, reply: Reply) -> None:
    """Raise ModelCallError for a reply that was cut off, broken off or withheld, unless its beginning is useful."""
    has_begun = bool(reply.text.strip() or reply.calls)
    is_of_use = has_begun and (reply.truncated or request.takes_part)
    if reply.shortfall and not is_of_use:
        raise ModelCallError(reply.shortfall)


def converse_all(chat: Chat, dialogues: Sequence[Dialogue[T]], at_once: int) -> list[T]:
    """Run several dialogues, at most `at_once` of them simultaneously. Returns their results in order."""
    if len(dialogues) <= 1:
        return [converse(chat, dialogue) for dialogue in dialogues]
    with ThreadPoolExecutor(
        min(at_once, len(dialogues)), thread_name_prefix="ras-agent-model"
    ) as pool:
        running = []
        for dialogue in dialogues:
            # the context holds the ledger and LangChain's callbacks; each thread needs its own copy
            context = copy_context()
            running.append(pool.submit(context.run, converse, chat, dialogue))
        return [future.result() for future in running]


async def aconverse_all(
    chat: Chat, dialogues: Sequence[Dialogue[T]], at_once: int
) -> list[T]:
    """Do the same as `converse_all`, as a coroutine."""
    if len(dialogues) <= 1:
        return [await aconverse(chat, dialogue) for dialogue in dialogues]
    free = asyncio.Semaphore(at_once)

    async def one(dialogue: Dialogue[T]) -> T:
        async with free:
            return await aconverse(chat, dialogue)

    return list(await asyncio.gather(*map(one, dialogues)))

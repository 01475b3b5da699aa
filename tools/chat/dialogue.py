"""A role's conversation with a model, written once for sync and async.

A dialogue is a generator: it yields a Request, is sent the Reply, and returns its result. It does no I/O, so the same
one runs under threads, under an event loop, and in a test without either. A failed call is raised at its `yield`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from ras_agent.errors import BudgetExceeded, ModelCallError
from ras_agent.prompts import Prompt, Turn
from ras_agent.tools.chat.client import Chat, Reply, Request
from ras_agent.tools.chat.thinking import without_thinking

__all__ = ["Dialogue", "aconverse", "aconverse_all", "converse", "converse_all", "repair"]

T = TypeVar("T")
Dialogue = Generator[Request, Reply, T]


def repair(request: Request, reply: Reply, prompt: Prompt, problem: str, form: str) -> Request:
    """Ask again: the conversation so far, what was wrong with its reply, and the form it should have."""
    said = without_thinking(reply.text).strip() or "(no text)"
    return Request((*request.turns, Turn("assistant", said), *prompt.fill(problem=problem, form=form)))


def converse(chat: Chat, dialogue: Dialogue[T]) -> T:
    """Run a dialogue to its end."""
    try:
        request = next(dialogue)
        while True:
            try:
                reply = chat.complete(request)
            except (BudgetExceeded, ModelCallError) as error:
                request = dialogue.throw(error)
            else:
                request = dialogue.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


async def aconverse(chat: Chat, dialogue: Dialogue[T]) -> T:
    """`converse` for coroutines."""
    try:
        request = next(dialogue)
        while True:
            try:
                reply = await chat.acomplete(request)
            except (BudgetExceeded, ModelCallError) as error:
                request = dialogue.throw(error)
            else:
                request = dialogue.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


def converse_all(chat: Chat, dialogues: Sequence[Dialogue[T]], at_once: int) -> list[T]:
    """The results of several dialogues in their order, at most `at_once` under way."""
    if len(dialogues) <= 1:
        return [converse(chat, dialogue) for dialogue in dialogues]
    with ThreadPoolExecutor(min(at_once, len(dialogues)), thread_name_prefix="ras-agent-model") as pool:
        # each thread needs a copy of the context of its own: it holds the ledger, and LangChain's callbacks
        running = [pool.submit(copy_context().run, converse, chat, dialogue) for dialogue in dialogues]
        return [future.result() for future in running]


async def aconverse_all(chat: Chat, dialogues: Sequence[Dialogue[T]], at_once: int) -> list[T]:
    """`converse_all` for coroutines."""
    free = asyncio.Semaphore(at_once)

    async def one(dialogue: Dialogue[T]) -> T:
        async with free:
            return await aconverse(chat, dialogue)

    return list(await asyncio.gather(*map(one, dialogues)))

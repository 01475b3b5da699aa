"""The least client that asks a model server what an agent asked it: asyncio's streams, and nothing around them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from itertools import groupby
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from ras_agent.tools.chat.http import Endpoint

Plan = list[list[bytes]]
"""A question's requests, in groups whose requests are asked at the same time"""

_HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_asked: ContextVar[list[tuple[str, bytes]]] = ContextVar(
    "requests of the running question"
)


async def recorded(
    ask: Callable[[Any], Awaitable[object]], questions: Iterable[object]
) -> list[Plan]:
    """Ask the questions by `ask`, one at a time, and return their requests; those in a row to one role are a group."""
    events = Endpoint.events

    async def noted(
        self: Endpoint, path: str, body: Any, *rest: Any
    ) -> AsyncIterator[Any]:
        _asked.get().append(
            (body["model"], json.dumps(body, ensure_ascii=False).encode())
        )
        async for event in events(self, path, body, *rest):
            yield event

    plans = []
    with patch.object(Endpoint, "events", noted):
        for question in questions:
            _asked.set([])
            await ask(question)
            groups = groupby(_asked.get(), key=lambda request: request[0])
            plans.append([[body for _, body in group] for _, group in groups])
    return plans


async def replay(root: str, plans: Sequence[Plan], concurrency: int) -> None:
    """Ask all that the plans hold, `concurrency` questions at a time, and read each reply's text."""
    address = urlsplit(root)
    free = asyncio.Semaphore(concurrency)
    pool: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(body: bytes) -> str:
        reader, writer = (
            pool.pop()
            if pool
            else await asyncio.open_connection(address.hostname, address.port)
        )
        writer.write(_HEAD % len(body) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0])
        reply = json.loads(await reader.readexactly(length))
        pool.append((reader, writer))
        text: str = reply["choices"][0]["message"]["content"]
        return text

    async def one(plan: Plan) -> None:
        async with free:
            for group in plan:
                await asyncio.gather(*map(ask, group))

    await asyncio.gather(*map(one, plans))
    for _, writer in pool:
        writer.close()

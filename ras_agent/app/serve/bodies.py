"""Reads the bodies of requests. Large ones are parsed in a thread, so that other requests do not wait.

While Python's JSON parser runs, no other thread does. So the number of its most expensive values (lists,
objects and members) is checked before parsing begins.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from fastapi import Request, Response, UploadFile
from fastapi.routing import APIRoute
from starlette.datastructures import FormData
from starlette.types import Message, Scope

from ras_agent.app.serve.errors import ApiError
from ras_agent.text.normal_form import storable_number

MOST_VALUES = 100_000
"""The maximum number of lists, objects and members of objects in one JSON request."""
_BEGINNINGS = (b"[", b"{", b'":')
# bytes below which a thread costs more than it saves
_SMALL = 64 * 1024
# bytes of a form that are kept in memory; a larger form goes to a temporary file
_IN_MEMORY = 1024 * 1024
_PIECE = 64 * 1024


class ApartRoute(APIRoute):
    """Parses large requests outside the event loop, as a FastAPI route."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, which is given the request as an `ApartRequest`."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(ApartRequest(request.scope, request.receive))

        return handled


class ApartRequest(Request):
    """Parses a large body in a thread."""

    async def json(self) -> Any:
        """Return the body as JSON. Raises ApiError for a body with too many values, and ValueError for invalid JSON."""
        body = await self.body()
        values = sum(map(body.count, _BEGINNINGS))
        if values > MOST_VALUES:
            wrong = f"the request has more than {MOST_VALUES:,} lists, objects and members, the most allowed: send fewer"
            raise ApiError(413, wrong, "too_large")
        if len(body) <= _SMALL:
            return _parsed(body)
        service = self.app.state.service
        return await service.parsing.run(_parsed, body)

    async def form(self, **limits: Any) -> FormData:  # type: ignore[override]
        """Return the body as a form. It is parsed when it has arrived completely, and only one form of a caller
        at a time.
        """
        with SpooledTemporaryFile(_IN_MEMORY) as file:
            # UploadFile writes to the disk in a thread
            received = UploadFile(cast(Any, file))
            async for piece in self.stream():
                await received.write(piece)
            await received.seek(0)
            service = self.app.state.service
            caller = self.state.caller.name
            parsing = service.parsing_forms[caller]
            form: FormData = await parsing.run(_parse_form, self.scope, file, limits)
        self._form = form  # the request closes it
        return form


def _parsed(body: bytes) -> Any:
    return json.loads(body, parse_int=_whole_number)


def _whole_number(digits: str) -> int:
    number = int(digits)
    if not storable_number(number):
        wrong = f"the number {digits[:40]} is too large: send one of at most 64 bits"
        raise ApiError(422, wrong, "invalid_request")
    return number


def _parse_form(scope: Scope, file: IO[bytes], limits: Any) -> FormData:
    """Return the form in a file, parsed in a separate event loop."""

    async def receive() -> Message:
        piece = file.read(_PIECE)
        more = bool(piece)
        return {"type": "http.request", "body": piece, "more_body": more}

    async def parse() -> FormData:
        request = Request(scope, receive)
        return await request.form(**limits)

    return asyncio.run(parse())

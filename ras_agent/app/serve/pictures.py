"""Places the graph of a run for the page, which has no layout of its own."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Response

from ras_agent.page import picture
from ras_agent.trace import Trace, json_document

# above this, only the best supported facts are drawn: the layout of 300 takes half a second, that of 600 two
_MOST = 300
_LAYOUTS_AT_ONCE = 2

router = APIRouter()
_drawing = asyncio.Semaphore(_LAYOUTS_AT_ONCE)


@router.post("/api/picture", include_in_schema=False, response_model=None)
async def draw(run: dict[str, Any]) -> Response:
    """Return where the facts of a run, as its outputs have them, are drawn. Raises TraceError."""
    trace = Trace.from_state(run)
    async with _drawing:
        document = await asyncio.to_thread(
            picture, trace.graph, trace.question, trace.answer, trace.citations, most=_MOST
        )
    return Response(json_document(document), media_type="application/json")

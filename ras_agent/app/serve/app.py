"""The FastAPI application: paths, their requests and their answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response

from ras_agent import __version__, page
from ras_agent.app.serve import pictures
from ras_agent.app.serve.failures import failure_of, status_of
from ras_agent.app.serve.runs import Run
from ras_agent.app.serve.service import Service
from ras_agent.app.serve.sse import EventStream, cancel_when_left
from ras_agent.app.serve.wire import AskRequest, ErrorBody, ErrorDetail, Health
from ras_agent.records import JSON
from ras_agent.trace import json_document

_PAGE = Path(page.__file__).parent
_SERVED = (".css", ".js")
_POLICY = "; ".join(
    [
        *("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src data:"),
        *("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"),
    ]
)

_HEADERS = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


def create_app(service: Service) -> FastAPI:
    """Make the application over an open service."""
    app = FastAPI(title="ras-agent", version=__version__, responses={"default": {"model": ErrorBody}})
    app.state.service = service
    app.include_router(_router)
    app.include_router(pictures.router)
    app.add_exception_handler(RequestValidationError, _misshapen)
    app.add_exception_handler(Exception, _failed)
    for raised in (ValueError, RuntimeError, OSError):
        app.add_exception_handler(raised, _failed)
    return app


_router = APIRouter()


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


@_router.get("/health")
async def health(request: Request) -> Health:
    """Say that the server answers."""
    return Health(version=__version__, runs=_service(request).runs)


@_router.post("/api/ask", response_model=None)
async def ask(asked: AskRequest, request: Request) -> Response:
    """Answer a question: one JSON document, or with `stream` the run's events as they happen."""
    thread, run = _service(request).ask(asked)
    return await _answer(run, thread, request, stream=asked.stream)


async def _answer(run: Run, thread: str, request: Request, *, stream: bool) -> Response:
    if stream:
        return EventStream(run, thread)
    leaving = asyncio.create_task(cancel_when_left(run, request.receive))
    try:
        ended = await run.end()
    finally:
        leaving.cancel()
        run.cancel()
    review = {} if ended.review is None else {"review": ended.review}
    return json_response({**ended.outputs, **review, "thread": thread})


def json_response(data: JSON, status: int = 200) -> Response:
    """Return a JSON response, whatever the data hold."""
    return Response(json_document(data), status, media_type="application/json")


@_router.get("/", include_in_schema=False)
async def index() -> FileResponse:
    """Serve the page."""
    return FileResponse(_PAGE / "ask.html", headers=_HEADERS)


@_router.get("/page/{name}", include_in_schema=False)
async def page_file(name: str) -> Response:
    """Serve a style sheet or a script of the page."""
    known = {path.name: path for path in _PAGE.iterdir() if path.suffix in _SERVED}
    if name not in known:
        return json_response(_error(f"there is no {name!r}", "not_found"), 404)
    return FileResponse(known[name])


def _error(message: str, kind: str) -> JSON:
    return ErrorBody(error=ErrorDetail(message=message, type=kind)).model_dump()


async def _misshapen(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first: Any = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    message = f"{place}: {first['msg']}" if place else str(first["msg"])
    return JSONResponse(_error(message, "invalid_request_error"), 422)


async def _failed(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse(failure_of(error).model_dump(), status_of(error))

"""Makes the FastAPI application: its routes, with their requests and answers."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, cast
from urllib.parse import quote

from fastapi import APIRouter, Depends, FastAPI, File, Form, Query, Request, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from pydantic import Json, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route

from ras_agent import __version__, page
from ras_agent.app.serve import chat, responses, wire
from ras_agent.app.serve.access import TOOLS, Access, Caller, Guard
from ras_agent.app.serve.bodies import ApartRoute
from ras_agent.app.serve.errors import ApiError, response_of
from ras_agent.app.serve.runs import (
    Run,
    RunStream,
    as_events,
    ended_or_left,
    ending_with_client,
    json_response,
)
from ras_agent.app.serve.service import Service
from ras_agent.contracts.records import JSON, Hit
from ras_agent.page.reference import reference_page
from ras_agent.running.trace import Trace
from ras_agent.tools.kg.neighbourhood import Neighbourhood, names_beginning

_PAGE = Path(page.__file__).parent
_SERVED = (".css", ".js")
_SAFE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_SAFE["Content-Security-Policy"] = page.SERVED_POLICY
# above this number, only the best supported facts are drawn: a browser places 400 in a tenth of a second
_MOST_FACTS = 400
_fields: TypeAdapter[JSON] = TypeAdapter(Json[JSON])

router = APIRouter(route_class=ApartRoute)
_NO_ROUTE = "Not Found"  # Starlette's message for a path without a route
_OPENAI_PATHS = (
    "/chat/completions",
    "/completions",
    "/responses",
    "/models",
    "/embeddings",
)


async def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


async def _caller(request: Request) -> Caller:
    return cast(Caller, request.state.caller)


Served = Annotated[Service, Depends(_service)]
Asking = Annotated[Caller, Depends(_caller)]
DocumentId = Annotated[str, Query(alias="id", min_length=1, max_length=4000)]
Name = Annotated[str, Query(max_length=wire.LONGEST_NAME)]
Nodes = Annotated[int, Query(ge=1, le=1000)]
Listed = Annotated[int, Query(ge=1, le=10_000)]
From = Annotated[int, Query(ge=0)]


def create_app(service: Service, access: Access | None = None) -> FastAPI:
    """Make the FastAPI application over an open service.

    `access` has the tokens that are accepted. Without it, the application that mounts this one must check callers.
    """
    settings = service.settings
    service.has_shares = access is not None and access.is_shared
    app = FastAPI(
        title="ras-agent",
        version=__version__,
        description="Answers questions that need several hops over your own text. Errors have OpenAI's form.",
        responses={"default": {"model": wire.ErrorBody, "description": "An error"}},
        docs_url=None,  # FastAPI's own pages load scripts from other servers
        redoc_url=None,
    )
    app.state.service = service
    app.include_router(router)
    app.include_router(chat.router)
    app.include_router(responses.router)
    if find_spec("mcp") is not None:
        from ras_agent.app.serve.tools import OverHTTP, tools_over

        # without sessions there is nothing to listen to (GET) or to end (DELETE)
        tools = OverHTTP(tools_over(service))
        app.router.routes.append(Route(TOOLS, tools, methods=["POST"]))
    # the guard answers all other errors
    for raised in (RequestValidationError, HTTPException):
        app.add_exception_handler(raised, _answer_error)
    origins = tuple(
        filter(
            None,
            (origin.strip().rstrip("/") for origin in (settings.cors or "").split(",")),
        )
    )
    most_upload = settings.max_upload_mb * 1024 * 1024
    app.add_middleware(
        Guard,
        access=access,
        host=settings.host,
        most_upload=most_upload,
        origins=origins,
    )
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["*"],
            allow_headers=["*"],
        )
    return app


@router.get("/health", tags=["Server"])
async def health(service: Served) -> wire.Health:
    """Return the status "ok", the version and the number of questions being answered; /ready checks the parts."""
    return wire.Health(version=__version__, runs=service.runs)


@router.get("/ready", tags=["Server"])
async def ready(service: Served) -> JSONResponse:
    """Report for each part whether it answers: status 200 if all do, else 503.

    Models are not asked, because searches need no model.
    """
    parts = await service.parts()
    return JSONResponse({"parts": parts}, 200 if set(parts.values()) == {"ok"} else 503)


@router.get("/api/about", tags=["Server"])
async def about(service: Served, caller: Asking) -> wire.About:
    """Describe the collection, the models, and questions that the collection answers."""
    return await service.reading.run(service.about, caller)


@router.post("/api/ask", tags=["Questions"])
async def ask(
    body: wire.AskRequest, request: Request, service: Served, caller: Asking
) -> Response:
    """Answer a question: one JSON document, or with `stream` the run's events as they happen.

    The document holds the agent's outputs and `thread`, and `review` if the run waits for a decision. A thread
    remembers its earlier turns: give `thread` and the new question. If no answer could be made, the status is 502, or
    503 if a model or an index cannot be asked; the document then has `error`, and a stream ends with it.
    """
    return await _response_of(*service.ask(body, caller), body.stream, request)


@router.post("/api/threads/{thread}/resume", tags=["Questions"])
async def resume(
    thread: wire.Thread,
    body: wire.ResumeRequest,
    request: Request,
    service: Served,
    caller: Asking,
) -> Response:
    """Continue a run that waits for a decision, or that was cancelled or interrupted."""
    return await _response_of(
        thread, await service.resume(thread, body, caller), body.stream, request
    )


async def _response_of(
    thread: str, run: Run, stream: bool, request: Request
) -> Response:
    if stream:
        return RunStream(run, as_events(run, thread))
    ended = await ended_or_left(run, request.receive)
    document = ended.document(thread)
    return (
        json_response(document)
        if ended.problem is None
        else response_of(ended.problem, document)
    )


@router.get("/api/threads/{thread}", tags=["Questions"])
async def thread_state(
    thread: wire.Thread, service: Served, caller: Asking
) -> Response:
    """Return a thread's state, and whether its run is running, has ended, or waits for a decision (`review`)."""
    return json_response(await service.thread(thread, caller))


@router.get("/api/threads", tags=["Questions"])
async def threads(service: Served, caller: Asking, limit: Listed = 1000) -> Response:
    """List the caller's threads, the most recent first, each with its first question and when it was asked."""
    return json_response(await service.threads(caller, limit))


@router.patch("/api/threads/{thread}", tags=["Questions"])
async def note(
    thread: wire.Thread, body: wire.ThreadNote, service: Served, caller: Asking
) -> Response:
    """Name a thread, or say whether its last answer is right. `ras-agent threads export` writes these verdicts."""
    return json_response(await service.note(thread, body, caller))


@router.delete("/api/threads/{thread}", tags=["Questions"])
async def forget(thread: wire.Thread, service: Served, caller: Asking) -> Response:
    """Delete a thread: its checkpoints, and the facts that it remembers."""
    return json_response(await service.forget(thread, caller))


@router.get("/api/retrieve", tags=["Index"])
async def retrieve(
    service: Served,
    caller: Asking,
    q: Annotated[str, Query(min_length=1, max_length=wire.LONGEST_QUERY)],
    k: Annotated[int, Query(ge=1, le=100)] = 5,
    filter: Annotated[
        str | None, Query(description='JSON, such as {"team": "x"}')
    ] = None,
) -> Response:
    """Search the index as the agent does: the hits, best first, each a passage with its score, and why it was found.

    `failures` names the stages that failed, such as the reranker; the hits are then those without this stage.
    """
    retrieval = await service.retrieve(q, k, caller, _json("filter", filter))
    hits = []
    for hit in retrieval.hits:
        passage = hit.passage.to_dict()
        hits.append({"passage": passage, "score": hit.score, "why": list(hit.why)})
    failures = [failure.to_dict() for failure in retrieval.failures]
    return json_response({"hits": hits, "failures": failures})


@router.post("/retrieve", tags=["Index"])
async def retrieve_batch(
    body: wire.SearchBatch, request: Request, service: Served, caller: Asking
) -> Response:
    """Search for several queries, in the form of Search-R1's retrieval server, which trainers of planners use.

    The answer is {"result": [hits of the first query, ...]}. A document's `contents` is its title in quotation marks, a
    line break, and its text.
    """
    from ras_agent.eval.formats.flashrag import contents_of

    def document_of(hit: Hit) -> JSON:
        document = {"id": hit.passage.id, "contents": contents_of(hit.passage)}
        return (
            {"document": document, "score": hit.score}
            if body.return_scores
            else document
        )

    queries = [query[: wire.LONGEST_QUERY] for query in body.queries]
    searches = asyncio.create_task(
        service.retrieve_all(queries, body.topk or 3, caller)
    )
    async with ending_with_client(searches, request.receive):
        return json_response(
            {"result": [[document_of(hit) for hit in hits] for hits in await searches]}
        )


@router.get("/api/passages/{passage_id:path}", tags=["Index"])
async def passage(passage_id: str, service: Served, caller: Asking) -> Response:
    """Return a passage."""
    passage = await service.reading.run(service.passage, passage_id, caller)
    return json_response(passage.to_dict())


@router.get("/api/graph", tags=["Index"])
async def graph(
    service: Served, caller: Asking, entity: Name = "", nodes: Nodes = 100
) -> Neighbourhood:
    """Return the stored knowledge graph around an entity; without one, its best connected entities."""
    return await service.reading.run(service.around, entity, nodes, caller)


@router.patch("/api/graph", tags=["Index"])
async def correct(
    body: wire.GraphCorrection, service: Served, caller: Asking
) -> wire.GraphCorrection:
    """Correct a fact of the stored knowledge graph, or remove it, as `ras-agent kg edit` does."""
    await service.documents.correct(body, caller)
    return body


@router.get("/api/entities", tags=["Index"])
async def entities(
    service: Served, caller: Asking, prefix: Name = "", limit: Nodes = 20
) -> wire.Names:
    """List entities of the stored knowledge graph by the beginning of their name, `prefix`."""
    names = await service.reading.run(
        lambda: names_beginning(service.graph(caller), prefix, limit)
    )
    return wire.Names(entities=names)


@router.get("/api/documents", tags=["Documents"])
async def documents(
    service: Served,
    caller: Asking,
    containing: Name = "",
    limit: Listed = 1000,
    offset: From = 0,
) -> wire.DocumentNames:
    """List the documents of the index."""
    files = await service.reading.run(lambda: service.view(caller).document_files())
    names = [name for name in files if containing.casefold() in name.casefold()]
    page = names[offset : offset + limit]
    return wire.DocumentNames(
        documents=page, files=[files[name] for name in page], total=len(names)
    )


@router.post("/api/documents", tags=["Documents"])
async def add_documents(
    service: Served,
    caller: Asking,
    files: Annotated[list[UploadFile], File()],
    metadata: Annotated[
        str | None,
        Form(
            max_length=10_000,
            description='Fields of all passages, as JSON, such as {"team": "x"}',
        ),
    ] = None,
) -> wire.Uploaded:
    """Store files and index them. A file with the name of an earlier upload replaces it, and keeps its metadata.

    Files from a token that sees only a part of the index get the metadata of that part, and replace only files that
    were uploaded with the same filter.
    """
    return await service.documents.add(files, _json("metadata", metadata), caller)


@router.get("/api/documents/file", tags=["Documents"], response_class=Response)
async def uploaded_file(
    service: Served, caller: Asking, document: DocumentId
) -> Response:
    """Return an uploaded file as it was sent.

    A token that sees only a part of the index can read, by name, files that were uploaded with the same filter.
    """
    data = await service.documents.file(document, caller)
    name = quote(document.rpartition("/")[2], safe="")
    headers = {**_SAFE, "Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(data, media_type="application/octet-stream", headers=headers)


@router.delete("/api/documents", tags=["Documents"])
async def remove_document(
    service: Served, caller: Asking, document: DocumentId
) -> wire.Removed:
    """Remove a document, or all documents of an uploaded file, from the index and its knowledge graph.

    A token that sees only a part of the index can remove, by name, files that were uploaded with the same filter.
    """
    return await service.documents.remove(document, caller)


@router.get("/", include_in_schema=False)
async def index() -> FileResponse:
    """Serve the page."""
    return FileResponse(_PAGE / "ask.html", headers=_SAFE)


@router.get("/page/{name}", include_in_schema=False)
async def page_file(name: str) -> Response:
    """Serve a style sheet or a script of the page."""
    files = {path.name: path for path in _PAGE.iterdir() if path.suffix in _SERVED}
    if name not in files:
        raise ApiError(
            404, f"the page has no file {name!r}: reload the page", "not_found"
        )
    return FileResponse(files[name], headers=_SAFE)


@router.post("/api/picture", include_in_schema=False)
async def picture(run: dict[str, Any], service: Served) -> Response:
    """Return the data for drawing a run's outputs: boxes, links, and the chain of the answer. Raises
    TraceError.
    """
    return json_response(await service.drawing.run(_picture, run))


def _picture(run: dict[str, Any]) -> JSON:
    trace = Trace.from_state(run)
    return page.picture(
        trace.graph, trace.question, trace.answer, trace.citations, most=_MOST_FACTS
    )


@router.get("/docs", include_in_schema=False)
async def reference(request: Request) -> HTMLResponse:
    """Serve the description of all paths as a page."""
    return HTMLResponse(reference_page(request.app.openapi()), headers=_SAFE)


async def _answer_error(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        first: Any = error.errors()[0]
        # without the leading "body", "query" or "path"
        place = ".".join(map(str, first["loc"][1:]))
        status = 400 if request.url.path.startswith("/v1/") else 422
        error = ApiError(
            status,
            f"{place}: {first['msg']}" if place else str(first["msg"]),
            "invalid_request",
        )
    elif isinstance(error, HTTPException) and error.detail == _NO_ROUTE:
        error = _unknown_path(request)
    return response_of(error)


def _unknown_path(request: Request) -> ApiError:
    """Return the error for a path that does not exist, with a hint for OpenAI's clients."""
    path = request.url.path
    remedy = "/docs lists all paths"
    if path.endswith(_OPENAI_PATHS):
        remedy = f"OpenAI's paths are below /v1: set the client's base_url to {request.base_url}v1"
    return ApiError(404, f"there is no {path}; {remedy}", "unknown_path")


def _json(name: str, text: str | None) -> JSON | None:
    try:
        return _fields.validate_python(text) if text else None
    except ValidationError as error:
        raise ApiError(
            422, f"{name}: {error.errors()[0]['msg']}", "invalid_request"
        ) from None

"""Reports errors to callers, for every path in the same format, OpenAI's."""

from __future__ import annotations

import errno
import logging
import re
import traceback

from fastapi.responses import Response
from starlette.exceptions import HTTPException  # FastAPI's HTTPException is a subclass

from ras_agent.app.serve.wire import ErrorBody, ErrorDetail
from ras_agent.contracts import errors
from ras_agent.contracts.records import JSON
from ras_agent.running.calling import StillRunning
from ras_agent.running.trace import json_document
from ras_agent.tools.chat.secrets import without_secrets
from ras_agent.tools.chat.waits import causes

_log = logging.getLogger(__name__)
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_PATH = re.compile(r"(?<![\w:/.~-])/(?:[^\s/:'\"`,;]+/)*([^\s/:'\"`,;]+)")
# errors that a caller has caused; our other errors are the server's
_CALLERS = (
    errors.EditError,
    errors.FilterError,
    errors.ReviewError,
    errors.TraceError,
    errors.UnknownName,
)
_SERVER = re.compile(r"(?<=:)https?://[^\s#]+#| at https?://\S+(?= failed)")
_HEADERS = {503: {"Retry-After": "2"}, 401: {"WWW-Authenticate": "Bearer"}}
_FULL = (errno.ENOSPC, errno.EDQUOT)


class ApiError(errors.RasError, HTTPException):
    """Raised when a request cannot be served. `status_code` is that of the reply; `code` names the reason for
    programs.
    """

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(status, message)
        self.code = code


def no_graph() -> ApiError:
    """Return the error for an index that has no knowledge graph."""
    wrong = "this index has no knowledge graph: `ras-agent kg build INDEX` makes one"
    return ApiError(404, wrong, "no_graph")


def refusal(error: Exception) -> tuple[int, ErrorBody]:
    """Return the HTTP status and the body of the reply to a request that raised `error`.

    An error that the caller has not caused is logged; the body does not describe it, because it may name a path
    of the server.
    """
    if isinstance(
        error, ExceptionGroup
    ):  # from a group of one task, in which MCP's tools run
        return refusal(error.exceptions[0])
    if isinstance(error, HTTPException):
        return _reply(
            error.status_code, str(error.detail), getattr(error, "code", None)
        )
    if isinstance(error, OSError) and any(
        getattr(cause, "errno", None) in _FULL for cause in causes(error)
    ):
        return _reply(
            507, "the server's disk is full; the index is as it was", "disk_full"
        )
    if isinstance(error, StillRunning | TimeoutError):
        return _reply(
            503, "this takes too long at the moment: try again soon", "timeout"
        )
    if isinstance(
        error, errors.StoreError | errors.IndexNotFound | errors.IndexMismatch
    ):
        _log.error(
            "the index or a store could not be reached: %s", without_secrets(str(error))
        )
        return _reply(
            503,
            "the index cannot be reached at the moment: try again soon",
            "index_unavailable",
        )
    if errors.is_drivers(
        error
    ):  # from a checkpointer, which raises its driver's errors
        said = f"{type(error).__name__}: {errors.message_of(error)}"
        _log.error(
            "the store of threads could not be reached: %s", without_secrets(said)
        )
        return _reply(
            503,
            "threads cannot be reached at the moment: try again soon",
            "threads_unavailable",
        )
    if isinstance(error, errors.ModelCallError | errors.ModelRefused):
        _log.error("a model could not be reached: %s", without_secrets(str(error)))
        return _reply(
            503,
            "a model cannot be asked at the moment: try again soon",
            "model_unavailable",
        )
    if isinstance(error, errors.IngestError):
        _log.warning("the index could not be changed: %s", without_secrets(str(error)))
        return _reply(
            409,
            "the index cannot be written at the moment: try again soon",
            "index_busy",
        )
    if isinstance(error, _CALLERS) or (
        isinstance(error, ValueError) and not isinstance(error, errors.RasError)
    ):
        return _reply(422, str(error))
    _log.error("a request failed:\n%s", without_secrets(_traceback(error)))
    return _reply(500, "the server failed; its log says why")


def _traceback(error: Exception) -> str:
    """Return an error's traceback, in which a driver's error is reduced to its first line."""
    text = "".join(traceback.format_exception(error))
    for one in filter(errors.is_drivers, causes(error)):
        text = text.replace(str(one).strip(), errors.message_of(one))
    return text


def without_places(message: str) -> str:
    """Return a failure's message with each path on the server cut to its last name, and without the addresses
    of models.
    """
    return _PATH.sub(r"\1", without_server(message))


def without_server(text: str) -> str:
    """Return a text in which models are named without the address of their server, which callers need not know.

    >>> without_server("vllm:http://10.0.0.1:8000/v1#qwen failed")
    'vllm:qwen failed'
    """
    return _SERVER.sub("", text)


def response_of(error: Exception, document: JSON | None = None) -> Response:
    """Return the response that reports an error. `document` has further details, such as those of a run."""
    status, body = refusal(error)
    data = {**body.model_dump(), **(document or {})}
    return Response(
        json_document(data), status, _HEADERS.get(status), media_type="application/json"
    )


def _reply(status: int, message: str, code: str | None = None) -> tuple[int, ErrorBody]:
    kind = _TYPES.get(
        status, "invalid_request_error" if status < 500 else "server_error"
    )
    return status, ErrorBody(
        error=ErrorDetail(message=without_secrets(message), type=kind, code=code)
    )

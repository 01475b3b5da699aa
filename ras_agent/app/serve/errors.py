"""Errors on the wire: one shape, OpenAI's, for every path."""

from __future__ import annotations

import errno
import logging
import traceback

from ras_agent.app.serve.wire import ErrorBody, ErrorDetail
from ras_agent.errors import IngestError, RasError, StoreError
from ras_agent.tools.chat.models import without_secrets

_log = logging.getLogger(__name__)
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_FULL = (errno.ENOSPC, errno.EDQUOT)


class ApiError(RasError, RuntimeError):
    """Request that cannot be served. status: of the reply. code: names the reason for programs."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def refusal(error: Exception) -> tuple[int, ErrorBody]:
    """Return the status and the body for an error. An unexpected error is logged, and the body does not describe it."""
    if isinstance(error, ApiError):
        return error.status, _body(error.status, str(error), error.code)
    if isinstance(error, OSError) and _full(error):
        return 507, _body(507, "the server's disk is full; the index is as it was", "disk_full")
    if isinstance(error, StoreError):
        _log.error("what is stored was not reached: %s", without_secrets(str(error)))
        return 503, _body(503, "the index cannot be reached at the moment: try again soon", "index_unavailable")
    if isinstance(error, IngestError):
        _log.warning("the index was not changed: %s", without_secrets(str(error)))
        message = "the index cannot be written at the moment, as while something else writes it: try again soon"
        return 409, _body(409, message, "index_busy")
    if isinstance(error, RasError | ValueError):
        status = 422 if isinstance(error, ValueError) else 500
        return status, _body(status, str(error))
    _log.error("a request failed:\n%s", without_secrets("".join(traceback.format_exception(error))))
    return 500, _body(500, "the server failed; its log says why")


def _body(status: int, message: str, code: str | None = None) -> ErrorBody:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return ErrorBody(error=ErrorDetail(message=without_secrets(message), type=kind, code=code))


def _full(error: BaseException | None) -> bool:
    """Tell whether a full disk caused an error, directly or through the errors that it was raised from."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__
    return False

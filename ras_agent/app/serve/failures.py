"""Errors on the wire: one shape, OpenAI's, for every path."""

from __future__ import annotations

import logging

from ras_agent.app.serve.service import Busy, ThreadBusy
from ras_agent.app.serve.wire import ErrorBody, ErrorDetail
from ras_agent.errors import RasError

_log = logging.getLogger(__name__)


def failure_of(error: Exception) -> ErrorBody:
    """Return what a client is told of an error; one that nobody foresaw is logged, and named by nothing else."""
    if isinstance(error, RasError | ValueError):
        return ErrorBody(error=ErrorDetail(message=str(error), type=type(error).__name__))
    _log.error("a request failed", exc_info=error)
    return ErrorBody(error=ErrorDetail(message="the server failed; its log says why", type="server_error"))


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, Busy):
        return 503
    if isinstance(error, ThreadBusy):
        return 409
    return 422 if isinstance(error, ValueError) else 500

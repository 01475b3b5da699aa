"""Handles connections to clients that stop sending early, or that send invalid requests.

A client that has stopped sending may have left, or may still wait for its answer.
"""

from __future__ import annotations

from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

STREAMS = "ras_agent_streams"
"""A key in the state of a request: whether its response is a stream of events, into which comments may be
sent."""
_INTERIM = b"HTTP/1.1 102 Processing\r\n\r\n"
# a server-sent comment, as a chunk of the response
_COMMENT = b"e\r\n: still here\n\n\r\n"
# seconds until the next sign of life, which double each time, up to _LONGEST
_FIRST = 0.1
_LONGEST = 5.0
MOST_SMALL_PIECES = 1_000
"""The number of pieces in which a body may arrive, however small they are."""
LEAST_PIECE = 64
"""The smallest average size, in bytes, if there are more pieces. All other requests wait while a piece is
read."""
LINGER_SECONDS = 5.0
"""The seconds that a client has to send the rest of a request that is already answered, before its connection
is closed."""


class _Requests(h11.Connection):
    """Accepts only requests that state their length in one way and arrive in few pieces."""

    _pieces = 0
    _received = 0

    def next_event(self) -> Any:
        """Return the next event that was received. Raises RemoteProtocolError for anything but a valid request."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces = 0
            self._received = 0
            _check_length(event)
        elif isinstance(event, h11.Data):
            self._pieces += event.chunk_start
            self._received += len(event.data)
            self._check_pieces()
        return event

    def _check_pieces(self) -> None:
        if self._pieces <= MOST_SMALL_PIECES:
            return
        if self._received < self._pieces * LEAST_PIECE:
            raise h11.RemoteProtocolError(
                "the body comes in too many small pieces: send larger ones"
            )


def _check_length(request: h11.Request) -> None:
    """Raise RemoteProtocolError if a length is stated in two ways, because a proxy may have used the other one."""
    names = {name for name, _ in request.headers}
    if {b"content-length", b"transfer-encoding"} <= names:
        raise h11.RemoteProtocolError(
            "the body has two lengths: send one Content-Length, or chunks"
        )


class HalfOpen(H11Protocol):
    """Answers a client that stops sending after its request, which uvicorn's own HTTP/1.1 protocol does not.

    The operating system reports the same event for a client that has left, but then rejects everything that is
    sent to it. So bytes that every reader ignores are sent as a test: an interim response, or a comment between
    events.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        most = self.conn._max_incomplete_event_size
        self.conn = _Requests(h11.SERVER, most)

    def send_400_response(self, msg: str) -> None:
        """Refuse an invalid request. If a response to it has already begun, close the connection instead."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()
        # the handler of the beginning has no client any more
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def on_response_complete(self) -> None:
        """Continue with the next request. The rest of a body may still arrive for a while, so that its sender
        can read the reply.
        """
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self.loop.call_later(LINGER_SECONDS, self._close_unended, self.cycle)

    def _close_unended(self, answered: object) -> None:
        if self.cycle is answered and self.conn.their_state is h11.SEND_BODY:
            self.transport.close()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Return whether the connection stays open after the client has stopped sending: it does while an
        answer is being made.
        """
        cycle = self.cycle
        if (
            cycle is None
            or cycle.response_complete
            or cycle.more_body
            or cycle.scope["http_version"] != "1.1"
        ):
            return None
        cycle.keep_alive = False
        self._send_sign(_FIRST)
        return True

    def _send_sign(self, seconds: float) -> None:
        cycle = self.cycle
        if cycle is None or cycle.response_complete or self.transport.is_closing():
            return
        if not cycle.response_started:
            self.transport.write(_INTERIM)
        elif cycle.scope.get("state", {}).get(STREAMS):
            self.transport.write(_COMMENT)
        self.loop.call_later(seconds, self._send_sign, min(2 * seconds, _LONGEST))

"""Connections whose client has ended its sending: it may have left, or read on."""

from __future__ import annotations

from uvicorn.protocols.http.h11_impl import H11Protocol

STREAMS = "ras_agent_streams"
"""In the state of a request: whether its response is a stream of events, which may hold comments."""
_INTERIM = b"HTTP/1.1 102 Processing\r\n\r\n"
_COMMENT = b"e\r\n: still here\n\n\r\n"  # as a chunk of the response
# seconds to the next sign; each time twice as many
_FIRST, _LONGEST = 0.1, 5.0


class HalfOpen(H11Protocol):
    """Protocol of HTTP/1.1 in which a client that ends its sending after its request gets its answer.

    The system says the same of one that has left, but refuses in its name what is sent to it. So signs of life are sent
    that every reader passes over: an interim response, or a comment between events.
    """

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Keep the connection open, unless no answer is owed."""
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

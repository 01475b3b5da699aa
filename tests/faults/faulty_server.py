"""A server of OpenAI's protocol that does one thing wrong, over bare sockets on the loopback interface.

`http://127.0.0.1:PORT/FAULT/MODE/ID/v1`: FAULT is a name of FAULTS; MODE "always", or "once" for a server that replies
well from the second request of an ID on.
"""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Fault = Callable[[socket.socket, bool], None]

WORDS = "Answer: Alexander Graham Bell [1]"
SECRET = "sk-hunter2hunter2"
_HEAD = {"id": "c1", "created": 0, "model": "m"}
_USAGE = {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7}


def completion(**fields: object) -> bytes:
    """Return a whole reply, with some fields replaced."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": WORDS},
        "finish_reason": "stop",
    }
    return json.dumps(
        {
            **_HEAD,
            "object": "chat.completion",
            "choices": [choice],
            "usage": _USAGE,
            **fields,
        }
    ).encode()


def events(finish: str | None = "stop", done: bool = True) -> list[bytes]:
    """Return the pieces of a streamed reply."""
    deltas: list[tuple[object, str | None]] = [
        ({"role": "assistant", "content": f"{word} "}, None) for word in WORDS.split()
    ]
    chunks = [
        {
            **_HEAD,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": why}],
        }
        for delta, why in [*deltas, ({}, finish)]
    ]
    pieces = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    return [*pieces, b"data: [DONE]\n\n"] if done else pieces


def send(
    connection: socket.socket,
    body: bytes,
    status: int = 200,
    kind: str = "application/json",
    **headers: str,
) -> None:
    """Send a whole response."""
    connection.sendall(
        head(status, kind, {"Content-Length": str(len(body)), **headers}) + body
    )


def head(status: int, kind: str, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", "Connection: close"]
    return "\r\n".join(
        [
            *lines,
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
            "",
            "",
        ]
    ).encode()


def send_events(
    connection: socket.socket, pieces: list[bytes], pause: float = 0.0, end: bool = True
) -> None:
    """Send a stream, in chunks."""
    connection.sendall(head(200, "text/event-stream", {"Transfer-Encoding": "chunked"}))
    for piece in pieces:
        connection.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n")
        time.sleep(pause)
    if end:
        connection.sendall(b"0\r\n\r\n")


def good(connection: socket.socket, streamed: bool) -> None:
    send_events(connection, events()) if streamed else send(connection, completion())


def status(number: int, code: str | None = None, **headers: str) -> Fault:
    """Reply with an error that repeats the key."""
    told = {
        "error": {"message": f"wrong, with Bearer {SECRET}", "type": "t", "code": code}
    }
    return lambda connection, streamed: send(
        connection, json.dumps(told).encode(), number, **headers
    )


def body(data: bytes, kind: str = "application/json", **headers: str) -> Fault:
    return lambda connection, streamed: send(connection, data, kind=kind, **headers)


def stream(pieces: list[bytes], pause: float = 0.0, end: bool = True) -> Fault:
    """Do something wrong in a stream; reply well where no stream is asked for."""

    def do(connection: socket.socket, streamed: bool) -> None:
        send_events(connection, pieces, pause, end) if streamed else good(
            connection, False
        )
        if streamed and not end:
            time.sleep(20)

    return do


def reset(after: bytes) -> Fault:
    def do(connection: socket.socket, streamed: bool) -> None:
        connection.sendall(after)
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        connection.close()

    return do


def hang(after: bytes) -> Fault:
    def do(connection: socket.socket, streamed: bool) -> None:
        connection.sendall(after)
        time.sleep(20)

    return do


def drip(data: bytes, after: bytes = b"") -> Fault:
    def do(connection: socket.socket, streamed: bool) -> None:
        connection.sendall(after)
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    return do


def redirect(number: int, where: str) -> Fault:
    return lambda connection, streamed: send(connection, b"{}", number, Location=where)


def _huge(connection: socket.socket, streamed: bool) -> None:
    kind = "text/event-stream" if streamed else "application/json"
    connection.sendall(head(200, kind, {"Content-Length": str(50 * 2**20)}))
    for _ in range(50):
        connection.sendall(b"0" * 2**20)


_LONG = head(200, "application/json", {"Content-Length": "99999"})
_BOMB = gzip.compress(b"0" * 100 * 2**20, 1)

# fault -> its effect, and whether another try may bring a reply ("again"), none may ("never"), or it is one ("reply")
FAULTS: dict[str, tuple[Fault, str]] = {
    "429": (status(429), "again"),
    "429-now": (status(429, Retry_After="0"), "again"),
    "429-soon": (status(429, Retry_After="0.01"), "again"),
    "429-ms": (status(429, Retry_After_Ms="5"), "again"),
    "429-past": (status(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"), "again"),
    "429-words": (status(429, Retry_After="in a while"), "again"),
    "429-negative": (status(429, Retry_After="-5"), "again"),
    "429-late": (status(429, Retry_After="1000000000"), "never"),
    "429-quota": (status(429, "insufficient_quota"), "never"),
    **{
        str(number): (status(number), "again")
        for number in (408, 500, 502, 503, 504, 520, 529)
    },
    **{str(number): (status(number), "never") for number in (400, 401, 403, 404, 422)},
    "reset": (reset(b""), "again"),
    "reset-head": (reset(_LONG), "again"),
    "reset-body": (reset(_LONG + completion()[:40]), "again"),
    "hang": (hang(b""), "again"),
    "hang-head": (hang(_LONG), "again"),
    "hang-body": (hang(_LONG + completion()[:40]), "again"),
    "html": (body(b"<html>Bad gateway</html>"), "again"),
    "half-json": (body(completion()[:60]), "again"),
    "empty": (body(b""), "again"),
    "json-list": (body(b"[1, 2]"), "again"),
    "error-200": (
        body(
            json.dumps(
                {"error": {"message": f"overloaded {SECRET}", "code": 529}}
            ).encode()
        ),
        "again",
    ),
    "no-choices": (body(completion(choices=[])), "again"),
    "null-choices": (body(completion(choices=None)), "again"),
    "usage-null": (body(completion(usage=None)), "reply"),
    "usage-negative": (
        body(completion(usage={"prompt_tokens": -9, "completion_tokens": None})),
        "reply",
    ),
    "huge": (_huge, "any"),  # too large or too slow, whichever is noticed first
    "bomb": (body(_BOMB, Content_Encoding="gzip"), "any"),
    "brotli": (body(completion(), Content_Encoding="br"), "never"),
    "no-stream": (body(completion()), "reply"),
    "stream-ends": (stream(events(None, done=False)[:3]), "again"),
    "stream-hangs": (stream(events()[:3], end=False), "again"),
    "stream-drips": (stream([b": still here\n\n"] * 400, 0.05), "again"),
    "stream-garbage": (stream([b"data: {\n\n", b"data: [DONE]\n\n"]), "again"),
    "stream-error": (
        stream([events()[0], b'data: {"error": {"message": "overloaded"}}\n\n']),
        "again",
    ),
    "stream-done-only": (stream(events(None)), "reply"),
    "stream-empty": (stream([]), "again"),
    "drip-head": (drip(_LONG), "again"),
    "drip-body": (drip(b" " * 400, after=_LONG), "again"),
}


class Server:
    """Serves faults until it is closed. `requests` counts the requests for each fault and ID."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.requests: Counter[str] = Counter()
        self.faults = dict(FAULTS)
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(
                    target=self._serve, args=self._socket.accept()[:1], daemon=True
                ).start()

    def _serve(self, connection: socket.socket) -> None:
        # the second for a client that speaks TLS
        with suppress(OSError, UnicodeDecodeError):
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as file:
                if not (first_line := file.readline()):
                    return  # somebody looked whether the server is there
                _, fault, mode, number, *_ = first_line.split()[1].decode().split("/")
                length = 0
                while line := file.readline().strip().lower():
                    length = (
                        int(line.partition(b":")[2])
                        if line.startswith(b"content-length:")
                        else length
                    )
                streamed = bool(json.loads(file.read(length) or b"{}").get("stream"))
                self.requests[f"{fault}/{number}"] += 1
                first = self.requests[f"{fault}/{number}"] == 1
                (self.faults[fault][0] if first or mode == "always" else good)(
                    connection, streamed
                )

    def close(self) -> None:
        self._socket.close()


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server for the length of the block."""
    server = Server(context)
    try:
        yield server
    finally:
        server.close()

"""A client that ends its sending after its request gets its answer; a text that is not a request costs little and no words."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import Any

import httpx
import pytest

from ras_agent.app.serve import half_open
from ras_agent.app.serve.half_open import LEAST_PIECE, MOST_SMALL_PIECES
from ras_agent.config.settings import Settings
from tests.app.serve.conftest import Served

QUESTION = {"question": "Who invented the telephone?"}
CHAT = {
    "model": "ras-agent",
    "messages": [{"role": "user", "content": QUESTION["question"]}],
}


def _sent(address: str, path: str, body: dict[str, Any]) -> socket.socket:
    """Send a request, and return the connection."""
    data = json.dumps(body)
    return _sent_text(address, path, f"Content-Length: {len(data)}\r\n\r\n{data}")


def _sent_text(address: str, path: str, rest: str) -> socket.socket:
    """Send the beginning of a request and the rest of it, and return the connection."""
    url = httpx.URL(address)
    head = f"POST {path} HTTP/1.1\r\nHost: {url.host}:{url.port}\r\nContent-Type: application/json\r\n"
    connection = socket.create_connection((url.host, url.port or 0), timeout=60)
    connection.sendall(f"{head}{rest}".encode())
    return connection


def _read(connection: socket.socket) -> str:
    """Read until the server closes the connection."""
    with connection:
        pieces = iter(lambda: connection.recv(1 << 16), b"")
        return b"".join(pieces).decode()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body"), [("/api/ask", QUESTION), ("/v1/chat/completions", CHAT)]
)
def test_a_client_that_reads_on_gets_its_answer(
    sample_server: str, path: str, body: Any, stream: bool
) -> None:
    connection = _sent(sample_server, path, {**body, "stream": stream})
    connection.shutdown(socket.SHUT_WR)
    answer = _read(connection).rpartition("HTTP/1.1 200 OK")[2]
    assert "Alexander Graham Bell" in answer
    assert answer.endswith("0\r\n\r\n") is stream


@pytest.mark.parametrize("stream", [False, True])
def test_the_run_of_a_client_that_has_left_ends(
    served: Served, scripted_llm: Any, stream: bool
) -> None:
    scripted_llm.script({"hang": True, "repeat": True})
    client = served(Settings(llm=scripted_llm.spec))
    connection = _sent(str(client.base_url), "/api/ask", {**QUESTION, "stream": stream})
    while client.get("/health").json()["runs"] == 0:
        pass
    connection.close()
    while client.get("/health").json()["runs"]:
        pass


CHUNKED = "Transfer-Encoding: chunked\r\n"
ASKED = json.dumps(QUESTION)


def _in_pieces(text: str, size: int) -> str:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    chunks = [f"{len(piece):x}\r\n{piece}\r\n" for piece in pieces]
    return "".join((CHUNKED, "\r\n", *chunks, "0\r\n\r\n"))


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        (_in_pieces(ASKED.ljust(MOST_SMALL_PIECES), 1), "200"),
        (_in_pieces(ASKED.ljust(MOST_SMALL_PIECES + 1), 1), "400"),
        (_in_pieces(ASKED.ljust(9_000 * LEAST_PIECE), 2 * LEAST_PIECE), "200"),
        (_in_pieces(ASKED.ljust(9_000 * LEAST_PIECE), LEAST_PIECE // 2), "400"),
        (f"Content-Length: {len(ASKED)}\r\n{_in_pieces(ASKED, 1_000)}", "400"),
        (f"{CHUNKED}\r\nno length\r\n", "400"),
    ],
)
def test_a_body_comes_in_few_pieces_and_has_one_length(
    sample_server: str, rest: str, status: str
) -> None:
    with _sent_text(sample_server, "/api/ask", rest) as connection:
        assert connection.recv(12).decode() == f"HTTP/1.1 {status}"


def test_a_client_that_leaves_in_the_middle_of_its_request_leaves_no_word_in_the_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    client = served(Settings())
    for path in ("/api/ask", "/api/documents", "/v1/responses", "/mcp"):
        kind = "Accept: application/json, text/event-stream\r\n"
        beginning = f"{kind}Content-Length: 1000\r\n\r\n{{"
        _sent_text(str(client.base_url), path, beginning).close()
        assert client.get("/health").json()["runs"] == 0
    assert caplog.records == []


def test_what_follows_a_refusal_and_is_no_body_ends_the_connection(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    client = served(Settings(), {"right-0123456789abcdef": None})
    beginning = f"{CHUNKED}\r\n2\r\n{{}}\r\n"
    with _sent_text(str(client.base_url), "/api/ask", beginning) as connection:
        refused = b""
        while not refused.endswith(b"}}"):
            refused += connection.recv(1 << 16)
        connection.sendall(b"no length\r\n")
        assert connection.recv(1 << 16) == b""
    assert refused.startswith(b"HTTP/1.1 401")
    assert caplog.records == []


def test_a_body_without_end_is_not_read_on_once_it_was_answered(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(half_open, "LINGER_SECONDS", 0.1)
    client = served(Settings(), {"right-0123456789abcdef": None})
    piece = f"64\r\n{' ' * 100}\r\n".encode() * 100
    with _sent_text(str(client.base_url), "/api/ask", f"{CHUNKED}\r\n") as connection:
        assert connection.recv(12) == b"HTTP/1.1 401"
        with suppress(OSError):
            while True:
                connection.sendall(piece)

"""A client that ends its sending after its request gets its answer; the run of one that has left ends."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import pytest

from ras_agent.settings import Settings
from tests.app.serve.conftest import Served

QUESTION = {"question": "Who invented the telephone?"}
CHAT = {
    "model": "ras-agent",
    "messages": [{"role": "user", "content": QUESTION["question"]}],
}


def _sent(address: str, path: str, body: dict[str, Any]) -> socket.socket:
    """Send a request, and return the connection."""
    data = json.dumps(body).encode()
    url = httpx.URL(address)
    head = f"POST {path} HTTP/1.1\r\nHost: {url.host}:{url.port}\r\nContent-Type: application/json\r\n"
    connection = socket.create_connection((url.host, url.port or 0), timeout=60)
    connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
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

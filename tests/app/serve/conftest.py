"""A real server on loopback for the tests of `ras-agent serve`."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")

import uvicorn
from fastapi import FastAPI

from ras_agent.app.serve.access import access_of
from ras_agent.app.serve.app import create_app
from ras_agent.app.serve.half_open import HalfOpen
from ras_agent.app.serve.server import listening
from ras_agent.app.serve.service import open_service
from ras_agent.config.settings import Settings

Served = Callable[..., httpx.Client]


@contextmanager
def serving(
    settings: Settings,
    *,
    sample: bool = False,
    tokens: Mapping[str, Any] | None = None,
    below: str = "",
) -> Iterator[str]:
    """Serve on a free port in a thread, and yield the address.

    tokens: as a file of tokens has them. below: the path of an application that mounts this one.
    """
    ready, ended = threading.Event(), threading.Event()
    held: dict[str, Any] = {}
    access = access_of(tokens or {}, "the test")

    async def serve() -> None:
        async with open_service(settings, sample=sample) as service:
            app = create_app(service, access)
            if below:
                site = FastAPI()
                site.mount(below, app)
                app = site
            config = uvicorn.Config(
                app, http=HalfOpen, log_level="critical", timeout_graceful_shutdown=5
            )
            held["server"] = server = uvicorn.Server(config)
            with listening("127.0.0.1", 0) as listener:
                held["port"] = listener.getsockname()[1]
                ready.set()
                await server.serve(sockets=[listener])

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            held["error"] = error
        finally:
            ready.set()
            ended.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait(60)
    if "error" in held:
        raise held["error"]
    try:
        yield f"http://127.0.0.1:{held['port']}{below}"
    finally:
        held["server"].should_exit = True
        ended.wait(30)
        thread.join(5)


@pytest.fixture(scope="session")
def sample_server() -> Iterator[str]:
    """The address of a server of the bundled sample, offline."""
    with serving(Settings(), sample=True) as address:
        yield address


@pytest.fixture
def served() -> Iterator[Served]:
    """`served(settings)`: a client of a server of its own."""
    with ExitStack() as stack:

        def start(
            settings: Settings, tokens: Mapping[str, Any] | None = None, **options: Any
        ) -> httpx.Client:
            address = stack.enter_context(
                serving(settings, sample=settings.index is None, tokens=tokens)
            )
            return stack.enter_context(
                httpx.Client(base_url=address, trust_env=False, timeout=60, **options)
            )

        yield start


@pytest.fixture
def client(sample_server: str) -> Iterator[httpx.Client]:
    """A client of the server of the sample."""
    with httpx.Client(base_url=sample_server, trust_env=False, timeout=60) as client:
        yield client


def events_of(text: str) -> list[tuple[str, Any]]:
    """Return the names and the data of server-sent events."""
    blocks = [
        block.split("\n")
        for block in text.split("\n\n")
        if block and not block.startswith(":")
    ]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in blocks
    ]

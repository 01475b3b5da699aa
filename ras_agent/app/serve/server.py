"""Runs the server's process: opens its socket, handles its signals and ends it."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from ras_agent.app.serve.access import read_access
from ras_agent.app.serve.app import create_app
from ras_agent.app.serve.half_open import HalfOpen
from ras_agent.app.serve.service import Service, open_service
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import SettingsError
from ras_agent.logs import LOGGER, log_to

# seconds that running runs have to end once the server was asked to; and those after which the process ends anyway
_GRACE = 6
_END = 8
# the last of these seconds, in which waiting callers are told that the server is ending
_TO_TELL = 1
# seconds in which a client has to receive the next piece of an answer
SEND_SECONDS = 60
# number of connections in addition to those of runs; more are refused before anything is read from them
_CONNECTIONS = 512


async def run_server(
    settings: Settings, *, sample: bool, announce: Callable[[str], None]
) -> None:
    """Serve until a signal ends the server.

    `announce` is called with the server's address when it is ready; `sample` serves the bundled sample.

    Raises:
        RasError: if the server cannot be set up.
    """
    access = read_access(settings.host, settings.tokens, os.environ)
    with listening(settings.host, settings.port) as listener:
        LOGGER.propagate = False  # some packages, such as MCP's, set up the root's handlers at their first warning
        if settings.log is None:
            # failures are shown even without a log
            log_to("-", level=logging.WARNING)
        async with open_service(settings, sample=sample) as service:
            config = uvicorn.Config(
                create_app(service, access),
                http=HalfOpen,
                log_level="warning",
                access_log=False,  # its lines would contain questions
                server_header=False,
                timeout_graceful_shutdown=_GRACE,
                limit_concurrency=_CONNECTIONS + 2 * settings.max_runs,
            )
            # uvicorn raises the signal that ended it again; ignored, so that the process ends in order
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: None)
            # exclude the program's own objects from garbage collection, which would otherwise search them each time,
            # for a tenth of a second in which no request is answered (lab/speed.md)
            gc.collect()
            gc.freeze()
            host, port = listener.getsockname()[:2]
            announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")
            await _Server(config, service).serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Ends its process soon after a signal, without waiting for threads and databases that hang."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all runs, and tell their callers before the connections are closed."""
        loop = asyncio.get_running_loop()
        telling = loop.call_later(_GRACE - _TO_TELL, self._service.end_runs)
        try:
            await super().shutdown(sockets)
        finally:
            telling.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # works even if the interpreter hangs, and shows the call that hangs
        faulthandler.dump_traceback_later(_END, exit=True)
        super().handle_exit(sig, frame)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at `host` and `port`.

    Raises:
        SettingsError: if that is not possible.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise SettingsError(
            f"cannot listen at {host} port {port}: {error.strerror or error}; choose another --port (0 takes a free "
            "one) or --host"
        ) from error
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # otherwise a client that stops reading would keep its connection, and sent bytes in the kernel, for ever
        listener.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SEND_SECONDS * 1000
        )
    return listener

"""The server's process: its socket, its signals, its end."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

import uvicorn

from ras_agent.app.serve.app import create_app
from ras_agent.app.serve.service import open_service
from ras_agent.errors import SettingsError
from ras_agent.settings import Settings

# seconds that runs under way have to end once the server was asked to
_GRACE = 30


async def run_server(settings: Settings, *, sample: bool, announce: Callable[[str], None]) -> None:
    """Serve until a signal ends it. Raises RasError children for what cannot be set up."""
    with _listening(settings.host, settings.port) as listener:
        async with open_service(settings, sample=sample) as service:
            config = uvicorn.Config(
                create_app(service), log_level="warning", access_log=False, timeout_graceful_shutdown=_GRACE
            )
            # uvicorn raises the signal that ended it once more: here the process ends in its own order
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: None)
            host, port = listener.getsockname()[:2]
            announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")
            await uvicorn.Server(config).serve(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise SettingsError(
            f"cannot listen at {host} port {port}: {error.strerror or error}; choose another --port (0 takes a free "
            "one) or --host"
        ) from error

"""Proxy on loopback between a client and a server, which can hold back their bytes, as a hang does.

The kernel at either end goes on to confirm the bytes that arrive, as it does where a process is stopped or a disk hangs: no
time-out of TCP notices it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit, urlunsplit


class StallingProxy:
    """Proxy that forwards connections to a port of this machine."""

    def __init__(self, port: int) -> None:
        """Forward to `port`, from the free port that `self.port` names."""
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self._gate = _Gate()
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self) -> None:
        """Forward nothing more, on no connection; new ones are accepted and stay silent, too."""
        self._gate.close()

    def resume(self) -> None:
        """Forward again, also the bytes that were held back."""
        self._gate.open()

    def fail_over(self) -> None:
        """Forward new connections; those of now stay silent for ever, as after the fail-over of a server.

        Their ends at the server are closed, since there they went with the machine that failed: a database with a limit
        of connections counts them no more.
        """
        gone, self._gate = self._gate, _Gate()
        gone.close()
        for far in gone.ends:
            with suppress(OSError):
                far.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accept no more connections: they are refused."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            gate = self._gate
            gate.ends.append(far)
            for source, target in ((near, far), (far, near)):
                threading.Thread(
                    target=_forward, args=(source, target, gate), daemon=True
                ).start()


class _Gate:
    """Gate through which bytes pass while it is open. ends: the server's, of the connections through it."""

    def __init__(self) -> None:
        self.ends: list[socket.socket] = []
        self._is_open = threading.Event()
        self._is_open.set()
        self.open, self.close, self.wait = (
            self._is_open.set,
            self._is_open.clear,
            self._is_open.wait,
        )


def _forward(source: socket.socket, target: socket.socket, gate: _Gate) -> None:
    with suppress(OSError):
        while piece := source.recv(1 << 16):
            gate.wait()
            target.sendall(piece)
    gate.wait()  # a connection whose peer has gone is not told so either
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@contextmanager
def stalling(url: str) -> Iterator[tuple[StallingProxy, str]]:
    """Run a proxy before the server of a URL, and yield it with the URL that leads through it."""
    parts = urlsplit(url)
    assert parts.port
    proxy = StallingProxy(parts.port)
    try:
        through = parts._replace(
            netloc=parts.netloc.replace(f":{parts.port}", f":{proxy.port}")
        )
        yield proxy, urlunsplit(through)
    finally:
        proxy.close()
        proxy.resume()

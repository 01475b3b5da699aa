"""How long a database may be silent: every connection to PostgreSQL is opened with what is here.

A server that is stopped, or behind a network that lost it, goes on to hold its connections: nothing fails, and nothing
is ever answered. TCP's own time-outs notice a machine that is gone, not a process that hangs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import Any, TypeVar, cast

SECONDS = 5
"""In which a database has to take a connection, and to answer on it."""

TCP: dict[str, Any] = {
    "connect_timeout": SECONDS,
    "keepalives_idle": SECONDS,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 2000 * SECONDS,
}
"""Parameters of libpq with which the kernel ends a connection whose other machine is gone."""

C = TypeVar("C")


def impatient(base: type[C], is_working: Callable[[int], bool] = lambda _: False) -> type[C]:
    """Return a class of connections, psycopg's Connection or AsyncConnection, that give up on a silent server.

    After SECONDS without a byte for a statement the connection is closed, and OperationalError raised, unless
    `is_working`, which is given the server's process id, says that the server is still at it. `opened_before` tells of
    each connection whether it is older than the last silence: it may be one of those that a fail-over has left behind.
    """
    from psycopg import OperationalError

    silent_at, parent = 0.0, cast("Any", base)

    class Impatient(parent):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._opened = monotonic()

        @property
        def opened_before(self) -> bool:
            return self._opened <= silent_at

        def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
            return super().wait(self._watched(gen), *args, **kwargs)

        def _watched(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            nonlocal silent_at
            try:
                wanted = next(gen)
                since = monotonic()
                while True:
                    ready = yield wanted
                    if ready:
                        since = monotonic()
                    elif monotonic() - since > SECONDS:
                        if not is_working(self.pgconn.backend_pid):
                            silent_at = monotonic()
                            self.pgconn.finish()
                            raise OperationalError(f"the server was silent for {SECONDS} seconds")
                        since = monotonic()
                    wanted = gen.send(ready)
            except StopIteration as end:
                return end.value

    return cast("type[C]", Impatient)

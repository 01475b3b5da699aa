"""Sets time limits for a database that does not answer. Every connection to PostgreSQL is opened with these
options.

A server that has stopped, or that the network has lost, keeps its connections open: no call fails, and none
returns. TCP's own time-outs notice a machine that is gone, but not a process that hangs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import Any, TypeVar, cast

SECONDS = 5
"""The seconds within which a database must accept a connection, and must answer on it."""

_TO_CANCEL = 0.5
# seconds that one check of the connection counts at most: a pause of this process is not a silence of the server
_LONGEST_LOOK = 0.5

TCP: dict[str, Any] = {
    "connect_timeout": SECONDS,
    "keepalives_idle": SECONDS,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 2000 * SECONDS,
}
"""Parameters of libpq with which the kernel ends a connection to a machine that is gone."""

C = TypeVar("C")


def impatient(
    base: type[C], is_working: Callable[[int], bool] = lambda _: False
) -> type[C]:
    """Return a subclass of psycopg's Connection or AsyncConnection that gives up on a silent server.

    If a statement gets no byte for SECONDS, the connection is closed and OperationalError is raised, unless
    `is_working` says for the server's process id that the server is still working. A cancelled statement has
    less time: _TO_CANCEL seconds to be cancelled, and as many to end. The property `opened_before` tells
    whether a connection was opened before the last silence; its server may have been replaced in a fail-over.
    """
    from psycopg import OperationalError

    silent_at, parent = 0.0, cast("Any", base)

    class Impatient(parent):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._opened = monotonic()
            self._cancelled = False

        @property
        def opened_before(self) -> bool:
            return self._opened <= silent_at

        def cancel_safe(self, *, timeout: float = _TO_CANCEL) -> Any:
            """Cancel the running statement. psycopg calls this when a task that waits for it is cancelled."""
            self._cancelled = True
            return super().cancel_safe(timeout=min(timeout, _TO_CANCEL))

        def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
            return super().wait(self._watched(gen), *args, **kwargs)

        def _watched(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            silence = 0.0
            try:
                wanted = next(gen)
                while True:
                    asked = monotonic()
                    ready = yield wanted
                    silence += min(monotonic() - asked, _LONGEST_LOOK)
                    if ready:
                        silence = 0.0
                    elif silence > (_TO_CANCEL if self._cancelled else SECONDS):
                        self._check_working()
                        silence = 0.0
                    wanted = gen.send(ready)
            except StopIteration as end:
                return end.value
            finally:
                self._cancelled = False

        def _check_working(self) -> None:
            """Close the connection and raise OperationalError, unless the server is working on a statement that
            was not cancelled.
            """
            nonlocal silent_at
            if self._cancelled:
                self.pgconn.finish()
                raise OperationalError("a cancelled statement did not end")
            if is_working(self.pgconn.backend_pid):
                return
            silent_at = monotonic()
            self.pgconn.finish()
            raise OperationalError(f"the server did not answer for {SECONDS} seconds")

    return cast("type[C]", Impatient)

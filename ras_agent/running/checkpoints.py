"""Opens checkpointers, which save the states of runs, so that a run can resume after an interrupt or a crash.

    with open_checkpointer("sqlite:checkpoints.sqlite") as checkpointer:
        agent = create_ras_agent(..., checkpointer=checkpointer)
        agent.invoke({"question": "..."}, {"configurable": {"thread_id": "1"}})

    memory                          this process only
    sqlite:checkpoints.sqlite       one file (extra: sqlite)
    postgres:postgresql://host/db   a server (extra: postgres); any libpq connection string may follow `postgres:`

States are stored as plain JSON in compressed msgpack. Nothing is pickled, and loading rebuilds only the types
that LangGraph lists as safe. Checkpoints that were stored without compression can be read too.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from ras_agent.contracts.errors import SettingsError, UnknownName, needs_extra
from ras_agent.running.silence import SECONDS, TCP, impatient

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    from langgraph.store.base import BaseStore
    from psycopg_pool import AsyncConnectionPool

_ZLIB = "+zlib"
_WORTH_COMPRESSING = 200  # bytes; shorter data would get longer
_FAST = 3  # zlib's levels are 1 to 9; higher ones cost more and save little
_KINDS = ("memory", "postgres", "sqlite")
# Deleted and replaced rows are overwritten; ras_agent.graphs.threads then empties the log. A run does not wait until a
# step is on the disk: a killed process loses nothing, and a machine that fails loses at most its last steps.
_PRAGMAS = "PRAGMA secure_delete = ON; PRAGMA synchronous = NORMAL"
_LOCKED_SECONDS = 2.0
"""Seconds to wait for a file that another process has locked."""
# requirements of the Postgres savers on a connection
_CONNECTION: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, **TCP}
_POOL: dict[str, Any] = {
    "min_size": 1,
    "max_size": 2,
    "timeout": SECONDS,
    "reconnect_timeout": SECONDS,
    "open": False,
}
_OLD = "opened before the server was silent"


@contextmanager
def open_checkpointer(spec: str) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open the checkpointer that `spec` names, for `invoke`, `stream` and `batch`; it is closed at the end of
    the block.

    Creates missing tables. The checkpointer may be used from several threads.

    Raises:
        UnknownName: for an unknown kind of checkpointer.
        SettingsError: without a path or connection string.
        MissingExtra: if the database driver is not installed.
        Exception: the driver's own errors if it cannot connect.
    """
    kind, target = _parse(spec)
    if kind == "memory":
        from langgraph.checkpoint.memory import InMemorySaver

        yield InMemorySaver(serde=_strict())
    elif kind == "sqlite":
        import sqlite3

        with needs_extra("the SQLite checkpointer", "sqlite"):
            from langgraph.checkpoint.sqlite import SqliteSaver
        # the saver locks its connection, so any thread may use it
        with closing(
            sqlite3.connect(_private(target), _LOCKED_SECONDS, check_same_thread=False)
        ) as file:
            saver = SqliteSaver(file, serde=_strict())
            with _naming(target):
                file.executescript(_PRAGMAS)
                saver.setup()
            yield saver
    else:
        with needs_extra("the Postgres checkpointer", "postgres"):
            from langgraph.checkpoint.postgres import PostgresSaver
            from psycopg import Connection, OperationalError
            from psycopg.rows import dict_row
            from psycopg_pool import ConnectionPool
        kind_of_connection: Any = impatient(Connection)
        # one plain connection first: if it fails, it fails at once and with the server's own message
        with kind_of_connection.connect(
            target, row_factory=dict_row, **_CONNECTION
        ) as first:
            PostgresSaver(first).setup()

        def check(connection: Any) -> None:
            if connection.opened_before:
                connection.pgconn.finish()  # else the pool would lend it again
                raise OperationalError(_OLD)

        row_factory: Any = {"row_factory": dict_row}
        with ConnectionPool(
            target,
            connection_class=kind_of_connection,
            kwargs=_CONNECTION | row_factory,
            check=check,
            **_POOL,
        ) as pool:
            yield PostgresSaver(pool, serde=_strict())


@asynccontextmanager
async def aopen_checkpointer(spec: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Open the checkpointer that `spec` names, for `ainvoke`, `astream` and `abatch`, all in one event loop.

    Raises as `open_checkpointer` does.
    """
    kind, target = _parse(spec)
    if kind == "memory":
        from langgraph.checkpoint.memory import InMemorySaver

        yield InMemorySaver(serde=_strict())
    elif kind == "sqlite":
        with needs_extra("the SQLite checkpointer", "sqlite"):
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
        async with _file(target) as file:
            in_file = AsyncSqliteSaver(file, serde=_strict())
            with _naming(target):
                await in_file.setup()
            yield in_file
    else:
        with needs_extra("the Postgres checkpointer", "postgres"):
            from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        async with _postgres(target) as pool:
            saver = AsyncPostgresSaver(pool, serde=_strict())
            await saver.setup()
            yield saver


@asynccontextmanager
async def aopen_store(spec: str) -> AsyncIterator[BaseStore | None]:
    """Open a LangGraph Store next to the checkpointer that `spec` names. Yields None for `memory`.

    In SQLite the store is a separate file, FILE.store, because two writers to one file would lock each other
    out.

    Raises as `open_checkpointer` does.
    """
    kind, target = _parse(spec)
    if kind == "memory":
        yield None
    elif kind == "sqlite":
        with needs_extra("the SQLite store", "sqlite"):
            from langgraph.store.sqlite.aio import AsyncSqliteStore
        place = target if target == ":memory:" else f"{target}.store"
        async with (
            _file(place, isolation_level=None) as file,
            AsyncSqliteStore(file) as store,
        ):
            with _naming(place):
                await store.setup()
            yield store
    else:
        with needs_extra("the Postgres store", "postgres"):
            from langgraph.store.postgres.aio import AsyncPostgresStore
        async with _postgres(target) as pool, AsyncPostgresStore(pool) as store:
            await store.setup()
            yield store


def prober(checkpointer: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """Return a second checkpointer for the same place, to test whether the database answers while runs write to
    it.

    A PostgreSQL checkpointer handles one call at a time; the second one uses another connection of its pool.
    """
    pool = getattr(checkpointer, "conn", None)
    if not hasattr(pool, "connection"):
        return checkpointer
    kind: Any = type(checkpointer)
    return cast("BaseCheckpointSaver[Any]", kind(pool, serde=checkpointer.serde))


def _private(path: str) -> str:
    """Create an SQLite file, unless it exists, that only its owner can read, as well as the logs next to it.
    Return its path.
    """
    if path != ":memory:":
        # SQLite reports the problem of a file that exists or cannot be made
        with suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return path


@asynccontextmanager
async def _postgres(target: str) -> AsyncIterator[AsyncConnectionPool[Any]]:
    """Open a pool of connections with short time limits. If it cannot connect, the server's own message is
    raised at once.
    """
    from psycopg import AsyncConnection, OperationalError
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    kind: Any = impatient(AsyncConnection)
    await (
        await kind.connect(target, **_CONNECTION)
    ).close()  # a pool would try for a long time, and report only that it tried

    async def check(connection: Any) -> None:
        if connection.opened_before:
            connection.pgconn.finish()  # else the pool would lend it again
            raise OperationalError(_OLD)

    options = _CONNECTION | {"row_factory": dict_row}
    async with AsyncConnectionPool(
        target, connection_class=kind, kwargs=options, check=check, **_POOL
    ) as pool:
        yield pool


@asynccontextmanager
async def _file(place: str, **options: Any) -> AsyncIterator[Any]:
    import sqlite3

    import aiosqlite

    with _naming(place):
        sqlite3.connect(
            _private(place)
        ).close()  # fails here, because a thread of aiosqlite would report the failure later
        file = await aiosqlite.connect(place, timeout=_LOCKED_SECONDS, **options)
    try:
        with _naming(place):
            await file.executescript(_PRAGMAS)
        yield file
    finally:
        await file.close()


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """Turn errors of SQLite into SettingsError, which names the file and a remedy."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        locked = getattr(error, "sqlite_errorcode", 0) & 0xFF in (
            sqlite3.SQLITE_BUSY,
            sqlite3.SQLITE_LOCKED,
        )
        remedy = (
            "another process has locked it: wait until that process ends"
            if locked
            else "name another file, or move this one away, and a new one is made"
        )
        raise SettingsError(
            f"{file} cannot be used for threads ({error}): {remedy}"
        ) from error


def _parse(spec: str) -> tuple[str, str]:
    kind, _, target = spec.partition(":")
    if kind == "postgresql":
        kind, target = "postgres", spec  # a bare URL
    if kind not in _KINDS:
        raise UnknownName("checkpointer", kind, _KINDS)
    if kind != "memory" and not target:
        raise SettingsError(
            f"the checkpointer {kind!r} needs a file or a database: write sqlite:<path> or postgres:<connection string>"
        )
    return kind, target


def _strict() -> JsonPlusSerializer:
    """Return the serializer of all checkpoints: strict even if LANGGRAPH_STRICT_MSGPACK is not set, and
    compressed.

    They are compressed because SQLite stores the whole state at each step, and the facts of a question's graph
    repeat words.
    """
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    class Compressed(JsonPlusSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            kind, data = super().dumps_typed(obj)
            if len(data) < _WORTH_COMPRESSING:
                return kind, data
            return f"{kind}{_ZLIB}", zlib.compress(data, _FAST)

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            kind, stored = data
            if kind.endswith(_ZLIB):
                kind, stored = kind.removesuffix(_ZLIB), zlib.decompress(stored)
            return super().loads_typed((kind, stored))

    return Compressed(pickle_fallback=False, allowed_msgpack_modules=None)

"""Where runs are saved, so that one can be interrupted, resumed, and looked at later.

    memory                          this process only
    sqlite:checkpoints.sqlite       one file (extra: sqlite)
    postgres:postgresql://host/db   a server (extra: postgres); after `postgres:` comes any libpq connection string

Values are plain JSON in msgpack. Nothing is pickled, and nothing but LangGraph's own safe types is rebuilt on loading.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import TYPE_CHECKING, Any

from ras_agent.errors import MissingExtra, SettingsError, UnknownName

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

__all__ = ["aopen_checkpointer", "open_checkpointer"]

_KINDS = ("memory", "postgres", "sqlite")
# what the Postgres savers require of a connection
_CONNECTION: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0}


@contextmanager
def open_checkpointer(spec: str) -> Iterator[BaseCheckpointSaver[Any]]:
    """The checkpointer for `invoke`, `stream` and `batch` that `spec` names, closed at the end of the block.

    Tables are made where they are missing. Safe to use from several threads. Raises UnknownName, SettingsError for a
    missing path or connection string, MissingExtra, and what the database's driver raises when it cannot connect.
    """
    kind, target = _parsed(spec)
    if kind == "memory":
        from langgraph.checkpoint.memory import InMemorySaver

        yield InMemorySaver(serde=_strict())
    elif kind == "sqlite":
        import sqlite3

        try:
            from langgraph.checkpoint.sqlite import SqliteSaver
        except ImportError as error:
            raise MissingExtra("the SQLite checkpointer", "sqlite") from error
        # the saver holds a lock, so its connection may be used from any thread
        with closing(sqlite3.connect(target, check_same_thread=False)) as file:
            yield SqliteSaver(file, serde=_strict())
    else:
        try:
            from langgraph.checkpoint.postgres import PostgresSaver
            from psycopg import Connection
            from psycopg.rows import DictRow, dict_row
            from psycopg_pool import ConnectionPool
        except ImportError as error:
            raise MissingExtra("the Postgres checkpointer", "postgres") from error
        # one plain connection first: it says at once, and in the server's words, why it cannot connect
        with PostgresSaver.from_conn_string(target) as first:
            first.setup()
        pool: ConnectionPool[Connection[DictRow]] = ConnectionPool(
            target, min_size=1, max_size=8, kwargs={**_CONNECTION, "row_factory": dict_row}, open=False
        )
        with pool:
            yield PostgresSaver(pool, serde=_strict())


@asynccontextmanager
async def aopen_checkpointer(spec: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """The same for `ainvoke`, `astream` and `abatch`; to be opened and used in one event loop."""
    kind, target = _parsed(spec)
    if kind == "memory":
        from langgraph.checkpoint.memory import InMemorySaver

        yield InMemorySaver(serde=_strict())
    elif kind == "sqlite":
        try:
            import aiosqlite
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
        except ImportError as error:
            raise MissingExtra("the SQLite checkpointer", "sqlite") from error
        async with aiosqlite.connect(target) as file:
            yield AsyncSqliteSaver(file, serde=_strict())
    else:
        try:
            from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
            from psycopg import AsyncConnection
            from psycopg.rows import DictRow, dict_row
            from psycopg_pool import AsyncConnectionPool
        except ImportError as error:
            raise MissingExtra("the Postgres checkpointer", "postgres") from error
        async with AsyncPostgresSaver.from_conn_string(target) as first:
            await first.setup()
        pool: AsyncConnectionPool[AsyncConnection[DictRow]] = AsyncConnectionPool(
            target, min_size=1, max_size=8, kwargs={**_CONNECTION, "row_factory": dict_row}, open=False
        )
        async with pool:
            yield AsyncPostgresSaver(pool, serde=_strict())


def _parsed(spec: str) -> tuple[str, str]:
    kind, _, target = spec.partition(":")
    if kind == "postgresql":
        kind, target = "postgres", spec  # a bare URL
    if kind not in _KINDS:
        raise UnknownName("checkpointer", kind, _KINDS)
    if kind != "memory" and not target:
        raise SettingsError(f"the checkpointer {kind!r} needs a place: sqlite:<path> or postgres:<connection string>")
    return kind, target


def _strict() -> JsonPlusSerializer:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    # strict also where LANGGRAPH_STRICT_MSGPACK is not set
    return JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)

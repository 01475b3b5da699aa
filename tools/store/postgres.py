"""Stores an index, or caches, in PostgreSQL: the tables of `schema.py`, in the schema that an address names.

Readers see the last commit and never wait. Deleted rows are never found; removing their bytes from dead pages, the
write-ahead log, replicas and backups is up to the server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from selectors import EVENT_READ, DefaultSelector
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import finalize

from ras_agent.config.address import Address
from ras_agent.contracts.errors import (
    IndexExists,
    IndexNotFound,
    StoreError,
    needs_extra,
)
from ras_agent.running.silence import SECONDS, TCP, impatient
from ras_agent.text.normal_form import storable
from ras_agent.tools.store.database import (
    Driver,
    OneWriter,
    Statements,
    busy,
)
from ras_agent.tools.store.transaction import Transaction

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

_MOST_CONNECTIONS = 8
_AT_ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
"""The statement that begins a read of several statements."""
_PATIENCE = "SET lock_timeout = '10s'"
"""The setting of the pool's connections: readers only ever wait for changes of the tables themselves (VACUUM FULL)."""
_IDLE_SECONDS = 60
"""How long an unused connection is kept before it is closed."""
_CLOSE_SECONDS = 0.5
"""How long a closing pool waits for its threads: idle ones end at once, one that waits for a silent server never
ends."""
_DIALECT = {
    r"%": "%%",
    r"\?": "%s",
    r"\bBLOB\b": "bytea",
    r"\bINTEGER\b": "bigint",
    r"\bTEXT\b": 'text COLLATE "C"',
    r"\bWITHOUT ROWID\b": "",
}
"""Parts of SQLite's statements, as patterns, and the same in PostgreSQL."""


@dataclass(frozen=True, slots=True)
class SchemaUse:
    """Describes how a schema is used."""

    what: str
    """The name of the schema's content, for messages."""
    mark: str
    """The name of a table that every such schema has."""
    remedy: str
    """The remedy for a damaged schema, for messages."""
    anew: str
    """The remedy for a missing schema at `{place}`, for messages."""


INDEX = SchemaUse(
    "index",
    "index_state",
    "index the files anew into another schema, such as ?schema=handbook",
    "make one with `ras-agent index FILES --out '{place}'`",
)


class _Statements:
    """Wraps a connection: takes SQLite's statements and runs them as PostgreSQL's."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        cursor = self._connection.cursor(binary=True)
        return cursor.execute(_translated(statement), _stored(values))

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Any:
        cursor = self._connection.cursor()
        cursor.executemany(_translated(statement), map(_stored, rows))
        return cursor


@lru_cache(256)
def _translated(statement: str) -> bytes:
    for pattern, replacement in _DIALECT.items():
        statement = re.sub(pattern, replacement, statement)
    return statement.encode()


def _stored(values: Sequence[Any]) -> list[Any]:
    stored = []
    for value in values:
        if isinstance(value, str):
            value = storable(value)
        stored.append(value)
    return stored


class PostgresDatabase(OneWriter):
    """Implements Database in the schema of an address. Connections are opened when they are needed."""

    def __init__(self, address: Address, use: SchemaUse = INDEX) -> None:
        """Use the tables made by `make_tables`, without connecting yet."""
        super().__init__()
        self.address = address
        self.use = use
        self._pool: ConnectionPool[Connection[Any]] | None = None
        self._lock = Lock()
        self._process = os.getpid()

    @property
    def where(self) -> str:
        """Return the address."""
        return str(self.address)

    @property
    def remedy(self) -> str:
        """Return the remedy for a damaged database, for messages."""
        return self.use.remedy

    @contextmanager
    def reading(self, *, once: bool = False) -> Iterator[Transaction]:
        """Return a context manager with a transaction whose reads all see the same state of the database.

        Args:
            once: whether the block reads only once.
        """
        if self._written is not None and self.is_writing():
            with self.named_errors():
                yield self._written
            return
        with (
            self._lent() as connection,
            nullcontext() if once else connection.transaction(),
        ):
            if not once:
                connection.execute(_AT_ONE_MOMENT)
            yield Transaction(_Statements(connection))

    @contextmanager
    def _begun(self, *, durable: bool) -> Iterator[Transaction]:
        with self._lent() as connection, connection.transaction():
            # writers wait for one another without a time limit
            connection.execute("SET LOCAL lock_timeout TO DEFAULT")
            key = f"write {self.address.schema}"
            connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (key,)
            )
            if not durable:
                connection.execute("SET LOCAL synchronous_commit = off")
            yield Transaction(_Statements(connection))

    @contextmanager
    def alone(self, what: str = "index") -> Iterator[None]:
        """Return a context manager that holds the lock of `what`. Raises IngestError while another process or thread
        has it.
        """
        key = (f"{what} {self.address.schema}",)
        with self.named_errors():
            connection = self._connect()
        import psycopg

        try:
            with self.named_errors():
                # the lock belongs to the connection and ends with it, however the run ends
                free = connection.execute(
                    "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", key
                ).fetchone()
            if free != (True,):
                raise busy(self.where, what)
            yield
        finally:
            # after a close, the server keeps the lock for a moment, and the next run would find it taken
            with suppress(psycopg.Error):
                connection.execute(
                    "SELECT pg_advisory_unlock(hashtextextended(%s, 0))", key
                )
            connection.close()

    def state(self) -> object:
        """Return a value that changes with every commit, and when the tables are created again."""
        with self._lent() as connection:
            return connection.execute(
                "SELECT epoch, revision FROM index_state"
            ).fetchone()

    def compact(self) -> bool:
        """Let new rows use the space of deleted ones, and return True. Removing the bytes of deleted rows is up to the
        server.
        """
        with self.named_errors(), self._connect() as connection:
            tables = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = %s",
                (self.address.schema,),
            ).fetchall()
            for (table,) in tables:
                connection.execute(f'VACUUM (ANALYZE) "{table}"'.encode())
        return True

    def check(self, tables: Sequence[str] = ()) -> None:
        """Do nothing: the server checks its pages when it reads them."""

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        with self._lock:
            if self._pool is not None and self._process == os.getpid():
                self._pool.close(timeout=_CLOSE_SECONDS)
            self._pool = None

    @contextmanager
    def _lent(self) -> Iterator[Connection[Any]]:
        """Lend a connection that the server has not closed, and that was opened after the server was last silent."""
        with self.named_errors(), ExitStack() as held:
            from psycopg_pool import PoolTimeout

            while True:
                pool = self._opened()
                try:
                    connection: Any = held.enter_context(pool.connection())
                except PoolTimeout:
                    self._check_answers(pool)
                    raise
                if not (connection.opened_before or _was_ended(connection)):
                    break
                connection.close()
                held.close()
                self._check_answers(pool)
            yield connection

    def _check_answers(self, pool: ConnectionPool[Connection[Any]]) -> None:
        """Open and close a plain connection: if the server does not answer, this fails at once, with the server's own
        message.

        The pool is then closed, which would otherwise try again at ever longer intervals while its users wait.
        """
        try:
            self._connect().close()
        except BaseException:
            with self._lock:
                if self._pool is pool:
                    self._pool = None
            pool.close(timeout=_CLOSE_SECONDS)
            raise

    def _opened(self) -> ConnectionPool[Connection[Any]]:
        # the connections of a parent process must not be used here
        if self._process != os.getpid():
            self._process = os.getpid()
            self._pool = None
            self._lock = Lock()
        known = self._pool
        if known is not None and known.get_stats().get("pool_size"):
            return known
        if known is not None:
            self._check_answers(known)
        else:
            self._connect().close()
        with self._lock:
            if self._pool is None:
                from psycopg_pool import ConnectionPool

                self._pool = ConnectionPool(
                    self.address.url,
                    connection_class=self._connection_class,
                    kwargs={"autocommit": True, **TCP},
                    configure=partial(_prepare, self.address.schema),
                    min_size=0,
                    max_idle=_IDLE_SECONDS,
                    max_size=_MOST_CONNECTIONS,
                    timeout=SECONDS,
                    reconnect_timeout=SECONDS,
                    open=True,
                )
                finalize(self, self._pool.close, _CLOSE_SECONDS)
            return self._pool

    def _connect(self) -> Connection[Any]:
        connection = self._connection_class.connect(
            self.address.url, autocommit=True, **TCP
        )
        _look_into(self.address.schema, connection)
        return connection

    @cached_property
    def _connection_class(self) -> type[Connection[Any]]:
        from psycopg import Connection

        # not with a method: the pool would refer to this object, so that neither it nor its connections were ever freed
        return impatient(Connection, partial(_is_working, self.address.url))

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Return a context manager that turns errors of the database and its driver into a StoreError that names the
        database.
        """
        with needs_extra("an index in PostgreSQL", "postgres"):
            import psycopg
            import psycopg_pool
        try:
            yield
        except psycopg.errors.UndefinedTable:
            anew = self.use.anew.format(place=self.address)
            raise IndexNotFound(
                f"no {self.use.what} at {self.address}: {anew}"
            ) from None
        except psycopg.errors.ProgramLimitExceeded as error:
            self._refuse(
                error,
                "a name, a path or a passage is too long for a database: give it a shorter one",
            )
        except (psycopg.OperationalError, psycopg_pool.PoolTimeout) as error:
            self._refuse(error, "is the server running, and may this user connect?")
        except psycopg.Error as error:
            self._refuse(error, "see the server's log, and who owns the schema")

    def _refuse(self, error: Exception, remedy: str) -> NoReturn:
        from psycopg.conninfo import conninfo_to_dict

        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        try:
            secrets = [
                value
                for name, value in conninfo_to_dict(self.address.url).items()
                if "password" in name
            ]
        except Exception:
            # the message could quote any part of an unreadable address, even a password
            raise StoreError(
                f"{self.address} is not the address of a PostgreSQL database: write postgresql://user@host:5432/database"
            ) from None
        for secret in secrets:
            said = said.replace(str(secret), "***")
        raise StoreError(f"{self.address}: {said}: {remedy}") from None


def make_tables(
    address: Address,
    statements: Statements,
    use: SchemaUse = INDEX,
    *,
    anew: bool = True,
) -> None:
    """Create the schema of an address and its tables by the given statements: all of them, or nothing if this fails.

    The database must exist.

    Args:
        anew: whether existing tables are an error.

    Raises:
        IndexExists: for existing tables, if `anew`, and for a schema that contains anything else.
    """
    database = PostgresDatabase(address, use)
    try:
        with database.writing() as connection:
            if _has_tables(connection, address, use.mark):
                if not anew:
                    return
                raise IndexExists(
                    f"{address} holds an {use.what} already: open it, or choose another schema"
                )
            connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{address.schema}"')
            anything = (
                "SELECT 1 FROM pg_class WHERE relnamespace = ?::regnamespace LIMIT 1"
            )
            if connection.execute(anything, (f'"{address.schema}"',)).fetchone():
                raise IndexExists(
                    f"{address} holds other tables: choose another schema, such as ?schema=handbook"
                )
            for statement, values in statements:
                connection.execute(statement, values)
    finally:
        database.close()


def has_tables(address: Address) -> bool:
    """Return whether there is an index at an address. Raises StoreError for a database that cannot be reached."""
    database = PostgresDatabase(address)
    try:
        with database.reading() as connection:
            return _has_tables(connection, address, INDEX.mark)
    finally:
        database.close()


def _has_tables(connection: Transaction, address: Address, mark: str) -> bool:
    name = f'"{address.schema}".{mark}'
    return bool(
        connection.execute("SELECT to_regclass(?) IS NOT NULL", (name,)).fetchone()[0]
    )


def _look_into(schema: str, connection: Connection[Any]) -> None:
    """Make a schema the search path of a connection."""
    connection.execute("SELECT set_config('search_path', %s, false)", (f'"{schema}"',))


def _prepare(schema: str, connection: Connection[Any]) -> None:
    """Prepare a connection of the pool for readers."""
    _look_into(schema, connection)
    connection.execute(_PATIENCE)


def _is_working(url: str, process: int) -> bool:
    """Return whether the server is running a statement in one of its processes, asked on a separate connection."""
    from psycopg import Connection, Error

    try:
        with impatient(Connection).connect(url, autocommit=True, **TCP) as connection:
            query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active'"
            return bool(connection.execute(query, (process,)).fetchone())
    except Error:
        return False


def _was_ended(connection: Connection[Any]) -> bool:
    """Return whether the server has sent something on an idle connection, which usually means that it has closed it."""
    with DefaultSelector() as selector:
        selector.register(connection.fileno(), EVENT_READ)
        return bool(selector.select(0))


DRIVER = Driver(PostgresDatabase, make_tables, has_tables)

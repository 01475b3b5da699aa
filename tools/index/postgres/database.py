"""Connects to a database: one pool for each index, errors in plain words, and nothing of a password in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from selectors import EVENT_READ, DefaultSelector
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import finalize

from ras_agent.address import Address
from ras_agent.errors import MissingExtra, StoreError

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

_MOST_CONNECTIONS = 8
_SECONDS = 10
"""How long a connection may take, and how long one is waited for while all are lent."""
_IDLE_SECONDS = 60
"""How long a connection waits for its next use before it is closed."""


class Database:
    """Lends connections to one database, whose tables are looked for in the schema of the address.

    They are opened when they are needed, and may be lent to several threads at once.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._pool: ConnectionPool[Connection[Any]] | None = None
        self._lock = Lock()

    @contextmanager
    def reading(self) -> Iterator[Connection[Any]]:
        """Lend a connection whose statements all see the database at one moment, and can write nothing."""
        with self._lent() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection[Any]]:
        """Lend a connection in a transaction of its own, after those of other writers of the same index."""
        with self._lent() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"write {self.schema}",))
            yield connection

    @contextmanager
    def outside_transactions(self) -> Iterator[Connection[Any]]:
        """Lend a connection for statements that no transaction may hold, such as VACUUM."""
        with self._lent() as connection:
            yield connection

    @contextmanager
    def alone(self) -> Iterator[Connection[Any]]:
        """Open a connection that is not shared, and whose statements are stored by its own commit."""
        with _named_errors(self.address), self._connect(autocommit=False) as connection:
            yield connection

    @property
    def schema(self) -> str:
        return self.address.schema

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
            self._pool = None

    @contextmanager
    def _lent(self) -> Iterator[Connection[Any]]:
        """Lend a connection that the server has not ended meanwhile, as it does when it is restarted."""
        with _named_errors(self.address), ExitStack() as held:
            while True:
                pool = self._opened()
                connection = held.enter_context(self._taken(pool))
                if not _was_ended(connection):
                    break
                connection.close()
                held.close()
                self._check_answers(pool)
            yield connection

    @contextmanager
    def _taken(self, pool: ConnectionPool[Connection[Any]]) -> Iterator[Connection[Any]]:
        from psycopg_pool import PoolTimeout

        with ExitStack() as held:
            try:
                connection = held.enter_context(pool.connection())
            except PoolTimeout:
                self._check_answers(pool)
                raise
            yield connection

    def _check_answers(self, pool: ConnectionPool[Connection[Any]]) -> None:
        """Open and close a plain connection: it fails at once, and with the server's own message.

        Then the pool is given up, which would try again at ever longer intervals while its users wait.
        """
        try:
            self._connect(autocommit=True).close()
        except BaseException:
            with self._lock:
                if self._pool is pool:
                    self._pool = None
            pool.close(timeout=0)
            raise

    def _opened(self) -> ConnectionPool[Connection[Any]]:
        known = self._pool
        if known is not None and known.get_stats().get("pool_size"):
            return known
        if known is not None:
            self._check_answers(known)
        else:
            self._connect(autocommit=True).close()
        with self._lock:
            if self._pool is None:
                from psycopg_pool import ConnectionPool

                self._pool = ConnectionPool(
                    self.address.url,
                    kwargs={"autocommit": True, "connect_timeout": _SECONDS},
                    configure=partial(_look_into, self.schema),
                    min_size=0,
                    max_idle=_IDLE_SECONDS,
                    max_size=_MOST_CONNECTIONS,
                    timeout=_SECONDS,
                    open=True,
                )
                finalize(self, self._pool.close)
            return self._pool

    def _connect(self, *, autocommit: bool) -> Connection[Any]:
        from psycopg import Connection

        connection: Connection[Any] = Connection.connect(
            self.address.url, autocommit=autocommit, connect_timeout=_SECONDS
        )
        _look_into(self.schema, connection)
        return connection


def _look_into(schema: str, connection: Connection[Any]) -> None:
    """Make a schema the one whose tables statements mean."""
    # pgvector may be in any schema; these are where servers and their hosts put it
    connection.execute("SELECT set_config('search_path', %s, false)", (f'"{schema}", public, extensions',))
    if not connection.autocommit:
        connection.commit()


def _was_ended(connection: Connection[Any]) -> bool:
    """Return whether the server has sent something on an idle connection: that it has ended it, as a rule."""
    with DefaultSelector() as selector:
        selector.register(connection.fileno(), EVENT_READ)
        return bool(selector.select(0))


@contextmanager
def _named_errors(address: Address) -> Iterator[None]:
    """Raise what the database or its driver refuses as a StoreError that names the database."""
    try:
        import psycopg
        import psycopg_pool
    except ImportError as error:
        raise MissingExtra("an index in PostgreSQL", "postgres") from error
    try:
        yield
    except psycopg.errors.ProgramLimitExceeded as error:
        _refused(address, error, "a passage or an id is too long for a database: cut the texts, --chunk-size 1000")
    except (psycopg.OperationalError, psycopg_pool.PoolTimeout) as error:
        _refused(address, error, "is the server running, and may this user connect?")
    except psycopg.Error as error:
        _refused(address, error, "see the server's log, and who owns the schema")


def _refused(address: Address, error: Exception, remedy: str) -> NoReturn:
    from psycopg.conninfo import conninfo_to_dict

    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    try:
        secrets = [value for name, value in conninfo_to_dict(address.url).items() if "password" in name]
    except Exception:  # what cannot be read as an address could be quoted in any part
        raise StoreError(
            f"{address} is no address of a PostgreSQL database: write postgresql://user@host:5432/database"
        ) from None
    for secret in secrets:
        said = said.replace(str(secret), "***")
    raise StoreError(f"{address}: {said}: {remedy}") from None

"""The journal of an index in PostgreSQL, in tables beside its passages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ras_agent.address import Address
from ras_agent.errors import IngestError
from ras_agent.tools.index.journal import Journal
from ras_agent.tools.index.postgres.database import Database
from ras_agent.tools.index.postgres.forms import storable

if TYPE_CHECKING:
    import psycopg


class _Connection:
    """Takes the journal's statements, whose parameters are marked as SQLite marks them."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, query: str, values: Any = (), /) -> Any:
        stored = [storable(value) if isinstance(value, str) else value for value in values]
        return self._connection.execute(query.replace("?", "%s").encode(), stored)

    def begin(self) -> None:
        pass  # its connection begins by itself

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()


class PostgresJournal(Journal):
    """Reads and writes the journal of one run; what it deletes is the server's to overwrite."""

    def _overwrite(self) -> None:
        pass


@contextmanager
def open_postgres_journal(address: Address) -> Iterator[Journal]:
    """Open the journal of the index at an address for this run alone. Raises IngestError while another run has it."""
    database = Database(address)
    with database.alone() as connection:
        key = f"journal {database.schema}"
        # the lock is the connection's: it ends with it, however the run ends
        (free,) = connection.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (key,)).fetchone() or (
            False,
        )
        if not free:
            raise IngestError(f"another run is writing the index {database.address}: wait until it has ended")
        (run,) = connection.execute("UPDATE run SET number = number + 1 RETURNING number").fetchone() or (1,)
        yield PostgresJournal(_Connection(connection), run)
        connection.rollback()
        # the server ends a closed connection, and its lock, a moment later: the next run would find it
        connection.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", (key,))
        connection.commit()

"""A third store, as an example of a driver in one file: an index in a file of DuckDB, `duckdb:///path/to/file`.

DuckDB has no references that delete rows, so this driver deletes them itself. One process uses a file at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Lock, RLock, get_ident
from typing import Any

from ras_agent.config.address import Address
from ras_agent.contracts.errors import IndexExists, IndexNotFound, StoreError
from ras_agent.tools.store.database import Driver, Statements, busy
from ras_agent.tools.store.graph import NameRows, ReadingRows
from ras_agent.tools.store.passages import PassageRows
from ras_agent.tools.store.transaction import Transaction

duckdb: Any = import_module("duckdb")
_DIALECT = {
    r"\bINTEGER\b": "BIGINT",
    r"\bWITHOUT ROWID\b": "",
    r"\bREFERENCES \w+( \(\w+\))?": "",
    r"\bON DELETE CASCADE\b": "",
    r"\bDEFERRABLE INITIALLY DEFERRED\b": "",
}


_ALONE: dict[tuple[str, str], Lock] = {}
"""The locks of runs, by place and name."""


class _Result(list[Any]):
    """The rows of a statement, with the interface of a cursor."""

    @property
    def rowcount(self) -> int:
        return int(self[0][0])

    def fetchone(self) -> Any:
        return self.pop(0) if self else None

    def fetchmany(self, size: int) -> list[Any]:
        part = self[:size]
        del self[:size]
        return part

    def fetchall(self) -> list[Any]:
        return self.fetchmany(len(self))


class _Statements:
    """Connection that takes statements in the form of SQLite."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> _Result:
        result = self._connection.execute(_translated(statement), list(values))
        return _Result(result.fetchall())

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        listed = [list(row) for row in rows]
        if listed:
            self._connection.executemany(_translated(statement), listed)


def _translated(statement: str) -> str:
    for pattern, replacement in _DIALECT.items():
        statement = re.sub(pattern, replacement, statement)
    return statement


class _Passages(PassageRows):
    def forget(self, cells: Any, revision: int) -> None:
        self._delete("vectors WHERE cell", cells)
        super().forget(cells, revision)


class _Names(NameRows):
    def forget(self, numbers: Iterable[int]) -> None:
        listed = list(numbers)
        self._delete("kg_near WHERE name", listed)
        super().forget(listed)


class _Readings(ReadingRows):
    def forget(self, numbers: Iterable[int]) -> set[int]:
        listed = list(numbers)
        names = super().forget(listed)
        self._delete("kg_facts WHERE reading", listed)
        self._delete("kg_mentions WHERE reading", listed)
        return names


class _Transaction(Transaction):
    def __init__(self, connection: Any) -> None:
        statements = _Statements(connection)
        super().__init__(statements)
        self.passages = _Passages(statements)
        self.names = _Names(statements)
        self.readings = _Readings(statements)


class DuckdbDatabase:
    """Database in the file of an address."""

    remedy = "delete the file and index its files again"

    def __init__(self, address: Address) -> None:
        self.where = str(address)
        self.rollbacks = 0
        self._path = _path(address)
        self._lock = RLock()
        self._owner = 0
        self._own: _Transaction | None = None
        self._failed = False

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise StoreError(f"{self.where}: {error}: {self.remedy}") from error

    @contextmanager
    def _begun(self) -> Iterator[_Transaction]:
        if not self._path.exists():
            raise IndexNotFound(f"{self.where} holds no index: index its files")
        # connections of one process share a database, and each has its own transaction
        connection = duckdb.connect(str(self._path))
        try:
            connection.execute("BEGIN TRANSACTION")
            yield _Transaction(connection)
            connection.execute("COMMIT")
        finally:
            connection.close()

    @contextmanager
    def reading(self, *, once: bool = False) -> Iterator[Transaction]:
        with self.named_errors():
            if self._own is not None and self.is_writing():
                yield self._own
                return
            with self._begun() as transaction:
                yield transaction

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Transaction]:
        with self._lock, self.named_errors():
            if self._own is not None:
                try:
                    yield self._own
                except BaseException:
                    self._failed = True
                    raise
                return
            try:
                with self._begun() as self._own:
                    self._owner = get_ident()
                    yield self._own
                    if self._failed:
                        raise StoreError(f"{self.where}: a part of a write failed")
            except BaseException:
                self.rollbacks += 1
                raise
            finally:
                self._own = None
                self._owner = 0
                self._failed = False

    def is_writing(self) -> bool:
        return self._owner == get_ident()

    @contextmanager
    def alone(self, what: str = "index") -> Iterator[None]:
        lock = _ALONE.setdefault((self.where, what), Lock())
        if not lock.acquire(blocking=False):
            raise busy(self.where, what)
        try:
            yield
        finally:
            lock.release()

    def state(self) -> object:
        with self.reading() as transaction:
            return transaction.state.read()[:2]

    def compact(self) -> bool:
        with self.named_errors(), duckdb.connect(str(self._path)) as connection:
            connection.execute("CHECKPOINT")
        return True

    def check(self, tables: Sequence[str] = ()) -> None:
        """Do nothing: DuckDB checks its blocks when it reads them."""

    def close(self) -> None:
        """Do nothing: connections are opened for each transaction."""


def _path(address: Address) -> Path:
    return Path(address.url.partition("://")[2])


def _make(address: Address, statements: Statements) -> None:
    if _exists(address):
        raise IndexExists(f"{address} holds something already: choose another file")
    with duckdb.connect(str(_path(address))) as connection:
        connection.execute("BEGIN TRANSACTION")
        for statement, values in statements:
            _Statements(connection).execute(statement, values)
        connection.execute("COMMIT")


def _exists(address: Address) -> bool:
    return _path(address).exists()


DRIVER = Driver(DuckdbDatabase, _make, _exists)

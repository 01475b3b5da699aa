"""Stores an index, or caches, in a SQLite file or in memory.

Readers see the last commit and never wait (write-ahead log). SQLite overwrites deleted rows with zeros
(secure_delete), but not all copies of a row that it made while writing others; `compact` leaves no copy.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakSet, finalize

from ras_agent.contracts.errors import IndexMismatch, IndexNotFound, StoreError
from ras_agent.tools.store.database import (
    Driver,
    Locked,
    OneWriter,
    Statements,
    busy,
)
from ras_agent.tools.store.durable import sync_folder, writer_lock
from ras_agent.tools.store.transaction import Transaction

FILE = "index.sqlite"
IN_MEMORY = "an index in memory"
NEW = tuple(f"{FILE}.new{end}" for end in ("", "-wal", "-shm", "-journal"))
LOCKS = {"index": "ingest.lock", "graph": "graph.lock"}
ANEW = "delete the folder {folder} and index its files again with `ras-agent index FILES --out {folder}`"
"""The remedy for a damaged index."""
_POOL = 8
_RETRY = 0.01  # seconds
_SETTINGS = "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY"
"""The settings of each new connection: by default, SQLite does not check references between rows."""
# the remaining rows are copied to a file that no other process can open, since they may not fit into memory
_COMPACTING = "PRAGMA temp_store = FILE; VACUUM"
_LOG_WAITS = 2000  # how long emptying the log waits for readers, in milliseconds


@dataclass(frozen=True, slots=True)
class FileUse:
    """Describes how a file is used."""

    name: str
    """The name of the file in its folder; "" if the place is the file itself."""
    remedy: str
    """The remedy for a damaged file in `{folder}`, for messages."""
    wait: float
    """How many seconds a writer waits for others."""
    synchronous: str = "FULL"
    """How far a commit waits for the disk, in SQLite's terms."""
    tables: tuple[str, ...] = ()
    """The statements that create a missing file; without any, a missing file is an error."""


INDEX = FileUse(FILE, ANEW, wait=3600.0)
_LOCKED = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))


class SqliteDatabase(OneWriter):
    """Implements Database in the file `index.sqlite` of a folder; without a folder, in memory as long as this object
    lives.
    """

    def __init__(self, folder: Path | None = None, use: FileUse = INDEX) -> None:
        """Use the file made by `make_file`, or the one described by `use`. It is opened when it is first needed."""
        super().__init__()
        self.folder = folder
        self.use = use
        self._wait = use.wait
        self._path = folder / use.name if folder else None
        self._idle: list[sqlite3.Connection] = []
        self._own: sqlite3.Connection | None = None
        self._watch: list[sqlite3.Connection] = []
        self._inode: tuple[int, int] | None = None
        self._process = os.getpid()
        self._opened = 0
        self._durable = True
        if folder:
            _IN_FILES.add(self)
        finalize(self, _close, self._idle)
        finalize(self, _close, self._watch)

    @property
    def where(self) -> str:
        """Return the folder."""
        return str(self.folder or IN_MEMORY)

    @property
    def remedy(self) -> str:
        """Return the remedy for a damaged file, for messages."""
        return self.use.remedy.format(folder=self.where)

    @property
    def wait(self) -> float:
        """Return the number of seconds that a call waits for other processes."""
        return self._wait

    @wait.setter
    def wait(self, seconds: float) -> None:
        if seconds != self._wait:
            with self._writers:
                self._wait = seconds
                _close(self._idle)
                if self._own is not None and self._process == os.getpid():
                    self._own.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

    @contextmanager
    def reading(self, *, once: bool = False) -> Iterator[Transaction]:
        """Return a context manager with a transaction whose reads all see the same state of the database."""
        if self._path is None or self.is_writing():
            with self._writers, self.named_errors():
                yield Transaction(self._writer())
            return
        with self.named_errors():
            connection = self._taken()
            try:
                connection.execute("BEGIN")
                yield Transaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection) if len(
                self._idle
            ) < _POOL else connection.close()

    @contextmanager
    def _begun(self, *, durable: bool) -> Iterator[Transaction]:
        connection = self._writer()
        if durable != self._durable:
            synchronous = self.use.synchronous if durable else "NORMAL"
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            self._durable = durable
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield Transaction(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def alone(self, what: str = "index") -> Iterator[None]:
        """Return a context manager that holds the lock of `what`. Raises IngestError while another process or thread
        has it.
        """
        if self.folder is None:
            yield
            return
        lock = writer_lock(self.folder / LOCKS[what], wait=False)
        with ExitStack() as held:
            try:
                held.enter_context(lock)
            except BlockingIOError as error:
                raise busy(self.folder, what) from error
            yield

    def state(self) -> object:
        """Return a value that changes with every commit of another connection, and when the file is created again."""
        if self._path is None:
            return None
        inode = self._look()
        if inode != self._inode:
            self.close()
        with self.named_errors():
            self._after_fork()
            # on a separate connection: on any other, the value would not change during its transaction
            watch = self._watch.pop() if self._watch else self._connect()
            (version,) = watch.execute("PRAGMA data_version").fetchone()
            self._watch.append(watch)
            return self._opened, version

    def compact(self) -> bool:
        """Rewrite the file without deleted rows, and empty its log. Returns False while a reader needs the log."""
        if self._path is None:
            return True
        with self._writers, self.named_errors():
            connection = self._writer()
            connection.executescript(_COMPACTING)
            connection.execute(f"PRAGMA busy_timeout = {_LOG_WAITS}")
            (failed, *_) = connection.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)"
            ).fetchone()
            connection.executescript(_SETTINGS)
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * self.wait)}")
            return not failed

    def check(self, tables: Sequence[str] = ()) -> None:
        """Let SQLite read the whole file, or some tables. Raises IndexMismatch if it is damaged."""
        if problem := self._problem(tables):
            raise self._damaged(problem)

    def _problem(self, tables: Sequence[str] = ()) -> str:
        """Return the problem of a damaged file, or "": an error that SQLite finds, or a value of another type than its
        column's.

        A row that refers to a missing row is a problem, too.
        """
        with self.reading() as connection:
            for table in tables or (1,):
                (told,) = connection.execute(
                    f"PRAGMA integrity_check({table})"
                ).fetchone()
                if told != "ok":
                    return str(told)
            every = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall()
            for table in tables or [name for (name,) in every]:
                for _, column, kind, required, *_ in connection.execute(
                    f"PRAGMA table_info({table})"
                ).fetchall():
                    ours = f"typeof({column}) IN ('{kind.lower()}', '{kind.lower() if required else 'null'}')"
                    if connection.execute(
                        f"SELECT 1 FROM {table} WHERE NOT {ours} LIMIT 1"
                    ).fetchone():
                        return f"{table}.{column} holds no {kind.lower()}"
                if orphan := connection.execute(
                    f"PRAGMA foreign_key_check({table})"
                ).fetchone():
                    return f"{table} has a row that belongs to one that is not in {orphan[2]}"
        return ""

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        with self._writers:
            if self._path is not None:
                _close(self._idle)
                _close(self._watch)
                if (
                    self._own is not None
                    and self._written is None
                    and self._process == os.getpid()
                ):
                    self._own.close()
                self._own = None
                self._inode = None
                self._opened += (
                    1  # a file that is created again may get the inode of the old one
                )

    def _look(self) -> tuple[int, int]:
        assert self._path
        try:
            seen = self._path.stat()
        except FileNotFoundError:
            self.close()
            raise IndexNotFound(
                f"{self.folder} holds no index any more: index its files again, `ras-agent index`"
            ) from None
        return seen.st_dev, seen.st_ino

    def _writer(self) -> sqlite3.Connection:
        """Return the only connection that writes; in memory, it is the only connection."""
        self._after_fork()
        if self._own is None:
            self._own = self._connect()
            self._durable = True
            finalize(self, self._own.close)
        return self._own

    def _taken(self) -> sqlite3.Connection:
        self._after_fork()
        with suppress(IndexError):
            return self._idle.pop()
        return self._connect()

    def _after_fork(self) -> None:
        """Drop the connections of a parent process without closing them, since they must not be used in this process.

        A database in memory is this process's own copy: a fork copied it with the rest of the memory.
        """
        if self._process != os.getpid():
            self._process = os.getpid()
            if self._path is not None:
                self._own = None
            self._idle.clear()
            self._watch.clear()

    def _connect(self) -> sqlite3.Connection:
        if self._path is None:
            connection = sqlite3.connect(
                ":memory:", isolation_level=None, check_same_thread=False
            )
            connection.executescript(_SETTINGS)
            return connection
        makes = bool(self.use.tables)
        if not makes:
            self._inode = self._look()
        mode = "rwc" if makes else "rw"
        there = not makes or self._path.exists()
        if (there and not os.access(self._path, os.W_OK)) or not os.access(
            self._path.parent, os.W_OK
        ):
            # if nothing can be written and there is no log, nobody else writes either
            mode = (
                "ro"
                if self._path.with_name(f"{self._path.name}-wal").exists()
                else "ro&immutable=1"
            )
        connection = sqlite3.connect(
            f"{self._path.resolve().as_uri()}?mode={mode}",
            uri=True,
            timeout=self.wait,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.executescript(_SETTINGS)
            if mode.startswith("rw"):
                connection.execute(f"PRAGMA synchronous = {self.use.synchronous}")
                connection.execute("PRAGMA secure_delete = ON")
                if makes:
                    self._make(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make(self, connection: sqlite3.Connection) -> None:
        """Create the tables if they do not exist. Several processes may do so at once."""
        anything = "SELECT count(*) FROM sqlite_schema"
        if connection.execute(anything).fetchone() == (0,):
            self._write_ahead(connection)
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute(anything).fetchone() == (0,):
                for statement in self.use.tables:
                    connection.execute(statement)
            connection.execute("COMMIT")

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Switch a new file to a write-ahead log. SQLite does not wait for another process that does the same, so this
        retries."""
        end = time.monotonic() + self.wait
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if (
                    error.sqlite_errorcode & 0xFF not in _LOCKED
                    or time.monotonic() > end
                ):
                    raise
                time.sleep(_RETRY)

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Return a context manager that adds the file and the remedy to SQLite's errors."""
        try:
            yield
        except sqlite3.OperationalError as error:
            said = str(error)
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED:
                raise Locked(
                    f"{self._path}: {said} by another process; wait for it to end"
                ) from error
            if any(word in said for word in ("malformed", "no such", "decode")):
                raise self._damaged(error) from error
            full = "full" in said
            remedy = (
                "make room"
                if full
                else "it has to be a file that can be written, with room on its disk"
            )
            raise StoreError(
                f"{self._path} could not be {'written, the disk is full' if full else f'used ({said})'}: {remedy}, "
                "and run the same command again"
            ) from error
        except sqlite3.ProgrammingError:
            raise  # a bug in the program, not a damaged file
        except (TypeError, IndexError, sqlite3.IntegrityError) as error:
            # caused by misplaced pages, by changed rows, or by a bug; within a write, rows may still lack rows that they
            # refer to
            looks = self._path is not None and not (
                self._written is not None and isinstance(error, sqlite3.IntegrityError)
            )
            if looks and (problem := self._problem()):
                raise self._damaged(problem) from error
            raise
        except (
            sqlite3.DatabaseError,
            UnicodeDecodeError,
        ) as error:  # SQLite's message itself may be damaged
            raise self._damaged(error) from error

    def _damaged(self, what: object) -> IndexMismatch:
        return IndexMismatch(
            f"{self._path or self.where} is damaged ({what}): {self.remedy}"
        )


def _before_fork() -> None:
    """Close connections: in a child, SQLite would rely on the locks of its parent, and lose its own writes."""
    for database in list(_IN_FILES):
        # if another thread is writing, its connection cannot be closed
        if database._writers.acquire(blocking=False):
            try:
                if database._written is None:
                    database.close()
            finally:
                database._writers.release()


_IN_FILES: WeakSet[SqliteDatabase] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def memory_database(statements: Statements) -> SqliteDatabase:
    """Return a database in memory, created by statements."""
    database = SqliteDatabase()
    with database.writing() as transaction:
        for statement, values in statements:
            transaction.execute(statement, values)
    return database


def has_file(folder: Path) -> bool:
    """Return whether there is an index in a folder."""
    return (folder / FILE).is_file()


def make_file(folder: Path, statements: Statements) -> None:
    """Create the database of a folder by the given statements. If this is interrupted, there is no database."""
    fresh = folder / NEW[0]
    for name in NEW:
        # files of an interrupted call, whose log SQLite would read into the new file
        (folder / name).unlink(missing_ok=True)
    try:
        connection = sqlite3.connect(fresh, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN")
            for statement, values in statements:
                connection.execute(statement, values)
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreError(
            f"{fresh} could not be written ({error}): check that there is room on its disk"
        ) from error
    with fresh.open("rb+") as file:
        os.fsync(file.fileno())
    # the log of a file that is gone would be read into this one
    for left in ("wal", "shm"):
        (folder / f"{FILE}-{left}").unlink(missing_ok=True)
    os.replace(fresh, folder / FILE)
    sync_folder(folder)


def _close(connections: list[sqlite3.Connection]) -> None:
    while connections:
        connections.pop().close()


DRIVER = Driver(SqliteDatabase, make_file, has_file)

"""Runs a piece of work in a forked process that is killed, or whose disk is full, at a chosen moment.

The moments are the process's own file operations: opening for writing, syncing, renaming, removing, making folders,
connecting to SQLite, and the commits and rewrites of SQLite. So every one of them can be tried in turn.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from tqdm import auto, std

OPERATIONS = (
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.mkdir",
    "os.truncate",
    "shutil.rmtree",
    "sqlite3.connect",
)
WRITING_SQL = ("COMMIT", "VACUUM", "PRAGMA locking_mode", "PRAGMA wal_checkpoint")
FILLING_SQL = (*WRITING_SQL, "INSERT", "UPDATE", "DELETE")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Ended(NamedTuple):
    """Says how a piece of work ended: `killed`, or with the text of its exception (""), after `operations`."""

    killed: bool
    error: str
    operations: int


def run(
    work: Callable[[], object],
    *,
    kill_at: int | None = None,
    fail_from: int | None = None,
    kill_after: float | None = None,
) -> Ended:
    """Do `work` in a fork of this process.

    kill_at: SIGKILL before its file operation of this number, from 0. fail_from: this one and all later ones raise
    "no space left on device", also the writes of SQLite. kill_after: SIGKILL after so many seconds.
    """
    # progress bars' own lock is shared with forks: one killed while it has it would stop everybody
    for bars in (std.tqdm, auto.tqdm):
        bars.set_lock(threading.RLock())
    gc.collect()  # an index that nobody uses any more closes its database, which must not be open across a fork
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _work(work, writing, kill_at, fail_from)
    os.close(writing)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        told = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return Ended(True, "", kill_at or 0)
    operations, _, error = told.partition("\n")
    return Ended(False, error, int(operations))


def _work(
    work: Callable[[], object], writing: int, kill_at: int | None, fail_from: int | None
) -> None:
    count, watching = 0, True

    def operation() -> None:
        nonlocal count
        if not watching:
            return
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1
        if fail_from is not None and count > fail_from:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event in OPERATIONS or (
            event == "open" and isinstance(args[2], int) and args[2] & WRITING
        ):
            operation()

    def watch_sql(
        statement: str,
    ) -> (
        None
    ):  # an error raised here would be ignored: only kills come at these moments
        if statement.startswith(WRITING_SQL):
            with suppress(OSError):
                operation()

    def fill(statement: str) -> None:
        if (
            watching
            and fail_from is not None
            and count >= fail_from
            and statement.startswith(FILLING_SQL)
        ):
            raise sqlite3.OperationalError("database or disk is full")

    class Watched(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            fill(statement)
            return super().execute(statement, *values)

        def executemany(self, statement: str, *values: Any) -> sqlite3.Cursor:
            fill(statement)
            return super().executemany(statement, *values)

        def commit(self) -> None:
            fill("COMMIT")
            super().commit()

    connect = sqlite3.connect

    def watched_connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, factory=Watched, **options)
        connection.set_trace_callback(watch_sql)
        return connection

    def counted_fsync(handle: int) -> None:
        operation()  # and no more: a written file outlives the process anyway, and a try takes a tenth of the time

    # no audit event tells of these
    os.fsync = counted_fsync  # type: ignore[assignment]
    sqlite3.connect = watched_connect  # type: ignore[assignment]
    sys.addaudithook(watch)
    error = ""
    try:
        work()
    except BaseException:
        error = traceback.format_exc()
    watching = False
    with os.fdopen(writing, "w", encoding="utf-8") as pipe:
        pipe.write(f"{count}\n{error}")
    os._exit(0)

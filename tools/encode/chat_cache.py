"""Replies kept on disk, so that a run can be replayed without its models."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.errors import SettingsError
from ras_agent.prompts import Turn

__all__ = ["KeptReply", "ReplyCache"]

_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, request TEXT NOT NULL, reply TEXT NOT NULL)"


class ReplyCache:
    """One SQLite file: hash of a model's parameters and the messages -> reply.

    Each operation is a transaction: safe between threads, processes and event loops, and a killed run leaves no half a
    reply. What was put is there after the process is killed; only the machine's own end may cost the last few. The
    first reply for a key stays, so two runs at once replay the same afterwards. The file holds prompts and replies in
    plain text, and no credentials.
    """

    def __init__(self, path: str | Path) -> None:
        """Makes the file and its folders where there are none. Raises SettingsError for a file of another kind."""
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._opened: tuple[int, sqlite3.Connection] | None = None
        try:
            with self.transaction() as connection:
                connection.execute(_TABLE)
        except sqlite3.Error as error:
            raise SettingsError(f"cannot keep replies in {self.path}: {error}; name another file") from error

    def get(self, parameters: Mapping[str, Any], turns: Sequence[Turn]) -> dict[str, Any] | None:
        """The reply kept for a request, or None."""
        return self.place_of(parameters, turns).get()

    def put(self, parameters: Mapping[str, Any], turns: Sequence[Turn], reply: Mapping[str, Any]) -> None:
        """Keep a reply, a mapping of JSON values."""
        self.place_of(parameters, turns).put(reply)

    def place_of(self, parameters: Mapping[str, Any], turns: Sequence[Turn]) -> KeptReply:
        """Where a request's reply is kept, or will be."""
        return KeptReply(self, *_request(parameters, turns))

    def __len__(self) -> int:
        with self.transaction() as connection:
            (count,) = connection.execute("SELECT COUNT(*) FROM replies").fetchone()
        return int(count)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone; committed at the end of the block, rolled back by an exception."""
        with self._lock:
            connection = self._connection()
            with connection:
                yield connection

    def _connection(self) -> sqlite3.Connection:
        """One for each process: SQLite's connections do not survive a fork."""
        if self._opened is None or self._opened[0] != os.getpid():
            connection = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
            self._opened = (os.getpid(), connection)
            weakref.finalize(self, connection.close)
            connection.execute("PRAGMA journal_mode = WAL")  # readers need not wait for a writer
            connection.execute("PRAGMA synchronous = NORMAL")  # no wait for the disk at each reply
        return self._opened[1]


@dataclass(frozen=True, slots=True)
class KeptReply:
    """The place of one request's reply. `key` is its hash, `request` its JSON for a reader."""

    cache: ReplyCache
    key: str
    request: str

    def get(self) -> dict[str, Any] | None:
        """The reply, or None."""
        with self.cache.transaction() as connection:
            row = connection.execute("SELECT reply FROM replies WHERE key = ?", (self.key,)).fetchone()
        return json.loads(row[0]) if row else None

    def put(self, reply: Mapping[str, Any]) -> None:
        """Keep a reply, a mapping of JSON values."""
        row = (self.key, self.request, json.dumps(dict(reply)))
        with self.cache.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?)", row)


def _request(parameters: Mapping[str, Any], turns: Sequence[Turn]) -> tuple[str, str]:
    """The key of a request, and the request as JSON for a reader."""
    messages = [[turn.role, turn.text] for turn in turns]
    request = json.dumps({"parameters": dict(parameters), "messages": messages}, sort_keys=True, default=str)
    return hashlib.sha256(request.encode()).hexdigest(), request

"""Caches model replies, so that a run can be replayed without its models. Equal simultaneous calls are made once."""

from __future__ import annotations

import hashlib
import json
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from ras_agent.config.address import Address
from ras_agent.contracts.errors import SettingsError, StoreError
from ras_agent.contracts.records import JSON
from ras_agent.prompts import Turn
from ras_agent.tools.store.cache import Cache, StoredCache, read_value
from ras_agent.tools.workers.remote_cache import open_cache

T = TypeVar("T")

# seconds to wait for a locked file; few, as a reply can be asked for again, unlike the facts of a corpus
_PATIENCE = 5.0
_KIND = "replies"
FAILED = "failed"
"""Key of a cached entry that stands for a failed call; its value is the error message."""
_REQUEST = ("parameters", "messages", "role", "hop")


class ReplyCache:
    """Stores replies by a hash of the model's parameters and messages, in a file or elsewhere (see `open_cache`).

    Each operation is a transaction: it is safe between threads, processes and event loops, and a killed run leaves
    no partial reply. A stored reply survives the end of the process; only a crash of the machine may lose the last
    few. The first reply for a key stays, so two simultaneous runs replay alike afterwards. The cache holds prompts
    and replies in plain text, but no credentials. If it is locked or damaged, or its disk is full, a warning is
    given once, and calls are made without it.
    """

    def __init__(self, place: str | Path | Address) -> None:
        """Open the cache at `place`, or create it. Raises SettingsError for a file of another format."""
        self._stored = open_cache(place, _KIND, _PATIENCE)

    def slot(
        self,
        parameters: JSON,
        turns: Sequence[Turn],
        role: str = "",
        hop: int = 0,
    ) -> ReplySlot:
        """Return the place of a request's reply in the cache, filled or not.

        Args:
            parameters: the model's parameters.
            turns: the messages.
            role, hop: stored for readers; not part of the key.
        """
        request = {
            "parameters": dict(parameters),
            "messages": list(map(_as_json, turns)),
            "role": role,
            "hop": hop,
        }
        return self._slot(request)

    def recordings(self) -> list[JSON]:
        """Return all stored requests, each with its parameters, messages, role, hop and `reply`.

        Raises StoreError if the cache cannot be read.
        """
        recordings = []
        for request, reply in self._stored.entries():
            if request:
                recordings.append(
                    {
                        "role": "",
                        "hop": 0,
                        **json.loads(request),
                        "reply": json.loads(reply),
                    }
                )
        return recordings

    def record(self, recording: JSON) -> None:
        """Store a request with its reply, in the form that `recordings` returns."""
        reply = recording["reply"]
        slot = self._slot({name: recording[name] for name in _REQUEST})
        place = slot.of_failure if FAILED in reply else slot
        place.put(reply)

    def _slot(self, request: JSON) -> ReplySlot:
        asked = {name: request[name] for name in ("parameters", "messages")}
        data = _json(asked).encode()
        key = hashlib.sha256(data).hexdigest()
        return ReplySlot(self._stored, key, _json(request))

    def __len__(self) -> int:
        return len(self._stored)


class RecordedCalls:
    """Reads the requests and replies of a finished run, by the keys of its calls (`Call.key`)."""

    def __init__(self, place: str | Path | Address) -> None:
        """Open the cache. Raises SettingsError if the file does not exist or has another format."""
        if not isinstance(place, Address) and not Path(place).is_file():
            raise SettingsError(
                f"there is no cache of replies at {place}: give the place that the run had as --cache"
            )
        self._stored = StoredCache(place, _KIND, _PATIENCE)

    def call(self, key: str) -> tuple[JSON, JSON] | None:
        """Return a request (its parameters and messages) and its reply; None if the key is not stored."""
        entry = self._stored.entry(key)
        if not entry:
            return None
        request, reply = entry
        return json.loads(request), json.loads(reply)


@dataclass(frozen=True, slots=True)
class ReplySlot:
    """Reads and writes the reply to one request in the cache."""

    stored: Cache
    key: str
    """The hash of the request."""
    request: str  # the parameters, the messages, and the role and hop that first asked
    """The request as JSON for human readers: parameters, messages, and the role and hop that first made it."""

    @property
    def of_failure(self) -> ReplySlot:
        """Return the slot for the error message of a failed call, which replays raise again. The reply's own slot
        stays free.
        """
        return replace(self, key=f"{self.key} {FAILED}")

    @property
    def is_local(self) -> bool:
        """Return whether `get` is so fast that it need not run in a thread."""
        return self.stored.is_local

    def get(self, parse: Callable[[JSON], T]) -> T | None:
        """Return the stored reply, converted by `parse`; None if it is missing or cannot be read."""
        try:
            return read_value(
                self.stored, self.key, lambda reply: parse(json.loads(reply))
            )
        except StoreError as error:
            _warn(str(error))
            return None

    def put(self, reply: JSON) -> None:
        """Store a reply, a mapping of JSON values."""
        try:
            self.stored.put(self.key, json.dumps(dict(reply)).encode(), self.request)
        except StoreError as error:
            _warn(str(error))


def _as_json(turn: Turn) -> list[Any]:
    """Return a turn in the form in which it is hashed into a reply's key."""
    message = [turn.role, turn.text, *map(asdict, turn.calls)]
    if turn.thoughts:
        message.append({"thoughts": turn.thoughts})
    return message


def _json(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, default=str)


@cache
def _warn(problem: str) -> None:
    """Warn of a problem once per process."""
    warnings.warn(
        f"{problem}; until then, models are called without the cache",
        RuntimeWarning,
        stacklevel=3,
    )


class SingleFlight(Generic[T]):
    """Merges equal calls in progress into one, over all threads and event loops.

    The first caller to join a key leads: it makes the call and must pass its result to `finish`. The other callers
    wait for the future that `join` returns. If its result is None, the leader failed, and they should join again.
    """

    def __init__(self) -> None:
        self._futures: dict[str, Future[T | None]] = {}
        self._lock = threading.Lock()

    def join(self, key: str) -> Future[T | None] | None:
        """Return the future to wait for; None if this caller leads and has to make the call."""
        with self._lock:
            waiting = self._futures.get(key)
            if waiting is None:
                self._futures[key] = Future()
            return waiting

    def finish(self, key: str, result: T | None) -> None:
        """Pass the leader's result, or None after a failure, to the waiting callers."""
        with self._lock:
            future = self._futures.pop(key)
        future.set_result(result)

"""Opens caches: in a file, in PostgreSQL, or on an actor of a Ray cluster that stores them for its workers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ras_agent.config.address import Address
from ras_agent.contracts.errors import SettingsError, needs_extra
from ras_agent.tools.store.cache import PATIENCE, Cache, StoredCache

NAMESPACE = "ras-agent"
"""The namespace of this package's actors on a Ray cluster."""
REMOTE = "ray:"
"""The prefix of a cache's place if an actor stores it."""


def open_cache(
    place: str | Path | Address, kind: str, patience: float = PATIENCE
) -> Cache:
    """Open a cache in a file, at an address of PostgreSQL, or on an actor, "ray:NAME" (see `cluster`).

    Raises SettingsError for a place that cannot hold a cache, or an actor that does not exist.

    Args:
        kind, patience: see StoredCache.
    """
    if str(place).startswith(REMOTE):
        return ActorCache(str(place).removeprefix(REMOTE))
    return StoredCache(place, kind, patience)


class ActorCache:
    """Reads and writes a cache that an actor stores on the driver's machine."""

    is_local = False

    def __init__(self, name: str) -> None:
        """Look up the actor. Raises SettingsError if it does not exist."""
        self._ray = ray_library()
        try:
            self._actor = self._ray.get_actor(name, namespace=NAMESPACE)
        except ValueError as error:
            raise SettingsError(
                f"there is no actor {name!r} on this Ray cluster: {error}; give the path of a cache file"
            ) from error

    def get(self, key: str) -> bytes | None:
        """Return the value of a key; None if it has no value."""
        value: bytes | None = self._ray.get(self._actor.get.remote(key))
        return value

    def put(self, key: str, value: bytes, about: str = "") -> None:
        """Store a value with a note for human readers, and wait until it is on the disk."""
        stored = self._actor.put.remote(key, value, about)
        self._ray.get(stored)  # wait until it is on the disk

    def entries(self) -> Sequence[tuple[str, bytes]]:
        """Return all values, each with its note for human readers in front."""
        stored: Sequence[tuple[str, bytes]] = self._ray.get(
            self._actor.entries.remote()
        )
        return stored

    def __len__(self) -> int:
        count = self._actor.count.remote()
        return int(self._ray.get(count))


def ray_library() -> Any:
    """Return the module `ray`. Raises MissingExtra if it is not installed."""
    with needs_extra("--engine ray", "ray"):
        import ray
    return ray

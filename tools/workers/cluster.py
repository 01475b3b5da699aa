"""Distributes work over a Ray cluster, or over a Ray instance on this machine if there is no cluster.

The driver hands out the items, takes the results, and stores on its own disk what workers should find again: an actor
on the driver's machine serves each cache, and workers reach that actor as "ray:NAME" (see `remote_cache`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from ras_agent.contracts.errors import RunError
from ras_agent.tools.store.cache import StoredCache
from ras_agent.tools.workers.pool import Work, WorkSpec
from ras_agent.tools.workers.remote_cache import NAMESPACE, REMOTE, ray_library

_AUTHENTICATION = "RAY_AUTH_MODE"


@dataclass(frozen=True, slots=True)
class SharedFile:
    """Describes a cache file that all workers share."""

    path: Path
    kind: str
    """The kind of the cache's content; see `StoredCache`."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Runs work on a Ray cluster, by `workers` actors with one processor core each."""

    spec: WorkSpec
    workers: int | None = None
    """The number of actors; None for as many as the cluster has cores."""
    address: str | None = None
    """The cluster's address, as `ray.init` takes it.

    None means RAY_ADDRESS or, if that is not set, a Ray started here for the duration of the work. Such a Ray
    listens at all addresses of the machine, asking for a token; a warning says so.
    """
    shared_files: Mapping[str, SharedFile] = field(default_factory=dict)
    """Maps an argument of the spec to a file that workers reach through the driver; the argument becomes "ray:NAME"."""

    @asynccontextmanager
    async def opened(self, concurrency: int) -> AsyncIterator[Work]:
        """Return a context manager that starts the actors for its block. Raises RunError if one cannot start."""
        started_here = self.address in (None, "local") and not os.environ.get(
            "RAY_ADDRESS"
        )
        # Ray reads the variable when it is imported
        if started_here and "ray" not in sys.modules:
            os.environ.setdefault(_AUTHENTICATION, "token")
        ray = ray_library()
        ours = not ray.is_initialized()
        if ours:
            about: dict[str, Any] = {"include_dashboard": False} if started_here else {}
            ray.init(
                self.address,
                namespace=NAMESPACE,
                log_to_driver=False,
                logging_level=logging.ERROR,
                **about,
            )
            if started_here:  # not earlier, as some versions create a token in `init`
                warnings.warn(_exposed(), RuntimeWarning, stacklevel=2)
        actors: list[Any] = []
        try:
            caches = {
                name: _keeper(ray, file) for name, file in self.shared_files.items()
            }
            actors += [actor for _, actor in caches.values()]
            spec = replace(
                self.spec,
                arguments={
                    **self.spec.arguments,
                    **{name: place for name, (place, _) in caches.items()},
                },
            )
            count = min(
                self.workers or max(1, int(ray.cluster_resources().get("CPU", 1))),
                concurrency,
            )
            workers = [
                _worker(ray, spec, -(-concurrency // count)) for _ in range(count)
            ]
            actors += workers
            await _started(ray, workers)
            free = asyncio.Queue[Any]()
            for _ in range(-(-concurrency // count)):
                for worker in workers:
                    free.put_nowait(worker)

            async def do(item: Any) -> Any:
                worker = await free.get()
                try:
                    return await worker.do.remote(item)
                except ray.exceptions.RayActorError as error:
                    raise RunError(
                        f"a Ray worker ended ({error}): run the same command again to resume"
                    ) from error
                finally:
                    free.put_nowait(worker)

            yield do
        finally:
            for actor in actors:
                ray.kill(actor)
            if ours:
                ray.shutdown()


def _exposed() -> str:
    """Return a warning about who can reach a Ray that was started here."""
    asks = (
        os.environ.get(_AUTHENTICATION, "").lower() == "token"
        and find_spec("ray._private.authentication") is not None
    )
    who = (
        "whoever has the token in ~/.ray/auth_token"
        if asks
        else "everybody who reaches them, who can run any code"
    )
    remedy = (
        ""
        if asks
        else f"; Ray 2.52 and later ask for a token ({_AUTHENTICATION}=token)"
    )
    return (
        f"Ray listens at all network addresses of this machine, and lets in {who}{remedy}; --engine processes opens no "
        "port at all"
    )


class _Worker:
    """Builds the work of a spec in a Ray actor and processes its items, several at once on one event loop."""

    def __init__(self, spec: WorkSpec) -> None:
        self._problem = ""
        try:
            self._work = spec.build()
        except Exception as error:
            # as text, since not every exception can be sent back
            self._problem = f"{type(error).__name__}: {error}"

    async def do(self, item: Any) -> Any:
        return await self._work(item)

    async def ready(self) -> str:
        """Return the message of the error that building the work raised; "" if it succeeded."""
        return self._problem


class _Keeper:
    """Serves the cache in a file, as a Ray actor, to workers that cannot reach the file."""

    def __init__(self, file: SharedFile) -> None:
        self._cache = StoredCache(file.path, file.kind)

    def get(self, key: str) -> bytes | None:
        return self._cache.get(key)

    def put(self, key: str, value: bytes, about: str) -> None:
        self._cache.put(key, value, about)

    def entries(self) -> Sequence[tuple[str, bytes]]:
        return self._cache.entries()

    def count(self) -> int:
        return len(self._cache)


def _worker(ray: Any, spec: WorkSpec, at_once: int) -> Any:
    return (
        ray.remote(_Worker)
        .options(num_cpus=1, max_concurrency=at_once + 1)
        .remote(spec)
    )


def _keeper(ray: Any, file: SharedFile) -> tuple[str, Any]:
    """Start an actor that serves the file, on the driver's machine, where the file is.

    Returns the cache's place for workers, "ray:NAME", and the actor.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    name = f"{file.kind}-{uuid4().hex}"
    here = NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    actor = ray.remote(_Keeper).options(
        name=name, namespace=NAMESPACE, num_cpus=0, max_concurrency=32, scheduling_strategy=here
    ).remote(replace(file, path=file.path.resolve()))  # fmt: skip
    return f"{REMOTE}{name}", actor


async def _started(ray: Any, workers: Sequence[Any]) -> None:
    try:
        problems = await asyncio.gather(*(worker.ready.remote() for worker in workers))
    except ray.exceptions.RayError as error:
        problems = [f"{type(error).__name__}: {error}"]
    for problem in filter(None, problems):
        raise RunError(f"a Ray worker could not start: {problem}")

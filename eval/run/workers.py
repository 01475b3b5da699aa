"""Chooses the processes that do a command's work, by `--engine` and `--workers`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.config.address import Address
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import SettingsError, UnknownName
from ras_agent.tools.workers.pool import Pool, WorkSpec

ENGINES = ("here", "processes", "ray")
_RATES = ("in_flight", "requests_per_minute", "tokens_per_minute")
_CALLS = 2  # by default, concurrent calls to one endpoint for each concurrent item


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """Says which processes do the work."""

    engine: str = "here"
    """One of ENGINES."""
    workers: int | None = None
    """The number of workers; by default one for each core."""
    address: str | None = None
    """The address of a Ray cluster."""

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UnknownName("engine", self.engine, ENGINES)
        if self.engine == "here" and self.workers:
            raise SettingsError(
                "--workers needs other processes: add --engine processes or --engine ray"
            )

    @property
    def remote(self) -> bool:
        """Tell whether the work is done in other processes."""
        return self.engine != "here"

    def pool(
        self, spec: WorkSpec, caches: Mapping[str, Path | Address | None] | None = None
    ) -> Pool:
        """Return the pool of processes that do the work of `spec`.

        Args:
            spec: The work.
            caches: The places of the caches "replies" and "facts". If workers cannot reach a cache's file, they
                get another place, as the argument of `spec` that has the cache's name.
        """
        if self.engine == "processes":
            from ras_agent.tools.workers.processes import Processes

            return Processes(spec, self.workers or os.cpu_count() or 1)
        from ras_agent.tools.workers.cluster import Cluster, SharedFile

        shared_files = {}
        for name, place in (caches or {}).items():
            if isinstance(place, Path):
                shared_files[name] = SharedFile(place, name)
        return Cluster(spec, self.workers, self.address, shared_files)

    def paced(self, settings: Settings, concurrency: int) -> Settings:
        """Return the settings with enough calls in flight for `concurrency` questions, and the rates divided
        among the workers.

        The rates are divided because each process limits only its own calls.

        Raises:
            SettingsError: If there are rates, but the number of workers is unknown.
        """
        update: dict[str, Any] = {}
        if "in_flight" not in settings.model_fields_set:
            update["in_flight"] = max(settings.in_flight, _CALLS * concurrency)
        rates = {}
        for name in _RATES:
            rates[name] = update.get(name, getattr(settings, name))
        if self.engine == "ray" and not self.workers:
            if rates["requests_per_minute"] or rates["tokens_per_minute"]:
                raise SettingsError(
                    "the rate limits cannot be divided, because the number of workers is unknown: give --workers"
                )
            return settings.model_copy(update=update)
        count = 1
        if self.remote:
            count = self.workers or os.cpu_count() or 1
        for name, rate in rates.items():
            if rate is not None:
                update[name] = max(1, rate // count)
        return settings.model_copy(update=update)


LOCAL = WorkerPlan()

"""Reads the facts of a whole corpus into a triple cache: each passage once, many at the same time, in one or
more processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import ModelRefused, RasError, StoreError
from ras_agent.contracts.records import Call, Extraction, Failure, Passage
from ras_agent.eval.run.workers import LOCAL, WorkerPlan
from ras_agent.graphs.resolve import extractor_from_settings
from ras_agent.running.budget import Ledger, metered
from ras_agent.running.calling import acall
from ras_agent.running.protocols import Extractor
from ras_agent.running.standing_facts import keep_standing
from ras_agent.tools.workers.pool import Here, Pool, Work, WorkSpec, run_all


@dataclass(frozen=True, slots=True)
class PassageReport:
    """Reports on one passage that was read. `calls` is empty if its facts were already cached."""

    passage_id: str
    facts: int = 0
    calls: tuple[Call, ...] = ()
    failures: tuple[Failure, ...] = ()


def read_corpus(
    passages: Iterable[Passage],
    settings: Settings,
    spec: str,
    *,
    concurrency: int = 32,
    workers: WorkerPlan = LOCAL,
    on_end: Callable[[PassageReport], None] | None = None,
) -> None:
    """Read the facts of `passages` into the triple cache of `settings`.

    After an interruption, the same call continues, because all facts that were read are on the disk.

    Args:
        passages: The corpus; it is iterated only as fast as passages are read.
        settings: The settings, with the `triple_cache` to fill.
        spec: The extractor, such as "offline" or "openai:gpt-4o-mini".
        concurrency: How many passages are read at the same time.
        workers: The processes that read; by default this one.
        on_end: Is called with the report on each passage.

    Raises:
        RasError: If extractor, cache or workers cannot be set up.
    """
    settings = workers.paced(settings, concurrency)
    # made here even if other processes read, so that mistakes in the settings are found before processes start
    pool: Pool = Here(_passage_reader(extractor_from_settings(settings, spec)))
    if workers.remote:
        work = WorkSpec(
            "ras_agent.app.structuring:remote_passage_reader",
            {
                "settings": settings.model_dump(mode="json", exclude_unset=True),
                "spec": spec,
            },
        )
        pool = workers.pool(
            work, {"facts": settings.triple_cache, "replies": settings.cache}
        )

    async def ended(read: PassageReport) -> None:
        if on_end:
            on_end(read)

    asyncio.run(run_all(pool, passages, concurrency=concurrency, on_end=ended))


def remote_passage_reader(
    *,
    settings: Mapping[str, Any],
    spec: str,
    replies: str | None = None,
    facts: str | None = None,
) -> Work:
    """Make the function that reads passages in a worker process.

    `replies` and `facts` are the paths of the reply cache and the triple cache there, in place of those of
    `settings`.
    """
    places = {"cache": replies, "triple_cache": facts}
    reader_settings = Settings.model_validate(
        {**settings, **{name: place for name, place in places.items() if place}}
    )
    return _passage_reader(extractor_from_settings(reader_settings, spec))


def _passage_reader(extractor: Extractor) -> Work:
    """Return a function that reads a passage with `extractor`. A RasError is recorded as a failure of that
    passage.

    Two errors end the whole work: StoreError, because facts that cannot be stored would be extracted, and paid
    for, in vain; and ModelRefused, because it would come for every passage.
    """

    # shared by all passages: after one unreadable reply, later prompts have examples and a form
    in_need: set[str] = set()

    async def read(passage: Passage) -> PassageReport:
        with metered(Ledger("extractor", in_need=in_need)) as ledger:
            try:
                read: Extraction = await acall(extractor, "extract", [passage])
                extraction = keep_standing(read, [passage])
            except (StoreError, ModelRefused):
                raise
            except RasError as error:
                extraction = Extraction(
                    failures=(Failure("extractor", f"{error} (passage {passage.id})"),)
                )
        failures = (*ledger.notes, *extraction.failures)
        return PassageReport(
            passage.id, len(extraction.triples), tuple(ledger.calls), failures
        )

    return read

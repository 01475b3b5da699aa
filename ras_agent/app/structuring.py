"""From settings and a corpus to passages read into a triple cache, here or elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ras_agent.eval.run.spread import HERE, Spread
from ras_agent.graphs.from_settings import extractor_from_settings
from ras_agent.records import Passage
from ras_agent.settings import Settings
from ras_agent.tools.spread.order import Do, Order, Pool
from ras_agent.tools.structure.bulk_facts import ReadPassage, passage_reader, read_all

__all__ = ["read_corpus", "reads_elsewhere"]


def read_corpus(
    passages: Iterable[Passage],
    settings: Settings,
    spec: str,
    *,
    concurrency: int = 32,
    spread: Spread = HERE,
    on_end: Callable[[ReadPassage], None] | None = None,
) -> None:
    """Read `passages` with the extractor that `spec` names into the triple cache of `settings`.

    The same call resumes what was interrupted. Raises RasError children for what cannot be set up.
    """
    settings = spread.paced(settings, concurrency)
    pool: Pool = _Here(
        passage_reader(extractor_from_settings(settings, spec))
    )  # also where it finds its mistakes first
    if spread.elsewhere:
        order = Order(
            "ras_agent.app.structuring:reads_elsewhere",
            {"settings": settings.model_dump(mode="json", exclude_unset=True), "spec": spec},
        )
        kept = {"facts": (settings.triple_cache, "facts"), "replies": (settings.cache, "replies")}
        pool = spread.pool(order, {name: (path, holds) for name, (path, holds) in kept.items() if path})
    asyncio.run(_read(pool, passages, concurrency, on_end))


def reads_elsewhere(
    *, settings: Mapping[str, Any], spec: str, replies: str | None = None, facts: str | None = None
) -> Do:
    """What `read_corpus` does, in another process. replies, facts: where they are kept, if not as `settings` say."""
    kept = {"cache": replies, "triple_cache": facts}
    known = Settings.model_validate({**settings, **{name: place for name, place in kept.items() if place}})
    return passage_reader(extractor_from_settings(known, spec))


async def _read(
    pool: Pool, passages: Iterable[Passage], concurrency: int, on_end: Callable[[ReadPassage], None] | None
) -> None:
    async with pool.opened(concurrency) as read:
        await read_all(read, passages, concurrency=concurrency, on_end=on_end)


@dataclass(frozen=True, slots=True)
class _Here:
    """A pool of this process alone."""

    read: Do

    @asynccontextmanager
    async def opened(self, concurrency: int) -> AsyncIterator[Do]:
        yield self.read

"""Text to triples for a whole corpus, into a triple cache: many passages at once, none twice, resumable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from ras_agent.budget import Ledger, metered
from ras_agent.calling import acall
from ras_agent.errors import RasError
from ras_agent.protocols import Extractor
from ras_agent.records import Call, Extraction, Failure, Passage

__all__ = ["ReadPassage", "passage_reader", "read_all"]


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """What became of one passage. `calls` is empty where its facts were known already."""

    passage_id: str
    facts: int = 0
    calls: tuple[Call, ...] = ()
    failures: tuple[Failure, ...] = ()


ReadOne = Callable[[Passage], Awaitable[ReadPassage]]


async def read_all(
    read_one: ReadOne,
    passages: Iterable[Passage],
    *,
    concurrency: int = 32,
    on_end: Callable[[ReadPassage], None] | None = None,
) -> None:
    """Read all `passages`, at most `concurrency` at once, and tell each as it ends.

    `passages` is read no further ahead than that. With a reader over a CachedExtractor the same call resumes what was
    interrupted: what was read is on the disk.
    """
    if concurrency < 1:
        raise ValueError(f"concurrency must be positive, got {concurrency}")
    waiting = iter(passages)

    async def work() -> None:
        for passage in waiting:  # one iterator for all workers: each takes the next passage there is
            read = await read_one(passage)
            if on_end:
                on_end(read)

    async with asyncio.TaskGroup() as workers:
        for _ in range(concurrency):
            workers.create_task(work())


def passage_reader(extractor: Extractor) -> ReadOne:
    """Reads a passage with `extractor`; a RasError is a failure of the passage alone."""

    async def read(passage: Passage) -> ReadPassage:
        with metered(Ledger("extractor")) as ledger:
            try:
                found: Extraction = await acall(extractor, "extract", [passage])
            except RasError as error:
                found = Extraction(failures=(Failure("extractor", f"{error} (passage {passage.id})"),))
        return ReadPassage(passage.id, len(found.triples), tuple(ledger.calls), found.failures)

    return read

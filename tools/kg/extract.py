"""Extracts the facts of passages, one passage at a time, so that its facts do not depend on the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from ras_agent.contracts.errors import ModelRefused, RasError
from ras_agent.contracts.records import Extraction, Failure, Passage
from ras_agent.running.calling import acall
from ras_agent.running.protocols import Extractor
from ras_agent.running.standing_facts import keep_standing
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.workers.pool import Here, Work, WorkSpec, results_in_order
from ras_agent.tools.workers.processes import Processes

Extract = Callable[[Iterable[Passage]], Iterator[tuple[Passage, Extraction]]]
"""Reads passages, and yields each with its facts as soon as they are found, in any order."""

_BATCH = 8  # passages per message to a process: enough to be worth sending, few enough to be read again after a kill
_BATCHES = 2  # how many batches a process holds: one being read, one waiting


def read_each(extractor: Extractor, *, at_once: int = 1, workers: int = 1) -> Extract:
    """Return a function that extracts the facts of passages with `extractor`, and yields passages with facts in order.

    A passage whose metadata states its facts is not given to the extractor. A RasError of the extractor becomes a
    Failure of the passage. The returned function raises RunError if a process ends early.

    Args:
        at_once: the number of simultaneous calls, for an extractor that waits for a model.
        workers: the number of processes, for an extractor that computes. Each has a copy of the extractor, which
            must survive pickling; a script then calls this under `if __name__ == "__main__":`. If the run is
            killed, at most 16 passages of each process have to be read again.
    """
    for name, number in (("at_once", at_once), ("workers", workers)):
        if number < 1:
            raise ValueError(f"{name} must be positive, got {number}")
    if workers > 1:
        return partial(_read_in_processes, extractor, workers)
    if at_once > 1:
        return partial(
            results_in_order, Here(partial(_aread, extractor)), concurrency=at_once
        )
    return lambda passages: (
        (passage, _read(extractor, passage)) for passage in passages
    )


def batch_reader(*, extractor: Extractor) -> Work:
    """Return a function that extracts the facts of a batch of passages, one after another, in a worker process."""

    async def read(batch: Sequence[Passage]) -> list[Extraction]:
        return [_read(extractor, passage) for passage in batch]

    return read


def _read_in_processes(
    extractor: Extractor, workers: int, passages: Iterable[Passage]
) -> Iterator[tuple[Passage, Extraction]]:
    pool = Processes(
        WorkSpec("ras_agent.tools.kg.extract:batch_reader", {"extractor": extractor}),
        workers,
    )
    waiting = iter(passages)
    batches = iter(lambda: list(islice(waiting, _BATCH)), [])
    for batch, found in results_in_order(pool, batches, concurrency=_BATCHES * workers):
        yield from zip(batch, found, strict=True)


def _read(extractor: Extractor, passage: Passage) -> Extraction:
    stated = stated_facts(passage)
    if stated is not None:
        return Extraction(stated)
    try:
        return _of(passage, extractor.extract([passage]))
    except ModelRefused:  # it would refuse every other passage, too
        raise
    except RasError as error:
        return _failed(passage, error)


async def _aread(extractor: Extractor, passage: Passage) -> Extraction:
    stated = stated_facts(passage)
    if stated is not None:
        return Extraction(stated)
    try:
        return _of(passage, await acall(extractor, "extract", [passage]))
    except ModelRefused:  # it would refuse every other passage, too
        raise
    except RasError as error:
        return _failed(passage, error)


def _of(passage: Passage, found: Extraction) -> Extraction:
    """Return the facts that were found in this passage and that its text supports."""
    triples = (
        triple
        for triple in found.triples
        if any(source.passage_id == passage.id for source in triple.sources)
    )
    return keep_standing(Extraction(tuple(triples), found.failures), [passage])


def _failed(passage: Passage, error: RasError) -> Extraction:
    return Extraction(
        failures=(Failure("extractor", f"{error} (passage {passage.id})"),)
    )

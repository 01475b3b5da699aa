"""Reading with several processes, for extractors that compute rather than wait; results and their order as with one.

A script that uses them needs `if __name__ == "__main__":` (see ras_agent.tools.spread.child).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

from ras_agent.protocols import Extractor
from ras_agent.records import Extraction, Passage
from ras_agent.tools.kg.bulk import each_read
from ras_agent.tools.spread.child import Child, in_words

_AT_ONCE = 16  # passages a message: enough to be worth sending, few enough to be read again after a kill

Read = tuple[Passage, Extraction]


def in_processes(extractor: Extractor, workers: int) -> Callable[[Iterable[Passage]], Iterator[Read]]:
    """`each_read` by `workers` processes, as what builds a knowledge graph takes.

    Each process has a copy of the extractor, which must survive pickling. What is read arrives in the order of the
    passages; a kill loses the passages under way, at most 16 a process. Processes end with the iteration, or when this
    one dies. Raises RunError if one of them ends before.
    """
    if workers < 1:
        raise ValueError(f"workers must be positive, got {workers}")
    return lambda passages: _read(extractor, passages, workers)


def _read(extractor: Extractor, passages: Iterable[Passage], workers: int) -> Iterator[Read]:
    waiting = iter(passages)
    # a worker holds one batch and waits until its result is taken, so neither side ever sends while the other does
    busy: deque[tuple[_Worker, list[Passage]]] = deque()
    everyone: list[_Worker] = []
    try:
        while len(everyone) < workers and (batch := list(islice(waiting, _AT_ONCE))):
            everyone.append(_Worker(extractor))
            busy.append((everyone[-1].given(batch), batch))
        while busy:
            worker, batch = busy.popleft()
            found = worker.result()
            if following := list(islice(waiting, _AT_ONCE)):
                busy.append((worker.given(following), following))
            yield from zip(batch, found, strict=True)
    finally:
        for worker in everyone:
            worker.end()


class _Worker:
    def __init__(self, extractor: Extractor) -> None:
        self._child = Child(_serve, extractor)

    def given(self, batch: list[Passage]) -> _Worker:
        try:
            self._child.pipe.send(batch)
        except OSError as error:
            raise self._child.died() from error
        return self

    def result(self) -> list[Extraction]:
        try:
            found: Any = self._child.pipe.recv()
        except (OSError, EOFError) as error:
            raise self._child.died() from error
        if isinstance(found, BaseException):
            raise found
        return found  # type: ignore[no-any-return]

    def end(self) -> None:
        self._child.pipe.close()  # which it notices, once it has read its batch
        self._child.bury()


def _serve(pipe: Connection, extractor: Extractor) -> None:
    """A worker's whole life."""
    while True:
        batch = pipe.recv()
        try:
            result: Any = [extraction for _, extraction in each_read(extractor, batch)]
        except Exception as error:
            result = in_words(error)
        pipe.send(result)

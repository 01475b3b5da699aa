"""Reading many passages, one by one, so that what is read in one does not depend on which others came with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from ras_agent.errors import RasError
from ras_agent.protocols import Extractor
from ras_agent.records import Extraction, Failure, Passage
from ras_agent.tools.kg.passage_facts import stated_facts


def each_read(
    extractor: Extractor, passages: Iterable[Passage], at_once: int = 1
) -> Iterator[tuple[Passage, Extraction]]:
    """Each passage with what it states, in order, `at_once` calls of the extractor under way.

    `passages` is read no further ahead than that. A passage that comes with its facts states those. A call that raises
    a RasError is a Failure of its passage.
    """
    if at_once < 1:
        raise ValueError(f"at_once must be positive, got {at_once}")
    if at_once == 1:
        for passage in passages:
            yield passage, _read(extractor, passage)
        return
    under_way: deque[tuple[Passage, Future[Extraction]]] = deque()
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for passage in passages:
                under_way.append((passage, pool.submit(_read, extractor, passage)))
                if len(under_way) > at_once:
                    done, future = under_way.popleft()
                    yield done, future.result()
            while under_way:
                done, future = under_way.popleft()
                yield done, future.result()
        finally:
            for _, future in under_way:
                future.cancel()


def one_by_one(
    extractor: Extractor, at_once: int = 1
) -> Callable[[Iterable[Passage]], Iterator[tuple[Passage, Extraction]]]:
    """`each_read` as what builds a knowledge graph takes."""
    return lambda passages: each_read(extractor, passages, at_once)


def _read(extractor: Extractor, passage: Passage) -> Extraction:
    stated = stated_facts(passage)
    if stated is not None:
        return Extraction(stated)
    try:
        found = extractor.extract([passage])
    except RasError as error:
        return Extraction(failures=(Failure("extractor", f"{error} (passage {passage.id})"),))
    triples = tuple(
        triple for triple in found.triples if any(source.passage_id == passage.id for source in triple.sources)
    )
    return Extraction(triples, found.failures)

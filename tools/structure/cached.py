"""An extractor that reads each passage once, however many runs, questions and processes come across it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, NoReturn

from ras_agent.budget import Ledger, current_ledger, metered
from ras_agent.calling import acall, call
from ras_agent.errors import SettingsError
from ras_agent.protocols import Extractor
from ras_agent.records import Call, Extraction, Passage, Triple
from ras_agent.tools.chat.shared import UnderWay
from ras_agent.tools.structure.triple_cache import KeptFacts, TripleCache, facts_key

__all__ = ["CachedExtractor"]


class CachedExtractor:
    """Wraps an extractor whose facts of a passage depend on nothing but the passage and its own `fingerprint`.

    Passages are read one by one, `at_once` at a time; one that is being read already is waited for. What failed, even
    in part, is not kept. Facts out of the cache cost no call: neither tokens nor the run's budget.

    Raises SettingsError for an extractor without a fingerprint: what it reads may depend on what else it is given.
    """

    def __init__(self, extractor: Extractor, cache: TripleCache, *, at_once: int = 5) -> None:
        if at_once < 1:
            raise ValueError(f"at_once must be positive, got {at_once}")
        fingerprint = getattr(extractor, "fingerprint", None)
        if not isinstance(fingerprint, str) or not fingerprint:
            named = getattr(extractor, "name", type(extractor).__name__)
            raise SettingsError(
                f"the facts of the extractor {named!r} cannot be kept passage by passage: it has no fingerprint; "
                "take an extractor on a model, or leave the triple cache away"
            )
        self._extractor, self._cache, self._at_once = extractor, cache, at_once
        self.fingerprint = fingerprint
        # apart: a thread that waited for a coroutine of its own event loop would wait for ever
        self._under_way: UnderWay[KeptFacts] = UnderWay()
        self._aunder_way: UnderWay[KeptFacts] = UnderWay()

    @property
    def name(self) -> str:
        return str(getattr(self._extractor, "name", type(self._extractor).__name__))

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Facts in the order of the passages."""
        if len(passages) < 2:
            return _joined([self._one(passage, subquery) for passage in passages])
        with ThreadPoolExecutor(min(self._at_once, len(passages))) as pool:
            # a copy of the context for each: it holds the ledger
            reading = [pool.submit(copy_context().run, self._one, passage, subquery) for passage in passages]
            return _joined([future.result() for future in reading])

    async def aextract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """`extract` for coroutines."""
        free = asyncio.Semaphore(self._at_once)

        async def one(passage: Passage) -> Extraction:
            async with free:
                return await self._aone(passage, subquery)

        return _joined(await asyncio.gather(*map(one, passages)))

    def _one(self, passage: Passage, subquery: str) -> Extraction:
        key = facts_key(self.fingerprint, passage)
        while (ahead := self._under_way.come(key)) is not None:
            if (found := ahead.result()) is not None:
                return Extraction(found.of(passage))
        kept = None
        try:
            kept = self._cache.get(key)
            if kept is not None:
                return Extraction(kept.of(passage))
            with _noted() as calls:
                extraction: Extraction = call(self._extractor, "extract", [passage], subquery)
            kept = self._keep(key, passage, extraction, calls)
            return extraction
        finally:
            self._under_way.leave(key, kept)

    async def _aone(self, passage: Passage, subquery: str) -> Extraction:
        key = facts_key(self.fingerprint, passage)
        while (ahead := self._aunder_way.come(key)) is not None:
            # shielded: one that gives up waiting must not cancel what the others wait for
            if (found := await asyncio.shield(asyncio.wrap_future(ahead))) is not None:
                return Extraction(found.of(passage))
        kept = None
        try:
            kept = self._cache.get(key) if self._cache.near else await asyncio.to_thread(self._cache.get, key)
            if kept is not None:
                return Extraction(kept.of(passage))
            with _noted() as calls:
                extraction: Extraction = await acall(self._extractor, "extract", [passage], subquery)
            kept = await asyncio.to_thread(self._keep, key, passage, extraction, calls)
            return extraction
        finally:
            self._aunder_way.leave(key, kept)

    def _keep(self, key: str, passage: Passage, extraction: Extraction, calls: Sequence[Call]) -> KeptFacts | None:
        """What is kept of an extraction: all of it or, if anything in it failed, nothing."""
        if extraction.failures:
            return None
        kept = KeptFacts(_of(passage, extraction), tuple(calls))
        self._cache.put(key, self.fingerprint, passage.title, kept)
        return kept


class _Noting(Ledger):
    """The calls of one passage, also held against the run's own ledger."""

    def __init__(self, run: Ledger) -> None:
        super().__init__(run.role, run.hop, run.limits, run.started, run.earlier)
        self._run = run

    def exceeded(self, *args: Any, **kwargs: Any) -> str | None:
        return self._run.exceeded(*args, **kwargs)

    def seconds_left(self) -> float:
        return self._run.seconds_left()

    def admit(self) -> None:
        self._run.admit()

    def refuse(self, limit: str) -> NoReturn:
        self._run.refuse(limit)

    def record(self, call: Call) -> None:
        self._run.record(call)
        self.calls.append(call)

    def release(self) -> None:
        self._run.release()


@contextmanager
def _noted() -> Iterator[list[Call]]:
    """The model calls made inside the block."""
    with metered(_Noting(current_ledger())) as ledger:
        yield ledger.calls


def _of(passage: Passage, extraction: Extraction) -> tuple[Triple, ...]:
    return tuple(fact for fact in extraction.triples if any(one.passage_id == passage.id for one in fact.sources))


def _joined(parts: Sequence[Extraction]) -> Extraction:
    return Extraction(
        tuple(triple for part in parts for triple in part.triples),
        tuple(failure for part in parts for failure in part.failures),
    )

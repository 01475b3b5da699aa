"""Caches facts by passage: each passage is read once, whatever the run, corpus, process or machine."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from ras_agent.config.address import Address
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Call, Extraction, Passage, Triple
from ras_agent.running.budget import Ledger, current_ledger, metered
from ras_agent.running.calling import acall, call, name_of
from ras_agent.running.protocols import Extractor
from ras_agent.text.normal_form import encodable
from ras_agent.tools.chat.cache import SingleFlight
from ras_agent.tools.store.cache import read_value
from ras_agent.tools.workers.remote_cache import open_cache


def facts_key(fingerprint: str, passage: Passage) -> str:
    """Return the key of a passage's facts: a hash of the extractor's fingerprint and the passage's heading and text.

    The passage's id is not part of the key, since the same text under another id has the same facts.
    """
    seen = [fingerprint, passage.heading, passage.text]
    identity = json.dumps(seen)
    return hashlib.sha256(identity.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class CachedFacts:
    """Holds the facts of one passage, and the model calls that were made to read it."""

    triples: tuple[Triple, ...] = ()
    calls: tuple[Call, ...] = ()

    def of(self, passage: Passage) -> tuple[Triple, ...]:
        """Return the facts with `passage` as their source, since they may have been cached under another id."""
        facts = []
        for fact in self.triples:
            sources = tuple(
                replace(source, passage_id=passage.id) for source in fact.sources
            )
            facts.append(replace(fact, sources=sources))
        return tuple(facts)


class TripleCache:
    """Stores the facts of passages by `facts_key`, in a file or elsewhere (see `open_cache`). The first facts for a
    key stay.

    Safe between threads and processes; a killed run leaves no half-stored passage. The cache contains facts, their
    attributes and passage titles, but no other text of passages and no credentials.
    """

    def __init__(self, place: str | Path | Address) -> None:
        """Open the cache at `place`, or create it. Raises SettingsError if the file has another format."""
        self._stored = open_cache(place, "facts")

    @property
    def is_local(self) -> bool:
        """Return whether `get` is so fast that it need not run in a thread."""
        return self._stored.is_local

    def get(self, key: str) -> CachedFacts | None:
        """Return the facts under a key; None if they are missing or unreadable."""
        return read_value(self._stored, key, _read_json)

    def put(self, key: str, extractor: str, title: str, cached: CachedFacts) -> None:
        """Store a passage's facts.

        Args:
            extractor, title: a label for human readers of the cache.
        """
        facts = [fact.to_dict() for fact in cached.triples]
        calls = [call.to_dict() for call in cached.calls]
        value = {"facts": facts, "calls": calls}
        written = encodable(json.dumps(value, ensure_ascii=False))
        label = encodable(f"{extractor} {title}")
        self._stored.put(key, written.encode(), label)

    def __len__(self) -> int:
        return len(self._stored)


class CachedExtractor:
    """Wraps an extractor and caches the facts of each passage.

    The wrapped extractor's facts must depend only on the passage and its `fingerprint`. Passages are read one by
    one, `at_once` of them at the same time. If another caller is already reading a passage, its facts are waited
    for. A passage is not cached if any part of it failed. Cached facts cost neither a call nor tokens nor any of
    the run's budget.
    """

    def __init__(
        self, extractor: Extractor, cache: TripleCache, *, at_once: int = 5
    ) -> None:
        """Wrap an extractor.

        Raises SettingsError for an extractor without a fingerprint, since its facts may depend on other passages,
        and ValueError if `at_once` is not positive.
        """
        if at_once < 1:
            raise ValueError(f"at_once must be positive, got {at_once}")
        fingerprint = getattr(extractor, "fingerprint", None)
        if not isinstance(fingerprint, str) or not fingerprint:
            name = name_of(extractor)
            raise SettingsError(
                f"the facts of the extractor {name!r} cannot be cached, since it has no fingerprint: give it a text "
                "`fingerprint`, which changes with its facts, or leave the triple cache out"
            )
        self._extractor = extractor
        self._cache = cache
        self._at_once = at_once
        self.fingerprint = fingerprint
        # two, since a thread that waits for a coroutine of its own event loop would never end
        self._in_flight: SingleFlight[CachedFacts] = SingleFlight()
        self._ain_flight: SingleFlight[CachedFacts] = SingleFlight()

    @property
    def name(self) -> str:
        """Return the name of the wrapped extractor."""
        return name_of(self._extractor)

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the facts of the passages, in their order. The sub-query is passed to the wrapped extractor."""
        if len(passages) < 2:
            return Extraction.joined(
                [self._read(passage, subquery) for passage in passages]
            )
        with ThreadPoolExecutor(min(self._at_once, len(passages))) as pool:
            reading = []
            for passage in passages:
                # each thread needs its own copy of the context, which holds the ledger
                context = copy_context()
                reading.append(pool.submit(context.run, self._read, passage, subquery))
            return Extraction.joined([future.result() for future in reading])

    async def aextract(
        self, passages: Sequence[Passage], subquery: str = ""
    ) -> Extraction:
        """Return the same as `extract`, as a coroutine."""
        free = asyncio.Semaphore(self._at_once)

        async def read_when_free(passage: Passage) -> Extraction:
            async with free:
                return await self._aread(passage, subquery)

        extractions = await asyncio.gather(*map(read_when_free, passages))
        return Extraction.joined(extractions)

    def _read(self, passage: Passage, subquery: str) -> Extraction:
        key = facts_key(self.fingerprint, passage)
        while (other_caller := self._in_flight.join(key)) is not None:
            if (facts := other_caller.result()) is not None:
                return Extraction(facts.of(passage))
        cached = None
        try:
            cached = self._cache.get(key)
            if cached is not None:
                return Extraction(cached.of(passage))
            with _record_calls() as calls:
                extraction: Extraction = call(
                    self._extractor, "extract", [passage], subquery
                )
            cached = self._store(key, passage, extraction, calls)
            return extraction
        finally:
            self._in_flight.finish(key, cached)

    async def _aread(self, passage: Passage, subquery: str) -> Extraction:
        key = facts_key(self.fingerprint, passage)
        while (other_caller := self._ain_flight.join(key)) is not None:
            # shielded: a caller that stops waiting must not cancel the call for the others
            facts = await asyncio.shield(asyncio.wrap_future(other_caller))
            if facts is not None:
                return Extraction(facts.of(passage))
        cached = None
        try:
            if self._cache.is_local:
                cached = self._cache.get(key)
            else:
                cached = await asyncio.to_thread(self._cache.get, key)
            if cached is not None:
                return Extraction(cached.of(passage))
            with _record_calls() as calls:
                extraction: Extraction = await acall(
                    self._extractor, "extract", [passage], subquery
                )
            cached = await asyncio.to_thread(
                self._store, key, passage, extraction, calls
            )
            return extraction
        finally:
            self._ain_flight.finish(key, cached)

    def _store(
        self, key: str, passage: Passage, extraction: Extraction, calls: Sequence[Call]
    ) -> CachedFacts | None:
        """Cache an extraction and return the cached facts; None, caching nothing, if any part of it failed.

        Refused facts are not failures here, since reading the passage again would refuse them again.
        """
        if extraction.failed:
            return None
        of_passage = []
        for fact in extraction.triples:
            if any(source.passage_id == passage.id for source in fact.sources):
                of_passage.append(fact)
        cached = CachedFacts(tuple(of_passage), tuple(calls))
        self._cache.put(key, self.fingerprint, passage.title, cached)
        return cached


class _RecordingLedger(Ledger):
    """Collects the calls for one passage. Everything else is shared with the run's ledger."""

    def __init__(self, run: Ledger) -> None:
        vars(self).update(vars(run))
        self.recorded: list[Call] = []
        self._run = run

    def refuse(self, limit: str) -> NoReturn:
        self._run.refuse(limit)

    def record(self, call: Call, reserved: int = 0) -> None:
        self._run.record(call, reserved)
        self.recorded.append(call)

    def add(self, call: Call) -> None:
        self._run.add(call)
        self.recorded.append(call)


@contextmanager
def _record_calls() -> Iterator[list[Call]]:
    """Yield a list that collects the model calls made inside the block."""
    ledger = _RecordingLedger(current_ledger())
    with metered(ledger):
        yield ledger.recorded


def _read_json(written: bytes) -> CachedFacts:
    value = json.loads(written)
    return CachedFacts(
        tuple(map(_fact, value["facts"])), tuple(map(Call.from_dict, value["calls"]))
    )


def _fact(item: Any) -> Triple:
    fact = Triple.from_dict(item)
    texts = [fact.subject, fact.predicate, fact.object]
    for source in fact.sources:
        texts.append(source.extractor)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a fact is three texts, and where they were read")
    return fact

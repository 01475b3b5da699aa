"""Passes the passages that an extractor could not read to another extractor."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.contracts.records import Extraction, Failure, Passage
from ras_agent.running.calling import acall
from ras_agent.running.protocols import Extractor
from ras_agent.tools.roles import role_name


class ExtractorWithFallback:
    """Wraps an extractor; a second one reads the passages that it could not read.

    These passages still count as failures, so that they are read again by the next run.
    """

    def __init__(self, extractor: Extractor, fallback: Extractor) -> None:
        self._extractor = extractor
        self._fallback = fallback

    @property
    def name(self) -> str:
        """Return the name of the first extractor."""
        return role_name(self._extractor)

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the first extractor, or ""."""
        return str(getattr(self._extractor, "fingerprint", ""))

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the facts of the first extractor, and the second one's facts of the unread passages."""
        first = self._extractor.extract(passages, subquery)
        unread = _unread(passages, first)
        if not unread:
            return first
        return self._both(first, self._fallback.extract(unread, subquery))

    async def aextract(
        self, passages: Sequence[Passage], subquery: str = ""
    ) -> Extraction:
        """Return the same as `extract`, as a coroutine."""
        first: Extraction = await acall(self._extractor, "extract", passages, subquery)
        unread = _unread(passages, first)
        if not unread:
            return first
        return self._both(
            first, await acall(self._fallback, "extract", unread, subquery)
        )

    def _both(self, first: Extraction, second: Extraction) -> Extraction:
        reader = role_name(self._fallback)
        where = ", ".join(first.unread)
        message = f"the role {reader!r} has read it instead of the model; fallback = stop leaves it out"
        note = Failure("extractor", f"{message} (passage {where})")
        return Extraction(
            triples=(*first.triples, *second.triples),
            failures=(*first.failures, note, *second.failures),
        )


def _unread(passages: Sequence[Passage], extraction: Extraction) -> list[Passage]:
    return [passage for passage in passages if passage.id in extraction.unread]

"""Renames the relations of facts to those of a schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ras_agent.contracts.records import Extraction, Passage
from ras_agent.contracts.schema import Schema
from ras_agent.running.calling import acall
from ras_agent.running.protocols import Extractor
from ras_agent.tools.roles import role_name


class ExtractorWithSchema:
    """Wraps an extractor: gives its facts the names of a schema's relations, and marks those outside the schema."""

    def __init__(self, extractor: Extractor, schema: Schema) -> None:
        """Wrap an extractor."""
        self._extractor = extractor
        self._schema = schema

    @property
    def name(self) -> str:
        """Return the name of the wrapped extractor."""
        return role_name(self._extractor)

    @property
    def fingerprint(self) -> str:
        """Return the wrapped extractor's fingerprint, with that of the schema."""
        named = getattr(self._extractor, "fingerprint", "") or self.name
        return f"{named}, schema {self._schema.digest}"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the wrapped extractor's facts, each with the name of its relation in the schema."""
        extraction = self._extractor.extract(passages, subquery)
        return self._checked(extraction)

    async def aextract(
        self, passages: Sequence[Passage], subquery: str = ""
    ) -> Extraction:
        """Return the same as `extract`, as a coroutine."""
        return self._checked(
            await acall(self._extractor, "extract", passages, subquery)
        )

    def _checked(self, extraction: Extraction) -> Extraction:
        facts = tuple(map(self._schema.checked, extraction.triples))
        return replace(extraction, triples=facts)


def with_schema(extractor: Extractor, schema: Schema | None) -> Extractor:
    """Return an extractor that names its facts by a schema; the same extractor without a schema."""
    if schema is None:
        return extractor
    return ExtractorWithSchema(extractor, schema)

"""Facts with where they were read, and what could not be read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from ras_agent.records.json_form import JSON
from ras_agent.text.canonical import canonical_key

__all__ = ["Extraction", "Failure", "Source", "Triple", "fact_id"]


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """Where a triple was read: characters `start` to `end` of a passage's text, at which hop, by whom."""

    passage_id: str
    start: int = 0
    end: int = 0
    hop: int = 0
    subquery: str = ""
    extractor: str = ""

    def to_dict(self) -> JSON:
        return {
            "passage_id": self.passage_id,
            "start": self.start,
            "end": self.end,
            "hop": self.hop,
            "subquery": self.subquery,
            "extractor": self.extractor,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**data)


# a graph asks for the same keys and ids at every hop
@lru_cache(maxsize=65536)
def _fact_key(subject: str, predicate: str, object_: str) -> tuple[str, str, str]:
    return canonical_key(subject), canonical_key(predicate), canonical_key(object_)


def fact_id(key: tuple[str, str, str]) -> str:
    """The id of the fact with this key; stable across runs."""
    return "t" + hashlib.blake2b("\x1f".join(key).encode(errors="surrogatepass"), digest_size=6).hexdigest()


@lru_cache(maxsize=65536)
def _fact_id(subject: str, predicate: str, object_: str) -> str:
    return fact_id(_fact_key(subject, predicate, object_))


@dataclass(frozen=True, slots=True)
class Triple:
    """A fact. Surface forms are kept as read; `key` says which triples state the same fact."""

    subject: str
    predicate: str
    object: str
    sources: tuple[Source, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return _fact_key(self.subject, self.predicate, self.object)

    @property
    def id(self) -> str:
        """Stable across runs: a hash of the key."""
        return _fact_id(self.subject, self.predicate, self.object)

    def __str__(self) -> str:
        return f"(S> {self.subject} | P> {self.predicate} | O> {self.object})"

    def to_dict(self) -> JSON:
        return {
            "subject": self.subject,
            "predicate": self.predicate,
            "object": self.object,
            "sources": [source.to_dict() for source in self.sources],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        sources = tuple(Source.from_dict(source) for source in data.get("sources", ()))
        return cls(data["subject"], data["predicate"], data["object"], sources)


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong and did not stop the run. `detail` is an excerpt of what could not be used."""

    role: str
    message: str
    hop: int = 0
    detail: str = ""

    def to_dict(self) -> JSON:
        return {"role": self.role, "message": self.message, "hop": self.hop, "detail": self.detail}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What an extractor read out of passages, and what it could not read."""

    triples: tuple[Triple, ...] = ()
    failures: tuple[Failure, ...] = ()

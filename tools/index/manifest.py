"""Holds the settings of an index, fixed when it is made: embedder, kind of vector search, BM25, tokeniser."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ras_agent.tools.embed.served import same_model
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_index import VectorSettings


@dataclass(frozen=True, slots=True, eq=False)
class EmbedderIdentity:
    """Names the embedder of an index's vectors, and their dimension. A served model is the same at any address."""

    name: str
    dimension: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EmbedderIdentity):
            return NotImplemented
        return self.dimension == other.dimension and same_model(self.name, other.name)

    def __hash__(self) -> int:
        return hash(self.dimension)

    def __str__(self) -> str:
        return f"{self.name!r} ({self.dimension} dimensions)"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Holds the settings with which an index was made."""

    embedder: EmbedderIdentity | None = None
    vectors: VectorSettings = field(default_factory=VectorSettings)
    bm25: BM25Parameters = field(default_factory=BM25Parameters)
    tokeniser: dict[str, Any] = field(default_factory=lambda: Tokeniser().to_dict())

    def to_json(self) -> str:
        """Return the manifest in the form stored in the database."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the manifest that `to_json` wrote. Raises ValueError, KeyError or TypeError for any other text."""
        data = json.loads(text)
        embedder = data.pop("embedder")
        return cls(
            embedder=EmbedderIdentity(**embedder) if embedder else None,
            vectors=VectorSettings(**data.pop("vectors")),
            bm25=BM25Parameters(**data.pop("bm25")),
            tokeniser=data["tokeniser"],
        )

"""Holds the settings of an index, fixed when it is made: embedder, kind of vector search, BM25, tokeniser.

The embedder is named in them; an embedder is checked against that name, and can be loaded by it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ras_agent.contracts.errors import IndexMismatch, RasError
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import reopened_embedder, resolve_embedder
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


def begin_manifest(
    embedder: object,
    tokeniser: Tokeniser | None,
    bm25: BM25Parameters | None,
    vectors: VectorSettings | None,
) -> tuple[Embedder | None, Manifest]:
    """Return the embedder of a new index, None for an index without vectors, and the manifest of the index."""
    resolved = None if embedder is None else resolve_embedder(embedder)
    manifest = Manifest(
        embedder=EmbedderIdentity(resolved.name, resolved.dimension)
        if resolved
        else None,
        vectors=vectors or VectorSettings(),
        bm25=bm25 or BM25Parameters(),
        tokeniser=(tokeniser or Tokeniser()).to_dict(),
    )
    return resolved, manifest


def check_embedder(manifest: Manifest, embedder: Embedder, where: str) -> None:
    """Raise IndexMismatch if the index at `where` has no vectors, or vectors of another embedder."""
    if manifest.embedder is None:
        raise IndexMismatch(
            f"{where} holds no vectors, so that embedder {embedder.name!r} cannot search it: build it again with that "
            "embedder, or retrieve by bm25"
        )
    given = EmbedderIdentity(embedder.name, embedder.dimension)
    if given != manifest.embedder:
        raise IndexMismatch(
            f"{where} was built with embedder {manifest.embedder}, not with {given}: open it with "
            f"{manifest.embedder.name}, or build it again with {given.name}"
        )


def remembered_embedder(manifest: Manifest, where: str) -> Embedder:
    """Load the embedder named in a manifest. Raises IndexMismatch if it cannot be loaded by its name."""
    assert manifest.embedder
    try:
        embedder = reopened_embedder(
            manifest.embedder.name, manifest.embedder.dimension, where
        )
    except RasError as error:
        raise IndexMismatch(
            f"{where} was built with embedder {manifest.embedder}, which could not be loaded by that name ({error}): "
            "open the index with that embedder, PassageIndex.open(place, embedder=...)"
        ) from error
    check_embedder(manifest, embedder, where)
    return embedder

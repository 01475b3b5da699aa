"""kg.json: what a graph on disk holds and in which files. Replacing it is what commits a write."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ras_agent.errors import IndexMismatch, IndexNotFound
from ras_agent.tools.index.durable import ManifestFile
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.kg.equivalence import Equivalence

__all__ = ["NAME", "KGManifest", "read_kg_manifest", "readable_kg_manifest", "write_kg_manifest"]

NAME = "kg.json"
_FILE = ManifestFile(NAME, "ras-agent knowledge graph", 1, "knowledge graph", "ras-agent kg build")


@dataclass(frozen=True, slots=True)
class KGManifest:
    """One generation of a graph.

    fingerprint: a digest of entities, relations, edges, similarities and mentions: equal for equal graphs.
    extractor: who read the facts; embedder: whose vectors it holds. texts: whether it knows which texts were read.
    """

    generation: int = 0
    documents: int = 0
    entities: int = 0
    relations: int = 0
    facts: int = 0
    equivalences: int = 0
    fingerprint: str = ""
    extractor: str = ""
    embedder: EmbedderIdentity | None = None
    equivalence: Equivalence = field(default_factory=Equivalence)
    texts: bool = False

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        embedder = data.pop("embedder")
        return cls(
            embedder=EmbedderIdentity(**embedder) if embedder else None,
            equivalence=Equivalence(**data.pop("equivalence")),
            **data,
        )


def read_kg_manifest(folder: Path) -> KGManifest:
    """Raises IndexNotFound without a graph in `folder`, IndexMismatch for a layout this version cannot read."""
    return _FILE.read(folder, KGManifest.from_dict)


def readable_kg_manifest(folder: Path) -> KGManifest | None:
    """What the graph in `folder`, be its arrays whole or damaged, says of itself; None if that cannot be read."""
    try:
        return read_kg_manifest(folder)
    except (IndexNotFound, IndexMismatch):
        return None


def write_kg_manifest(folder: Path, manifest: KGManifest) -> None:
    """Commit: from here on readers see `manifest`."""
    _FILE.write(folder, manifest)

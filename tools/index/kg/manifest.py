"""kg.json: what a graph on disk holds and in which files. Replacing it is what commits a write."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from ras_agent.errors import IndexMismatch, IndexNotFound
from ras_agent.tools.index.durable import replace_file
from ras_agent.tools.index.kg.equivalence import Equivalence
from ras_agent.tools.index.manifest import EmbedderIdentity

__all__ = ["NAME", "KGManifest", "read_kg_manifest", "write_kg_manifest"]

FORMAT, VERSION = "ras-agent knowledge graph", 1
NAME = "kg.json"


@dataclass(frozen=True, slots=True)
class KGManifest:
    """One generation of a graph.

    fingerprint: a digest of entities, relations, edges, similarities and mentions: equal for equal graphs.
    extractor: who read the facts; embedder: whose vectors it holds.
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
    path = folder / NAME
    try:
        data = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise IndexNotFound(f"no knowledge graph at {folder}: make one with `ras-agent kg build`") from None
    except ValueError as error:
        raise IndexMismatch(f"{path} is damaged ({error}): build the graph anew") from error
    known = isinstance(data, dict) and data.pop("format", None) == FORMAT
    version = data.pop("version", None) if known else None
    if version != VERSION:
        raise IndexMismatch(
            f"{path} has {f'version {version}' if known else 'another format'}, this ras-agent reads "
            f"'{FORMAT}' version {VERSION}: build the graph anew"
        )
    try:
        return KGManifest.from_dict(data)
    except (KeyError, TypeError, ValueError) as error:
        raise IndexMismatch(f"{path} is damaged ({error}): build the graph anew") from error


def write_kg_manifest(folder: Path, manifest: KGManifest) -> None:
    """Commit: from here on readers see `manifest`."""
    data = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    replace_file(folder / NAME, json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n")

"""index.json: what an index on disk holds and in which files. Replacing it is what commits a write."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from ras_agent.errors import IndexMismatch, IndexNotFound
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.durable import replace_file
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_index import VectorSettings

__all__ = ["EmbedderIdentity", "Files", "Manifest", "read_manifest", "write_manifest"]

FORMAT, VERSION = "ras-agent passage index", 1
NAME = "index.json"


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Whose vectors an index holds, and how wide they are."""

    name: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.name!r} ({self.dimension} dimensions)"


@dataclass(frozen=True, slots=True)
class Files:
    """Names inside the index's folder. `bm25` and `faiss` are empty while they are not built."""

    passages: str = "passages-0.jsonl"
    vectors: str = "vectors-0.f32"
    rows: str = ""
    bm25: str = ""
    faiss: str = ""

    def __post_init__(self) -> None:
        for name in asdict(self).values():
            if name != Path(name).name:
                raise ValueError(f"file name {name!r} leads out of the index's folder")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation of an index; each write makes the next. `fingerprint` is of ids and texts in corpus order."""

    generation: int = 0
    passages: int = 0
    documents: int = 0
    fingerprint: str = ""
    embedder: EmbedderIdentity | None = None
    vectors: VectorSettings = field(default_factory=VectorSettings)
    bm25: BM25Parameters = field(default_factory=BM25Parameters)
    tokeniser: dict[str, Any] = field(default_factory=lambda: Tokeniser().to_dict())
    files: Files = field(default_factory=Files)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        embedder = data.pop("embedder")
        return cls(
            embedder=EmbedderIdentity(**embedder) if embedder else None,
            vectors=VectorSettings(**data.pop("vectors")),
            bm25=BM25Parameters(**data.pop("bm25")),
            files=Files(**data.pop("files")),
            **data,
        )


def read_manifest(folder: Path) -> Manifest:
    """Raises IndexNotFound without an index in `folder`, IndexMismatch for a layout this version cannot read."""
    path = folder / NAME
    try:
        data = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise IndexNotFound(f"no index at {folder}: make one with `ras-agent index`") from None
    except ValueError as error:
        raise IndexMismatch(f"{path} is damaged ({error}): build the index anew") from error
    known = isinstance(data, dict) and data.pop("format", None) == FORMAT
    version = data.pop("version", None) if known else None
    if version != VERSION:
        raise IndexMismatch(
            f"{path} has {f'version {version}' if known else 'another format'}, this ras-agent reads "
            f"'{FORMAT}' version {VERSION}: build the index anew"
        )
    try:
        return Manifest.from_dict(data)
    except (KeyError, TypeError, ValueError) as error:
        raise IndexMismatch(f"{path} is damaged ({error}): build the index anew") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Commit: from here on readers see `manifest`."""
    data = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    replace_file(folder / NAME, json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n")

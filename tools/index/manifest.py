"""index.json says what an index on disk holds and in which files; replacing it commits a write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from ras_agent.tools.embed.served import same_model
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.checksums import FileSum, sums_from_dict
from ras_agent.tools.index.durable import ManifestFile
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_index import VectorSettings

NAME = "index.json"
ANEW = "delete the folder {folder} and index its files again with `ras-agent index FILES --out {folder}`"
"""What mends an index whose passages are damaged. Its graph's facts lie in the same folder, under kg/."""
_FILE = ManifestFile(NAME, "ras-agent passage index", 2, "index", "ras-agent index", ANEW)


@dataclass(frozen=True, slots=True, eq=False)
class EmbedderIdentity:
    """Names the embedder of an index's vectors, and how wide they are. A served model is the same at any address."""

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
class Files:
    """Names the files inside the index's folder. `bm25` and `faiss` are empty until they are built."""

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
    """Describes one generation of an index; each write makes the next.

    fingerprint: a digest of ids and texts in corpus order. sums: of the files that are not only appended to, by their
    path in the folder; the rows of the others have theirs in the row table.
    """

    generation: int = 0
    passages: int = 0
    documents: int = 0
    fingerprint: str = ""
    embedder: EmbedderIdentity | None = None
    vectors: VectorSettings = field(default_factory=VectorSettings)
    bm25: BM25Parameters = field(default_factory=BM25Parameters)
    tokeniser: dict[str, Any] = field(default_factory=lambda: Tokeniser().to_dict())
    files: Files = field(default_factory=Files)
    sums: Mapping[str, FileSum] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        embedder = data.pop("embedder")
        return cls(
            embedder=EmbedderIdentity(**embedder) if embedder else None,
            vectors=VectorSettings(**data.pop("vectors")),
            bm25=BM25Parameters(**data.pop("bm25")),
            files=Files(**data.pop("files")),
            sums=sums_from_dict(data.pop("sums")),
            **data,
        )


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest. Raises IndexNotFound without an index, IndexMismatch for a layout of another version."""
    return _FILE.read(folder, Manifest.from_dict)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Commit `manifest`: from here on readers see it."""
    _FILE.write(folder, manifest)

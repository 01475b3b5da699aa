"""One generation of an index, to read from: it does not change when the index is written to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TypeVar

from ras_agent.errors import IndexMismatch
from ras_agent.records import Passage
from ras_agent.tools.index.bm25_matrix import BM25Matrix, build_matrix
from ras_agent.tools.index.indexed_text import indexed_text
from ras_agent.tools.index.manifest import Manifest
from ras_agent.tools.index.passage_log import PassageLog, Places, StoredPassages
from ras_agent.tools.index.row_table import Table
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_index import VectorIndex
from ras_agent.tools.index.vector_log import VectorLog

__all__ = ["Snapshot"]

T = TypeVar("T")


class Snapshot:
    """Passages, their BM25 matrix and their vector index, the latter two loaded or built when first asked for."""

    def __init__(
        self,
        manifest: Manifest,
        table: Table,
        passage_log: PassageLog,
        vector_log: VectorLog | None,
        tokeniser: Tokeniser,
        folder: Path | None = None,
    ) -> None:
        self.manifest, self.table, self.tokeniser = manifest, table, tokeniser
        self.passage_log, self.vector_log = passage_log, vector_log
        self.passages: Sequence[Passage] = StoredPassages(passage_log, Places(table["start"], table["size"]))
        self._folder = folder
        self._bm25: BM25Matrix | None = None
        self._vectors: VectorIndex | None = None
        self._lock = Lock()

    def bm25(self) -> BM25Matrix:
        """The BM25 matrix, a row for each passage."""
        with self._lock:
            if self._bm25 is None:
                self._bm25 = self._saved(BM25Matrix.load, self.manifest.files.bm25) or build_matrix(
                    map(indexed_text, self.passages), self.tokeniser, self.manifest.bm25
                )
            return self._bm25

    def vectors(self) -> VectorIndex:
        """The vector index, a number for each passage. Raises IndexMismatch if the index was made without embedder."""
        with self._lock:
            if self.vector_log is None:
                raise IndexMismatch(
                    "the index holds no vectors: make another with an embedder (`ras-agent index FILES --out NEW.index "
                    "--embedder minilm`, PassageIndex.create(path, embedder='minilm')), or retrieve by bm25"
                )
            if self._vectors is None:
                self._vectors = self._saved(VectorIndex.load, self.manifest.files.faiss) or VectorIndex.build(
                    self.vector_log.take(self.table["vector"]), self.manifest.vectors
                )
            return self._vectors

    def _saved(self, load: Callable[[Path], T], name: str) -> T | None:
        """What the file `name` holds; None if there is none to load, and it has to be built from the logs."""
        if self._folder is None or not name:
            return None
        try:
            return load(self._folder / name)
        except FileNotFoundError:
            return None  # a later generation took its place
        except (ValueError, RuntimeError) as error:
            raise IndexMismatch(f"{self._folder / name} is damaged ({error}): build the index anew") from error

"""Stores BM25 weights as a sparse matrix: built once by bm25s, scored by one numpy call per query term."""

from __future__ import annotations

import json
import logging
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import IndexMismatch
from ras_agent.tools.index.durable import save_array, sync_file, sync_folder, writing
from ras_agent.tools.index.tokenise import Tokeniser

Method = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]


@dataclass(frozen=True, slots=True)
class BM25Parameters:
    """Sets term saturation `k1`, length normalisation `b` and the variant (see Kamphuis et al., ECIR 2020).

    `delta` is the least that an occurrence counts in BM25L and BM25+, however long the passage.
    """

    k1: float = 1.5
    b: float = 0.75
    method: Method = "lucene"
    delta: float = 0.5

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise ValueError(f"unknown BM25 variant {self.method!r}; known: {', '.join(get_args(Method))}")


@dataclass(frozen=True, slots=True)
class BM25Matrix:
    """Holds the weight of each term in each passage, column by column (compressed sparse columns).

    Column `c` = `vocabulary[term]` holds passages `rows[starts[c]:starts[c + 1]]` (int32, ascending) and their
    `weights` (float32). The arrays may be memory-mapped.
    """

    size: int
    vocabulary: dict[str, int]
    starts: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]
    weights: Floats

    def scores(self, terms: Iterable[str]) -> Floats:
        """Return the BM25 score of every passage, shape (size,); 0 exactly where no term occurs.

        For BM25L and BM25+ this is the score above that of a passage without the terms: the same ranking.
        """
        scores = np.zeros(self.size, dtype=np.float32)
        for term in terms:
            column = self.vocabulary.get(term)
            if column is not None:
                span = slice(self.starts[column], self.starts[column + 1])
                try:
                    # faster than `scores[rows] += weights`, which gathers and scatters
                    np.add.at(scores, self.rows[span], self.weights[span])
                except (IndexError, ValueError) as error:  # a large file is not compared whole when it is opened
                    raise IndexMismatch(
                        f"the BM25 matrix is damaged ({error}): `ras-agent doctor --index INDEX` names the file"
                    ) from error
        return scores

    def having(self, term: str) -> npt.NDArray[np.int32]:
        """Return the passages that hold a term, ascending."""
        column = self.vocabulary.get(term)
        return self.rows[:0] if column is None else self.rows[self.starts[column] : self.starts[column + 1]]

    def of_rows(self, rows: Ints) -> BM25Matrix:
        """Return the matrix of some passages, `rows` ascending; their weights are those that they have in the whole."""
        return _PartOfMatrix(len(rows), self.vocabulary, self.starts, self.rows, self.weights, self, rows)

    def save(self, folder: Path) -> None:
        """Write the arrays as .npy and the vocabulary as JSON."""
        folder.mkdir(exist_ok=True)
        for name in ("starts", "rows", "weights"):
            save_array(folder / f"{name}.npy", getattr(self, name))
        described = {"size": self.size, "vocabulary": list(self.vocabulary)}
        path = folder / "vocabulary.json"
        with writing(path):
            path.write_text(json.dumps(described, ensure_ascii=False), "utf-8")
            sync_file(path)
        sync_folder(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Open a saved matrix, its arrays memory-mapped. Raises FileNotFoundError, ValueError."""
        described = json.loads((folder / "vocabulary.json").read_text("utf-8"))
        # a plain view of the map: slicing a numpy.memmap costs microseconds
        starts, rows, weights = (
            np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False).view(np.ndarray)
            for name in ("starts", "rows", "weights")
        )
        vocabulary = {term: column for column, term in enumerate(described["vocabulary"])}
        if starts.shape != (len(vocabulary) + 1,) or not rows.shape == weights.shape == (starts[-1],):
            raise ValueError("its files do not fit together")
        return cls(described["size"], vocabulary, starts, rows, weights)


@dataclass(frozen=True, slots=True)
class _PartOfMatrix(BM25Matrix):
    """Reads the passages `chosen` (size,) of the matrix `whole`, so that a part of a large corpus costs no copy."""

    whole: BM25Matrix
    chosen: Ints

    def scores(self, terms: Iterable[str]) -> Floats:
        """Return the BM25 score of every passage, shape (size,)."""
        scores: Floats = self.whole.scores(terms)[self.chosen]
        return scores

    def having(self, term: str) -> npt.NDArray[np.int32]:
        """Return the passages that hold a term, ascending."""
        having = self.whole.having(term)
        places = np.searchsorted(self.chosen, having).clip(max=max(len(self.chosen) - 1, 0))
        there = self.chosen[places] == having if len(self.chosen) else np.zeros(len(having), dtype=np.bool_)
        held: npt.NDArray[np.int32] = places[there].astype(np.int32)
        return held


class _TermIds(Sequence[list[int]]):
    """Stores the term ids of each passage in one flat array: half the memory of a list of lists."""

    def __init__(self) -> None:
        self._flat, self._ends = array("i"), array("q", [0])

    def add(self, ids: list[int]) -> None:
        self._flat.extend(ids)
        self._ends.append(len(self._flat))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, row: Any) -> Any:
        return self._flat[self._ends[row] : self._ends[row + 1]].tolist()

    def __iter__(self) -> Iterator[list[int]]:
        return (self[row] for row in range(len(self)))


class _Corpus(NamedTuple):
    """Has the attributes that bm25s reads of a tokenised corpus."""

    ids: _TermIds
    vocab: dict[str, int]


def build_matrix(texts: Iterable[str], tokeniser: Tokeniser, parameters: BM25Parameters | None = None) -> BM25Matrix:
    """Build the matrix of `texts`, one row each in their order."""
    parameters = parameters or BM25Parameters()
    corpus = _Corpus(_TermIds(), {})
    for text in texts:
        corpus.ids.add([corpus.vocab.setdefault(term, len(corpus.vocab)) for term in tokeniser.terms(text)])
    if not corpus.vocab:  # no passages, or none with a term: nothing for bm25s to count
        return BM25Matrix(len(corpus.ids), {}, np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # on import it sets itself to DEBUG
    model = bm25s.BM25(k1=parameters.k1, b=parameters.b, delta=parameters.delta, method=parameters.method)
    model.index(corpus, create_empty_token=False, show_progress=False)
    built = model.scores
    return BM25Matrix(len(corpus.ids), corpus.vocab, built["indptr"], built["indices"], built["data"])

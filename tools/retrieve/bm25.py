"""The retriever "bm25" ranks passages by the words that they share with the query; rare words count more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ras_agent.contracts.records import Passage
from ras_agent.tools.index.bm25_matrix import BM25Matrix, BM25Parameters, build_matrix
from ras_agent.tools.index.passages import indexed_text
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.retrieve.ranker import RankedRetriever
from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k


class BM25Retriever(RankedRetriever):
    """Ranks passages by BM25 over title and text. Passages that share no term with the query are not returned."""

    name = "bm25"
    tells_doubt = True

    def __init__(
        self, passages: Sequence[Passage], matrix: BM25Matrix, tokeniser: Tokeniser
    ) -> None:
        """Take the passages, a BM25 matrix with one row for each passage, in the same order, and its tokeniser."""
        self.passages = passages
        self._matrix = matrix
        self._tokeniser = tokeniser

    @classmethod
    def from_passages(
        cls,
        passages: Sequence[Passage],
        *,
        tokeniser: Tokeniser | None = None,
        parameters: BM25Parameters | None = None,
    ) -> Self:
        """Build a BM25 retriever over `passages` in memory.

        Args:
            tokeniser: splits texts into terms; by default for English.
            parameters: BM25's k1, b and variant; by default those of `BM25Parameters()`.
        """
        tokeniser = tokeniser or Tokeniser()
        matrix = build_matrix(map(indexed_text, passages), tokeniser, parameters)
        return cls(passages, matrix, tokeniser)

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows of `passages` with their BM25 scores. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        # Not by bm25s's own `retrieve`: it computes the same scores, but then partitions all of them, which takes nine
        # tenths of its time and leaves the order of ties to chance.
        terms = self._tokeniser.terms(query)
        return top_k(self._matrix.scores(terms), k)


def bm25(
    index: PassageIndex,
    *,
    tokeniser: Tokeniser | None = None,
    parameters: BM25Parameters | None = None,
) -> BM25Retriever:
    """Build the retriever registered as "bm25" over an index.

    Args:
        tokeniser, parameters: by default the index's, whose stored BM25 matrix is then used. For any others, a
            matrix is built in memory.
    """
    snapshot = index.snapshot
    if tokeniser is None and parameters is None:
        return BM25Retriever(snapshot.passages, snapshot.bm25(), snapshot.tokeniser)
    return BM25Retriever.from_passages(
        # iteration skips erased passages, so that the rows match the new matrix
        tuple(snapshot.passages),
        tokeniser=tokeniser or snapshot.tokeniser,
        parameters=parameters or snapshot.manifest.bm25,
    )

"""The same retrieval by rank-bm25, the plain implementation many people know: slow, short, here to be agreed with.

With N passages, df of them holding a term, tf its count in a passage of length L (mean A), the variants differ so:

    robertson  rank-bm25's BM25Okapi with epsilon 0. idf log((N - df + 0.5) / (df + 0.5)), 0 for a term of more than
               half the passages (BM25Okapi's own default raises those to a quarter of the mean idf). Ours leaves out
               the factor k1 + 1 of the term part tf (k1 + 1) / (tf + k1 (1 - b + b L / A)): no order depends on it.
    lucene     the same with idf log(1 + (N - df + 0.5) / (df + 0.5)), never negative. rank-bm25 has no such variant:
               here its BM25Okapi runs with these idf put in.
    bm25+      rank-bm25's BM25Plus with our delta, 0.5 (its own default is 1). It gives every passage delta idf for
               every term; ours leaves that out of the scores: it is the same for all passages.

No twin: "atire", whose idf is log(N / df), and "bm25l", where rank-bm25 multiplies by tf and the paper does not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.errors import MissingExtra
from ras_agent.records import Passage
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.row_table import indexed_text
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.retrieve.ranker import RankedRetriever
from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k

__all__ = ["RankBM25Retriever"]


class RankBM25Retriever(RankedRetriever):
    """BM25 by rank-bm25, with our tokeniser and our contract. Reads every passage for every query term."""

    name = "rank-bm25"

    def __init__(
        self,
        passages: Sequence[Passage],
        *,
        tokeniser: Tokeniser | None = None,
        parameters: BM25Parameters | None = None,
    ) -> None:
        """Raises MissingExtra without rank-bm25, ValueError for a variant that it has no equal of."""
        self.passages, self._tokeniser = passages, tokeniser or Tokeniser()
        corpus = [self._tokeniser.terms(indexed_text(passage)) for passage in passages]
        self._model = _model(corpus, parameters or BM25Parameters()) if any(corpus) else None

    def rank(self, query: str, k: int) -> Ranking:
        """The `k` best rows. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        terms = self._tokeniser.terms(query)
        if self._model is None or not terms:
            return Ranking.empty()
        scores: npt.NDArray[np.float64] = self._model.get_scores(terms)
        wanted = set(terms)
        scores[[wanted.isdisjoint(counts) for counts in self._model.doc_freqs]] = 0
        return top_k(scores.astype(np.float32), k)


def _model(corpus: list[list[str]], parameters: BM25Parameters) -> Any:
    try:
        import rank_bm25
    except ImportError as error:
        raise MissingExtra("the rank-bm25 twin", "eval") from error
    k1, b = parameters.k1, parameters.b
    if parameters.method == "bm25+":
        return rank_bm25.BM25Plus(corpus, k1=k1, b=b, delta=parameters.delta)
    if parameters.method not in ("robertson", "lucene"):
        raise ValueError(f"rank-bm25 has no equal of {parameters.method!r}; it has of: robertson, lucene, bm25+")
    model = rank_bm25.BM25Okapi(corpus, k1=k1, b=b, epsilon=0)
    if parameters.method == "lucene":
        holding = Counter(term for counts in model.doc_freqs for term in counts)
        model.idf = {term: math.log(1 + (len(corpus) - count + 0.5) / (count + 0.5)) for term, count in holding.items()}
    return model

"""BM25 over title and text (bm25s, a sparse-matrix implementation)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ras_agent.records import Hit, Passage

__all__ = ["BM25Retriever"]

_WORD = re.compile(r"(?u)\b\w+\b")


class BM25Retriever:
    """Ranks passages by BM25 (Lucene variant) over stemmed words without stop words."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        import bm25s
        import Stemmer
        from bm25s.stopwords import STOPWORDS_EN

        self._passages = passages
        self._stem = Stemmer.Stemmer("english").stemWords
        self._stop = frozenset(STOPWORDS_EN)
        tokens = [self._tokens(f"{passage.title} {passage.text}") for passage in passages]
        self._bm25 = bm25s.BM25() if any(tokens) else None
        if self._bm25 is not None:
            self._bm25.index(tokens, show_progress=False)

    @classmethod
    def from_passages(cls, passages: Sequence[Passage]) -> BM25Retriever:
        return cls(list(passages))

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """At most `k` hits with a positive score, best first, ties in corpus order."""
        if not query.strip() or k < 1:
            raise ValueError(f"retrieve needs a query and k >= 1, got {query!r} and k = {k}")
        known = self._bm25.vocab_dict if self._bm25 is not None else {}
        ids = [known[token] for token in dict.fromkeys(self._tokens(query)) if token in known]
        if self._bm25 is None or not ids:
            return []
        scores: npt.NDArray[np.float32] = self._bm25.get_scores_from_ids(ids)
        order = np.argsort(-scores, kind="stable")[:k]
        return [Hit(self._passages[i], float(scores[i])) for i in order if scores[i] > 0]

    def _tokens(self, text: str) -> list[str]:
        words: list[str] = self._stem([word for word in _WORD.findall(text.lower()) if word not in self._stop])
        return words

"""The BM25 scorer: scores texts by the rare words that they share with the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ras_agent.running.protocols import Scored
from ras_agent.tools.index.bm25_matrix import build_matrix
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.subgraph.graph import plain_name
from ras_agent.tools.subgraph.scoring import NO_SCORES


class BM25Scorer:
    """Scores texts by BM25. The texts of one call determine how rare a word is, so it is a RelativeScorer."""

    name = "bm25"

    def __init__(self, tokeniser: Tokeniser | None = None) -> None:
        self._tokeniser = tokeniser or Tokeniser()

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        """Return the BM25 score of each text."""
        return self.over(texts)(question)

    def over(self, texts: Sequence[str]) -> Callable[[str], Scored]:
        """Return `score` for these texts as a function of the question. Their words are counted now."""
        if not texts:
            return lambda question: NO_SCORES
        matrix = build_matrix(texts, self._tokeniser)

        def score(question: str) -> Scored:
            terms = self._tokeniser.terms(plain_name(question))
            return Scored(matrix.scores(terms))

        return score

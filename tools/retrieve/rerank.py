"""The second stage of a mix: among its first twenty passages, those that complete the first one move up.

A ranking scores each passage by itself. A question of several hops needs passages that say different things: the second
has to hold what the question asks and the first does not say, and is often about something that the first names.
lab/graph-retrieval.md says what this gains.
"""

from __future__ import annotations

from math import log

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.text.titles import bare_title
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.ranking import Ranking, top_k

FIRST = 20
"""How many passages are ranked again."""
_REST, _NAMED = 0.6, 0.2  # chosen on training sets


class Reranker:
    """Second ranker of a ranking's first passages, with scores in 0..1. The first passage stays first."""

    def __init__(self, index: PassageIndex) -> None:
        self._snapshot = index.snapshot

    def rank(self, query: str, ranking: Ranking, k: int) -> Ranking:
        """Return the `k` best rows of `ranking`, which should hold at least `FIRST`, if there are as many.

        A passage's score rises by 0.6 times the share of the question that it holds and the first does not, and by 0.2
        if the first names it.
        """
        rows = ranking.rows[:FIRST]
        if len(rows) < 2:
            return ranking
        scores = np.zeros(len(self._snapshot.passages), dtype=np.float32)
        scores[ranking.rows] = ranking.scores
        scores[rows] += np.float32(_REST) * self._rest(query, rows) + np.float32(_NAMED) * self._titles_in_first_text(
            rows
        )
        scores[rows[0]] += np.float32(_REST + _NAMED)  # the most that another can gain
        return top_k(scores, k)

    def _rest(self, query: str, rows: Ints) -> Floats:
        """Return for each row the share of the question's terms that it holds and the first lacks.

        Terms count by their BM25 rarity; one that no passage holds counts for nothing.
        """
        matrix, tokeniser = self._snapshot.bm25(), self._snapshot.tokeniser
        sums, total = np.zeros(len(rows), dtype=np.float32), 0.0
        for term in dict.fromkeys(tokeniser.terms(query)):
            having = matrix.having(term)
            if not len(having):
                continue
            rarity = log(1 + (matrix.size - len(having) + 0.5) / (len(having) + 0.5))
            total += rarity
            holds = having[np.searchsorted(having, rows).clip(max=len(having) - 1)] == rows
            if not holds[0]:
                sums += np.float32(rarity) * holds
        return sums / np.float32(total) if total else sums

    def _titles_in_first_text(self, rows: Ints) -> Floats:
        """Return 1 for each row whose title's terms all stand in the first row's text (without its title), else 0."""
        terms = self._snapshot.tokeniser.terms
        first, *others = (self._snapshot.passages[row] for row in rows.tolist())
        first_terms = set(terms(first.text))
        titles = [
            set(terms(bare_title(passage.title))) if passage.title != first.title else set() for passage in others
        ]
        return np.array([0, *(bool(title) and title <= first_terms for title in titles)], dtype=np.float32)

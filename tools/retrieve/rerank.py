"""The second stage of a mix: its first forty passages are ranked again, one after another, by what they complete.

A ranking scores each passage by itself. A question of several hops needs passages that say different things: the next
has to hold what the question asks and those before it do not say, and is often about something that one of them names.
lab/graph-retrieval.md says what this gains.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats, Ints
from ras_agent.records import Passage
from ras_agent.text.titles import bare_title
from ras_agent.tools.index.snapshot import Snapshot
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.ties import TIE
from ras_agent.tools.retrieve.ranking import Ranking

Bools = npt.NDArray[np.bool_]
FIRST = 40
"""How many passages are ranked again."""
_REST, _NAMED = 0.6, 0.3  # chosen on training sets
_BELOW = np.float32(1 - 1e-5)  # a passage that comes later scores less, however much it gains
_ERASED = Passage("", "")  # stands for a passage that was deleted after the first ranking: it names nothing


class Reranker:
    """Second ranker of a ranking's first passages. The first passage stays first."""

    def __init__(self, index: PassageIndex) -> None:
        self._snapshot = index.snapshot

    def rank(self, query: str, ranking: Ranking, k: int) -> Ranking:
        """Return the `k` best rows of `ranking`, which should hold at least `FIRST`, if there are as many.

        Each next passage is the one with the highest score: its score in `ranking`, 0.6 times the share of the question
        that it holds and none before it does, and 0.3 if one before it names it. No score is above the one before.
        """
        rows = ranking.rows[:FIRST]
        if len(rows) < 2:
            return ranking
        holds, rarity = held_terms(self._snapshot, query, rows)
        passages = [passage or _ERASED for passage in self._snapshot.passages.take(rows)]
        titles = [frozenset(self._snapshot.tokeniser.terms(bare_title(passage.title))) for passage in passages]
        held, named, left = holds[:, 0].copy(), np.zeros(len(rows), dtype=bool), np.ones(len(rows), dtype=bool)
        place, places, scores = 0, [0], [ranking.scores[0] + np.float32(_REST + _NAMED)]
        left[0] = False
        while len(places) < min(k, len(rows)):
            named |= self._named_by(place, passages, titles)
            rest = rarity @ (holds & ~held[:, None])
            gained = ranking.scores[:FIRST] + np.float32(_REST) * rest + np.float32(_NAMED) * named
            gained[~left] = -np.inf
            ties = np.flatnonzero(gained >= gained.max() - TIE)
            place = int(ties[np.argmin(rows[ties])])
            places.append(place)
            scores.append(gained[place] if gained[place] <= scores[-1] else scores[-1] * _BELOW)
            held |= holds[:, place]
            left[place] = False
        others = slice(len(rows), max(k, len(rows)))
        after = np.minimum(ranking.scores[others], scores[-1] * _BELOW)
        return Ranking(
            np.concatenate((rows[places], ranking.rows[others]))[:k],
            np.concatenate((np.array(scores, dtype=np.float32), after))[:k],
        )

    def _named_by(self, place: int, passages: Sequence[Passage], titles: Sequence[frozenset[str]]) -> Bools:
        """Return which of the passages have a title, and not the same one, whose terms all stand in the text of one."""
        named_in, terms = passages[place], set(self._snapshot.tokeniser.terms(passages[place].text))
        names = [
            bool(title) and passage.title != named_in.title and title <= terms
            for passage, title in zip(passages, titles, strict=True)
        ]
        return np.array(names, dtype=bool)


def held_terms(snapshot: Snapshot, query: str, rows: Ints) -> tuple[Bools, Floats]:
    """Return which rows hold which of the question's T terms, (T, rows), and each term's share of the question.

    Terms count by their BM25 rarity; one that no passage holds counts for nothing.
    """
    matrix = snapshot.bm25()
    terms = snapshot.tokeniser.terms(query)
    holds = []
    rarity = []
    for term in dict.fromkeys(terms):
        having = matrix.having(term)
        count = len(having)
        if not count:
            continue
        odds = (matrix.size - count + 0.5) / (count + 0.5)
        rarity.append(log(1 + odds))
        places = np.searchsorted(having, rows)
        last = count - 1
        places = places.clip(max=last)
        holds.append(having[places] == rows)
    counts = np.array(rarity, dtype=np.float32)
    total = counts.sum() or np.float32(1)
    shape = len(counts), len(rows)
    held = np.array(holds, dtype=bool)
    return held.reshape(shape), counts / total

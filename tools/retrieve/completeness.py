"""The last stage of a mix ranks the first forty passages again, so that each adds to the ones before it.

An ordinary ranking scores each passage by itself. A question of several hops needs passages that say different
things: the next one should contain terms of the question that the passages before it lack, and it is often about
something that one of them names. lab/graph-retrieval.md has the gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.contracts.records import Hit, Passage
from ras_agent.text.titles import bare_title
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.passages import find_rows, hashes
from ras_agent.tools.index.snapshot import Snapshot
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.ties import TIE
from ras_agent.tools.retrieve.ranking import Ranking, root_shares

Bools = npt.NDArray[np.bool_]
FIRST = 40
"""The number of passages that are ranked again."""
# chosen on training sets
_REST = 0.6
_NAMED = 0.3
# a passage that comes later gets a lower score, however much it adds
_BELOW = np.float32(1 - 1e-5)
# stands for a passage that was deleted after the first ranking
_ERASED = Passage("", "")


class Completeness:
    """Reorders the first passages of a ranking, so that each adds to the ones before it. The best passage stays first."""

    def __init__(self, index: PassageIndex) -> None:
        self._snapshot = index.snapshot

    def rank(self, query: str, ranking: Ranking, k: int) -> Ranking:
        """Return the `k` best rows of `ranking`, of which the first `FIRST` are reordered.

        The passage chosen next has the highest sum of its score in `ranking`, 0.6 times the share of the question's
        terms that it adds to the passages before it, and 0.3 if one of these names its title. Scores descend.
        """
        rows = ranking.rows[:FIRST]
        if len(rows) < 2:
            return ranking
        holds, rarity = held_terms(self._snapshot, query, rows)
        passages = [
            passage or _ERASED for passage in self._snapshot.passages.take(rows)
        ]
        titles = [self._terms(bare_title(passage.title)) for passage in passages]
        held = np.zeros(len(holds), dtype=bool)
        named = np.zeros(len(rows), dtype=bool)
        left = np.ones(len(rows), dtype=bool)
        places: list[int] = []
        scores: list[np.float32] = []
        while len(places) < min(k, len(rows)):
            if not places:
                place = 0
                scores.append(ranking.scores[0] + np.float32(_REST + _NAMED))
            else:
                rest = rarity @ (holds & ~held[:, None])
                gained = (
                    ranking.scores[:FIRST]
                    + np.float32(_REST) * rest
                    + np.float32(_NAMED) * named
                )
                gained[~left] = -np.inf
                ties = np.flatnonzero(gained >= gained.max() - TIE)
                place = int(ties[np.argmin(rows[ties])])
                score = gained[place]
                if score > scores[-1]:
                    score = scores[-1] * _BELOW
                scores.append(score)
            places.append(place)
            left[place] = False
            held |= holds[:, place]
            named |= self._named_by(passages[place], passages, titles)
        others = slice(len(rows), max(k, len(rows)))
        after = np.minimum(ranking.scores[others], scores[-1] * _BELOW)
        return Ranking(
            np.concatenate((rows[places], ranking.rows[others]))[:k],
            np.concatenate((np.array(scores, dtype=np.float32), after))[:k],
        )

    def complete(self, query: str, hits: Sequence[Hit], k: int) -> list[Hit]:
        """Reorder hits as `rank` does, and return the `k` best of them. Hits whose passage is not in the index are
        dropped.

        Args:
            hits: hits with scores on any scale, which are scaled to 0..1.
        """
        ids = hashes(hit.passage.id for hit in hits)
        places = find_rows(self._snapshot.column("id"), ids)
        hit_of_row: dict[int, Hit] = {}
        for hit, row in zip(hits, places.tolist(), strict=True):
            if row >= 0:
                hit_of_row.setdefault(row, hit)
        if not hit_of_row:
            return []
        scores = [hit.score for hit in hit_of_row.values()]
        shares = root_shares(np.array(scores, dtype=np.float32))
        rows = np.array(list(hit_of_row), dtype=np.int64)
        best = self.rank(query, Ranking(rows, shares), k)
        completed = []
        for row, score in zip(best.rows.tolist(), best.scores.tolist(), strict=True):
            completed.append(replace(hit_of_row[row], score=score))
        return completed

    def _terms(self, text: str) -> frozenset[str]:
        return frozenset(self._snapshot.tokeniser.terms(text))

    def _named_by(
        self,
        naming: Passage,
        passages: Sequence[Passage],
        titles: Sequence[frozenset[str]],
    ) -> Bools:
        """Return, for each passage, whether the text of `naming` contains all terms of its title.

        A passage with the same title as `naming` does not count as named.
        """
        terms = self._terms(naming.text)
        named = []
        for passage, title in zip(passages, titles, strict=True):
            named.append(
                bool(title) and passage.title != naming.title and title <= terms
            )
        return np.array(named, dtype=bool)


def held_terms(snapshot: Snapshot, query: str, rows: Ints) -> tuple[Bools, Floats]:
    """Return which of the question's terms the passages contain, and how much each term counts.

    Args:
        rows: the numbers of the passages.

    Returns:
        Booleans (T, rows) for the T terms that occur in the corpus, and each term's share of the question (T,),
        which sum to 1 and grow with the term's rarity.
    """
    terms = _terms_found(snapshot, query)
    held = np.zeros((len(terms), len(rows)), dtype=bool)
    for number, having in enumerate(terms):
        held[number] = np.isin(rows, having)
    return held, _shares(snapshot, terms)


def asked_shares(snapshot: Snapshot, query: str) -> Floats:
    """Return, for each of the D passages of the corpus, the share of the question's terms that it contains: (D,), 0 to
    1.

    Rare terms have larger shares, by BM25's idf.
    """
    terms = _terms_found(snapshot, query)
    shares = _shares(snapshot, terms)
    count = len(snapshot.passages)
    held = np.zeros(count, dtype=np.float32)
    for number, having in enumerate(terms):
        held[having] += shares[number]
    return held


def _terms_found(snapshot: Snapshot, query: str) -> list[npt.NDArray[np.int32]]:
    """Return, for each of the question's terms, the rows that contain it; terms without a row are left out."""
    matrix = snapshot.bm25()
    terms = snapshot.tokeniser.terms(query)
    found = []
    for term in dict.fromkeys(terms):
        having = matrix.having(term)
        if len(having):
            found.append(having)
    return found


def _shares(snapshot: Snapshot, terms: Sequence[npt.NDArray[np.int32]]) -> Floats:
    """Return each term's share of the question, by its BM25 rarity; the shares add up to 1.

    Args:
        terms: the rows that contain each term.
    """
    size = snapshot.bm25().size
    rarity_of = BM25Parameters().rarity
    weights = [rarity_of(len(having), size) for having in terms]
    rarity = np.array(weights, dtype=np.float32)
    total = rarity.sum()
    if total:
        rarity /= total
    return rarity

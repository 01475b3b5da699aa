"""Mixes the rankings of several retrievers by a weighted mean of their scores.

Each ranking's scores are scaled to 0..1, and the mean is that of their square roots. The weights depend on how sure
the retrievers are for this query (`shares_by_doubt`). PageRank is sure if few passages stand out, and in doubt if
many score nearly the same; in doubt, the parts that read texts count more than those that search a graph. BM25 is
sure if few passages contain the question's rare terms, so that a name in a single passage is found as BM25 finds
it. The first passages of the mean are ranked again (completeness.py), after a reranker if there is one.

Any two retrievers can be mixed by name: "ppr+dense" is `Mix(["ppr", "dense"])`. Retrievers that search a graph know
how facts connect; dense search compares the meaning of texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import add
from typing import Any

import numpy as np

from ras_agent.config.registry import find
from ras_agent.contracts.records import Hit, Passage
from ras_agent.running.calling import name_of
from ras_agent.running.protocols import Retriever
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import Linking, Mentions
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.retrieve.completeness import FIRST, Completeness
from ras_agent.tools.retrieve.ranker import (
    ExplainedRetriever,
    Ranker,
    reasons_of,
)
from ras_agent.tools.retrieve.ranking import (
    Ranking,
    check_query,
    root_shares,
    top_k,
)
from ras_agent.tools.retrieve.registered import options_of, taken_by

DEPTH = 1000
"""The least number of rows of each ranking that count."""
_TRIFLE = np.float32(1e-6)
_LEAST_DOUBT = 0.02


def mixed(
    rankings: Sequence[Ranking], weights: Sequence[float], size: int, k: int
) -> Ranking:
    """Combine rankings by the weighted mean of the square roots of their scores, scaled to 0..1, and return the `k`
    best rows.

    In each ranking the best row scores 1 and the last 0; if its scores are equal, all of them score 1. A row that
    is not in a ranking scores 0 there. Without the square roots, the scores of graph searches fall so fast that all
    but the first few would hardly count next to dense scores, however good they are (lab/graph-retrieval.md).

    Args:
        weights: one for each ranking, summing to 1.
        size: the number of rows in the corpus.
    """
    scores = np.zeros(size, dtype=np.float32)
    for ranking, weight in zip(rankings, weights, strict=True):
        if not len(ranking.rows):
            continue
        share = root_shares(ranking.scores)
        # a row in the ranking scores slightly more than one that is not, so that it stays a hit
        scores[ranking.rows] += np.float32(weight) * (share + _TRIFLE)
    return top_k(scores, k)


def doubt_of(ranking: Ranking) -> float:
    """Return how unsure a search is, from 0 to 1: the square root of its third best score, with scores scaled to 0..1.

    The third counts because a question of two hops needs two passages that stand out. The doubt is 1 for a search
    without hits, otherwise from 0.02 to 0.98, so that no part of a mix loses all its weight.
    """
    if not len(ranking.rows):
        return 1.0
    above = ranking.scores - ranking.scores.min()
    if len(above) < 3:
        return _LEAST_DOUBT
    if not above[0]:  # all scores are equal
        return 1 - _LEAST_DOUBT
    third = float(np.sqrt(above[2] / above[0]))
    return min(max(third, _LEAST_DOUBT), 1 - _LEAST_DOUBT)


def shares_by_doubt(doubt: float, sure: Sequence[bool]) -> list[float]:
    """Return the weight of each part of a mix, given the doubt of one of them. The weights sum to 1.

    The parts to which the doubt applies share 1 - doubt equally, and the other parts share the doubt.

    Args:
        doubt: see `doubt_of`.
        sure: for each part, whether the doubt applies to it. If it applies to all parts or to no part, weights are
            equal.
    """
    doubted = sum(sure)
    others = len(sure) - doubted
    if not doubted or not others:
        return [1 / len(sure)] * len(sure)
    of_sure = (1 - doubt) / doubted
    of_others = doubt / others
    return [of_sure if one else of_others for one in sure]


def _walks(ranker: Ranker) -> bool:
    return getattr(ranker, "walks_graph", False)


def _teller_of(rankers: Sequence[Ranker]) -> int | None:
    """Return the index of the ranker whose doubt decides the weights; None if no ranker tells its doubt.

    It is the first one that walks a graph, else the first that tells its doubt.
    """
    first = None
    for at, ranker in enumerate(rankers):
        if not getattr(ranker, "tells_doubt", False):
            continue
        if _walks(ranker):
            return at
        if first is None:
            first = at
    return first


class MixedRetriever(ExplainedRetriever):
    """Ranks passages by the weighted mean of the scores of several rankers (see `mixed`)."""

    def __init__(
        self,
        rankers: Sequence[Ranker],
        weights: Sequence[float] | None = None,
        *,
        name: str = "",
        last: Completeness | None = None,
    ) -> None:
        """Take rankers and their weights. Raises ValueError for rankers of different passages, or invalid weights.

        Args:
            weights: one for each ranker, scaled to sum to 1; by default set by `shares_by_doubt` for each query.
                The doubt is that of PageRank, and applies to all rankers that search a graph; without PageRank it
                is that of BM25, and applies to BM25; without both, weights are equal.
            name: by default the rankers' names, joined by "+".
            last: ranks the first passages again; by default they are left as they are.
        """
        sizes = {len(ranker.passages) for ranker in rankers}
        if len(sizes) != 1:
            raise ValueError(
                "a mix needs rankers over the same passages: build them over one index"
            )
        if weights is not None:
            if len(weights) != len(rankers) or min(weights) < 0 or not sum(weights) > 0:
                raise ValueError(
                    f"a mix of {len(rankers)} rankers needs {len(rankers)} weights from 0 on, not all 0, "
                    f"got {list(weights)}"
                )
            weights = [weight / sum(weights) for weight in weights]
        if not name:
            name = "+".join(map(name_of, rankers))
        self.name = name
        self.passages = rankers[0].passages
        self._rankers: tuple[Ranker, ...] = tuple(rankers)
        self._weights = weights
        self._teller = _teller_of(rankers)
        self._sure = list(map(self._stands_with_teller, rankers))
        self._last = last

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows of the mix, best first. Raises ValueError for a blank query or k < 1."""
        if self._last is None:
            return self.rank_candidates(query, k)
        check_query(query, k)
        first = self.rank_candidates(query, max(k, FIRST))
        return self._last.rank(query, first, k)

    def rank_candidates(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows by the mean, before the first ones are ranked again."""
        check_query(query, k)
        depth = max(k, DEPTH)
        rankings = [ranker.rank(query, depth) for ranker in self._rankers]
        weights = self._weights or self._shares(rankings)
        return mixed(rankings, weights, len(self.passages), k)

    def completed(self, query: str, hits: Sequence[Hit], k: int) -> list[Hit]:
        """Return the `k` best of the hits that a reranker returned, reordered so that each adds to those before it."""
        if self._last is None:
            return super().completed(query, hits, k)
        return self._last.complete(query, hits, k)

    def _shares(self, rankings: Sequence[Ranking]) -> list[float]:
        if self._teller is None:
            return [1 / len(rankings)] * len(rankings)
        ranking = rankings[self._teller]
        teller = self._rankers[self._teller]
        doubt = doubt_of(ranking)
        if not _walks(teller):
            doubt **= 2  # scores of words fall slowly, so the root is undone
        return shares_by_doubt(doubt, self._sure)

    def _stands_with_teller(self, ranker: Ranker) -> bool:
        """Return whether a ranker loses weight with the doubt.

        The ranker that tells the doubt does; if that one walks a graph, all rankers that walk a graph do.
        """
        if self._teller is None:
            return False
        teller = self._rankers[self._teller]
        if ranker is teller:
            return True
        return _walks(teller) and _walks(ranker)

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the reasons for each passage: those of the first ranker, then those of the next."""
        reasons: list[tuple[str, ...]] = [()] * len(passage_ids)
        for ranker in self._rankers:
            more = reasons_of(ranker, query, passage_ids, self._paths)
            reasons = list(map(add, reasons, more))
        return reasons


class RankedHits:
    """Makes a ranker of any retriever, so that it can be mixed. Hits that are not in `passages` are ignored."""

    def __init__(
        self, retriever: Retriever, passages: Sequence[Passage], name: str
    ) -> None:
        self.passages = passages
        self.name = name
        self._rows = rows = {passage.id: row for row, passage in enumerate(passages)}

        def retrieve(query: str) -> list[Hit]:
            hits = retriever.retrieve(query, len(passages) or 1)
            return [hit for hit in hits if hit.passage.id in rows]

        self._hits = lru_cache(64)(retrieve)

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows of `passages`. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        hits = self._hits(query)[:k]
        rows = [self._rows[hit.passage.id] for hit in hits]
        scores = [hit.score for hit in hits]
        return Ranking(
            np.array(rows, dtype=np.int64), np.array(scores, dtype=np.float32)
        )

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the retriever's reasons for each passage; () for a passage that is not among its hits."""
        reasons = {hit.passage.id: hit.why for hit in self._hits(query)}
        return [reasons.get(passage, ()) for passage in passage_ids]


class Mix:
    """Builds the retriever "a+b+...", which mixes the rankings of the retrievers with these names (see `mixed`)."""

    def __init__(self, parts: Sequence[str], name: str = "") -> None:
        self.parts = tuple(parts)
        self.name = name or "+".join(parts)

    def _factories(self) -> Iterator[Callable[..., Retriever]]:
        for part in self.parts:
            yield find("retriever", part)

    @property
    def options(self) -> frozenset[str]:
        """Return the names of the options: `shares`, `rerank`, and every option that one of the parts takes."""
        options = {"shares", "rerank", *self.takes}
        for factory in self._factories():
            options.update(options_of(factory) or ())
        return frozenset(options)

    @property
    def takes(self) -> frozenset[str]:
        """Return the options in `OFFERED` that one of the parts takes; `linking` and `mentions` too if a part searches
        a graph.
        """
        taken = frozenset[str]().union(*map(taken_by, self._factories()))
        if "graph" in taken:
            return taken | {"linking", "mentions"}
        return taken

    def __call__(
        self,
        index: PassageIndex,
        *,
        shares: Sequence[float] | None = None,
        rerank: bool = True,
        graph: KGIndex | LinkedGraph | None = None,
        linking: Linking | None = None,
        mentions: Mentions | None = None,
        **options: Any,
    ) -> MixedRetriever:
        """Build the mix over `index`. Raises the errors of building the parts, and ValueError for invalid shares.

        Args:
            shares: the weight of each part, in the order of the names; by default see `MixedRetriever`.
            rerank: whether the first passages of the mean are ranked again by `Completeness`.
            graph, linking, mentions: for parts that search a knowledge graph. They share one graph; dense search
                also uses its cached query vectors, if its embedder is the index's.
            options: each option is passed to the parts that take it.
        """
        offered: dict[str, object] = {}
        if "graph" in self.takes:
            linked = LinkedGraph.of(index, graph, linking, mentions)
            offered = {"graph": linked, "queries": linked.queries}
        rankers: list[Ranker] = []
        for part, factory in zip(self.parts, self._factories(), strict=True):
            parameters = options_of(factory)
            given = {
                name: value
                for name, value in offered.items()
                if name in taken_by(factory)
            }
            for name, value in options.items():
                if parameters is None or name in parameters:
                    given[name] = value
            retriever: Any = factory(index, **given)
            if not hasattr(retriever, "rank"):
                retriever = RankedHits(retriever, index.snapshot.passages, part)
            rankers.append(retriever)
        last = Completeness(index) if rerank else None
        return MixedRetriever(rankers, shares, name=self.name, last=last)


hybrid = Mix(("bm25", "dense"), name="hybrid")
"""The retriever registered as "hybrid", which compares both the words and the meaning of texts."""

kg_mix = Mix(("gfm", "ppr", "dense"), name="kg-mix")
"""The retriever registered as "kg-mix", the best mix on HotpotQA's tuning half (lab/graph-retrieval.md)."""

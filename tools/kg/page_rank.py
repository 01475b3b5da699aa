"""Computes personalised PageRank: how often a random walk that restarts at given entities visits each entity."""

from __future__ import annotations

from math import ceil, log
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.errors import SettingsError, needs_extra
from ras_agent.tools.kg.index import KGIndex

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def walk_matrix(graph: KGIndex, *, equivalence: float = 1.0) -> csr_matrix:
    """Return the weights of the undirected graph, (N, N): 1 for each fact, the scaled cosine for an equivalence.

    Loops do not count. Raises MissingExtra without scipy.

    Args:
        equivalence: the factor of the cosines; 0 leaves equivalences out.
    """
    with needs_extra("PageRank", "graph"):
        from scipy.sparse import csr_matrix
    count = len(graph.entities)
    weights = np.ones(len(graph.edges), dtype=np.float32)
    weights[graph.facts.stop :] = equivalence * graph.similarities
    edges = graph.edges
    real = (edges[:, 0] != edges[:, 2]) & (weights > 0)
    heads = edges[real, 0]
    tails = edges[real, 2]
    weights = weights[real]
    ends = np.concatenate([heads, tails]), np.concatenate([tails, heads])
    # adds up repeated entries
    return csr_matrix(
        (np.tile(weights, 2), ends), shape=(count, count), dtype=np.float32
    )


class PageRank:
    """Computes random walks on one graph, whose transition probabilities are prepared once."""

    def __init__(
        self, weights: csr_matrix, *, damping: float = 0.5, tolerance: float = 1e-6
    ) -> None:
        """Prepare walks on `weights`. The precision of results is that of `weights`. Raises SettingsError for an
        invalid damping.

        Args:
            weights: a symmetric (N, N) matrix, as made by `walk_matrix`.
            damping: the probability that a walk continues; otherwise it starts again at a seed.
            tolerance: the iteration ends when the total change of the scores is smaller.
        """
        if not 0 <= damping <= 0.9999:
            raise SettingsError(
                f"damping must be from 0 to 0.9999, beyond which single precision cannot follow a walk, got {damping}"
            )
        self._dtype = weights.dtype
        self._damping = self._dtype.type(damping)
        self._tolerance = tolerance
        # the change is at most 2 at first, and each step multiplies it by the damping, so this number of steps is enough;
        # it also ends the iteration where rounding keeps the change above a small tolerance
        least = max(tolerance, 1e-9 if self._dtype == np.float32 else 1e-16)
        self._most = 3 + (ceil(log(least / 2) / log(damping)) if damping else 0)
        degree = np.asarray(weights.sum(axis=0), dtype=self._dtype).ravel()
        steps = weights.copy()  # steps[i, j]: the chance of going from j to i
        steps.data = steps.data / degree[steps.indices]
        self._steps = steps

    def scores(self, seeds: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the probability of each entity, (N,), summing to 1. Raises ValueError if no seed has a weight above
        0.

        A walk that reaches an entity without edges starts again at a seed.

        Args:
            seeds: (N,), the weights of the entities as starts, from 0 on.
        """
        total = float(seeds.sum())
        if not total > 0:
            raise ValueError("PageRank needs a seed, an entity with a weight above 0")
        start = (seeds / total).astype(self._dtype)
        scores = start
        for _ in range(self._most):
            reached = self._damping * (self._steps @ scores)
            after: npt.NDArray[Any] = reached + (1 - reached.sum()) * start
            if float(np.abs(after - scores).sum()) < self._tolerance:
                return after
            scores = after
        return scores

"""Finds pairs of vectors whose cosine reaches a threshold: among all pairs or, in clusters, among nearly all.

The vectors are rotated so that their first components hold most of their length. The product of those components
plus the product of the lengths of the rest is an upper bound of the cosine. For nearly all pairs this bound is
below the threshold, and the cosine itself is not computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.tools.kg.arrays import Vectors

# a block of products is 32 MB
ROWS = 512
COLUMNS = 16_384
_SHORT = 127  # components of a shortened vector, in addition to the length of the rest
_MANY = 2048  # number of rows from which shortening the vectors pays
_GATHERED = 8192  # how many pairs of vectors are copied at once
_PROBES = 24
_ROUNDS = 4  # of k-means
_SAMPLE = 32  # vectors per cluster
# Products of the same two vectors differ in the last bits from block to block. Rounded to multiples of this step,
# they are equal.
STEP = np.float32(2**-10)


class Cells(NamedTuple):
    """Holds directed pairs with their cosines: `columns[i]` is near `rows[i]`."""

    rows: Ints
    columns: Ints
    cosines: npt.NDArray[np.float32]

    @classmethod
    def none(cls) -> Self:
        """Return no pairs."""
        numbers = np.empty(0, np.int64)
        return cls(numbers, numbers, np.empty(0, np.float32))

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Self:
        """Return the pairs of all `parts`."""
        rows, columns, cosines = zip(*parts, strict=True)
        return cls(
            np.concatenate(rows), np.concatenate(columns), np.concatenate(cosines)
        )

    def at(self, places: Ints) -> Cells:
        """Return the pairs at these positions."""
        rows = self.rows[places]
        columns = self.columns[places]
        return Cells(rows, columns, self.cosines[places])

    def both_ways(self) -> Cells:
        """Return each pair in both directions."""
        back = Cells(self.columns, self.rows, self.cosines)
        return Cells.joined([self, back])


class _Comparison(NamedTuple):
    """Compares entities by their unit vectors (N, d), after sorting out pairs by `bounds` (N, m), whose products are
    upper bounds of the cosines.

    Only entities with the same class in `classes` (N,), 0 or above, are paired.
    """

    vectors: Vectors
    bounds: Vectors
    classes: Ints
    threshold: np.float32

    @classmethod
    def of(
        cls, vectors: Vectors, classes: Ints, threshold: float, rows: int
    ) -> _Comparison:
        """Prepare the comparison of `rows` of the vectors with the others; bounds are computed if there are enough
        rows."""
        bounds = vectors
        if rows >= _MANY and vectors.shape[1] > 2 * _SHORT:
            bounds = _bounds_of(vectors)
        return cls(vectors, bounds, classes, np.float32(threshold))

    def block(self, numbers: Ints) -> Floats:
        # converted block by block, since all together would be large
        return np.asarray(self.bounds[numbers], dtype=np.float32)

    def cells(self, rows: Ints, columns: Ints, block: Floats) -> Cells:
        """Return the pairs of one of `rows` and one of `columns` whose cosine, rounded to STEP, reaches the threshold.

        Args:
            block: the rows of `bounds` for `columns`.
        """
        bounds = self.block(rows) @ block.T
        candidates = np.flatnonzero(bounds >= self.threshold - STEP)
        row, column = np.divmod(candidates, max(len(columns), 1))
        rows = rows[row]
        columns = columns[column]
        classes = self.classes[rows]
        is_same = (classes == self.classes[columns]) & (classes >= 0)
        rows = rows[is_same]
        columns = columns[is_same]
        cosines = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), _GATHERED):
            some = slice(start, start + _GATHERED)
            left = np.asarray(self.vectors[rows[some]], np.float32)
            right = np.asarray(self.vectors[columns[some]], np.float32)
            cosines[some] = np.einsum("ij,ij->i", left, right)
        cosines = np.minimum(np.round(cosines / STEP) * STEP, 1).astype(np.float32)
        least = np.round(self.threshold / STEP) * STEP
        cells = Cells(rows, columns, cosines)
        return cells.at(np.flatnonzero(cosines >= least))


def all_pairs(
    vectors: Vectors, classes: Ints, fresh: Ints, threshold: float
) -> Iterator[Cells]:
    """Yield every pair whose cosine reaches `threshold` and with at least one end in `fresh`, each pair once.

    Args:
        vectors: (N, d), of unit length.
        classes: (N,); only entities of the same class, 0 or above, are paired.
        fresh: numbers of entities, ascending.
    """
    comparison = _Comparison.of(vectors, classes, threshold, len(fresh))
    is_fresh = np.zeros(len(vectors), dtype=np.bool_)
    is_fresh[fresh] = True
    for members in _comparable(classes):
        some = members[is_fresh[members]]
        for left in range(0, len(members), COLUMNS):
            columns = members[left : left + COLUMNS]
            block = comparison.block(columns)
            for start in range(0, len(some), ROWS):
                rows = some[start : start + ROWS]
                # if both ends are fresh, the lower number is the row
                first = 0
                if is_fresh[columns].all():
                    first = int(np.searchsorted(columns, rows[0], "right"))
                cells = comparison.cells(rows, columns[first:], block[first:])
                ascends = cells.columns > cells.rows
                is_once = ascends | ~is_fresh[cells.columns]
                yield cells.at(np.flatnonzero(is_once))


def clustered_pairs(
    vectors: Vectors, classes: Ints, threshold: float, probes: int = _PROBES
) -> Iterator[Cells]:
    """Yield nearly all pairs whose cosine reaches `threshold`, some of them twice.

    Each entity is compared with those in the `probes` clusters nearest to it. The number of clusters grows with the
    square root of the number of entities N, so the time grows with N^1.5.

    Args:
        vectors, classes: see `all_pairs`.
    """
    comparison = _Comparison.of(vectors, classes, threshold, len(vectors))
    entities = np.flatnonzero(classes >= 0)
    if not len(entities):
        return
    centres = _centres(vectors, entities)
    home = np.empty(len(entities), np.int64)
    visits = min(probes, len(centres))
    near = np.empty((len(entities), visits), np.int64)
    for start in range(0, len(entities), ROWS):
        some = slice(start, start + ROWS)
        products = np.asarray(vectors[entities[some]], np.float32) @ centres.T
        home[some] = products.argmax(axis=1)
        ascending = np.argpartition(products, -visits, axis=1)
        near[some] = ascending[:, -visits:]
    members = _by_cluster(home, len(centres))
    visitors = _by_cluster(near.ravel(), len(centres))
    for at_home, visiting in zip(members, visitors, strict=True):
        columns = entities[at_home]
        rows = entities[visiting // visits]
        block = comparison.block(columns)
        for start in range(0, len(rows), ROWS):
            some_rows = rows[start : start + ROWS]
            cells = comparison.cells(some_rows, columns, block)
            yield cells.at(np.flatnonzero(cells.rows != cells.columns))


def _comparable(classes: Ints) -> list[Ints]:
    """Return the entities of the largest class, and the entities of all other classes with more than one; both
    ascend."""
    values, of, counts = np.unique(classes, return_inverse=True, return_counts=True)
    counts[values < 0] = 0
    largest = counts.argmax() if len(counts) else 0
    is_largest = of == largest
    is_other = ~is_largest & (counts[of] > 1)
    return [np.flatnonzero(is_largest), np.flatnonzero(is_other)]


def _bounds_of(vectors: Vectors) -> Floats:
    """Return vectors (N, _SHORT + 1) whose products are upper bounds of the products of `vectors` (N, d).

    By the Cauchy-Schwarz inequality this holds for any orthogonal basis. The axes along which the vectors are longest
    give the tightest bounds.
    """
    step = max(len(vectors) // COLUMNS, 1)
    sample = np.asarray(vectors[::step], dtype=np.float32)
    ascending = np.linalg.eigh(sample.T @ sample).eigenvectors
    axes = ascending[:, : -_SHORT - 1 : -1]
    bounds = np.empty((len(vectors), _SHORT + 1), dtype=np.float32)
    for start in range(0, len(vectors), COLUMNS):
        some = slice(start, start + COLUMNS)
        whole = np.asarray(vectors[some], dtype=np.float32)
        short = whole @ axes
        bounds[some, :-1] = short
        squares = np.einsum("ij,ij->i", whole, whole)
        squares -= np.einsum("ij,ij->i", short, short)
        bounds[some, -1] = np.sqrt(np.maximum(squares, 0))
    return bounds


def _centres(vectors: Vectors, entities: Ints) -> Floats:
    """Return the centres of clusters of entities, of unit length, from a few rounds of k-means over a sample."""
    count = max(int(2 * len(entities) ** 0.5), 1)
    step = max(len(entities) // (_SAMPLE * count), 1)
    sample = np.asarray(vectors[entities[::step]], dtype=np.float32)
    step = max(len(sample) // count, 1)
    centres = sample[::step][:count].copy()
    nearest = np.empty(len(sample), np.int64)
    for _ in range(_ROUNDS):
        for start in range(0, len(sample), ROWS):
            some = slice(start, start + ROWS)
            products = sample[some] @ centres.T
            nearest[some] = products.argmax(axis=1)
        order = np.argsort(nearest, kind="stable")
        used, starts = np.unique(nearest[order], return_index=True)
        sums = np.add.reduceat(sample[order], starts, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres[used] = np.divide(sums, lengths, out=centres[used], where=lengths > 0)
    return centres


def _by_cluster(cluster_of: Ints, count: int) -> list[Ints]:
    """Return for each of `count` clusters the positions at which it occurs in `cluster_of`."""
    order = np.argsort(cluster_of, kind="stable")
    ends = np.searchsorted(cluster_of[order], np.arange(1, count))
    return np.split(order, ends)

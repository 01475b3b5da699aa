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

ROWS, COLUMNS = 512, 16_384  # a block of products is 32 MB
_SHORT = 127  # components of a shortened vector, in addition to the length of the rest
_MANY = 2048  # number of rows from which shortening the vectors pays
_GATHERED = 8192  # how many pairs of vectors are copied at once
_PROBES = 24
_ROUNDS, _SAMPLE = 4, 32  # rounds of k-means, and vectors sampled per cluster
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
        return cls(
            np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
        )

    @classmethod
    def joined(cls, parts: Sequence[Cells]) -> Self:
        """Return the pairs of all `parts`."""
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.cosines for part in parts]),
        )

    def at(self, places: Ints) -> Cells:
        """Return the pairs at these positions."""
        return Cells(self.rows[places], self.columns[places], self.cosines[places])

    def both_ways(self) -> Cells:
        """Return each pair in both directions."""
        return Cells.joined([self, Cells(self.columns, self.rows, self.cosines)])


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
        worth_it = rows >= _MANY and vectors.shape[1] > 2 * _SHORT
        return cls(
            vectors,
            _bounds_of(vectors) if worth_it else vectors,
            classes,
            np.float32(threshold),
        )

    def block(self, numbers: Ints) -> Floats:
        # converted block by block, since all together would be large
        return np.asarray(self.bounds[numbers], dtype=np.float32)

    def cells(self, rows: Ints, columns: Ints, block: Floats) -> Cells:
        """Return the pairs of one of `rows` and one of `columns` whose cosine, rounded to STEP, reaches the threshold.

        Args:
            block: the rows of `bounds` for `columns`.
        """
        row, column = np.divmod(
            np.flatnonzero(self.block(rows) @ block.T >= self.threshold - STEP),
            max(len(columns), 1),
        )
        rows = rows[row]
        columns = columns[column]
        same = np.flatnonzero(
            (self.classes[rows] == self.classes[columns]) & (self.classes[rows] >= 0)
        )
        rows = rows[same]
        columns = columns[same]
        cosines = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), _GATHERED):
            some = slice(start, start + _GATHERED)
            left, right = (
                np.asarray(self.vectors[ends[some]], np.float32)
                for ends in (rows, columns)
            )
            cosines[some] = np.einsum("ij,ij->i", left, right)
        cosines = np.minimum(np.round(cosines / STEP) * STEP, 1).astype(np.float32)
        return Cells(rows, columns, cosines).at(
            np.flatnonzero(cosines >= np.round(self.threshold / STEP) * STEP)
        )


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
                first = (
                    np.searchsorted(columns, rows[0], "right")
                    if is_fresh[columns].all()
                    else 0
                )
                cells = comparison.cells(rows, columns[first:], block[first:])
                yield cells.at(
                    np.flatnonzero(
                        ~is_fresh[cells.columns] | (cells.columns > cells.rows)
                    )
                )


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
    near = np.empty((len(entities), min(probes, len(centres))), np.int64)
    for start in range(0, len(entities), ROWS):
        some = slice(start, start + ROWS)
        products = np.asarray(vectors[entities[some]], np.float32) @ centres.T
        home[some] = products.argmax(axis=1)
        near[some] = np.argpartition(products, -near.shape[1], axis=1)[
            :, -near.shape[1] :
        ]
    members = _by_cluster(home, len(centres))
    visitors = _by_cluster(near.ravel(), len(centres))
    for at_home, visiting in zip(members, visitors, strict=True):
        columns = entities[at_home]
        visiting = visiting // near.shape[1]
        block = comparison.block(columns)
        for start in range(0, len(visiting), ROWS):
            cells = comparison.cells(
                entities[visiting[start : start + ROWS]], columns, block
            )
            yield cells.at(np.flatnonzero(cells.rows != cells.columns))


def _comparable(classes: Ints) -> list[Ints]:
    """Return the entities of the largest class, and the entities of all other classes with more than one; both
    ascend."""
    values, of, counts = np.unique(classes, return_inverse=True, return_counts=True)
    counts[values < 0] = 0
    largest = counts.argmax() if len(counts) else 0
    return [
        np.flatnonzero(of == largest),
        np.flatnonzero((of != largest) & (counts[of] > 1)),
    ]


def _bounds_of(vectors: Vectors) -> Floats:
    """Return vectors (N, _SHORT + 1) whose products are upper bounds of the products of `vectors` (N, d).

    By the Cauchy-Schwarz inequality this holds for any orthogonal basis. The axes along which the vectors are longest
    give the tightest bounds.
    """
    sample = np.asarray(vectors[:: max(len(vectors) // COLUMNS, 1)], dtype=np.float32)
    axes = np.linalg.eigh(sample.T @ sample)[1][:, : -_SHORT - 1 : -1]
    bounds = np.empty((len(vectors), _SHORT + 1), dtype=np.float32)
    for start in range(0, len(vectors), COLUMNS):
        some = slice(start, start + COLUMNS)
        whole = np.asarray(vectors[some], dtype=np.float32)
        short = whole @ axes
        bounds[some, :-1] = short
        left = np.einsum("ij,ij->i", whole, whole) - np.einsum("ij,ij->i", short, short)
        bounds[some, -1] = np.sqrt(np.maximum(left, 0))
    return bounds


def _centres(vectors: Vectors, entities: Ints) -> Floats:
    """Return the centres of clusters of entities, of unit length, from a few rounds of k-means over a sample."""
    count = max(int(2 * len(entities) ** 0.5), 1)
    sample = np.asarray(
        vectors[entities[:: max(len(entities) // (_SAMPLE * count), 1)]],
        dtype=np.float32,
    )
    centres = sample[:: max(len(sample) // count, 1)][:count].copy()
    for _ in range(_ROUNDS):
        nearest = np.concatenate(
            [
                (sample[start : start + ROWS] @ centres.T).argmax(axis=1)
                for start in range(0, len(sample), ROWS)
            ]
        )
        order = np.argsort(nearest, kind="stable")
        used, starts = np.unique(nearest[order], return_index=True)
        sums = np.add.reduceat(sample[order], starts, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres[used] = np.divide(sums, lengths, out=centres[used], where=lengths > 0)
    return centres


def _by_cluster(cluster_of: Ints, count: int) -> list[Ints]:
    """Return for each of `count` clusters the positions at which it occurs in `cluster_of`."""
    order = np.argsort(cluster_of, kind="stable")
    return np.split(order, np.searchsorted(cluster_of[order], np.arange(1, count)))

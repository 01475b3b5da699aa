"""Layout of a graph of boxes: stress majorisation, then boxes pushed apart, then components packed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_GAP = np.array([18.0, 10.0])  # least room between boxes
_LINK = 16.0  # room between linked boxes
_ROOM = 2.4  # added to the length of a link for each link of its hub, so that neighbours have room around it
_ASPECT = 1.3  # width by height of the whole


def box_centres(sizes: Sequence[tuple[float, float]], links: Sequence[tuple[int, int]]) -> Array:
    """Return the centres of boxes joined by links: shape (len(sizes), 2), float64, in the unit of the sizes.

    sizes: (width, height) of each box. links: pairs of indexes. Boxes do not overlap, and linked boxes are close. The
        whole is about 1.3 times as wide as high and starts at (0, 0). The same input gives the same output. The method
        is stress majorisation (Gansner, Koren and North, 2004).
    """
    boxes = np.asarray(sizes, dtype=np.float64).reshape(-1, 2)
    # most boxes are wider than high, so distances are computed in a plane whose x axis is shortened by that ratio
    stretch = float(np.clip(np.median(boxes[:, 0] / boxes[:, 1]), 1.2, 1.9)) if len(boxes) else 1.0
    lengths = _lengths(boxes / (stretch, 1.0), links)  # (n, n), infinite between components
    centres = np.zeros_like(boxes)
    parts = []
    unseen = np.ones(len(boxes), dtype=bool)
    for index in range(len(boxes)):
        if unseen[index]:
            part = np.flatnonzero(np.isfinite(lengths[index]))
            unseen[part] = False
            flat = _stress_layout(lengths[np.ix_(part, part)])
            centres[part] = _push_apart(_turn(flat, stretch), boxes[part], stretch)
            parts.append(part)
    _pack(centres, boxes, parts)
    return centres


def _lengths(boxes: Array, links: Sequence[tuple[int, int]]) -> Array:
    """Return the lengths (n, n) of all shortest paths, by Floyd and Warshall: O(n³), 0.1 s for 500 boxes."""
    count = len(boxes)
    source, target = np.asarray(links, dtype=np.intp).reshape(-1, 2).T
    degree = np.bincount(np.concatenate([source, target]), minlength=count)
    reach = boxes.mean(axis=1) / 2
    direct = reach[source] + reach[target] + _LINK + _ROOM * np.maximum(degree[source], degree[target])
    lengths = np.full((count, count), np.inf)
    lengths[source, target] = lengths[target, source] = direct
    np.fill_diagonal(lengths, 0.0)
    for via in range(count):
        np.minimum(lengths, lengths[:, via, None] + lengths[None, via], out=lengths)
    return lengths


def _stress_layout(lengths: Array, rounds: int = 80) -> Array:
    """Return points (n, 2) whose distances approximate `lengths` (n, n)."""
    count = len(lengths)
    if count == 1:
        return np.zeros((1, 2))
    # start: classical scaling, plus a jitter that separates points of equal distances
    centred = -0.5 * (lengths**2 - (lengths**2).mean(0) - (lengths**2).mean(1)[:, None] + (lengths**2).mean())
    values, vectors = np.linalg.eigh(centred)  # ascending
    points: Array = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0.0))
    points += np.random.default_rng(0).normal(scale=1.0, size=points.shape)
    with np.errstate(divide="ignore"):
        weights = np.where(lengths > 0, lengths**-2.0, 0.0)
    laplacian = np.diag(weights.sum(1)) - weights
    inverse = np.linalg.inv(laplacian + 1 / count) - 1 / count
    for _ in range(rounds):
        distances = np.hypot(*(np.subtract.outer(axis, axis) for axis in points.T))
        pull = weights * lengths / np.maximum(distances, 1e-9)
        points = inverse @ (pull.sum(1)[:, None] * points - pull @ points)
    return points


def _turn(points: Array, stretch: float) -> Array:
    """Turn `points` by the best of 24 angles and stretch them along x.

    The best angle makes few points lie flat, and many points fill a frame of the wanted shape.
    """

    def turned(angle: float) -> Array:
        sine, cosine = np.sin(angle), np.cos(angle)
        flat: Array = points @ np.array([[cosine, sine], [-sine, cosine]]) * (stretch, 1.0)
        return flat

    fit = _frame if len(points) > 6 else lambda flat: float(np.ptp(flat[:, 1]))
    return min((turned(angle) for angle in np.linspace(0, np.pi, 24, endpoint=False)), key=fit)


def _frame(points: Array) -> float:
    """Return the height of the smallest frame of the wanted shape around `points`."""
    width, height = np.ptp(points, axis=0)
    return float(max(width / _ASPECT, height))


def _push_apart(centres: Array, boxes: Array, stretch: float, rounds: int = 60) -> Array:
    """Push overlapping boxes apart along the axis where they overlap less, until none do or `rounds` are over."""
    centres = centres.copy()
    for _ in range(rounds):
        first, second = _near(centres, boxes)
        reach = (boxes[first] + boxes[second]) / 2 + _GAP  # (pairs, 2)
        if not _overlap(centres[second] - centres[first], reach)[1].any():
            break
        for _ in range(10):  # among these few pairs only, which is much cheaper than searching all pairs each time
            between = centres[second] - centres[first]
            overlap, hit = _overlap(between, reach)
            along_x = overlap[:, 0] < overlap[:, 1] * stretch
            push = np.where(np.stack([along_x, ~along_x], axis=1), overlap, 0.0) * np.where(between < 0, -0.4, 0.4)
            push[~hit] = 0.0
            np.add.at(centres, second, push)
            np.add.at(centres, first, -push)
    return centres


def _overlap(between: Array, reach: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return by how much boxes overlap along x and y, (pairs, 2), and whether they do, (pairs,)."""
    overlap = reach - np.abs(between)
    return overlap, (overlap[:, 0] > 0.1) & (overlap[:, 1] > 0.1)


def _near(centres: Array, boxes: Array, margin: float = 40.0) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the pairs of boxes that overlap or are close to it."""
    near = np.ones((len(boxes), len(boxes)), dtype=bool)
    for axis in (0, 1):
        between = np.abs(np.subtract.outer(centres[:, axis], centres[:, axis]))
        near &= between < np.add.outer(boxes[:, axis], boxes[:, axis]) / 2 + _GAP[axis] + margin
    first, second = np.nonzero(np.triu(near, k=1))
    return first, second


def _pack(centres: Array, boxes: Array, parts: Sequence[npt.NDArray[np.intp]]) -> None:
    """Move the components into rows, the highest first; the length of the rows is the one that fills a frame best."""
    corners = [(centres[part] - boxes[part] / 2).min(0) for part in parts]
    extents = [(centres[part] + boxes[part] / 2).max(0) - corner for part, corner in zip(parts, corners, strict=True)]
    extents = [extent + 3 * _GAP for extent in extents]
    order = sorted(range(len(parts)), key=lambda index: (-extents[index][1], index))
    ordered = [extents[index] for index in order]
    least, most = max((extent[0] for extent in extents), default=0.0), sum(extent[0] for extent in extents)

    def frame(spots: Sequence[Array]) -> float:
        return _frame(np.array([(0.0, 0.0), *(spot + extent for spot, extent in zip(spots, ordered, strict=True))]))

    spots = min((_rows(ordered, width) for width in np.linspace(least, most, 40)), key=frame)
    for spot, index in zip(spots, order, strict=True):
        centres[parts[index]] += spot - corners[index]


def _rows(extents: Sequence[Array], width: float) -> list[Array]:
    """Return the upper left corners of boxes in rows no longer than `width`."""
    spots = []
    x = y = height = 0.0
    for extent in extents:
        if x and x + extent[0] > width + 1e-6:
            x, y, height = 0.0, y + height, 0.0
        spots.append(np.array([x, y]))
        x, height = x + extent[0], max(height, extent[1])
    return spots

"""Computes with positions on a page of a PDF: its matrices and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Matrix = tuple[float, float, float, float, float, float]
Box = tuple[float, float, float, float]

SAME: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def box_of(page: Any) -> Box:
    """Return the visible part of a page."""
    box = page.cropbox
    left = float(box.left)
    right = float(box.right)
    return (left, float(box.bottom), right, float(box.top))


def holds(box: Box, x: float, y: float) -> bool:
    """Return whether a point is in a box."""
    left, low, right, high = box
    return left <= x <= right and low <= y <= high


def times(first: Matrix, second: Matrix) -> Matrix:
    """Return the matrix that applies `first`, then `second`."""
    a, b, c, d, e, f = first
    across = _turned(second, a, b)
    up = _turned(second, c, d)
    origin = place_of(second, e, f)
    return (*across, *up, *origin)


def place_of(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    """Return the point to which a matrix moves a point."""
    across, up = _turned(matrix, x, y)
    right, above = matrix[4:]
    return (across + right, up + above)


def _turned(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    """Return a vector as a matrix transforms it, without the shift of the origin."""
    a, b, c, d, _, _ = matrix
    across = a * x + c * y
    up = b * x + d * y
    return (across, up)


def numbers(operands: Sequence[Any]) -> list[float]:
    """Return the numbers among an operation's operands."""
    return [float(value) for value in operands if isinstance(value, int | float)]


def matrix_of(operands: Sequence[Any]) -> Matrix:
    """Return the matrix in an operation's operands; the identity if they contain no matrix."""
    values = numbers(operands)[:6]
    if len(values) != 6:
        return SAME
    a, b, c, d, e, f = values
    return (a, b, c, d, e, f)

"""Sums of very unequal length in pieces of bounded length, in an order that never changes.

An entity hears one message or fifty thousand. Cut into pieces of at most `longest`, all pieces of a level are of use to
a processor with thousands of threads at once; where an entity's messages made several pieces, the next level adds up
their sums in the same way. Nothing is added to the same number by two pieces, so the result is the same every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.arrays import Ints

if TYPE_CHECKING:
    from torch import Tensor, device

__all__ = ["Level", "Listeners", "Pieces", "Plan", "plan"]


@dataclass(frozen=True, slots=True)
class Pieces:
    """One level, longest piece first: piece p adds up begin[p] to end[p] and writes row target[p]; all (P,).

    At the first level begin and end count messages, at later ones rows that the level before has written.
    """

    begin: Ints
    end: Ints
    target: Ints

    @property
    def lasting(self) -> list[int]:
        """How many pieces have more than 0, 1, 2, ... terms: the first so many."""
        longest = int((self.end - self.begin).max(initial=0))
        return [int(np.count_nonzero(self.end - self.begin > place)) for place in range(longest)]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the entities low to high hear: `rows` rows are written, the first high - low of which are theirs."""

    low: int
    high: int
    rows: int
    levels: tuple[Pieces, ...]


def plan(indptr: Ints, low: int, high: int, longest: int) -> Plan:
    """How to add up the messages of the entities low to high of a graph, in pieces of at most `longest`, 2 or more."""
    begin, lengths = indptr[low:high], np.diff(indptr[low : high + 1])
    owner, free = np.arange(high - low), high - low
    levels = []
    while True:
        parts = np.maximum(1, -(-lengths // longest))  # who hears nothing gets a piece of nothing, which writes 0
        of = np.repeat(np.arange(len(owner)), parts)
        first = begin[of] + longest * (np.arange(len(of)) - np.repeat(np.cumsum(parts) - parts, parts))
        last = np.minimum(first + longest, (begin + lengths)[of])
        target, several = owner[of], parts > 1
        target[several[of]] = free + np.arange(np.count_nonzero(several[of]))
        order = np.argsort(first - last, kind="stable")
        levels.append(Pieces(first[order], last[order], target[order]))
        if not several.any():
            return Plan(low, high, free, tuple(levels))
        lengths, owner = parts[several], owner[several]
        begin = free + np.cumsum(lengths) - lengths
        free += int(lengths.sum())


@dataclass(frozen=True, slots=True)
class Level:
    """Pieces on a device: begin, end, target (P,), int32; see Pieces."""

    begin: Tensor
    end: Tensor
    target: Tensor
    lasting: tuple[int, ...]

    @classmethod
    def of(cls, pieces: Pieces, on: device) -> Level:
        """The level of `pieces`."""
        import torch

        arrays = (pieces.begin, pieces.end, pieces.target)
        begin, end, target = (torch.from_numpy(array).to(on, torch.int32) for array in arrays)
        return cls(begin, end, target, tuple(pieces.lasting))


@dataclass(frozen=True, slots=True)
class Listeners:
    """The entities low to high, and how what they hear is added up; see Plan."""

    low: int
    high: int
    rows: int
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, given: Plan, on: device) -> Listeners:
        """The plan on a device."""
        return cls(given.low, given.high, given.rows, tuple(Level.of(level, on) for level in given.levels))

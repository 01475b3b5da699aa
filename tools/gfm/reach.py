"""Finds the entities that a question can change: exactly at the first layer, and by a bound at every layer.

A message is at most as long as its source's state times the largest number of the relation's state, and an update
changes by at most `update_gain` times the length of a small change of the aggregated messages. So one number for
each message tells, before any state is computed, which entities cannot change by more than a negligible length.
Behind a hub with thousands of messages, that is nearly all of them. After the last layer only scores are read: an
entity whose probability cannot move by more than the tolerance keeps its background score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.contracts.arrays import Doubles, Floats, Ints
from ras_agent.tools.gfm.cache import GraphCache, LayerWeights
from ras_agent.tools.gfm.graph import OutgoingMessages, row_entries

if TYPE_CHECKING:
    from torch import Tensor

BEST = 50
"""The number of best entities whose order is exact whatever the tolerance; document rankers use 20 or 50."""


@dataclass(frozen=True, slots=True)
class LayerBound:
    """Holds bounds of how much changes of states grow in one layer."""

    message_gain: Floats
    """(R,), the largest number of each relation's state: a state of length x sends a message of length at most
    message_gain * x.
    """
    update_gain: Floats
    """(N,), or (1,) if all entities are alike: the largest change of an entity's next state, for each unit of length
    of a small change of its aggregated messages.
    """
    state_gain: Floats
    """The same for a small change of the entity's own state."""


def layer_bounds(cache: GraphCache, layers: Sequence[LayerWeights]) -> list[LayerBound]:
    """Return the bounds of each layer with a cached background."""
    import torch

    bounds = []
    for relation_states, deviation, layer in zip(
        cache.relation_states, cache.deviation, layers, strict=False
    ):
        gain = relation_states.largest()
        # the norm divides by the deviation of its input; subtracting the mean makes no change longer
        halves = torch.stack((layer.total_weight, layer.state_weight)).float()
        of_total, of_state = spectral_norms(halves) * layer.norm_weight.abs().max()
        # the state itself is added to the update
        bounds.append(
            LayerBound(
                gain.numpy(),
                (of_total / deviation).numpy(),
                (1 + of_state / deviation).numpy(),
            )
        )
    return bounds


def spectral_norms(matrices: Tensor) -> Tensor:
    """Return the largest singular value of each matrix (..., n, m), without computing the others, in half of the time."""
    import torch

    squares: Tensor = torch.linalg.eigvalsh(matrices.mT @ matrices)[..., -1]
    return squares.clamp_(min=0).sqrt_()


def possible_changes(
    outgoing: OutgoingMessages, sources: Ints, lengths: Tensor, bound: LayerBound
) -> Doubles:
    """Return upper bounds of the length by which messages of changed states can change each entity's next state, (N,).

    If changes are large compared to the background, an entity may change by twice as much, since layer norm is not
    linear.

    Args:
        sources: (T,), the entities with changed states.
        lengths: (T,), the lengths of their changes.
    """
    messages, source = row_entries(outgoing.indptr, sources)
    message_lengths = (
        lengths.numpy()[source] * bound.message_gain[outgoing.relation[messages]]
    )
    sums: Doubles = np.bincount(
        outgoing.target[messages], message_lengths, len(outgoing.indptr) - 1
    ).astype(np.float64)
    possible: Doubles = sums * bound.update_gain.astype(np.float64)
    possible[sources] += lengths.numpy() * (
        bound.state_gain[sources] if len(bound.state_gain) > 1 else bound.state_gain
    )
    return possible


def reached_entities(
    possible: Doubles, sources: Ints, always: Ints, negligible: float
) -> Ints:
    """Return, ascending, `sources`, `always`, and all entities whose `possible` change (N,) exceeds `negligible`:
    (H,).

    Args:
        sources: (T,), the entities with changed states.
        always: the question's own entities; their initial states enter every sum of messages.
    """
    reached = ~(possible <= negligible)  # true also for NaN
    reached[sources] = reached[always] = True
    return np.flatnonzero(reached)


def worth_scoring(
    reached: Ints, always: Ints, background: Floats, possible: Doubles, tolerance: float
) -> Ints:
    """Return, ascending, the question's own entities, and those of `reached` that have to be scored.

    These are entities whose probability may move by more than `tolerance`, or that may get among the BEST.

    Args:
        reached: (H,), the entities whose last state is computed.
        always: the question's own entities.
        background: (N,), all logits as if the question had changed no state.
        possible: (H,), how far each logit may move.
    """
    logits = background[reached]
    # the sigmoid is steepest at 0, so a move towards 0 changes it most
    moved = _probability(possible - np.abs(logits)) - _probability(-np.abs(logits))
    last = -np.inf
    if len(background) > BEST:
        last = float(np.partition(background, -BEST)[-BEST])
    worth = ~((moved <= tolerance) & (logits + possible < last))
    worth[np.searchsorted(reached, always)] = True
    worthwhile: Ints = reached[worth]
    return worthwhile


def _probability(logits: Floats | Doubles) -> Doubles:
    with np.errstate(over="ignore"):
        probabilities: Doubles = 1 / (1 + np.exp(-logits.astype(np.float64)))
    return probabilities

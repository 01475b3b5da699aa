"""Who hears anything at the first layer: those that a question's entities speak to, and these entities themselves.

All others stay alike, so the first layer of a device's pass need not be computed for everyone. This much the host finds
out at once, unlike what is reached at later layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ras_agent.arrays import Ints
from ras_agent.tools.gfm.graph import Outgoing, entries

__all__ = ["FirstMessages", "first_messages"]


@dataclass(frozen=True, slots=True)
class FirstMessages:
    """What is said at the first layer of a batch of questions, compressed rows by hearer.

    rows: (H,), ascending, entity * B + question of those that hear something or are a question's own. indptr: (H + 1,).
    speaker: which of the given starts speaks; relation: both (messages,).
    """

    rows: Ints
    indptr: Ints
    speaker: Ints
    relation: Ints


def first_messages(outgoing: Outgoing, starts: Ints, batch: int) -> FirstMessages:
    """The first messages of starts (K,), ascending: entity * batch + question."""
    entity, question = np.divmod(starts, batch)
    message, speaker = entries(outgoing.indptr, entity)
    hearer = outgoing.hearer[message] * batch + question[speaker]
    order = np.argsort(hearer, kind="stable")
    rows = np.union1d(hearer, starts)
    indptr = np.searchsorted(hearer[order], np.append(rows, np.iinfo(np.int64).max))
    return FirstMessages(rows, indptr, speaker[order], outgoing.relation[message][order])

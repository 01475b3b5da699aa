"""Which entities a question reaches at the next layer, and over which messages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ras_agent.tools.encode.gfm.graph import GFMGraph

__all__ = ["Outgoing", "Reached", "reach"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A graph's messages once more, by the one that speaks: entity e sends indptr[e] to indptr[e + 1]."""

    indptr: Ints
    hearer: Ints
    relation: Ints

    @classmethod
    def of(cls, graph: GFMGraph) -> Outgoing:
        """The messages of `graph`."""
        order = np.argsort(graph.source, kind="stable")
        indptr = np.zeros(graph.entities + 1, dtype=np.int64)
        np.cumsum(np.bincount(graph.source, minlength=graph.entities), out=indptr[1:])
        return cls(indptr, graph.hearer[order], graph.relation[order])


@dataclass(frozen=True, slots=True)
class Reached:
    """keys: (H,), ascending, who is reached: those that spoke and those that heard them.
    indptr (H + 1,), source and relation: what each of them heard; `source` counts among those that spoke.
    spoke: (T,), where those that spoke stand in `keys`."""

    keys: Ints
    indptr: Ints
    source: Ints
    relation: Ints
    spoke: Ints


def reach(outgoing: Outgoing, keys: Ints) -> Reached:
    """What is heard when `keys` (T,), ascending, speak.

    A key is question * N + entity, so that a batch of questions is one sparse graph.
    """
    entities = len(outgoing.indptr) - 1
    entity = keys % entities
    sent = outgoing.indptr[entity + 1] - outgoing.indptr[entity]
    ends = np.cumsum(sent)
    message = np.arange(ends[-1] if len(ends) else 0) + np.repeat(outgoing.indptr[entity] - (ends - sent), sent)
    hearer = outgoing.hearer[message] + np.repeat(keys - entity, sent)
    order = np.argsort(hearer, kind="stable")
    hearer = hearer[order]
    reached = np.union1d(keys, hearer)
    indptr = np.append(np.searchsorted(hearer, reached), len(hearer))
    source = np.repeat(np.arange(len(keys)), sent)[order]
    return Reached(reached, indptr, source, outgoing.relation[message[order]], np.searchsorted(reached, keys))

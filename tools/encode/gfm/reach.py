"""Which entities a question reaches at the next layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ras_agent.tools.encode.gfm.graph import GFMGraph

__all__ = ["Outgoing", "reach"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Who hears each entity: entity e is heard by hearer[indptr[e]] to hearer[indptr[e + 1] - 1]."""

    indptr: Ints
    hearer: Ints

    @classmethod
    def of(cls, graph: GFMGraph) -> Outgoing:
        """Of the messages of `graph`."""
        order = np.argsort(graph.source, kind="stable")
        indptr = np.zeros(graph.entities + 1, dtype=np.int64)
        np.cumsum(np.bincount(graph.source, minlength=graph.entities), out=indptr[1:])
        return cls(indptr, graph.hearer[order])


def reach(outgoing: Outgoing, speakers: Ints) -> Ints:
    """(H,), ascending: `speakers` (T,) and all that hear one of them."""
    first = outgoing.indptr[speakers]
    sent = outgoing.indptr[speakers + 1] - first
    ends = np.cumsum(sent)
    reached = np.zeros(len(outgoing.indptr) - 1, dtype=np.bool_)
    reached[speakers] = True
    reached[outgoing.hearer[np.arange(sent.sum()) + np.repeat(first - (ends - sent), sent)]] = True
    return np.flatnonzero(reached)

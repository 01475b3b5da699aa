"""Graphs as graph encoders read them: one graph as arrays, and several joined as tensors for one pass of a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class GraphFeatures:
    """One graph, which may consist of sub-graphs, as arrays.

    nodes: (N, d) float32. edges: (E, d) float32. edge_index: (2, E) int64, sources above targets. group: (N,) int64,
    the sub-graph of each node, counted from 0; no edge joins two of them, and none is empty.
    """

    nodes: Floats
    edges: Floats
    edge_index: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]

    @property
    def groups(self) -> int:
        """Return the number of sub-graphs."""
        return int(self.group.max()) + 1 if len(self.group) else 0

    @classmethod
    def join(cls, graphs: Sequence[Self], width: int) -> Self:
        """Join `graphs` into one graph that has all their sub-graphs. width: d, for no graphs at all."""
        graphs = [graph for graph in graphs if len(graph.nodes)]
        nodes = np.cumsum([0, *(len(graph.nodes) for graph in graphs)])
        groups = np.cumsum([0, *(graph.groups for graph in graphs)])
        no_vectors, no_ids = np.empty((0, width), np.float32), np.empty(0, np.int64)
        index = [graph.edge_index + first for graph, first in zip(graphs, nodes[:-1], strict=True)]
        group = [graph.group + first for graph, first in zip(graphs, groups[:-1], strict=True)]
        return cls(
            np.concatenate([no_vectors, *(graph.nodes for graph in graphs)]),
            np.concatenate([no_vectors, *(graph.edges for graph in graphs)]),
            np.concatenate([np.empty((2, 0), np.int64), *index], axis=1),
            np.concatenate([no_ids, *group]),
        )


@dataclass(frozen=True, slots=True)
class GraphBatch:
    """Several graphs joined for one pass of an encoder.

    nodes: (N, d). edges: (E, d). edge_index: (2, E), sources above targets. group: (N,), the sub-graph of each node,
    counted over all graphs. graph: (G,), the graph of each sub-graph. size: the number B of graphs, with empty ones.
    """

    nodes: Tensor
    edges: Tensor
    edge_index: Tensor
    group: Tensor
    graph: Tensor
    size: int

    @classmethod
    def of(cls, graphs: Sequence[GraphFeatures], width: int, device: torch.device | str = "cpu") -> Self:
        """Join graphs whose vectors have `width` numbers."""
        import torch

        union = GraphFeatures.join(graphs, width)
        owner = np.repeat(np.arange(len(graphs)), [graph.groups for graph in graphs])

        def moved(array: object) -> Tensor:
            return torch.as_tensor(array).to(device)

        nodes, edges = moved(union.nodes), moved(union.edges)
        return cls(nodes, edges, moved(union.edge_index), moved(union.group), moved(owner), len(graphs))

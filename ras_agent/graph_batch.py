"""Graphs in the form that graph encoders read: one graph as arrays, and several graphs joined as tensors for one
pass."""

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
    """One graph as arrays. It may consist of several sub-graphs.

    nodes: (N, d) float32. edges: (E, d) float32. edge_index: (2, E) int64, row 0 the sources and row 1 the targets of the
    edges. group: (N,) int64, the sub-graph of each node, counted from 0; no edge joins two sub-graphs, and none is empty.
    """

    nodes: Floats
    edges: Floats
    edge_index: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]

    @property
    def groups(self) -> int:
        """Return the number of sub-graphs."""
        if not len(self.group):
            return 0
        return int(self.group.max()) + 1

    @classmethod
    def join(cls, graphs: Sequence[Self], width: int) -> Self:
        """Join `graphs` into one graph that has all their sub-graphs. `width` is d, which is needed if `graphs` is
        empty."""
        nodes = [np.empty((0, width), np.float32)]
        edges = [np.empty((0, width), np.float32)]
        edge_index = [np.empty((2, 0), np.int64)]
        group = [np.empty(0, np.int64)]
        nodes_before = 0
        groups_before = 0
        for graph in graphs:
            nodes.append(graph.nodes)
            edges.append(graph.edges)
            edge_index.append(graph.edge_index + nodes_before)
            group.append(graph.group + groups_before)
            nodes_before += len(graph.nodes)
            groups_before += graph.groups
        return cls(
            nodes=np.concatenate(nodes),
            edges=np.concatenate(edges),
            edge_index=np.concatenate(edge_index, axis=1),
            group=np.concatenate(group),
        )


@dataclass(frozen=True, slots=True)
class GraphBatch:
    """Several graphs joined for one pass of an encoder.

    nodes: (N, d). edges: (E, d). edge_index: (2, E), row 0 the sources and row 1 the targets of the edges. group: (N,), the
    sub-graph of each node, counted over all graphs. graph: (G,), the graph of each sub-graph. size: the number B of graphs,
    including empty ones.
    """

    nodes: Tensor
    edges: Tensor
    edge_index: Tensor
    group: Tensor
    graph: Tensor
    size: int

    @classmethod
    def of(
        cls,
        graphs: Sequence[GraphFeatures],
        width: int,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Join graphs with node and edge vectors of `width` numbers."""
        import torch

        union = GraphFeatures.join(graphs, width)
        groups = [graph.groups for graph in graphs]
        owner = np.repeat(np.arange(len(graphs)), groups)
        return cls(
            nodes=torch.as_tensor(union.nodes).to(device),
            edges=torch.as_tensor(union.edges).to(device),
            edge_index=torch.as_tensor(union.edge_index).to(device),
            group=torch.as_tensor(union.group).to(device),
            graph=torch.as_tensor(owner).to(device),
            size=len(graphs),
        )

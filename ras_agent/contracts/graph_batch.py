"""Holds graphs in the form that graph encoders read: one graph as arrays, or several graphs joined as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class GraphFeatures:
    """Holds one graph as arrays of N nodes and E edges. The graph may consist of several separate sub-graphs."""

    nodes: Floats
    """(N, d) float32, the vectors of the nodes"""
    edges: Floats
    """(E, d) float32, the vectors of the edges"""
    edge_index: npt.NDArray[np.int64]
    """(2, E) int64; row 0 has the source and row 1 the target of each edge"""
    group: npt.NDArray[np.int64]
    """(N,) int64, the sub-graph of each node, counted from 0; no edge joins two sub-graphs, and no sub-graph is empty
    """

    @property
    def groups(self) -> int:
        """Return the number of sub-graphs."""
        if not len(self.group):
            return 0
        return int(self.group.max()) + 1

    @classmethod
    def join(cls, graphs: Sequence[Self], width: int) -> Self:
        """Join graphs into one graph that has all their sub-graphs. `width` is d, which is needed if `graphs`
        is empty.
        """
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
    """Holds several graphs, joined as tensors for one pass of an encoder: N nodes, E edges and G sub-graphs in all."""

    nodes: Tensor
    """(N, d), the vectors of the nodes"""
    edges: Tensor
    """(E, d), the vectors of the edges"""
    edge_index: Tensor
    """(2, E); row 0 has the source and row 1 the target of each edge"""
    group: Tensor
    """(N,), the sub-graph of each node, counted over all graphs"""
    graph: Tensor
    """(G,), the graph of each sub-graph"""
    size: int
    """the number of graphs, including empty ones"""

    @classmethod
    def of(
        cls,
        graphs: Sequence[GraphFeatures],
        width: int,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Join graphs into a batch on `device`. `width` is d, the length of node and edge vectors."""
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

"""Graph encoders: networks that turn the vectors of a graph's nodes and edges into states of its nodes.

The three of G-Retriever (arXiv:2402.07630) and RAS, on PyTorch Geometric: a graph transformer (arXiv:2009.03509), GAT
(arXiv:1710.10903) and GCN (arXiv:1609.02907). Between their layers the papers' code normalises over a batch; here each
node is normalised by itself, so that a graph's states do not depend on the graphs it is batched with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn

from ras_agent.errors import MissingExtra, SettingsError
from ras_agent.graph_batch import GraphBatch

EncoderKind = Literal["graph-transformer", "gat", "gcn"]
_KINDS: tuple[EncoderKind, ...] = ("graph-transformer", "gat", "gcn")


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """Configuration of an encoder. The defaults are the papers'; `input` is the width of a sentence vector.

    Raises SettingsError for an unknown kind, for numbers below 1, and for a width that the heads do not divide.
    """

    kind: EncoderKind = "graph-transformer"
    layers: int = 4
    heads: int = 4
    width: int = 1024
    input: int = 384
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise SettingsError(f"unknown graph encoder {self.kind!r}; known: {', '.join(_KINDS)}")
        if min(self.layers, self.heads, self.width, self.input) < 1 or self.width % self.heads:
            raise SettingsError(f"an encoder's numbers are at least 1 and its heads divide its width, got {self}")


class MessagePassing(nn.Module):
    """Layers that pass messages along the edges: each is convolution, norm, ReLU, and the node's own state added."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        widths = [config.input, *[config.width] * config.layers]
        self.layers = nn.ModuleList(_convolution(config, inputs) for inputs in widths[:-1])
        self.norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in self.layers)
        self.dropout = nn.Dropout(config.dropout)

    @property
    def width(self) -> int:
        """Return the width of the nodes' states."""
        return self.config.width

    def forward(self, batch: GraphBatch) -> Tensor:
        """Return the nodes' states, shape (N, width)."""
        if not len(batch.nodes):
            return batch.nodes.new_zeros(0, self.width)
        states = batch.nodes
        for number, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            # GCN weighs an edge by the degrees of its ends; it has no place for the edge's text
            edges = {} if self.config.kind == "gcn" else {"edge_attr": batch.edges}
            update = norm(layer(states, batch.edge_index, **edges))
            if number < len(self.layers) - 1:
                update = self.dropout(torch.relu(update))
            states = states + update if number else update
        return states  # (N, width)


def build_encoder(config: EncoderConfig) -> MessagePassing:
    """Return the encoder with new weights. Raises MissingExtra without torch-geometric."""
    return MessagePassing(config)


def pool(states: Tensor, batch: GraphBatch) -> Tensor:
    """Return one state for each graph, shape (B, width); an empty graph has zeros.

    states: (N, width). The state is the mean over the nodes of each sub-graph, then the mean over a graph's sub-graphs
    (RAS, section 3.3; with one sub-graph it is G-Retriever's eq. 11).
    """
    return _means(_means(states, batch.group, len(batch.graph)), batch.graph, batch.size)


def _means(rows: Tensor, owner: Tensor, count: int) -> Tensor:
    """Return the mean of the rows of each owner, shape (count, width); an owner without rows has zeros."""
    sums = rows.new_zeros(count, rows.shape[1]).index_add(0, owner, rows)
    return sums / torch.bincount(owner, minlength=count).clamp(min=1).to(rows.dtype).unsqueeze(1)


def _convolution(config: EncoderConfig, inputs: int) -> nn.Module:
    try:
        from torch_geometric.nn import GATConv, GCNConv, TransformerConv
    except ImportError as error:
        raise MissingExtra("a graph encoder", "llm") from error
    if config.kind == "gcn":
        return cast(nn.Module, GCNConv(inputs, config.width))
    options = {"heads": config.heads, "edge_dim": config.input, "dropout": config.dropout}
    layer = GATConv if config.kind == "gat" else TransformerConv
    return cast(nn.Module, layer(inputs, config.width // config.heads, **options))

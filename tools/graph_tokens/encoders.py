"""Encodes graphs: networks turn the vectors of a graph's nodes and edges into states of its nodes.

They are the three of G-Retriever (arXiv:2402.07630) and RAS, on PyTorch Geometric: a graph transformer
(arXiv:2009.03509), GAT (arXiv:1710.10903) and GCN (arXiv:1609.02907). As in the papers' code, there is a norm over
a batch's nodes between the layers; without it, the part that all graphs have in common would hide the content of
each (lab/graph-token.md). In use the norm has its running statistics, so that a graph's states do not depend on the
graphs it is batched with. docs/methods.md lists the differences from the published encoders. Other encoders are
plug-ins of the kind `graph-encoder`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn

from ras_agent.config.registry import check_call, find, is_registered, names
from ras_agent.contracts.errors import SettingsError, needs_extra
from ras_agent.contracts.graph_batch import GraphBatch
from ras_agent.running.protocols import GraphEncoder

_KIND = "graph-encoder"
Norm = Literal["batch", "layer"]
_EPSILON = 1e-5  # this and the next as in torch's batch norm
_MOMENTUM = 0.1
_MOST_FACTOR = 3.0  # bounds of the correction (arXiv:1702.03275)
_MOST_SHIFT = 5.0


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """Sets the sizes of an encoder. The defaults are the papers'; `input` is the width of a sentence vector.

    Raises SettingsError for an unknown kind or norm, for numbers below 1, and for a width that the heads do not
    divide.
    """

    kind: str = "graph-transformer"
    """The name of a plug-in of the kind "graph-encoder"."""
    layers: int = 4
    heads: int = 4
    width: int = 1024
    input: int = 384
    dropout: float = 0.0
    norm: Norm = "batch"
    """"batch", over the nodes of a batch (NodeBatchNorm), or "layer", over the numbers of each node."""

    def __post_init__(self) -> None:
        if not is_registered(_KIND, self.kind):
            raise SettingsError(
                f"unknown graph encoder {self.kind!r}; known: {', '.join(names(_KIND))}; one of yours has to be "
                "registered first, by an installed package or by --plugin FILE"
            )
        if self.norm not in get_args(Norm):
            raise SettingsError(
                f"unknown norm {self.norm!r}; known: {', '.join(get_args(Norm))}"
            )
        if (
            min(self.layers, self.heads, self.width, self.input) < 1
            or self.width % self.heads
        ):
            raise SettingsError(
                f"an encoder's numbers have to be at least 1, and its heads have to divide its width, got {self}"
            )


class NodeBatchNorm(nn.Module):
    """Normalises states by batch renormalisation (arXiv:1702.03275): in training over a batch's nodes, in use by the
    running statistics.

    Its gradient is that of batch norm, but its states are those that the running statistics give, within bounds. So
    a small batch works as well as a large one, and training and use agree. The first ten batches have equal weights
    in the running statistics; later each new batch has a weight of a tenth. If several processes train, each takes
    the batches of all into its statistics, in the order of their ranks. A single node has no variance and is
    normalised by the running statistics.
    """

    weight: nn.Parameter
    bias: nn.Parameter
    running_mean: Tensor
    running_var: Tensor
    batches: Tensor  # the number of batches so far, shape ()

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))
        self.register_buffer("batches", torch.tensor(0))

    def forward(self, states: Tensor) -> Tensor:
        """Return the normalised states, shape (N, width). In training all processes have to call it equally often."""
        mean, variance = (
            self._update(states.detach().float())
            if self.training
            else (self.running_mean, self.running_var)
        )
        if not self.training or len(states) < 2:
            return nn.functional.batch_norm(
                states, mean, variance, self.weight, self.bias, eps=_EPSILON
            )
        own_variance, own_mean = torch.var_mean(states.float(), dim=0, correction=0)
        deviation = (variance + _EPSILON).sqrt()
        own_deviation = (own_variance + _EPSILON).sqrt()
        factor = (own_deviation.detach() / deviation).clamp(
            1 / _MOST_FACTOR, _MOST_FACTOR
        )
        shift = ((own_mean.detach() - mean) / deviation).clamp(
            -_MOST_SHIFT, _MOST_SHIFT
        )
        normal = (states - own_mean) / own_deviation * factor + shift
        return normal * self.weight + self.bias

    @torch.no_grad()
    def _update(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Add the batches of all processes to the running statistics, in the order of their ranks.

        Returns mean and variance, each (width,), as they are after this process's batch.
        """
        own = states.new_zeros(3, states.shape[1])
        if len(states) > 1:
            variance, mean = torch.var_mean(states, dim=0)
            own = torch.stack([torch.ones_like(mean), mean, variance])
        rows = [own]
        rank = 0
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            rows = [
                torch.empty_like(own) for _ in range(torch.distributed.get_world_size())
            ]
            torch.distributed.all_gather(rows, own)
            rank = torch.distributed.get_rank()
        after = []
        for counts, mean, variance in rows:
            if counts[0]:
                self.batches += 1
                share = max(_MOMENTUM, 1 / int(self.batches))
                self.running_mean.lerp_(mean, share)
                self.running_var.lerp_(variance, share)
            after.append((self.running_mean.clone(), self.running_var.clone()))
        return after[rank]


class MessagePassing(nn.Module):
    """Passes messages along the edges, layer by layer.

    Each layer is a convolution, a norm and a ReLU (the last one has no ReLU), and from the second on its input is
    added to its output. Every layer also has a linear map of the node's own state, which the graph transformer
    includes and which is added to GAT and GCN; without it these would mix each node with its neighbours before
    anything is learnt.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        widths = [config.input, *[config.width] * config.layers]
        self.layers = nn.ModuleList(
            _convolution(config, inputs) for inputs in widths[:-1]
        )
        if config.kind == "graph-transformer":
            own = []
        else:
            own = widths[:-1]
        self.own = nn.ModuleList(
            nn.Linear(inputs, config.width, bias=False) for inputs in own
        )
        norm: type[nn.Module] = (
            NodeBatchNorm if config.norm == "batch" else nn.LayerNorm
        )
        self.norms = nn.ModuleList(norm(config.width) for _ in self.layers)
        self.dropout = nn.Dropout(config.dropout)

    @property
    def width(self) -> int:
        """Return the width of the nodes' states."""
        return self.config.width

    def forward(self, batch: GraphBatch) -> Tensor:
        """Return the nodes' states, shape (N, width)."""
        if not len(batch.nodes):
            states = batch.nodes.new_zeros(0, self.width)
            # call the norms anyway: the other processes wait for this one's statistics
            for norm in self.norms:
                states = norm(states)
            return states
        states = batch.nodes
        for number, (layer, norm) in enumerate(
            zip(self.layers, self.norms, strict=True)
        ):
            # GCN weights an edge by the degrees of its ends and cannot use its text
            if self.config.kind == "gcn":
                edges = {}
            else:
                edges = {"edge_attr": batch.edges}
            update = layer(states, batch.edge_index, **edges)
            if self.own:
                update = update + self.own[number](states)
            update = norm(update)
            if number < len(self.layers) - 1:
                update = self.dropout(torch.relu(update))
            states = states + update if number else update
        return states  # (N, width)


def build_encoder(config: EncoderConfig) -> nn.Module:
    """Build an encoder with random weights, a module that keeps the contract of GraphEncoder.

    Raises MissingExtra without torch-geometric, and SettingsError for a plug-in that is no module or of another
    width.
    """
    make = find(_KIND, config.kind)
    check_call(_KIND, config.kind, make, config=config)
    encoder = make(config)
    if not (isinstance(encoder, nn.Module) and isinstance(encoder, GraphEncoder)):
        raise SettingsError(
            f"the graph encoder {config.kind!r} has to be a torch module with an attribute `width`, got {encoder!r:.200}"
        )
    if encoder.width != config.width:
        raise SettingsError(
            f"the graph encoder {config.kind!r} makes states of width {encoder.width}, but its configuration has "
            f"width = {config.width}: let it make states of that width"
        )
    return cast(nn.Module, encoder)


def pool(states: Tensor, batch: GraphBatch) -> Tensor:
    """Return one state for each graph, shape (B, width); zeros for an empty graph.

    A graph's state is the mean over its sub-graphs of the mean over their nodes (RAS, section 3.3; with one
    sub-graph it is G-Retriever's eq. 11).

    Args:
        states: (N, width), the states of all nodes of the batch.
    """
    return _means(
        _means(states, batch.group, len(batch.graph)), batch.graph, batch.size
    )


def _means(rows: Tensor, owner: Tensor, count: int) -> Tensor:
    """Return the mean of the rows of each owner, shape (count, width); zeros for an owner without rows."""
    zeros = rows.new_zeros(count, rows.shape[1])
    sums = zeros.index_add(0, owner, rows)
    counts = torch.bincount(owner, minlength=count).clamp(min=1)
    return sums / counts.to(rows.dtype).unsqueeze(1)


def _convolution(config: EncoderConfig, inputs: int) -> nn.Module:
    with needs_extra("a graph encoder", "llm"):
        from torch_geometric.nn import GATConv, GCNConv, TransformerConv
    if config.kind == "gcn":
        return cast(nn.Module, GCNConv(inputs, config.width))
    options = {
        "heads": config.heads,
        "edge_dim": config.input,
        "dropout": config.dropout,
    }
    if config.kind == "gat":
        layer = GATConv
    else:
        layer = TransformerConv
    return cast(nn.Module, layer(inputs, config.width // config.heads, **options))

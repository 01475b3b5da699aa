"""Defines Align-GRAG's aligner, a graph encoder trained to find the nodes which a chain of reasoning is about.

Source: Align-GRAG (arXiv:2505.16237), section 3.2. Two losses train the encoder: its scores of nodes should match
their similarity to the reasoning (eq. 5 and 6), and its state of the whole graph should match the reasoning's
vector (eq. 7 to 10). In use there is no reasoning: the best `n_seed` nodes of a graph and their neighbours are
kept, and the encoder can also become that of a GraphLLM.

Eq. 5 takes a softmax of plain cosines, in which the best of a hundred nodes is hardly more likely than the worst;
here cosines are divided by a temperature. Eq. 6 divides the divergence by the number of nodes, so that a large
graph hardly counts; here that is the option `per_node`, which is off by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.contracts.errors import SettingsError, WeightsError
from ras_agent.contracts.graph_batch import GraphBatch, GraphFeatures
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import query_vector, resolve_embedder
from ras_agent.tools.graph_tokens.encoders import (
    EncoderConfig,
    build_encoder,
    pool,
)
from ras_agent.tools.graph_tokens.features import Fact, GraphVectors
from ras_agent.tools.index.ties import best_places
from ras_agent.tools.store.card import read_card, write_card

FORM = "aligner"
VERSION = 2
CONFIG = "config.json"
WEIGHTS = "aligner.safetensors"


@dataclass(frozen=True, slots=True)
class AlignerConfig:
    """Sets the sizes and losses of an aligner. Raises SettingsError unless the encoder's states are as wide as a
    text's vector.
    """

    encoder: EncoderConfig = field(default_factory=lambda: EncoderConfig(width=384))
    """The configuration of the graph encoder."""
    hidden: int = 384
    """The width inside the two MLPs."""
    projected: int = 384
    """d_t of eq. 8, in the paper the width of the language model."""
    temperature: float = 0.1
    """Divides the cosine of a node and the reasoning (eq. 5)."""
    contrast: float = 0.1
    """The temperature of eq. 9."""
    likeness: bool = True
    """Whether a node's score starts as its cosine with the question, to which the network learns a correction."""
    per_node: bool = False
    """Whether a graph's divergence is divided by its number of nodes, as eq. 6 is printed."""
    align_nodes: bool = True
    """Whether the loss of the nodes is used; leaving one loss out is the paper's ablation (Table 2)."""
    align_graphs: bool = True
    """Whether the loss of the whole graphs is used."""
    embedder: str = "minilm"
    """The name of the sentence encoder that makes the vectors."""

    def __post_init__(self) -> None:
        if self.encoder.width != self.encoder.input:
            raise SettingsError(
                "an aligner maps graphs and texts by one MLP: set the encoder's width to that of a text's vector, "
                f"{self.encoder.input}, got {self.encoder.width}"
            )
        if (
            min(self.hidden, self.projected) < 1
            or min(self.temperature, self.contrast) <= 0
        ):
            raise SettingsError(
                f"an aligner's widths have to be at least 1 and its temperatures above 0, got {self}"
            )
        if not (self.align_nodes or self.align_graphs):
            raise SettingsError(
                "an aligner without both losses, of nodes and of graphs, has nothing to learn from: leave out "
                "--no-align-nodes (align_nodes=False) or --no-align-graphs (align_graphs=False)"
            )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the configuration that `asdict` wrote. Raises TypeError for unknown or missing names."""
        encoder = EncoderConfig(**data["encoder"])
        return cls(**{**data, "encoder": encoder})


@dataclass(frozen=True, slots=True)
class AlignedGraph:
    """Holds a training example: a question's graph, and the vectors (d,) of the question and of the reasoning."""

    graph: GraphFeatures
    question: Floats
    reasoning: Floats


class GraphAligner(nn.Module):
    """Scores the nodes of a question's graph, to decide which facts to keep."""

    def __init__(self, config: AlignerConfig, embedder: Embedder | None = None) -> None:
        """Create an aligner with new weights.

        Args:
            embedder: by default the one that the configuration names.
        """
        super().__init__()
        self.config = config
        self.embedder = embedder or resolve_embedder(config.embedder)
        self.vectors = GraphVectors(self.embedder)
        width = config.encoder.width
        self.encoder = build_encoder(config.encoder)
        last = nn.Linear(config.hidden, 1)
        if config.likeness:
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
        self.node_head = nn.Sequential(
            nn.Linear(2 * width, config.hidden), nn.ReLU(), last
        )
        projected = nn.Linear(config.hidden, config.projected)
        self.shared = nn.Sequential(
            nn.Linear(width, config.hidden), nn.ReLU(), projected
        )
        self.train(False)

    def forward(self, graphs: Sequence[GraphFeatures]) -> tuple[Tensor, GraphBatch]:
        """Return the states (N, d) of all nodes (eq. 3), and the batch into which the graphs were joined."""
        batch = GraphBatch.of(graphs, self.config.encoder.input, self._device)
        return self.encoder(batch), batch

    def judged(self, states: Tensor, nodes: Tensor, questions: Tensor) -> Tensor:
        """Return the scores of nodes before their softmax, shape (N,) (eq. 5).

        Args:
            states: (N, d), the encoder's states.
            nodes: (N, d), the vectors of the nodes' texts.
            questions: (N, d), the question's vector for each node.
        """
        scores: Tensor = self.node_head(torch.cat([states, questions], dim=1)).squeeze(
            1
        )
        if self.config.likeness:
            scores = (
                scores
                + nn.functional.cosine_similarity(nodes, questions, dim=1)
                / self.config.temperature
            )
        return scores

    def losses(self, examples: Sequence[AlignedGraph]) -> tuple[Tensor, Tensor]:
        """Return a batch's loss of the nodes (eq. 6) and of the representations (eq. 10)."""
        states, batch = self([example.graph for example in examples])
        questions = torch.as_tensor(
            np.stack([example.question for example in examples])
        ).to(self._device)
        reasoning = torch.as_tensor(
            np.stack([example.reasoning for example in examples])
        ).to(self._device)
        owner = batch.graph[batch.group]
        scores = self.judged(states, batch.nodes, questions[owner])
        likeness = (
            nn.functional.cosine_similarity(reasoning[owner], batch.nodes, dim=1)
            / self.config.temperature
        )
        nodes = node_alignment(
            scores, likeness, owner, batch.size, per_node=self.config.per_node
        )
        # empty graphs are left out
        there = torch.bincount(owner, minlength=batch.size) > 0
        graphs = self.shared(pool(states, batch)[there])
        texts = self.shared(reasoning[there])
        return nodes, representation_alignment(graphs, texts, self.config.contrast)

    def loss(self, batch: Sequence[AlignedGraph]) -> Tensor:
        """Return the sum of the losses that the configuration uses."""
        nodes, representations = self.losses(batch)
        return (
            nodes * self.config.align_nodes + representations * self.config.align_graphs
        )

    @torch.no_grad()
    def likeness(self, graphs: Sequence[GraphFeatures], texts: Floats) -> Floats:
        """Return the cosine of each graph's state with its text, both mapped by the shared MLP (eq. 8), shape (B,).

        Args:
            texts: (B, d), the vectors of the texts.
        """
        states, batch = self(graphs)
        mapped = (
            self.shared(pool(states, batch)),
            self.shared(torch.as_tensor(texts).to(self._device)),
        )
        array: Floats = nn.functional.cosine_similarity(*mapped, dim=1).cpu().numpy()
        return array

    @torch.no_grad()
    def scores(self, graph: GraphFeatures, questions: Floats) -> Floats:
        """Return the scores of a graph's nodes for each question, shape (Q, N). The graph is encoded once.

        Args:
            questions: (Q, d), the vectors of the questions.
        """
        states, batch = self([graph])
        rows = torch.as_tensor(questions).to(self._device)
        logits = [
            self.judged(states, batch.nodes, row.expand_as(states)) for row in rows
        ]
        array: Floats = torch.stack(logits).cpu().numpy()
        return array

    def prune(
        self, graph: GraphFeatures, question: str, n_seed: int = 25
    ) -> tuple[Ints, Ints]:
        """Return the numbers of the nodes and of the edges to keep, both ascending (section 3.2.4).

        These are the `n_seed` best nodes, their neighbours, and the edges at one of the best.
        """
        vector = query_vector(self.embedder, question)
        (scores,) = self.scores(graph, vector[None])
        is_best = _node_places(scores) < n_seed
        edges = np.flatnonzero(is_best[graph.edge_index].any(axis=0))
        ends = graph.edge_index[:, edges]
        nodes = np.union1d(np.flatnonzero(is_best), ends)
        return nodes.astype(np.int64), edges.astype(np.int64)

    def best(self, facts: Sequence[Fact], question: str, most: int) -> list[int]:
        """Return the indices of the `most` best facts.

        Facts of the best node come first, then those of the next; a node's facts are sorted by the rank of their
        other end.
        """
        graph = self.vectors.of_facts(facts)
        vector = query_vector(self.embedder, question)
        better, worse = fact_places(graph, self.scores(graph, vector[None])[0])
        places: list[int] = np.lexsort((worse, better))[:most].tolist()
        return places

    def save(self, folder: str | Path, about: dict[str, Any] | None = None) -> None:
        """Write weights and configuration into `folder`, which is created.

        Args:
            about: how the weights were trained, as plain JSON.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        save_file(
            {
                name: value.detach().cpu().contiguous()
                for name, value in self.state_dict().items()
            },
            folder / WEIGHTS,
        )
        card = {
            "format": f"ras-agent {FORM}",
            "version": VERSION,
            "config": asdict(self.config),
            "about": about or {},
        }
        write_card(folder / CONFIG, card)

    @classmethod
    def load(cls, folder: str | Path, embedder: Embedder | None = None) -> Self:
        """Load the aligner in a folder. Raises WeightsError for a folder without one."""
        folder = Path(folder)
        aligner = cls(read_config(folder), embedder)
        _load_weights(aligner, folder)
        return aligner

    @property
    def _device(self) -> torch.device:
        return next(self.parameters()).device


def node_alignment(
    scores: Tensor,
    reference: Tensor,
    owner: Tensor,
    size: int,
    *,
    per_node: bool = False,
) -> Tensor:
    """Return KL(softmax of `reference` || softmax of `scores`) over each graph's nodes, mean over graphs (eq. 5, 6).

    Graphs without nodes do not count; the result is 0 for a batch without any node.

    Args:
        scores, reference: (N,).
        owner: (N,), the number of each node's graph, below `size`.
        size: the number of graphs.
        per_node: whether to divide a graph's divergence by its number of nodes.
    """
    logs = _log_softmax(scores, owner, size)
    target = _log_softmax(reference, owner, size)
    terms = target.exp() * (target - logs)
    parts = terms.new_zeros(size).index_add(0, owner, terms)
    counts = torch.bincount(owner, minlength=size)
    if per_node:
        parts = parts / counts.clamp(min=1)
    return parts.sum() / (counts > 0).sum().clamp(min=1)


def representation_alignment(
    graphs: Tensor, texts: Tensor, temperature: float
) -> Tensor:
    """Return the contrastive loss that pulls row i of `graphs` (N, t) to row i of `texts` (N, t), not to others.

    It is the mean of both directions, graphs to texts and texts to graphs (eq. 9 and 10).
    """
    if not len(graphs):
        return graphs.sum()
    alike = (
        nn.functional.normalize(graphs, dim=1)
        @ nn.functional.normalize(texts, dim=1).T
        / temperature
    )
    diagonal = torch.arange(len(alike), device=alike.device)
    return (
        nn.functional.cross_entropy(alike, diagonal)
        + nn.functional.cross_entropy(alike.T, diagonal)
    ) / 2


def fact_places(
    graph: GraphFeatures, scores: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Return the ranks of each edge's better and worse node, (2, E). Rank 0 is the highest score; ties go by number."""
    ends: npt.NDArray[np.int64] = np.sort(
        _node_places(scores)[graph.edge_index], axis=0
    )
    return ends


def _node_places(scores: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    count = len(scores)
    places = np.empty(count, np.int64)
    best = best_places(scores, count, relative=False)
    places[best] = np.arange(count)
    return places


def align_encoder(
    encoder: nn.Module, config: EncoderConfig, folder: str | Path
) -> None:
    """Load the weights of an aligner's encoder into another encoder of the same configuration, such as a GraphLLM's.

    Raises WeightsError for a folder without an aligner, and SettingsError for an encoder of another configuration.
    """
    there = read_config(Path(folder)).encoder
    if there != config:
        raise SettingsError(
            f"the aligner in {folder} has the encoder {there}, but the model has {config}: train the model with the aligner's "
            "encoder, or another aligner"
        )
    _load_weights(encoder, Path(folder), "encoder.")


def _load_weights(module: nn.Module, folder: Path, prefix: str = "") -> None:
    """Load the weights whose names begin with `prefix` into a module.

    Raises WeightsError for weights that are missing, damaged, or of another aligner.
    """
    try:
        weights = {
            name.removeprefix(prefix): value
            for name, value in load_file(folder / WEIGHTS).items()
            if name.startswith(prefix)
        }
        module.load_state_dict(weights)
    except (OSError, SafetensorError, RuntimeError) as error:
        why = str(error).partition("\n")[0]
        raise WeightsError(
            f"{folder / WEIGHTS}: no weights of the aligner in {CONFIG} ({why}): train it again"
        ) from error


def read_config(folder: Path) -> AlignerConfig:
    """Load the configuration in an aligner's folder. Raises WeightsError if it is missing or has another format."""
    path = folder / CONFIG
    card = read_card(path, FORM, VERSION, "python -m ras_agent.train.aligner.train")
    try:
        return AlignerConfig.from_dict(card["config"])
    except (ValueError, KeyError, TypeError, SettingsError) as error:
        raise WeightsError(
            f"{path}: not an aligner's configuration ({error}): train it again"
        ) from error


def _log_softmax(scores: Tensor, owner: Tensor, size: int) -> Tensor:
    """Return the logarithm of the softmax (N,) over the scores (N,) of each owner."""
    highest = scores.new_full((size,), -torch.inf).scatter_reduce(
        0, owner, scores.detach(), "amax"
    )
    shifted = scores - highest[owner]
    sums = scores.new_zeros(size).index_add(0, owner, shifted.exp())
    return shifted - sums.log()[owner]

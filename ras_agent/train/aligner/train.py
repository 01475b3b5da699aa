"""Trains the aligner that prunes a question's graph (Align-GRAG) on samples of ras_agent.train.aligner.build.

    python -m ras_agent.train.aligner.train --samples pq2h-aligner.jsonl --out aligner

It learns from the part "train"; the part "dev" chooses the weights. --out then holds aligner.safetensors and
config.json, which `prune_facts` of the agent's settings and `ras_agent.train.graphllm.train --aligner` take, and the
training's own files (ras_agent.train.loop), from which the same command resumes. metrics.jsonl has a validation every
`validate_every` steps: both losses, and for each of `n_seeds` how many facts pruning leaves and the share of answers
among their ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ras_agent.contracts.errors import SettingsError
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.running.program import run_program
from ras_agent.running.protocols import Embedder
from ras_agent.train.aligner.samples import AlignerSample, learnt_from, read_samples
from ras_agent.train.data import shuffled_batches, spread_out
from ras_agent.train.loop import FitConfig, FitResult, fit, print_result
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, NATURAL, SHARE, Range, check_ranges

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.aligner import (
        AlignedGraph,
        GraphAligner,
    )

_ABOVE = Range(0, 1e6, above=True)
_OF_ALIGNER = (
    *("projected", "temperature", "contrast", "likeness", "per_node"),
    *("align_nodes", "align_graphs", "embedder"),
)
"""The options that the aligner's own configuration has by the same names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignerTrainingConfig(FitConfig):
    """Holds the options of an aligner's training. Raises SettingsError for a number out of its range."""

    samples: Path
    """Samples of ras_agent.train.aligner.build."""
    out: Path
    """The folder to write; the same command resumes a training in it."""
    encoder: str = "graph-transformer"
    """The graph encoder, as wide as the embedder's vectors: graph-transformer, gat, gcn, or a plug-in of yours."""
    layers: int = 2
    """Layers of the encoder; the paper has 4."""
    heads: int = 4
    """Attention heads of the encoder."""
    dropout: float = 0.0
    """Dropout of the encoder."""
    norm: str = "batch"
    """Norm between the encoder's layers: batch or layer."""
    projected: int = 384
    """Width in which graphs and texts are compared (d_t of eq. 8)."""
    temperature: float = 0.1
    """The number by which the cosine of a node and the reasoning is divided (eq. 5)."""
    contrast: float = 0.1
    """Temperature of the contrast between graphs (eq. 9)."""
    likeness: bool = True
    """Begin a node's score with its cosine to the question, to which the network adds."""
    per_node: bool = False
    """Divide a graph's divergence by its number of nodes, as eq. 6 is printed."""
    align_nodes: bool = True
    """Learn which nodes the reasoning names."""
    align_graphs: bool = True
    """Learn which reasoning belongs to a graph."""
    random_labels: bool = False
    """Learn from random vectors instead of the reasoning's vectors, the paper's ablation (Table 2)."""
    cosines: bool = False
    """Measure at each validation how near a graph's state is to its question, its reasoning and its text (Fig. 2)."""
    embedder: str = "minilm"
    """The embedder of the texts of nodes, edges and reasoning."""
    batch: int = 16
    """Graphs of a step; the reasoning of each is contrasted with that of all others."""
    n_seeds: tuple[int, ...] = (1, 2, 5, 10, 25)
    """The numbers of nodes to which graphs are pruned at a validation."""
    judged: int = 200
    """The maximum number of samples of a validation, spread over the part."""
    rate: float = 1e-3
    steps: int = 100
    validate_every: int = 10

    def __post_init__(self) -> None:
        FitConfig.__post_init__(self)
        above = dict.fromkeys(("temperature", "contrast"), _ABOVE)
        counts = dict.fromkeys(("layers", "heads", "projected", "batch"), COUNT)
        check_ranges(
            self,
            {**above, **counts, "n_seeds": NATURAL, "judged": COUNT, "dropout": SHARE},
        )


def train(
    config: AlignerTrainingConfig, embedder: Embedder | None = None
) -> tuple[GraphAligner, FitResult]:
    """Train an aligner and save it.

    Args:
        config: The options.
        embedder: The embedder of all texts; by default the one that `config` names.

    Raises:
        RasError: If a file cannot be read, or the options do not fit.
    """
    samples = read_samples(config.samples)
    train_part = of_part(samples, "train")
    dev_part = spread_out(of_part(samples, "dev"), config.judged)
    aligner = new_aligner(config, embedder)
    graphs = aligned_graphs(aligner, [*train_part, *dev_part])
    if config.random_labels:
        graphs = with_random_labels(graphs, config.seed)
    if not train_part:
        raise SettingsError(
            f"{config.samples} has no samples of the part 'train' with facts: build the samples again"
        )
    train_graphs = graphs[: len(train_part)]
    dev_graphs = graphs[len(train_part) :]

    def validate() -> Mapping[str, float]:
        return validation(aligner, dev_part, dev_graphs, config)

    def batches(epoch: int) -> list[list[AlignedGraph]]:
        dice = Random(config.seed * 100_003 + epoch)
        return shuffled_batches(train_graphs, config.batch, dice)

    settings = {
        "aligner": asdict(aligner.config),
        "samples_sha256": file_sha256(config.samples)[:12],
    }
    result = fit(
        aligner, batches, validate if dev_part else None, config, config.out, settings
    )
    if result.main:
        about = {
            "made_by": "python -m ras_agent.train.aligner.train",
            "samples": config.samples.name,
            "settings": {**config.settings(), **settings},
            "result": asdict(result),
        }
        aligner.save(config.out, about)
        learnt_from(samples).write(config.out)
    return aligner, result


def new_aligner(
    config: AlignerTrainingConfig, embedder: Embedder | None = None
) -> GraphAligner:
    """Return an untrained aligner. `embedder` is by default the one that `config` names."""
    import torch

    from ras_agent.tools.embed.embedders import resolve_embedder
    from ras_agent.tools.graph_tokens.aligner import AlignerConfig, GraphAligner
    from ras_agent.tools.graph_tokens.encoders import EncoderConfig, Norm

    embedder = embedder or resolve_embedder(config.embedder)
    width = embedder.dimension
    shape = (config.layers, config.heads, width, width)
    encoder = EncoderConfig(
        config.encoder, *shape, config.dropout, cast(Norm, config.norm)
    )
    same: dict[str, Any] = {name: getattr(config, name) for name in _OF_ALIGNER}
    torch.manual_seed(config.seed)
    return GraphAligner(AlignerConfig(encoder, hidden=width, **same), embedder)


def aligned_graphs(
    aligner: GraphAligner, samples: Sequence[AlignerSample]
) -> list[AlignedGraph]:
    """Return the samples as vectors. Samples that share a graph share its vectors."""
    from ras_agent.tools.embed.embedders import query_vector
    from ras_agent.tools.graph_tokens.aligner import AlignedGraph

    vectors = aligner.vectors
    reasoning = dict.fromkeys(sample.reasoning for sample in samples)
    vectors.of_texts(list(reasoning))  # all at once: batches are faster
    of_facts = cache(vectors.of_facts)
    of_question = cache(partial(query_vector, aligner.embedder))
    graphs = []
    for sample in samples:
        graph = AlignedGraph(
            graph=of_facts(sample.facts),
            question=of_question(sample.question),
            reasoning=vectors.of_texts([sample.reasoning])[0],
        )
        graphs.append(graph)
    return graphs


def with_random_labels(
    examples: Sequence[AlignedGraph], seed: int
) -> list[AlignedGraph]:
    """Return the examples with random unit vectors in place of the reasoning's vectors."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal(
        (len(examples), len(examples[0].reasoning) if examples else 0)
    ).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return [
        replace(example, reasoning=row)
        for example, row in zip(examples, rows, strict=True)
    ]


def validation(
    aligner: GraphAligner,
    samples: Sequence[AlignerSample],
    examples: Sequence[AlignedGraph],
    config: AlignerTrainingConfig,
) -> Mapping[str, float]:
    """Return the measures of a validation: the losses, and what pruning to each of `n_seeds` nodes leaves.

    The keys are "loss" and its parts "nodes" and "representations", "answers@N" and "facts@N", and, with
    `config.cosines`, those of `cosines_of`.
    """
    from ras_agent.train.aligner.measure import cosines_of, kept_by_seeds

    nodes = 0.0
    representations = 0.0
    starts = range(0, len(examples), config.batch)
    for start in starts:
        of_nodes, of_graphs = aligner.losses(examples[start : start + config.batch])
        nodes += float(of_nodes.detach()) / len(starts)
        representations += float(of_graphs.detach()) / len(starts)
    measured = {
        "loss": nodes * config.align_nodes + representations * config.align_graphs,
        "nodes": nodes,
        "representations": representations,
    }
    if config.cosines:
        measured |= cosines_of(aligner, samples, examples)
    scores = [
        aligner.scores(example.graph, example.question[None])[0] for example in examples
    ]
    for n in config.n_seeds:
        kept = kept_by_seeds(samples, examples, scores, n)
        measured[f"answers@{n}"] = kept.answers
        measured[f"facts@{n}"] = kept.facts
    return measured


def of_part(samples: Sequence[AlignerSample], part: str) -> list[AlignerSample]:
    """Return the samples of a part, such as "train" or "dev", whose graphs have facts."""
    return [sample for sample in samples if sample.part == part and sample.facts]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train an aligner with the options of the command line, and print the outcome."""
    _, result = train(config_from(AlignerTrainingConfig, __doc__, arguments))
    print_result(result)


if __name__ == "__main__":
    run_program(main)

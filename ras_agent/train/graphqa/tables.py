"""Train and score the rows of G-Retriever's and Align-GRAG's tables on a set, once for each seed, and write the tables.

    python -m ras_agent.train.graphqa.tables --tables main,ablation --benchmark explagraphs --data train.tsv \\
        --test val.tsv --language-model meta-llama/Llama-2-7b-hf --seeds 0,1,2 --out tables

All options of ras_agent.train.graphqa.train hold for every row, except those that the row sets. Rows with an aligner train
one first, on --reasoning, samples of ras_agent.train.aligner.build, or on those that its rules make; all rows of a table
with such a row have the graph encoder of its shape. The same command goes on where it was stopped. In --out: tables.md,
tables.json, and a folder for each row and seed. Behind the scores stand the costs of each row: nodes and tokens of the
graphs that it is shown, and the seconds of a step of training and of a reply.

main          G-Retriever, Table 3, and Align-GRAG, Table 1: question, tuned part and input
ablation      G-Retriever, its ablation: without encoder (ten trained tokens), projector, text, Steiner tree
encoders      G-Retriever and Align-GRAG, graph transformer, GAT and GCN
hallucination G-Retriever, valid nodes and edges of a frozen model with the graph's text, and without it; next to them,
              of a model as it is, and of one with all weights trained, with and without graph token
alignment     Align-GRAG, Table 2: without either alignment, or both, and with random labels
seed-nodes    Align-GRAG, appendix D: to how many nodes an aligner prunes
top-k         Align-GRAG, Fig. 5: how many nodes and edges have a prize in the tree that is pruned
efficiency    G-Retriever, Table 4, and Align-GRAG, Table 5: the costs of whole graphs, of Steiner trees and of pruned ones
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import JSON
from ras_agent.running.program import run_program
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.graph_tokens.features import GraphVectors
from ras_agent.train.aligner.build import AlignerBuildConfig, build
from ras_agent.train.aligner.samples import learnt_from, read_samples
from ras_agent.train.aligner.train import AlignerTrainingConfig
from ras_agent.train.aligner.train import train as train_aligner
from ras_agent.train.graphqa.train import GraphQATrainingConfig, train
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, check_ranges
from ras_agent.train.tables import (
    TEXT,
    Changes,
    TableRow,
    TablesOptions,
    fill_tables,
    slug,
)

_TEN_TOKENS: Changes = {"encoder": "none", "graph_tokens": 10}
_AS_IT_IS: Changes = {"tuning": "frozen", **TEXT}
_WHOLE_GRAPH: Changes = {"top_nodes": 0, "top_edges": 0}
_TREE = ("top_nodes", "top_edges", "edge_cost")
_SAME_PARTS = ("benchmark", "validation", "shares", "split", "embedder")


@dataclass(frozen=True, slots=True)
class Row(TableRow):
    """Describes a row of a table by the training that it needs."""

    aligner: Changes | None = None
    """The options of the aligner that differ; None for a row without an aligner."""
    n_seed: int | None = None
    """The number of nodes to which the aligner prunes; None for the command's option."""
    without_projector: bool = False
    """Whether there is no projector, and the encoder is as wide as the language model's word vectors."""


_ENCODERS = (("graph transformer", "graph-transformer"), ("GAT", "gat"), ("GCN", "gcn"))
TABLES: Mapping[str, tuple[Row, ...]] = {
    "main": (
        Row(
            "as it is, question only",
            {**_AS_IT_IS, "graph_text": False},
        ),
        Row("as it is, with text (zero-shot)", _AS_IT_IS),
        Row(
            "frozen, ten trained tokens (prompt tuning)",
            {"tuning": "frozen", **_TEN_TOKENS},
        ),
        Row(
            "frozen, graph token without text (GraphToken)",
            {"tuning": "frozen", "graph_text": False},
        ),
        Row("frozen, graph token (G-Retriever)", {"tuning": "frozen"}),
        Row("LoRA, text", {"tuning": "lora", **TEXT}),
        Row("LoRA, graph token (G-Retriever)", {"tuning": "lora"}),
        Row("LoRA, aligned and pruned (Align-GRAG)", {"tuning": "lora"}, aligner={}),
        Row("all weights, text", {"tuning": "full", **TEXT}),
        Row("all weights, graph token", {"tuning": "full"}),
    ),
    "ablation": (
        Row("whole"),
        Row("without graph encoder (ten trained tokens)", _TEN_TOKENS),
        Row("without projector", without_projector=True),
        Row("without the graph's text", {"graph_text": False}),
        Row("without graph token", TEXT),
        Row("without retrieval (whole graph)", _WHOLE_GRAPH),
    ),
    "encoders": (
        *(Row(f"G-Retriever, {name}", {"encoder": kind}) for name, kind in _ENCODERS),
        *(
            Row(f"Align-GRAG, {name}", {"encoder": kind}, aligner={"encoder": kind})
            for name, kind in _ENCODERS
        ),
    ),
    "hallucination": (
        Row(
            "frozen, graph token without text (GraphToken), citing",
            {"tuning": "frozen", "graph_text": False, "cite": True},
        ),
        Row(
            "frozen, graph token (G-Retriever), citing",
            {"tuning": "frozen", "cite": True},
        ),
        Row("as it is, with text, citing", {**_AS_IT_IS, "cite": True}),
        Row("all weights, text, citing", {"tuning": "full", **TEXT, "cite": True}),
        Row("all weights, graph token, citing", {"tuning": "full", "cite": True}),
    ),
    "alignment": (
        Row("Align-GRAG", aligner={}),
        Row("without representation alignment", TEXT, aligner={"align_graphs": False}),
        Row("without node alignment", aligner={"align_nodes": False}, n_seed=0),
        Row("without both", TEXT),
        Row("random labels", aligner={"random_labels": True}),
    ),
    "seed-nodes": tuple(
        Row(f"{n} seed nodes", aligner={}, n_seed=n) for n in (1, 5, 10, 15, 20, 25, 30)
    ),
    "top-k": tuple(
        Row(f"top {k}", {"top_nodes": k, "top_edges": k}, aligner={})
        for k in (3, 5, 10, 15, 20)
    ),
    "efficiency": (
        Row("as it is, whole graph", {**_AS_IT_IS, **_WHOLE_GRAPH}),
        Row("as it is, with text (zero-shot)", _AS_IT_IS),
        *(
            Row(f"as it is, {n} seed nodes", _AS_IT_IS, aligner={}, n_seed=n)
            for n in (4, 6, 8, 10, 15)
        ),
        Row("without retrieval (whole graph)", _WHOLE_GRAPH),
        Row("whole"),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQATablesConfig(GraphQATrainingConfig, TablesOptions):
    """Holds the options of the tables, and of every training."""

    tables: tuple[str, ...] = ("main",)
    """Which tables: main, ablation, encoders, hallucination, alignment, seed-nodes, top-k, efficiency."""
    reasoning: Path | None = None
    """Samples of ras_agent.train.aligner.build, for rows with an aligner; if not set, they are made by its rules."""
    prune_to: int = 25
    """Seed nodes of rows that prune; 25 is the paper's best on WebQSP."""
    aligner_steps: int = 60
    """Steps of the aligners' trainings."""
    aligner_layers: int = 4
    """Layers of the aligners."""
    aligner_batch: int = 16
    """Graphs of a step of the aligners."""

    def __post_init__(self) -> None:
        GraphQATrainingConfig.__post_init__(self)
        check_ranges(self, {"prune_to": COUNT, "aligner_steps": COUNT})
        self.check_tables(TABLES)
        if self.test is None and not self.shares[1]:
            raise SettingsError(
                "there are no test questions to score the rows on: give --test FILE, or a second number above 0 in --shares"
            )

    def training(
        self, row: Row, seed: int, shape: Changes | None = None
    ) -> GraphQATrainingConfig:
        """Return the options of the training of a row. If the row has an aligner, it is trained first.

        `shape` has options of the graph encoder that all rows of a table share, in place of the command's.
        """
        options = self.options_for(GraphQATrainingConfig)
        options |= shape or {}
        options |= row.changes
        options["seed"] = seed
        options["out"] = self.out / slug(row.name) / f"seed-{seed}"
        if row.aligner is not None:
            options["aligner"] = self._aligner(row, row.aligner, seed)
            options["n_seed"] = self.prune_to if row.n_seed is None else row.n_seed
        if row.without_projector:
            options["projector"] = 0
            options["encoder_width"] = (
                _word_width(self.language_model) * self.graph_tokens
            )
        return GraphQATrainingConfig(**options)

    def _aligner(self, row: Row, changes: Changes, seed: int) -> Path:
        """Return the folder of a row's aligner, which is trained unless another row has trained it."""
        samples = self._samples(row)
        named = [f"{key}-{value}" for key, value in changes.items()]
        if samples != self.reasoning:
            named.append(samples.stem)
        name = "-".join(["aligner", *named])
        options: dict[str, Any] = {
            "samples": samples,
            "out": self.out / slug(name) / f"seed-{seed}",
            "seed": seed,
            "steps": self.aligner_steps,
            "layers": self.aligner_layers,
            "batch": self.aligner_batch,
            "heads": self.encoder_heads,
            "embedder": self.embedder,
            "cosines": True,
            "validate_first": True,
        }
        config = AlignerTrainingConfig(**{**options, **changes})
        learnt = learnt_from(read_samples(samples))
        self.refuse_learnt(learnt, samples)
        train_aligner(config)
        return config.out

    def _samples(self, row: Row) -> Path:
        """Return the samples for a row's aligner: the given ones, or samples made by rules from the graphs that
        it prunes.
        """
        tree = {name: row.changes[name] for name in _TREE if name in row.changes}
        if self.reasoning is not None and not tree:
            return self.reasoning
        if self.reasoning is not None:
            raise SettingsError(
                f"the graphs that the row {row.name!r} prunes are not those of --reasoning {self.reasoning}: leave "
                "--reasoning out, so that samples are made for this row"
            )
        size = "-".join(map(str, tree.values())) or "published"
        samples = self.out / f"reasoning-{size}.jsonl"
        if samples.exists():
            return samples
        options: dict[str, Any] = {
            name: getattr(self, name) for name in (*_SAME_PARTS, *_TREE)
        }
        build(
            AlignerBuildConfig(
                **{**options, **tree, "questions": self.data, "out": samples}
            )
        )
        return samples


def write_tables(config: GraphQATablesConfig) -> JSON:
    """Train and score all rows, write the tables, and return their figures.

    Raises:
        RasError: If a file cannot be read, or the options do not fit.
    """
    # texts are embedded once for all rows
    vectors = GraphVectors(resolve_embedder(config.embedder))
    tables = config.chosen(TABLES)

    def card_of(table: str, row: Row, seed: int) -> Mapping[str, Any]:
        shape = _shape_of_aligners(tables[table], config, vectors.embedder)
        return train(config.training(row, seed, shape), vectors)

    return fill_tables(
        config.out, config.benchmark, config.data, config.seeds, tables, card_of
    )


def _shape_of_aligners(
    rows: Sequence[Row], config: GraphQATablesConfig, embedder: Embedder
) -> Changes:
    """Return the shape of the aligners' graph encoder, for all `rows` if one of them has an aligner; {} if none
    has one.

    An aligner is as wide as its embedder's vectors, and the reader uses its encoder. With another shape, rows
    without an aligner would compare a different network.
    """
    if all(row.aligner is None for row in rows):
        return {}
    return {
        "encoder_layers": config.aligner_layers,
        "encoder_width": embedder.dimension,
    }


def _word_width(language_model: str) -> int:
    """Return the width of a language model's word vectors."""
    from transformers import AutoConfig

    return int(AutoConfig.from_pretrained(language_model).get_text_config().hidden_size)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and write the tables."""
    write_tables(config_from(GraphQATablesConfig, __doc__, arguments))


if __name__ == "__main__":
    run_program(main)

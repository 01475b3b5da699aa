"""The training folder: each set under its publisher's name or as a plain sample, read as evaluations read it."""

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import IngestError, UnknownName
from ras_agent.train.data import passages_in, training_set
from tests.messages import says

HOTPOT: dict[str, Any] = {
    "_id": "h1",
    "question": "Which river runs past the mill where Tam Orr worked?",
    "answer": "Ardle",
    "type": "bridge",
    "supporting_facts": [["Fell Mill", 0], ["Tam Orr", 1]],
    "context": [
        ["Tam Orr", ["He worked at Fell Mill."]],
        ["Fell Mill", ["It stands on the Ardle."]],
    ],
}


def _write(path: Path, *rows: dict[str, Any], array: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps(rows) if array else "".join(json.dumps(row) + "\n" for row in rows)
    )


def test_a_published_file_brings_its_own_corpus(tmp_path: Path) -> None:
    _write(tmp_path / "hotpotqa_train/hotpotqa_train.json", HOTPOT, array=True)
    found = training_set("hotpotqa", tmp_path)
    assert [passage.title for passage in found.passages] == ["Tam Orr", "Fell Mill"]
    assert [passage.title for passage in found.gold(found.questions[0])] == [
        "Fell Mill",
        "Tam Orr",
    ]


def test_a_plain_sample_has_its_corpus_next_to_it(tmp_path: Path) -> None:
    asked = {
        "id": "h1",
        "question": "Which river?",
        "answers": ["Ardle"],
        "supporting_titles": ["Fell Mill", "Gone"],
    }
    _write(tmp_path / "hotpotqa_train/questions.jsonl", asked)
    _write(
        tmp_path / "hotpotqa_train/corpus.jsonl",
        {"id": "p7", "title": "Fell Mill", "text": "On the Ardle."},
    )
    found = training_set("hotpotqa", tmp_path)
    # the other title is not in the corpus
    assert [passage.id for passage in found.gold(found.questions[0])] == ["p7"]


def test_a_missing_set_names_the_files_that_it_may_be_in(tmp_path: Path) -> None:
    with pytest.raises(
        IngestError, match=says("reading/nq_oracle.jsonl", "docs/data.md")
    ):
        training_set("nq", tmp_path)
    with pytest.raises(
        UnknownName, match="unknown training set 'triviaqa'; known: hotpotqa"
    ):
        training_set("triviaqa", tmp_path)


def test_passages_without_ids_are_named_by_their_text(tmp_path: Path) -> None:
    _write(
        tmp_path / "corpus.json",
        {"title": "A", "text": "One."},
        {"title": "A", "text": "Two."},
        array=True,
    )
    first, second = passages_in(tmp_path / "corpus.json")
    assert (first.title, first.text) == ("A", "One.")
    assert first.id != second.id

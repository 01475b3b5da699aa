"""Samples for the aligner: graphs of questions, and reasoning with and without a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import IngestError, ParseError, SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.train.aligner.build import AlignerBuildConfig, build
from ras_agent.train.aligner.reasoning import (
    chat_reasoning,
    path_in_words,
    reasoning_in_graph,
    supporting_sentences,
)
from ras_agent.train.aligner.samples import AlignerSample, read_samples
from tests.messages import says

KB = [
    ["ada_lovelace", "mother", "anna"],
    ["anna", "people.born_in", "kent"],
    ["kent", "in", "england"],
]
QUESTION = {
    "question": "where was ada_lovelace 's mother born ?",
    "q_entity": ["ada_lovelace"],
    "a_entity": ["kent"],
    "gold_path": KB[:2],
}
SAMPLE = AlignerSample(
    "q/1",
    "train",
    "where?",
    ("Kent",),
    (("Ada", "mother", "Anna"),),
    "Ada mother Anna.",
)


def _file(path: Path, *records: object) -> Path:
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in records), encoding="utf-8"
    )
    return path


def test_a_path_question_becomes_a_neighbourhood_and_its_path_in_words(
    tmp_path: Path,
) -> None:
    pytest.importorskip("scipy")
    questions, kb = (
        _file(tmp_path / "pq.jsonl", QUESTION),
        _file(tmp_path / "kb.jsonl", *KB),
    )
    build(
        AlignerBuildConfig(
            out=tmp_path / "out.jsonl", questions=questions, kb=kb, max_ent=3
        )
    )
    (sample,) = read_samples(tmp_path / "out.jsonl")
    assert (sample.id, sample.part) == ("pq/1", "test")
    assert sample.question == "where was ada lovelace 's mother born ?"
    assert sample.answers == ("kent",)
    # England is the fourth entity
    assert sample.facts == (
        ("ada lovelace", "mother", "anna"),
        ("anna", "born in", "kent"),
    )
    assert sample.reasoning == "ada lovelace mother anna. anna born in kent."


def test_a_question_over_text_becomes_the_facts_of_its_passages_and_its_supporting_sentences(
    tmp_path: Path,
) -> None:
    (tmp_path / "hotpotqa_train").mkdir()
    _file(
        tmp_path / "hotpotqa_train" / "corpus.jsonl",
        {
            "id": "1",
            "title": "Crux",
            "text": "It is a comic. Crux was published by CrossGen.",
        },
        {
            "id": "2",
            "title": "CrossGen",
            "text": "CrossGen was founded in 1998. It had an office.",
        },
        {"id": "3", "title": "Tampa", "text": "Tampa is a city in Florida."},
    )
    question = "When was the publisher of Crux launched?"
    asked = {
        "id": "a",
        "question": question,
        "answers": ["1998"],
        "supporting_titles": ["Crux", "CrossGen"],
    }
    _file(tmp_path / "hotpotqa_train" / "questions.jsonl", asked)
    (sample,) = build(
        AlignerBuildConfig(
            out=tmp_path / "out.jsonl", data=tmp_path, sets=("hotpotqa",), k=1
        )
    )
    assert (
        sample.reasoning
        == "Crux: Crux was published by CrossGen. CrossGen: CrossGen was founded in 1998."
    )
    assert ("Crux", "was published by", "CrossGen") in sample.facts
    assert not any("Tampa" in fact for fact in sample.facts)


def test_a_gold_passage_that_names_nothing_gives_its_first_sentence() -> None:
    gold = [
        Passage("1", "He was born early. He died late.", "Ada"),
        Passage("2", "It is in Kent.", "House"),
    ]
    assert (
        supporting_sentences(gold, ("Kent",))
        == "Ada: He was born early. House: It is in Kent."
    )
    assert path_in_words([]) == ""


FACTS = [
    ("Ada", "mother", "Anna"),
    ("Anna", "born in", "Kent"),
    ("Ada", "friend", "Charles"),
]


@pytest.mark.parametrize(
    ("starts", "answers", "text"),
    [
        # a path
        (
            ["Ada"],
            ["kent"],
            "Ada mother Anna. Anna born in Kent. The answer is kent.",
        ),
        # facts that name it
        (
            [],
            ["Charles"],
            "Ada friend Charles. The answer is Charles.",
        ),
        (
            ["Ada"],
            ["blue"],
            "Ada mother Anna. Anna born in Kent. Ada friend Charles. The answer is blue.",
        ),
    ],
)
def test_reasoning_in_a_graph_is_a_path_or_what_names_the_answer(
    starts: list[str], answers: list[str], text: str
) -> None:
    assert reasoning_in_graph(FACTS, starts, answers) == text


def test_a_chat_model_is_shown_question_answer_and_facts(
    scripted_model: Callable[..., Any],
) -> None:
    model = scripted_model("<think>Hm.</think>Ada's mother is Anna.\nSo it is Kent.")
    assert chat_reasoning(model, [SAMPLE]) == ["Ada's mother is Anna. So it is Kent."]
    assert "(S> Ada | P> mother | O> Anna)" in model.prompts[0]
    assert "Question: where?\nAnswer: Kent" in model.prompts[0]


def test_an_empty_reply_is_no_reasoning(scripted_model: Callable[..., Any]) -> None:
    with pytest.raises(ParseError, match="no reasoning for the question q/1"):
        chat_reasoning(scripted_model("<think>Hm.</think>"), [SAMPLE])


def test_what_is_no_sample_is_named_with_its_line(tmp_path: Path) -> None:
    record = {
        "id": "1",
        "part": "validation",
        "question": "?",
        "answers": [],
        "facts": [],
        "reasoning": "",
    }
    with pytest.raises(
        IngestError,
        match=says("line 1", "'part'", "train, dev or test", "'validation'"),
    ):
        read_samples(_file(tmp_path / "in.jsonl", record))


def test_options_that_belong_together_are_given_together(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nothing to build from"):
        AlignerBuildConfig(out=tmp_path / "out.jsonl")
    with pytest.raises(SettingsError, match="give --questions together with --kb"):
        AlignerBuildConfig(out=tmp_path / "out.jsonl", questions=tmp_path / "pq.jsonl")

"""The command with a chat model: documents, sub-queries and direct answers, malformed replies, resumption."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import IngestError, ModelCallError, SettingsError
from ras_agent.train.subq import read_samples
from ras_agent.train.subq.build import SubqConfig, build

QUESTION = {
    "id": "h1",
    "question": "When was the publisher of Crux launched?",
    "answers": ["1998"],
    "type": "bridge",
    "supporting_titles": ["CrossGen", "Crux"],
}
CORPUS = [
    {"id": "c0", "title": "CrossGen", "text": "CrossGen was founded in 1998."},
    {"id": "c1", "title": "Crux", "text": "Crux was published by CrossGen."},
    {"id": "c2", "title": "Tampa", "text": "Tampa is a city."},
]
DIRECT, PICK, SEARCH = (
    "from what you know",
    "Say which ones are",
    "Write the search question whose answer",
)
KNOWS_NOTHING = (DIRECT, "Answer: [UNKNOWN]")
FIRST, SECOND = "Who published Crux?", "When was CrossGen founded?"
"""The searches for the documents in the order 2, 1."""
SECOND_STEP = (f"[SUBQ] {FIRST}", SECOND)
"""Matches the prompt that shows the first search, so it stands in front of SEARCH's pair in a script."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in CORPUS), encoding="utf-8"
    )
    return _questions(tmp_path, QUESTION)


def _questions(folder: Path, *questions: dict[str, Any]) -> Path:
    file = folder / "questions.jsonl"
    file.write_text(
        "".join(json.dumps(one) + "\n" for one in questions), encoding="utf-8"
    )
    return file


def _config(source: Path, model: object, **changes: Any) -> SubqConfig:
    changes = {"concurrency": 1, "out": source.with_name("out.jsonl"), **changes}
    return SubqConfig(hotpotqa=(source,), model=model, **changes)


def test_a_model_picks_documents_and_writes_a_search_for_each(
    source: Path, scripted_model: Callable[..., Any]
) -> None:
    model = scripted_model(KNOWS_NOTHING, (PICK, "2, 1"), SECOND_STEP, (SEARCH, FIRST))
    card = build(_config(source, model))
    samples = read_samples(source.with_name("out.jsonl"))
    assert [(one.id, one.label, one.target) for one in samples] == [
        (
            "hotpotqa/h1/plan-0",
            "subq",
            "[SUBQ] When was the publisher of Crux launched?",
        ),
        ("hotpotqa/h1/plan-1", "subq", "[SUBQ] When was CrossGen founded?"),
        ("hotpotqa/h1/plan-2", "sufficient", "[SUFFICIENT]"),
        ("hotpotqa/h1/answer", "sufficient", "1998"),
    ]
    assert [
        (step.subquery, step.passages[0].id, step.triples) for step in samples[2].steps
    ] == [
        (FIRST, "c1", (("Crux", "was published by", "CrossGen"),)),
        (SECOND, "c0", (("CrossGen", "was founded in", "1998"),)),
    ]
    assert card["calls"]["llm_calls"] == len(model.prompts) == 4
    assert card["settings"]["model"] == "scripted"


def test_a_question_that_the_base_model_answers_is_not_searched_for(
    source: Path, scripted_model: Callable[..., Any]
) -> None:
    model = scripted_model()
    base = scripted_model((DIRECT, "Answer: 1998"))
    build(_config(source, model, base_model=base))
    assert [
        (one.kind, one.label, one.target, one.steps)
        for one in read_samples(source.with_name("out.jsonl"))
    ] == [
        ("plan", "no_retrieval", "[NO_RETRIEVAL]", ()),
        ("answer", "no_retrieval", "1998", ()),
    ]
    assert model.prompts == []


def test_a_base_model_that_answers_wrongly_has_the_question_searched_for(
    source: Path, scripted_model: Callable[..., Any]
) -> None:
    base = scripted_model((DIRECT, "Answer: 1999"))
    build(
        _config(
            source,
            scripted_model((PICK, "2, 1"), SECOND_STEP, (SEARCH, FIRST)),
            base_model=base,
        )
    )
    labels = [one.label for one in read_samples(source.with_name("out.jsonl"))]
    assert labels == ["subq", "subq", "sufficient", "sufficient"]


@pytest.mark.parametrize(
    "reply",
    [
        "2",
        "[2]",
        "Helpful documents: 2",
        "<think>1, 2?</think>2.",
        "Only one helps.\n2",
    ],
)
def test_a_document_that_the_model_does_not_pick_is_left_out(
    source: Path, scripted_model: Callable[..., Any], reply: str
) -> None:
    build(
        _config(source, scripted_model(KNOWS_NOTHING, (PICK, reply), (SEARCH, FIRST)))
    )
    samples = read_samples(source.with_name("out.jsonl"))
    assert [
        (one.label, [step.passages[0].title for step in one.steps]) for one in samples
    ] == [
        ("subq", []),
        ("sufficient", ["Crux"]),
        ("sufficient", ["Crux"]),
    ]


def test_a_question_of_which_no_document_helps_is_left_out(
    source: Path, scripted_model: Callable[..., Any]
) -> None:
    other = {**QUESTION, "id": "h2", "question": "When was Crux's publisher founded?"}
    source = _questions(source.parent, QUESTION, other)
    picks = (("publisher founded?", "[NONE]"), (PICK, "2, 1"))
    card = build(
        _config(
            source, scripted_model(KNOWS_NOTHING, *picks, SECOND_STEP, (SEARCH, FIRST))
        )
    )
    assert card["left_out"] == [
        "hotpotqa h2: the model says that no supporting document helps"
    ]
    assert {one.question_id for one in read_samples(source.with_name("out.jsonl"))} == {
        "h1"
    }


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "it is not one search question"),
        ("Who published it?\nWhen was it founded?", "it is not one search question"),
        (
            "Who published Crux in Florida?",
            "nothing that is known by then names Florida",
        ),
        (
            "When was the publisher of Crux founded, 1998?",
            "it states what is to be found",
        ),
        ("none needed", "'none needed' is not a search question"),
    ],
)
def test_an_unusable_search_is_asked_for_once_more(
    source: Path, scripted_model: Callable[..., Any], reply: str, problem: str
) -> None:
    model = scripted_model(
        KNOWS_NOTHING,
        (f"could not be used: {problem}", FIRST),
        (PICK, "2, 1"),
        SECOND_STEP,
        (SEARCH, reply),
    )
    build(_config(source, model))
    assert [
        step.subquery for step in read_samples(source.with_name("out.jsonl"))[2].steps
    ] == [FIRST, SECOND]
    assert len(model.prompts) == 5


def test_a_search_that_repeats_an_earlier_one_is_asked_for_once_more(
    source: Path, scripted_model: Callable[..., Any]
) -> None:
    again = ("could not be used: it repeats an earlier search", SECOND)
    model = scripted_model(KNOWS_NOTHING, again, (PICK, "2, 1"), (SEARCH, FIRST))
    build(_config(source, model))
    assert [
        step.subquery for step in read_samples(source.with_name("out.jsonl"))[2].steps
    ] == [FIRST, SECOND]


@pytest.mark.parametrize("reply", ["both of them", "3", "0, 1", "Document one"])
def test_a_question_whose_replies_stay_unusable_is_left_out(
    source: Path, scripted_model: Callable[..., Any], reply: str
) -> None:
    model = scripted_model(KNOWS_NOTHING, (PICK, reply))
    with pytest.raises(IngestError, match="no question gave a sample"):
        build(_config(source, model))
    assert len(model.prompts) == 3


def test_a_build_that_was_interrupted_asks_no_model_twice(
    source: Path, scripted_model: Callable[..., Any]
) -> None:
    many = [
        {
            **QUESTION,
            "id": f"h{n}",
            "question": f"When was the publisher of Crux number {n} launched?",
        }
        for n in range(4)
    ]
    source = _questions(source.parent, *many)
    replies = (KNOWS_NOTHING, (PICK, "2, 1"), SECOND_STEP, (SEARCH, FIRST))
    breaks = ("Crux number 2", ValueError("the connection is gone"))
    first = scripted_model(breaks, *replies)
    with pytest.raises(ModelCallError, match="the connection is gone"):
        build(_config(source, first))
    assert not source.with_name("out.jsonl").exists()

    second = scripted_model(*replies)
    card = build(_config(source, second))
    asked = {prompt for prompt in first.prompts if "Crux number 2" not in prompt}
    assert not asked & set(second.prompts)
    assert len(second.prompts) == 16 - len(asked) == 8
    assert card["calls"]["llm_calls"] == 16

    whole = scripted_model(*replies)
    build(_config(source, whole, out=source.with_name("whole.jsonl")))
    assert (
        source.with_name("whole.jsonl").read_bytes()
        == source.with_name("out.jsonl").read_bytes()
    )


def test_several_questions_at_once_come_out_in_order(
    source: Path, scripted_model: Callable[..., Any]
) -> None:
    many = [
        {
            **QUESTION,
            "id": f"h{n}",
            "question": f"When was the publisher of Crux number {n} launched?",
        }
        for n in range(9)
    ]
    source = _questions(source.parent, *many)
    model = scripted_model(KNOWS_NOTHING, (PICK, "2, 1"), SECOND_STEP, (SEARCH, FIRST))
    build(_config(source, model, concurrency=4))
    samples = read_samples(source.with_name("out.jsonl"))
    assert list(dict.fromkeys(one.question_id for one in samples)) == [
        f"h{n}" for n in range(9)
    ]


def test_a_model_on_a_server_is_named_by_its_spec(
    source: Path, scripted_llm: Any
) -> None:
    scripted_llm.script(
        {"when": DIRECT, "reply": "Answer: 1999", "repeat": True},
        {"when": PICK, "reply": "2, 1", "repeat": True},
        {"when": f"[SUBQ] {FIRST}", "reply": SECOND, "repeat": True},
        {"when": SEARCH, "reply": FIRST, "repeat": True},
    )
    build(_config(source, scripted_llm.spec))
    assert len(read_samples(source.with_name("out.jsonl"))) == 4
    assert {request.get("temperature") for request in scripted_llm.requests()} == {0.0}


def test_triples_that_are_ready_are_taken_and_no_extractor_is_asked(
    source: Path, scripted_model: Callable[..., Any]
) -> None:
    ready = source.with_name("openie.jsonl")
    ready.write_text(
        json.dumps(
            {
                **CORPUS[1],
                "id": "other",
                "triples": [["Crux", "appeared at", "CrossGen"]],
            }
        )
        + "\n"
    )
    model = scripted_model(KNOWS_NOTHING, (PICK, "2"), (SEARCH, FIRST))
    build(_config(source, model, openie=(ready,)))
    (step,) = read_samples(source.with_name("out.jsonl"))[-1].steps
    assert step.triples == (("Crux", "appeared at", "CrossGen"),)


def test_a_document_that_cannot_be_read_leaves_its_question_out(
    source: Path, scripted_model: Callable[..., Any]
) -> None:
    model = scripted_model(
        KNOWS_NOTHING, (PICK, "2"), ("write down the facts", "Sorry."), (SEARCH, FIRST)
    )
    with pytest.raises(IngestError, match="no question gave a sample"):
        build(_config(source, model, extractor=model))


def test_a_document_that_is_nowhere_leaves_its_question_out(
    source: Path, scripted_model: Callable[..., Any]
) -> None:
    missing = {**QUESTION, "id": "h2", "supporting_titles": ["Crux", "Elsewhere"]}
    source = _questions(source.parent, QUESTION, missing)
    card = build(
        _config(
            source,
            scripted_model(KNOWS_NOTHING, (PICK, "2, 1"), SECOND_STEP, (SEARCH, FIRST)),
        )
    )
    assert card["left_out"] == [
        f"{source}: h2: a supporting document is missing: documents are read from the corpus.jsonl next to "
        "the file, or without one from the contexts"
    ]


def test_questions_without_subqueries_need_a_model(source: Path) -> None:
    with pytest.raises(
        SettingsError, match="give the model that writes them with --model"
    ):
        _config(source, None)

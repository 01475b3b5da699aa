"""The questions over ordinary documents: the evidence stands in the documents, and the scorer's rules."""

from __future__ import annotations

import pytest

from lab.ordinary.__main__ import KINDS, SETS, QuestionSet, mark, precision_and_recall
from ras_agent.eval.metrics import holds
from ras_agent.tools.index.documents import Document
from ras_agent.tools.index.load import SUFFIXES, load


def _texts(chosen: QuestionSet) -> dict[str, str]:
    """Return the texts of a set's documents by file name, with one space for each white space."""
    pytest.importorskip("markitdown")
    texts: dict[str, str] = {}
    for path in (chosen.folder / "documents").iterdir():
        assert path.suffix in SUFFIXES
        found = [one for one in load(path) if isinstance(one, Document)]
        texts[path.name] = " ".join(
            " ".join(f"{one.title} {one.text}" for one in found).split()
        )
    return texts


@pytest.fixture(params=sorted(SETS))
def chosen(request: pytest.FixtureRequest) -> QuestionSet:
    return SETS[request.param]


def _counts(chosen: QuestionSet) -> dict[str, int]:
    return {
        kind: sum(one["kind"] == kind for one in chosen.questions()) for kind in KINDS
    }


def test_there_are_sixty_questions_of_every_kind_over_twenty_documents() -> None:
    first = SETS["first"]
    assert (len(first.questions()), len(_texts(first))) == (60, 20)
    assert _counts(first) == {
        "one": 12,
        "two": 18,
        "names": 10,
        "yes or no": 8,
        "passage": 6,
        "not told": 6,
    }
    assert sum(one["hops"] == 2 for one in first.questions()) == 20
    assert len(first.looked_at()) == 20


def test_the_second_set_has_a_hundred_questions_of_every_kind_over_24_documents() -> (
    None
):
    second = SETS["second"]
    asked = second.questions()
    assert (len(asked), len(_texts(second))) == (100, 24)
    assert _counts(second) == {
        "one": 34,
        "two": 26,
        "names": 12,
        "yes or no": 14,
        "passage": 7,
        "not told": 7,
    }
    apart = [
        one
        for one in asked
        if one["kind"] == "two"
        and len({part["document"] for part in one["evidence"]}) > 1
    ]
    assert len(apart) == 22
    assert [one["answers"] for one in asked if one["kind"] == "yes or no"].count(
        ["yes"]
    ) == 7
    assert len(second.looked_at()) == 51


def test_the_two_sets_share_no_document_and_no_question() -> None:
    first, second = SETS["first"], SETS["second"]
    assert {one["question"] for one in first.questions()} & {
        one["question"] for one in second.questions()
    } == set()
    assert {one["id"] for one in first.questions()} & {
        one["id"] for one in second.questions()
    } == set()
    assert set(_texts(first)) & set(_texts(second)) == set()


def test_every_question_is_asked_once_has_an_id_of_its_own_and_a_known_kind(
    chosen: QuestionSet,
) -> None:
    asked = chosen.questions()
    assert (
        len({one["id"] for one in asked})
        == len({one["question"] for one in asked})
        == len(asked)
    )
    assert {one["kind"] for one in asked} == set(KINDS)


def test_only_what_no_document_tells_has_neither_answer_nor_evidence(
    chosen: QuestionSet,
) -> None:
    for one in chosen.questions():
        told = one["kind"] != "not told"
        assert (bool(one["answers"]), bool(one["evidence"])) == (told, told), one["id"]


def test_what_decides_a_question_stands_in_its_document(chosen: QuestionSet) -> None:
    texts = _texts(chosen)
    missing = [
        (one["id"], evidence["text"])
        for one in chosen.questions()
        for evidence in one["evidence"]
        if " ".join(evidence["text"].split()) not in texts[evidence["document"]]
    ]
    assert missing == []


def test_an_accepted_answer_is_in_the_words_that_decide_its_question(
    chosen: QuestionSet,
) -> None:
    for one in chosen.questions():
        if one["kind"] in ("one", "two", "passage"):
            assert holds(
                " ".join(part["text"] for part in one["evidence"]), one["answers"]
            ), one["id"]


def test_an_accepted_answer_with_few_words_beside_it_is_right_and_a_long_one_is_not() -> (
    None
):
    one = {"kind": "one", "answers": ["4 May 2026"]}
    assert mark(one, "on 4 May 2026", False) == "right"
    assert (
        mark(one, "The move is now planned for 4 May 2026 by Tobias", False) == "wrong"
    )
    assert mark(one, "12 March 2026", False) == "wrong"
    assert mark(one, "I don't know", True) == "unsaid"


def test_a_question_that_no_document_answers_is_right_if_nothing_is_said() -> None:
    assert mark({"kind": "not told", "answers": []}, "I don't know", True) == "right"
    assert mark({"kind": "not told", "answers": []}, "Vessby", False) == "wrong"


def test_a_list_is_right_if_it_names_nearly_all_and_nearly_nobody_else() -> None:
    names = {"kind": "names", "answers": ["Ann Ray", "Bo Lind", "Cy Falk"]}
    assert mark(names, "Ann Ray, Bo Lind and Cy Falk", False) == "right"
    assert mark(names, "Ann Ray and Bo Lind", False) == "wrong"
    assert precision_and_recall(
        ["Luis Ferrer", "Ann Ray"], "Ann Ray, the brothers Luis Ferrer, Di Fox, Ed Orr"
    ) == (
        pytest.approx(0.5),
        pytest.approx(1.0),
    )


def test_a_summary_needs_two_of_its_parts() -> None:
    summary = {
        "kind": "passage",
        "answers": ["140 euros", "within 30 days", "by train"],
        "least": 2,
    }
    assert (
        mark(
            summary,
            "The text says: go by train, and hand receipts in within 30 days.",
            False,
        )
        == "right"
    )
    assert mark(summary, "140 euros", False) == "wrong"

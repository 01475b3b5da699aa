"""The questions over ordinary documents: what decides them stands in the documents, and the scorer's rules."""

from __future__ import annotations

import pytest

from lab.ordinary.__main__ import FOLDER, KINDS, looked_at, mark, precision_and_recall, questions
from ras_agent.tools.index.load import SUFFIXES, Document, load


def _texts() -> dict[str, str]:
    """Return the texts of the documents by file name, with one space for each white space."""
    pytest.importorskip("markitdown")
    texts: dict[str, str] = {}
    for path in (FOLDER / "documents").iterdir():
        assert path.suffix in SUFFIXES
        found = [one for one in load(path) if isinstance(one, Document)]
        texts[path.name] = " ".join(" ".join(f"{one.title} {one.text}" for one in found).split())
    return texts


def test_there_are_sixty_questions_of_every_kind_over_twenty_documents() -> None:
    asked = questions()
    assert (len(asked), len({one["question"] for one in asked}), len(_texts())) == (60, 60, 20)
    counts = {kind: sum(one["kind"] == kind for one in asked) for kind in KINDS}
    assert counts == {"one": 12, "two": 18, "names": 10, "yes or no": 8, "passage": 6, "not told": 6}
    assert sum(one["hops"] == 2 for one in asked) == 20
    assert len(looked_at()) == 20


def test_what_decides_a_question_stands_in_its_document() -> None:
    texts = _texts()
    missing = [
        (one["id"], evidence["text"])
        for one in questions()
        for evidence in one["evidence"]
        if " ".join(evidence["text"].split()) not in texts[evidence["document"]]
    ]
    assert missing == []


def test_an_accepted_answer_with_few_words_beside_it_is_right_and_a_long_one_is_not() -> None:
    one = {"kind": "one", "answers": ["4 May 2026"]}
    assert mark(one, "on 4 May 2026", False) == "right"
    assert mark(one, "The move is now planned for 4 May 2026 by Tobias", False) == "wrong"
    assert mark(one, "12 March 2026", False) == "wrong"
    assert mark(one, "I don't know", True) == "unsaid"


def test_a_question_that_no_document_answers_is_right_if_nothing_is_said() -> None:
    assert mark({"kind": "not told", "answers": []}, "I don't know", True) == "right"
    assert mark({"kind": "not told", "answers": []}, "Vessby", False) == "wrong"


def test_a_list_is_right_if_it_names_nearly_all_and_nearly_nobody_else() -> None:
    names = {"kind": "names", "answers": ["Ann Ray", "Bo Lind", "Cy Falk"]}
    assert mark(names, "Ann Ray, Bo Lind and Cy Falk", False) == "right"
    assert mark(names, "Ann Ray and Bo Lind", False) == "wrong"
    assert precision_and_recall(["Luis Ferrer", "Ann Ray"], "Ann Ray, the brothers Luis Ferrer, Di Fox, Ed Orr") == (
        pytest.approx(0.5),
        pytest.approx(1.0),
    )


def test_a_summary_needs_two_of_its_parts() -> None:
    summary = {"kind": "passage", "answers": ["140 euros", "within 30 days", "by train"], "least": 2}
    assert mark(summary, "The text says: go by train, and hand receipts in within 30 days.", False) == "right"
    assert mark(summary, "140 euros", False) == "wrong"

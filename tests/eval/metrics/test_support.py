"""Supporting evidence as MuSiQue and HotpotQA score it."""

from __future__ import annotations

import pytest

from ras_agent import Passage
from ras_agent.contracts.records import Citation
from ras_agent.eval.benchmarks.hotpotqa import titled_sentences_question
from ras_agent.eval.metrics import Outcome, score
from ras_agent.eval.question_file import QuestionRecord

RECORD = {
    "_id": "1",
    "question": "Which river?",
    "answer": "Water of Leith",
    "supporting_facts": [["Bell", 0], ["Edinburgh", 1]],
    "context": [
        ["Bell", ["Bell was born in Edinburgh.", " He went to Canada."]],
        [
            "Edinburgh",
            ["Edinburgh is in Scotland.", " The Water of Leith flows there."],
        ],
        ["Paris", ["Paris is in France."]],
    ],
}
QUESTION = titled_sentences_question(QuestionRecord(RECORD, "here"))
PASSAGES = QUESTION.contexts
NAMES = ("support_f1", "support_em", "sp_f1", "sp_em", "joint_f1", "joint_em")


def _cited(place: int, text: str) -> Citation:
    passage = PASSAGES[place]
    start = passage.text.index(text)
    return Citation(
        place + 1, passage.id, passage.title, start, start + len(text), text
    )


BORN = _cited(0, "Bell was born in Edinburgh.")
FLOWS = _cited(1, "The Water of Leith flows there.")


def _scores(answer: str, *citations: Citation) -> dict[str, float]:
    return score(QUESTION, Outcome(answer, not answer, citations, PASSAGES), NAMES)


def test_all_supporting_sentences_and_no_other() -> None:
    assert _scores("Water of Leith", BORN, FLOWS) == dict.fromkeys(NAMES, 1.0)


def test_one_of_two_with_half_an_answer() -> None:
    found = _scores("Leith", FLOWS)
    assert (found["support_f1"], found["sp_f1"]) == pytest.approx((2 / 3, 2 / 3))
    # precision 1 and 1, recall 1/3 and 1/2
    assert found["joint_f1"] == pytest.approx(2 * (1 / 6) / (1 + 1 / 6))
    assert (found["support_em"], found["sp_em"], found["joint_em"]) == (0.0, 0.0, 0.0)


def test_another_sentence_of_the_right_passage() -> None:
    found = _scores("Water of Leith", _cited(0, "He went to Canada."), FLOWS)
    assert (found["support_em"], found["sp_f1"], found["joint_em"]) == (1.0, 0.5, 0.0)


def test_a_citation_over_two_sentences_names_both() -> None:
    found = _scores("Water of Leith", _cited(0, "Edinburgh. He went"), FLOWS)
    assert found["sp_f1"] == pytest.approx(0.8)


def test_an_abstention_has_no_answer_to_join() -> None:
    assert _scores("", BORN, FLOWS)["joint_f1"] == 0.0


def test_questions_without_sentences_have_no_supporting_facts() -> None:
    bare = QuestionRecord({**RECORD, "supporting_facts": []}, "here")
    outcome = Outcome("Leith", passages=(Passage("p", "Leith."),))
    assert score(titled_sentences_question(bare), outcome, NAMES) == {}

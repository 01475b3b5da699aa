"""Metrics of the proof that is shown with an answer."""

from __future__ import annotations

from dataclasses import replace

from ras_agent.contracts.records import Citation, Passage
from ras_agent.eval.metrics import Outcome, score
from ras_agent.eval.question import Question

METRICS = ("proof_shown", "proof_complete")
QUESTION = Question(
    "q",
    "Where was the founder of Velmora born?",
    ("Ostrell",),
    supporting=("Velmora", "Ines Brandl"),
    by_title=True,
)
TEXTS = {
    "Velmora": "It was founded by Ines Brandl.",
    "Ines Brandl": "She was born in Ostrell.",
    "Velmora Weekly": "Velmora Weekly is printed in Ostrell.",
}


def _outcome(*titles: str, answer: str = "Ostrell") -> Outcome:
    citations = tuple(
        Citation(number, title, title, 0, len(TEXTS[title]), TEXTS[title])
        for number, title in enumerate(titles, 1)
    )
    return Outcome(
        answer,
        citations=citations,
        passages=tuple(Passage(name, TEXTS[name], name) for name in titles),
    )


def test_a_proof_with_a_sentence_of_every_gold_passage_is_complete() -> None:
    assert score(QUESTION, _outcome("Velmora", "Ines Brandl"), METRICS) == {
        "proof_shown": 1.0,
        "proof_complete": 1.0,
    }


def test_a_proof_that_lacks_a_gold_passage_is_not_complete() -> None:
    weekly = replace(QUESTION, question="Where is Velmora Weekly printed?")
    assert score(weekly, _outcome("Velmora Weekly"), METRICS) == {
        "proof_shown": 1.0,
        "proof_complete": 0.0,
    }


def test_where_no_sentences_lead_to_the_answer_none_is_shown_and_none_is_judged() -> (
    None
):
    assert score(QUESTION, _outcome("Ines Brandl"), METRICS) == {"proof_shown": 0.0}
    assert score(QUESTION, _outcome(), METRICS) == {"proof_shown": 0.0}


def test_gold_passages_are_known_by_their_ids_too() -> None:
    by_id = replace(QUESTION, supporting=("v", "i"), by_title=False)
    cited = _outcome("Velmora", "Ines Brandl")
    ids = {"Velmora": "v", "Ines Brandl": "i"}
    cited = replace(
        cited,
        citations=tuple(
            replace(one, passage_id=ids[one.passage_id]) for one in cited.citations
        ),
        passages=tuple(replace(one, id=ids[one.id]) for one in cited.passages),
    )
    assert score(by_id, cited, METRICS) == {"proof_shown": 1.0, "proof_complete": 1.0}
    assert (
        score(replace(by_id, supporting=("v", "x")), cited, METRICS)["proof_complete"]
        == 0.0
    )


def test_an_abstention_a_verdict_and_a_choice_are_not_led_to() -> None:
    cited = _outcome("Velmora", "Ines Brandl")
    assert score(QUESTION, replace(cited, answer="yes"), METRICS) == {}
    assert score(QUESTION, replace(cited, answer="Velmora"), METRICS) == {}
    assert score(QUESTION, replace(cited, abstained=True), METRICS) == {}

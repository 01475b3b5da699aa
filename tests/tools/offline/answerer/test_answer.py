from typing import Any

import pytest

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Passage, Source, Triple
from ras_agent.tools.offline.answerer.answer import I_DO_NOT_KNOW, OfflineAnswerer

PASSAGES = (
    Passage("tel", "The telephone was patented by Alexander Graham Bell in 1876.", "Telephone"),
    Passage(
        "bell",
        "Alexander Graham Bell (March 3, 1847 – August 2, 1922) was a Scottish-born inventor. "
        "He was born in Edinburgh, Scotland.",
        "Alexander Graham Bell",
    ),
    Passage("edi", "Edinburgh is the capital city of Scotland. The Water of Leith flows through it.", "Edinburgh"),
    Passage(
        "edison", "Thomas Edison (February 11, 1847 – October 18, 1931) was an American inventor.", "Thomas Edison"
    ),
)
GRAPH = QuestionGraph(
    (
        Triple("Telephone", "was patented by", "Alexander Graham Bell", (Source("tel", 0, 60, 1),)),
        Triple("Alexander Graham Bell", "was born in", "Edinburgh", (Source("bell", 86, 123, 2),)),
    )
)


def answered(question: str, **options: Any) -> Answer:
    return OfflineAnswerer(**options).answer(question, GRAPH, PASSAGES, ())


def test_a_date_is_answered_whole() -> None:
    # brackets say that he died without the word, so that little speaks for it
    assert answered("On what date did Alexander Graham Bell die?", least_confidence=0.0).text == "August 2, 1922"


def test_who_is_answered_with_a_person() -> None:
    assert answered("Who patented the telephone?").text == "Alexander Graham Bell"


def test_where_is_answered_with_a_place() -> None:
    assert "Edinburgh" in answered("Where was Alexander Graham Bell born?").text


def test_the_first_citation_is_the_sentence_the_answer_stands_in() -> None:
    found = answered("Who patented the telephone?")
    assert found.citations[0].quote == "The telephone was patented by Alexander Graham Bell in 1876."
    assert found.citations[0].triple_ids == (GRAPH.facts[0].id,)


def test_a_comparison_names_one_of_the_two_and_cites_both() -> None:
    found = answered("Who died first, Thomas Edison or Alexander Graham Bell?")
    assert found.text == "Alexander Graham Bell"
    assert {citation.passage_id for citation in found.citations} == {"bell", "edison"}


def test_a_yes_no_question_gets_yes_or_no() -> None:
    assert answered("Are Thomas Edison and Alexander Graham Bell both inventors?").text == "yes"
    assert answered("Are Thomas Edison and Alexander Graham Bell both American?").text == "no"


def test_nothing_to_read_is_no_answer() -> None:
    found = OfflineAnswerer().answer("Who patented the telephone?", QuestionGraph(), (), ())
    assert found == Answer(I_DO_NOT_KNOW, abstained=True)


@pytest.mark.parametrize("question", ["Who patented the telephone?", "When did Alexander Graham Bell die?"])
def test_confidence_is_a_share(question: str) -> None:
    confidence = answered(question).confidence
    assert confidence is not None
    assert 0.0 <= confidence <= 1.0


def test_an_answerer_that_must_answer_never_abstains() -> None:
    assert not answered("Which opera did the mayor of Paris sing in?", may_abstain=False).abstained

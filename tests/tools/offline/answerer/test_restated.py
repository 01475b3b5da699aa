"""Sentences that say a question again with its answer, and those that only seem to."""

import pytest

from ras_agent import create_ras_agent
from ras_agent.text.words import stem_set
from ras_agent.tools.offline.answerer.wording import is_restated


@pytest.mark.parametrize(
    ("question", "answer", "sentence"),
    [
        ("Where is Tarn Hall?", "Orvena", "The Tarn Hall is in Orvena."),
        ("Who built Tarn Hall?", "Mo Fell", "Tarn Hall was built by Mo Fell."),
        ("Who was hired by Ann Lee?", "Bo Day", "Bo Day was hired by Ann Lee."),
        ("Who did Ann Lee hire?", "Bo Day", "Ann Lee hired Bo Day."),
        ("When did Korl Works open?", "May 1911", "Korl Works opened in May 1911."),
        ("How many people live in Varn?", "4,312", "4,312 people live in Varn."),
    ],
)
def test_a_sentence_restates_a_question(
    question: str, answer: str, sentence: str
) -> None:
    assert is_restated(question, answer, sentence, frozenset())


@pytest.mark.parametrize(
    ("question", "answer", "sentence"),
    [
        ("Where is Tarn Hall?", "white", "Tarn Hall is white."),
        ("Where is Tarn Hall?", "Orvena", "Tarn Hall is not in Orvena."),
        ("Who hired Ann Lee?", "Bo Day", "Ann Lee hired Bo Day."),
        ("Who was hired by Ann Lee?", "Bo Day", "Ann Lee was hired by Bo Day."),
        ("Who is mayor of Varn?", "Ada Crane", "Ada Crane was mayor of Varn."),
        ("Who signed bill 12?", "Ada Crane", "Bill 11 was signed by Ada Crane."),
        ("When did Korl Works open?", "Varn", "Korl Works opened in Varn."),
        ("Who owns Tarn Hall?", "Mo Fell", "Mo Fell owns the roof of Tarn Hall."),
        ("Which ferry goes from Varn to Pell?", "A", "A goes from Pell to Varn."),
    ],
)
def test_a_sentence_says_something_else(
    question: str, answer: str, sentence: str
) -> None:
    assert not is_restated(question, answer, sentence, stem_set("ferry"))


def test_the_noun_that_says_the_sort_of_the_answer_may_be_missing() -> None:
    question = "In which town is Tarn Hall?"
    sentence = "Tarn Hall is in Orvena."
    assert is_restated(question, "Orvena", sentence, stem_set("town"))


@pytest.mark.parametrize("question", ["Where is Tarn Hall?", "Which town is it in?"])
def test_the_shortest_of_questions_is_answered(question: str) -> None:
    agent = create_ras_agent(index=["The Tarn Hall is in Orvena. It has a roof."])
    out = agent.invoke({"question": question.replace("it", "Tarn Hall")})
    assert out["answer"] == "Orvena"

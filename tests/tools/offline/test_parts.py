"""The answer of a question in a sentence that says the same of several things."""

import pytest

from ras_agent import create_ras_agent
from ras_agent.tools.offline.parts import in_its_part

DESIGNERS = "Ann Lee designed the bridge and Bob Ray designed the tower."
TICKETS = "Tickets are 12 euros for adults and 6 euros for children."
BIRTHS = "Ann Lee was born in 1950 and Bob Ray in 1961."
TEAMS = "The red team is led by Ann Lee, the blue team by Bob Ray."
RACES = "Tom Hale won the men's race and Ida Moss won the women's race."
MEMBERS = "In 2020 the club had 310 members, in 2021 it had 280."


@pytest.mark.parametrize(
    ("sentence", "question", "read", "answer"),
    [
        (DESIGNERS, "Who designed the tower?", "Ann Lee", "Bob Ray"),
        (DESIGNERS, "Who designed the bridge?", "Ann Lee", "Ann Lee"),
        (TICKETS, "How much is a ticket for children?", "12 euros", "6 euros"),
        (TICKETS, "How much is a ticket for adults?", "12 euros", "12 euros"),
        (BIRTHS, "When was Bob Ray born?", "1950", "1961"),
        (BIRTHS, "When was Ann Lee born?", "1950", "1950"),
        (TEAMS, "Who leads the blue team?", "Ann Lee", "Bob Ray"),
        (MEMBERS, "How many members did the club have in 2021?", "310", "280"),
        (RACES, "Who won the women's race?", RACES[:40], "Ida Moss"),
        (RACES, "Who won the men's race?", RACES[:40], "Tom Hale"),
        (MEMBERS, "How many members did the club have in 2020?", "310", "310"),
        (
            "The tower is 80 metres high and 12 metres wide.",
            "How wide is the tower?",
            "80 metres high and 12 metres",
            "12 metres",
        ),
    ],
)
def test_each_part_has_its_own_answer(
    sentence: str, question: str, read: str, answer: str
) -> None:
    assert in_its_part(question, read, sentence) == answer


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        ("Ann Lee founded Korl and hired Bob Ray.", "Who hired Bob Ray?", "Ann Lee"),
        ("Ann Lee founded Korl and hired Bob Ray.", "Who hired a cook?", "Ann Lee"),
        ("The K2 weighs 1.4 kg and costs 899 euros.", "What is the K2's cost?", "899"),
        ("Ann Lee, Bob Ray and Cy Fox won the cup.", "Who won the cup?", "Ann Lee"),
        ("Ann Lee and Bob Ray won the cup.", "Who won the cup?", "Ann Lee and Bob Ray"),
        ("A costs 9 euros and lasts two days.", "How long does A last?", "two days"),
        ("Varn has 4,312 people.", "How many people has Varn?", "4,312"),
        ("Ann Lee was born in Ulm and died in Bath.", "Where was she born?", "Ulm"),
    ],
)
def test_the_answer_stays_where_no_other_part_is_asked_about(
    sentence: str, question: str, answer: str
) -> None:
    assert in_its_part(question, answer, sentence) == answer


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        (DESIGNERS, "Who designed the tower?", "Bob Ray"),
        (TEAMS, "Who leads the blue team?", "Bob Ray"),
        (BIRTHS, "When was Bob Ray born?", "1961"),
    ],
)
def test_the_agent_answers_from_the_part_that_is_asked_about(
    sentence: str, question: str, answer: str
) -> None:
    out = create_ras_agent(index=[sentence]).invoke({"question": question})
    assert out["answer"] == answer

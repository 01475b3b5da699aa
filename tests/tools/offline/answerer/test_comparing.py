"""Choices, verdicts and common ground between two things."""

import pytest

from ras_agent.records import Passage
from ras_agent.tools.offline.answerer.choice import Choice, Side, choose, sides_of
from ras_agent.tools.offline.answerer.yes_no import Verdict, decide
from ras_agent.tools.offline.question import QuestionAnalysis, analyse
from ras_agent.tools.offline.reading import read

PASSAGES = [
    Passage("a", "Ada Alder (born 3 May 1901) is an American painter and novelist.", "Ada Alder"),
    Passage("b", "Ben Birch (7 June 1890 – 1 March 1970) was an English novelist and sailor.", "Ben Birch"),
    Passage("c", "Cold Creek is a rock band formed in 1999, consisting of Amy Ash, Bo Bay and Cy Cole.", "Cold Creek"),
    Passage("d", "Dry Dock are a band founded by the duo of Di Dee and Ed Eck in 2004.", "Dry Dock (band)"),
    Passage("e", "Elm Lake covers 34,000 hectares in Spain.", "Elm Lake"),
    Passage("f", "Fir Lake covers 40 km2 in Spain.", "Fir Lake"),
]


def compared(question: str) -> tuple[QuestionAnalysis, tuple[Side, ...]]:
    asked = analyse(question)
    return asked, sides_of(asked, read(PASSAGES))


def chosen(question: str) -> Choice:
    return choose(*compared(question))


def verdict(question: str) -> Verdict:
    return decide(*compared(question))


def test_each_side_gets_the_passage_about_it() -> None:
    _, sides = compared("Which band formed earlier, Cold Creek or Dry Dock?")
    assert [side.sentences[0].passage.id for side in sides] == ["c", "d"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who is older, Ada Alder or Ben Birch?", "Ben Birch"),
        ("Who is younger, Ada Alder or Ben Birch?", "Ada Alder"),
        ("Which band was formed first, Cold Creek or Dry Dock?", "Cold Creek"),
        ("Which band formed more recently, Cold Creek or Dry Dock?", "Dry Dock"),
        ("Which band has more members, Cold Creek or Dry Dock?", "Cold Creek"),
        ("Who was a sailor, Ada Alder or Ben Birch?", "Ben Birch"),
    ],
)
def test_a_choice_follows_dates_numbers_or_words(question: str, answer: str) -> None:
    choice = chosen(question)
    assert choice.side.name == answer
    assert choice.decided


def test_a_choice_cites_both_sides() -> None:
    assert [read.passage.id for read in chosen("Who is older, Ada Alder or Ben Birch?").grounds] == ["a", "b"]


@pytest.mark.parametrize(
    ("question", "yes"),
    [
        ("Are both Ada Alder and Ben Birch novelists?", True),
        ("Are Ada Alder and Ben Birch both painters?", False),
        ("Were Ada Alder and Ben Birch of the same nationality?", False),
        ("Are Elm Lake and Fir Lake located in the same country?", True),
    ],
)
def test_a_verdict_needs_every_side(question: str, yes: bool) -> None:
    assert verdict(question).yes is yes

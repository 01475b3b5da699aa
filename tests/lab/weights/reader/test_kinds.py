"""Questions of yes or no about the kinds of things, made of how texts about them begin."""

import random

import pytest

from lab.weights.reader.kinds import kind_questions, lead, plural, thing_of
from ras_agent.contracts.records import Passage

ANN = Passage(
    "a",
    "Ann Lee (born 1950) is a Danish novelist and painter. She lives in Ulm.",
    "Ann Lee",
)
BO = Passage("b", "Bo Berg is a Swedish film director from Graz, Austria.", "Bo Berg")
CY = Passage("c", "Cy Day is an English actress.", "Cy Day")
LAKE = Passage(
    "d", "Lake Nor is a small lake in Norland, Sweden. It is deep.", "Lake Nor"
)
MILL = Passage(
    "e",
    "Old Mill was an American paper company based in Ohio, United States.",
    "Old Mill",
)


def _made(*passages: Passage) -> dict[tuple[str, str], str]:
    """Return verdicts by source and question."""
    return {
        (one.source, one.question): one.verdict
        for seed in range(40)
        for one in kind_questions(passages, random.Random(seed), 60)
    }


def test_the_first_sentence_says_what_people_and_places_a_thing_is_of() -> None:
    def told(passage: Passage) -> object:
        thing = thing_of(passage)
        return thing and (thing.kinds, thing.peoples, thing.places, thing.is_person)

    assert told(ANN) == (("novelist", "painter"), ("Danish",), (), True)
    assert told(BO) == (("film director",), ("Swedish",), ("Graz", "Austria"), True)
    assert told(LAKE) == (("small lake",), (), ("Norland", "Sweden"), False)
    assert thing_of(Passage("x", "In 1912 it rained for forty days.", "Rain")) is None


def test_a_question_about_one_thing_is_asked_in_wider_words_too() -> None:
    made = _made(ANN, BO)
    assert made["kind", "Is Ann Lee a writer?"] == "true"
    assert made["kind", "Is Ann Lee from Denmark?"] == "true"
    assert made["kind", "Has Ann Lee written novels?"] == "true"
    assert made["kind", "Is Ann Lee a film director?"] == "false"
    assert made["kind", "Is Bo Berg from Denmark?"] == "false"


def test_a_question_about_two_things_over_one_text_is_judged_of_that_one() -> None:
    halves = [
        one
        for seed in range(40)
        for one in kind_questions([ANN, BO], random.Random(seed), 60)
    ]
    judged = {
        (one.text.split(" is ")[0], one.verdict)
        for one in halves
        if one.source == "kind_half"
        and one.question
        in (
            "Are Ann Lee and Bo Berg both painters?",
            "Are Bo Berg and Ann Lee both painters?",
        )
    }
    assert judged == {
        ("Ann Lee. Ann Lee (born 1950)", "true"),
        ("Bo Berg. Bo Berg", "false"),
    }


def test_a_question_over_both_texts_holds_only_of_both() -> None:
    made = _made(ANN, CY)
    assert made["kind_pair", "Are Ann Lee and Cy Day both painters?"] == "false"
    assert (
        made["kind_pair", "Are Ann Lee and Cy Day of the same nationality?"] == "false"
    )
    places = _made(LAKE, MILL)
    assert (
        places["kind_pair", "Are Lake Nor and Old Mill in the same country?"] == "false"
    )


def test_what_may_hold_in_other_words_is_not_asked_as_false() -> None:
    """A novelist is an author; and who knew a Danish novelist may be either."""
    other = Passage(
        "f", "Di Fox is an English author who knew a Danish novelist.", "Di Fox"
    )
    made = _made(ANN, other)
    assert ("kind", "Is Di Fox a novelist?") not in made
    assert made["kind", "Is Ann Lee an author?"] == "true"
    assert ("kind", "Is Di Fox from Denmark?") not in made


def test_english_and_scottish_are_not_told_apart_by_nationality() -> None:
    scot = Passage("g", "Eve Roy is a Scottish actress.", "Eve Roy")
    made = _made(CY, scot, ANN, BO)
    assert made["kind", "Is Cy Day from England?"] == "true"
    assert ("kind", "Is Cy Day from Scotland?") not in made
    assert ("kind", "Is Cy Day a Scottish actress?") not in made
    asked = {question for _, question in _made(CY, scot)}
    assert not any(
        "same nationality" in question or "same country" in question
        for question in asked
    )


def test_there_are_as_many_as_wanted_and_none_of_a_single_thing() -> None:
    assert (
        len(list(kind_questions([ANN, BO, CY, LAKE, MILL], random.Random(0), 30))) == 30
    )
    assert list(kind_questions([ANN], random.Random(0), 5)) == []


def test_a_lead_is_the_first_two_sentences() -> None:
    assert (
        lead("One is here. Two is there. Three is away.")
        == "One is here. Two is there."
    )


@pytest.mark.parametrize(
    ("noun", "more"),
    [
        ("city", "cities"),
        ("play", "plays"),
        ("businesswoman", "businesswomen"),
        ("actress", "actresses"),
        ("monarch", "monarchs"),
        ("television series", "television series"),
        ("member of parliament", "members of parliament"),
        ("place where people live", "places where people live"),
        ("aircraft", "aircraft"),
    ],
)
def test_plurals(noun: str, more: str) -> None:
    assert plural(noun) == more

"""Choices, verdicts and common ground between two things."""

import pytest

from ras_agent.contracts.records import Passage
from ras_agent.tools.offline.answerer.compare import Reply, compare, in_common, sides_of
from ras_agent.tools.offline.question import analyse
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.offline.reading import read

PACKAGED = Reader()
PASSAGES = [
    Passage(
        "a",
        "Ada Alder (born 3 May 1901) is an American painter and novelist.",
        "Ada Alder",
    ),
    Passage(
        "b",
        "Ben Birch (7 June 1890 – 1 March 1970) was an English novelist and sailor.",
        "Ben Birch",
    ),
    Passage(
        "c",
        "Cold Creek is a rock band formed in 1999, consisting of Amy Ash, Bo Bay and Cy Cole.",
        "Cold Creek",
    ),
    Passage(
        "d",
        "Dry Dock are a band founded by the duo of Di Dee and Ed Eck in 2004.",
        "Dry Dock (band)",
    ),
    Passage("e", "Elm Lake covers 34,000 hectares in Spain.", "Elm Lake"),
    Passage("f", "Fir Lake covers 40 km2 in Spain.", "Fir Lake"),
]


def compared(question: str) -> Reply:
    asked = analyse(question)
    return compare(asked, sides_of(asked, read(PASSAGES)), PACKAGED)


def test_each_side_gets_the_passage_about_it() -> None:
    sides = sides_of(
        analyse("Which band formed earlier, Cold Creek or Dry Dock?"), read(PASSAGES)
    )
    assert [side.sentences[0].passage.id for side in sides] == ["c", "d"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who is older, Ada Alder or Ben Birch?", "Ben Birch"),
        ("Who is younger, Ada Alder or Ben Birch?", "Ada Alder"),
        ("Which band was formed first, Cold Creek or Dry Dock?", "Cold Creek"),
        ("Which band formed more recently, Cold Creek or Dry Dock?", "Dry Dock"),
        ("Which band has more members, Cold Creek or Dry Dock?", "Cold Creek"),
        ("Which lake is larger, Elm Lake or Fir Lake?", "Elm Lake"),
        ("Who was a sailor, Ada Alder or Ben Birch?", "Ben Birch"),
    ],
)
def test_a_choice_follows_dates_numbers_or_words(question: str, answer: str) -> None:
    assert compared(question).text == answer


def test_a_comparison_is_as_sure_as_what_it_goes_by() -> None:
    sure = [
        compared(question).confidence or 0.0
        for question in (
            "Who is older, Ada Alder or Ben Birch?",
            "Is Ben Birch older than Ada Alder?",
            "Which lake is larger, Elm Lake or Fir Lake?",
            "Which lake is older, Elm Lake or Fir Lake?",
        )
    ]
    by_date, than, by_number, undecided = sure
    assert by_date == than > by_number > undecided
    assert undecided < 0.5


def test_members_are_counted_where_a_sentence_tells_who_they_are() -> None:
    beatles = "The Beatles came from Liverpool. The band consisted of Ann Ash, Bo Bay, Cy Cole and Di Dee."
    cream = "Cream played in London, Paris, Rome, Ulm and Bath. Its members were Ed Eck, Flo Fay and Gil Gray."
    passages = read(
        [Passage("a", beatles, "The Beatles"), Passage("b", cream, "Cream")]
    )
    for question, answer in (
        ("Which band had more members, The Beatles or Cream?", "Beatles"),
        ("Did The Beatles have more members than Cream?", "yes"),
    ):
        asked = analyse(question)
        assert compare(asked, sides_of(asked, passages), PACKAGED).text == answer


def test_namesakes_are_answered_with_what_tells_them_apart() -> None:
    book = Passage(
        "a",
        "Emma is a novel by Jane Austen that was published in 1815.",
        "Emma (novel)",
    )
    film = Passage("b", "Emma is a film that was published in 1996.", "Emma (film)")
    asked = analyse("Which was published first, Emma (novel) or Emma (film)?")
    assert (
        compare(asked, sides_of(asked, read([film, book])), PACKAGED).text
        == "Emma (novel)"
    )


def test_a_choice_cites_both_sides() -> None:
    assert [
        read.passage.id
        for read in compared("Who is older, Ada Alder or Ben Birch?").grounds
    ] == ["a", "b"]


@pytest.mark.parametrize(
    ("question", "yes"),
    [
        ("Are both Ada Alder and Ben Birch novelists?", True),
        ("Are Ada Alder and Ben Birch both painters?", False),
        ("Were Ada Alder and Ben Birch of the same nationality?", False),
        ("Were Ada Alder and Ben Birch of different nationality?", True),
        ("Is Ada Alder older than Ben Birch?", False),
        ("Is Ben Birch older than Ada Alder?", True),
        ("Are Elm Lake and Fir Lake located in the same country?", True),
    ],
)
def test_a_verdict_needs_every_side(question: str, yes: bool) -> None:
    assert compared(question).text == ("yes" if yes else "no")


@pytest.mark.parametrize(
    ("question", "yes"),
    [
        ("Are Ada Alder and Ben Birch both writers?", True),
        ("Are Ada Alder and Ben Birch both musicians?", False),
        ("Have both Ada Alder and Ben Birch painted?", False),
        ("Are Ada Alder and Ben Birch both from the United States?", False),
    ],
)
def test_a_verdict_understands_wider_words(question: str, yes: bool) -> None:
    assert compared(question).text == ("yes" if yes else "no")


def test_a_verdict_is_as_sure_as_its_less_sure_side() -> None:
    sure, unsure = (
        compared(f"Are both Ada Alder and Ben Birch {what}?")
        for what in ("novelists", "writers")
    )
    assert sure.confidence is not None
    assert unsure.confidence is not None
    assert 0.5 <= unsure.confidence < sure.confidence <= 1


def shared(question: str, *texts: tuple[str, str]) -> Reply | None:
    asked = analyse(question)
    passages = read([Passage(title, text, title) for title, text in texts])
    return in_common(asked, sides_of(asked, passages), PACKAGED)


ALDER = ("Ada Alder", "Ada Alder was an American painter, novelist and teacher.")


def test_what_two_have_in_common_is_what_both_texts_answer() -> None:
    birch = ("Ben Birch", "Ben Birch was an English novelist and sailor.")
    reply = shared(
        "What profession do Ada Alder and Ben Birch have in common?", ALDER, birch
    )
    assert reply is not None
    assert reply.text == "novelist"
    assert [sentence.passage.id for sentence in reply.grounds] == [
        "Ada Alder",
        "Ben Birch",
    ]


def test_a_plural_asks_for_all_that_two_have_in_common() -> None:
    birch = ("Ben Birch", "Ben Birch was an English sailor, novelist and teacher.")
    reply = shared(
        "What professions do Ada Alder and Ben Birch have in common?", ALDER, birch
    )
    assert reply is not None
    assert set(reply.text.split(" and ")) == {"novelist", "teacher"}


def test_where_two_texts_answer_nothing_alike_there_is_nothing_in_common() -> None:
    # a nationality is no profession
    sailor = (
        "Ben Birch",
        "Ben Birch was an American sailor.",
    )
    assert (
        shared(
            "What profession do Ada Alder and Ben Birch have in common?", ALDER, sailor
        )
        is None
    )


@pytest.mark.parametrize(
    ("question", "one", "other", "both"),
    [
        ("How long are Oak Hall and Elm Hall?", "is 10 km long", "is 20 km long", None),
        (
            "Where are Oak Hall and Elm Hall?",
            "is a hall in New York City",
            "is a hall in Kansas City",
            None,
        ),
        (
            "In which state are Oak Hall and Elm Hall?",
            "lies in North Carolina",
            "lies in South Carolina",
            None,
        ),
        (
            "How many seats do both Oak Hall and Elm Hall have?",
            "has 1,200 seats",
            "has 3,200 seats",
            None,
        ),
        (
            "How many seats do both Oak Hall and Elm Hall have?",
            "has 1,200 seats",
            "has 1,200 seats",
            "1,200",
        ),
        (
            "In which city are Oak Hall and Elm Hall?",
            "is a hall in Salem, Ohio",
            "is a hall in Salem, Ohio",
            "Salem",
        ),
    ],
)
def test_names_and_numbers_are_alike_only_whole(
    question: str, one: str, other: str, both: str | None
) -> None:
    reply = shared(
        question, ("Oak Hall", f"Oak Hall {one}."), ("Elm Hall", f"Elm Hall {other}.")
    )
    assert (reply and reply.text) == both


@pytest.mark.parametrize(
    ("question", "yes"),
    [("in the same state", "no"), ("of the same number of seats", "yes")],
)
def test_an_equal_number_is_shared_only_where_a_number_is_asked_for(
    question: str, yes: str
) -> None:
    mill = Passage("m", "Old Mill is a theatre of 90 seats in Ohio.", "Old Mill")
    hall = Passage("h", "New Hall is a theatre of 90 seats in Utah.", "New Hall")
    asked = analyse(f"Are Old Mill and New Hall {question}?")
    assert compare(asked, sides_of(asked, read([mill, hall])), PACKAGED).text == yes


def test_a_shared_name_is_no_shared_number() -> None:
    mill = Passage("m", "Old Mill is a theatre of 90 seats in Ohio.", "Old Mill")
    hall = Passage("h", "New Hall is a theatre of 70 seats in Ohio.", "New Hall")
    asked = analyse("Do Old Mill and New Hall have the same number of seats?")
    assert compare(asked, sides_of(asked, read([mill, hall])), PACKAGED).text == "no"


def test_a_question_that_denies_asks_for_the_opposite() -> None:
    assert compared("Are Ada Alder and Ben Birch both not novelists?").text == "no"

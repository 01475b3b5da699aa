"""A question over several texts is answered from the inside out; readers here are scripted."""

from collections.abc import Sequence

import pytest

from ras_agent.contracts.records import Hit, Passage, Span, Step
from ras_agent.tools.offline.chain import (
    answers,
    answers_in_pairs,
    asking_for,
    fits,
    follow,
    innermost,
    leading_to,
    passages_of,
)
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.offline.reading import read

BELL = Passage(
    "bell",
    "Alexander Graham Bell was born in Edinburgh. He moved to Canada in 1870.",
    "Alexander Graham Bell",
)
LEITH = Passage(
    "leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"
)
PHONE = Passage(
    "phone", "The telephone was invented by Alexander Graham Bell.", "Telephone"
)


class Scripted(Reader):
    """Points at the parts that it was given, and answers each question with a word, wherever a text holds it."""

    def __init__(self, described: dict[str, str], answers: dict[str, str]) -> None:
        super().__init__()
        self._described, self._answers = described, answers

    def described(self, question: str) -> Span | None:
        part = self._described.get(question)
        return (
            Span(question.index(part), question.index(part) + len(part), 1.0)
            if part
            else None
        )

    def read(self, question: str, texts: Sequence[str]) -> list[list[Span]]:
        word = self._answers.get(question, "nothing")
        places = [text.rfind(word) for text in texts]
        return [[Span(at, at + len(word), 20.0)] if at >= 0 else [] for at in places]


RIVER = (
    "Which river flows through the city where the inventor of the telephone was born?"
)
INVENTOR, CITY = (
    "the inventor of the telephone",
    "the city where Alexander Graham Bell was born",
)
READER = Scripted(
    {
        RIVER: "the city where the inventor of the telephone was born",
        "What is the city where the inventor of the telephone was born?": INVENTOR,
        RIVER.replace(INVENTOR, "Alexander Graham Bell"): CITY,
    },
    {
        "Who is the inventor of the telephone?": "Alexander Graham Bell",
        f"What is {CITY}?": "Edinburgh",
        "Which river flows through Edinburgh?": "Water of Leith",
        RIVER: "Water of Leith",
    },
)


def _steps(*searches: tuple[str, Passage]) -> list[Step]:
    return [
        Step(number, query, (Hit(passage, 1.0),))
        for number, (query, passage) in enumerate(searches, 1)
    ]


SEARCHES = [
    ("Who is the inventor of the telephone?", PHONE),
    (f"What is {CITY}?", BELL),
    ("Which river flows through Edinburgh?", LEITH),
]


def test_the_innermost_description_is_found_first() -> None:
    assert innermost(RIVER, READER) == INVENTOR
    assert innermost("Who was Bell?", READER) == ""


def test_the_predicate_of_the_outer_description_is_no_part_of_the_inner_one() -> None:
    town = "the town where the inventor of it was born"
    asked = f"Which river is in {town}?"
    reader = Scripted(
        {asked: town, f"What is {town}?": "the inventor of it was born"}, {}
    )
    assert innermost(asked, reader) == "the inventor of it"


@pytest.mark.parametrize(
    ("done", "asked"), list(enumerate([query for query, _ in SEARCHES]))
)
def test_each_answer_opens_the_next_question(done: int, asked: str) -> None:
    steps = _steps(*SEARCHES[:done])
    chain = follow(RIVER, READER, steps, passages_of(steps))
    assert (chain.open, len(chain.links)) == (asked, min(done, 2))


def test_a_chain_ends_with_every_description_named() -> None:
    steps = _steps(*SEARCHES)
    chain = follow(RIVER, READER, steps, passages_of(steps))
    assert (chain.question, chain.open) == ("Which river flows through Edinburgh?", "")
    assert [link.found.text for link in chain.links] == [
        "Alexander Graham Bell",
        "Edinburgh",
    ]
    assert chain.end is not None
    assert chain.end.text == "Water of Leith"
    assert chain.worth == pytest.approx(
        sum(link.found.worth for link in chain.links) + chain.end.worth
    )


def test_texts_that_do_not_answer_a_link_stop_the_chain() -> None:
    steps = _steps((SEARCHES[0][0], LEITH))
    chain = follow(RIVER, READER, steps, passages_of(steps))
    assert (chain.open, chain.links, chain.end) == ("", (), None)


class First(Scripted):
    """Points at where a text, behind its title, first has the word."""

    def read(self, question: str, texts: Sequence[str]) -> list[list[Span]]:
        word = self._answers[question]
        places = [text.index(word, text.index(". ") + 1) for text in texts]
        return [[Span(at, at + len(word), 20.0)] for at in places]


@pytest.mark.parametrize("title", ["A sculptor", "Bartholdi"])
def test_the_sentence_of_an_answer_is_the_one_that_says_what_was_asked(
    title: str,
) -> None:
    text = "Bartholdi was a French sculptor. Bartholdi made the Lion of Belfort. Its maker died in 1904."
    question = "Who made the Lion of Belfort?"
    (found,) = answers(
        question, First({}, {question: "Bartholdi"}), read([Passage("b", text, title)])
    )
    assert (found.text, found.sentence.text) == (
        "Bartholdi",
        "Bartholdi made the Lion of Belfort.",
    )


def test_an_answer_is_in_a_sentence_of_the_text_and_never_in_the_title_or_the_question() -> (
    None
):
    (bell,) = read([BELL])
    reader = Scripted(
        {}, {"Where?": "Canada", "Who?": "Alexander", "Was it Edinburgh?": "Edinburgh"}
    )
    (found,) = answers("Where?", reader, [bell])
    assert (found.text, found.sentence.text) == (
        "Canada",
        "He moved to Canada in 1870.",
    )
    assert answers("Was it Edinburgh?", reader, [bell]) == []
    titled = read([Passage("t", "Nobody is named.", "Alexander")])
    assert answers("Who?", reader, titled) == []


@pytest.mark.parametrize(
    ("text", "pointed_at"),
    [
        ("| Pressure | 10 bar |\n| Temperature | 60 |", "10 bar |\n| Temperature"),
        ("It ends at 10 bar\n\nThe next section begins.", "10 bar\n\nThe next section"),
        ("It is 10 bar; an engine makes it.", "10 bar; an"),
    ],
)
def test_an_answer_ends_with_its_cell_its_paragraph_and_its_last_word(
    text: str, pointed_at: str
) -> None:
    (found,) = answers(
        "How high is it?",
        Scripted({}, {"How high is it?": pointed_at}),
        read([Passage("p", text)]),
    )
    assert found.text == "10 bar"


@pytest.mark.parametrize(
    ("question", "text", "pointed_at", "answer"),
    [
        ("Who made it?", "Team 7 made it.", "Team", "Team 7"),
        ("Who met there?", "Ulm 12 boats met there.", "Ulm", "Ulm"),
        ("Which city was hit?", "In Orvena 40 people died.", "Orvena", "Orvena"),
        ("What was there?", "On March 3, 1990 it came.", "March", "March"),
    ],
)
def test_a_number_belongs_to_a_name_before_it_unless_it_counts_something(
    question: str, text: str, pointed_at: str, answer: str
) -> None:
    reader = Scripted({}, {question: pointed_at})
    (found,) = answers(question, reader, read([Passage("p", text)]))
    assert found.text == answer


def test_of_one_answer_in_several_texts_the_likeliest_counts() -> None:
    reader = Scripted({}, {"Where?": "Edinburgh"})
    found = answers("Where?", reader, read([BELL, LEITH]))
    assert [(one.text, one.sentence.passage.id) for one in found] == [
        ("Edinburgh", "bell")
    ]


def test_a_pair_is_a_text_and_the_one_that_it_names() -> None:
    reader = Scripted({}, {"Where was the inventor born?": "Edinburgh"})
    passages = read([PHONE, BELL])
    found = answers_in_pairs("Where was the inventor born?", reader, passages)
    assert [(one.text, one.sentence.passage.id) for one in found] == [
        ("Edinburgh", "bell")
    ]
    (leading,) = leading_to(
        found[0], "Where was the telephone's inventor born?", passages
    )
    assert leading.text == "The telephone was invented by Alexander Graham Bell."
    assert leading_to(found[0], "Where was Alexander Graham Bell born?", passages) == ()
    assert (
        answers_in_pairs("Where was the inventor born?", reader, read([LEITH, BELL]))
        == []
    )


@pytest.mark.parametrize(
    ("question", "answer", "is_fit"),
    [
        ("When was the bridge built?", "Scotland", False),
        ("When was the bridge built?", "in the spring of 1890", True),
        ("When does it rain?", "July and August", True),
        ("In which year was it built?", "1890", True),
        ("How many doors are there?", "Walmart", False),
        ("How many doors are there?", "three", True),
        ("Who built the bridge?", "1890", False),
        ("Who built the bridge?", "William Arrol", True),
        ("What was built?", "1890", True),
    ],
)
def test_an_answer_has_the_form_that_the_question_asks_for(
    question: str, answer: str, is_fit: bool
) -> None:
    assert fits(question, answer) == is_fit


@pytest.mark.parametrize(
    ("described", "asked"),
    [
        ("the river", "What is the river?"),
        ("the person who invented it", "Who is the person who invented it?"),
        ("the first president of Ghana", "Who is the first president of Ghana?"),
        (
            "the city where the inventor was born",
            "What is the city where the inventor was born?",
        ),
        ("what Bell invented", "What Bell invented?"),
        (", of Ulm", "What is , of Ulm?"),
    ],
)
def test_a_described_thing_is_asked_for(described: str, asked: str) -> None:
    assert asking_for(described) == asked


@pytest.mark.parametrize(
    ("text", "word", "answer"),
    [
        ("He patented the telephone.", "He", "Alexander Graham Bell"),
        (
            "Alexander Graham Bell patented the telephone.",
            "Bell",
            "Alexander Graham Bell",
        ),
        ("The Water of Leith is a river.", "The Water of Leith", "Water of Leith"),
        ("It is named after the Leith.", "the Leith", "the Leith"),
    ],
)
def test_an_answer_is_told_by_its_whole_name(text: str, word: str, answer: str) -> None:
    passages = read([Passage("p", text, "Alexander Graham Bell")])
    assert (
        answers("Who is it?", Scripted({}, {"Who is it?": word}), passages)[0].text
        == answer
    )


def test_a_pronoun_in_a_text_without_a_title_is_no_answer() -> None:
    passages = read([Passage("p", "He patented the telephone.")])
    assert answers("Who is it?", Scripted({}, {"Who is it?": "He"}), passages) == []


def test_what_has_been_found_already_is_not_searched_for_again() -> None:
    both = read([BELL, PHONE])
    chain = follow(
        RIVER,
        READER,
        [Step(1, RIVER, (Hit(PHONE, 1.0), Hit(BELL, 1.0)))],
        {one.id: one for one in both},
    )
    assert [link.found.text for link in chain.links] == [
        "Alexander Graham Bell",
        "Edinburgh",
    ]
    assert chain.open == "Which river flows through Edinburgh?"


@pytest.mark.parametrize(
    ("question", "word", "text", "answer"),
    [
        (
            "Which river is long?",
            "Leith",
            "They saw the Water of Leith.",
            "Water of Leith",
        ),
        (
            "Which university is old?",
            "Ulm",
            "She left the University of Ulm.",
            "University of Ulm",
        ),
        (
            "In which city did she study?",
            "Ulm",
            "She left the University of Ulm.",
            "Ulm",
        ),
        ("Where did she study?", "Ulm", "She left the University of Ulm.", "Ulm"),
    ],
)
def test_the_end_of_a_name_is_the_whole_of_it_unless_a_place_is_asked_for(
    question: str, word: str, text: str, answer: str
) -> None:
    (found,) = answers(
        question, Scripted({}, {question: word}), read([Passage("a", text)])
    )
    assert found.text == answer


@pytest.mark.parametrize(
    ("pointed_at", "answer"),
    [
        ("Alexander Graham Bell was born in Edinburgh. He", "Alexander Graham Bell"),
        ("Edinburgh. He moved", "Edinburgh"),
    ],
)
def test_an_answer_ends_where_its_sentence_does(pointed_at: str, answer: str) -> None:
    question = "Who or what is it?"
    (found,) = answers(question, Scripted({}, {question: pointed_at}), read([BELL]))
    assert found.text == answer

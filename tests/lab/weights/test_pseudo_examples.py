"""Pseudo questions: their question phrases, and that the answer is at its spans."""

from lab.weights.pseudo_examples import pseudo_examples
from ras_agent.contracts.records import Passage
from ras_agent.train.pseudo_questions import answer_spans

PASSAGES = [
    Passage(
        "1",
        "The Amber Gate is a 1987 drama film directed by Ilse Brandt. It was shot in Malmö in 14 days.",
        "The Amber Gate",
    ),
    Passage(
        "2",
        "Ilse Brandt (born 3 May 1950) is a Danish film director. She studied in Aarhus until 1974.",
        "Ilse Brandt",
    ),
]


def asked(sentence: str) -> list[str]:
    return [sentence[start:end] for start, end in answer_spans(sentence)]


def test_dates_names_and_counts_can_be_asked_for() -> None:
    assert asked("Marta Lindqvist hired 12 masons in 1871.") == [
        "Marta Lindqvist",
        "12",
        "1871",
    ]


def test_a_whole_date_is_one_answer() -> None:
    assert asked("The lamp was lit on 14 May 1871.") == ["14 May 1871"]


def test_what_something_is_can_be_asked_for() -> None:
    assert asked("Otto was a lighthouse keeper who wrote songs.") == [
        "Otto",
        "lighthouse keeper",
    ]


def test_every_answer_is_at_its_spans() -> None:
    examples = [
        example for example in pseudo_examples(PASSAGES, 4, seed=1) if example.spans
    ]
    assert examples
    for example in examples:
        assert (
            len({example.text[start:end].lower() for start, end in example.spans}) == 1
        )


def test_a_seed_makes_the_same_questions_again() -> None:
    assert list(pseudo_examples(PASSAGES, 3, seed=7)) == list(
        pseudo_examples(PASSAGES, 3, seed=7)
    )


def test_a_passage_gives_no_more_than_its_share() -> None:
    assert len(list(pseudo_examples(PASSAGES[:1], 2, seed=0))) == 2

"""Nested questions come apart from the inside out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.tools.offline.question_chain import innermost


def _chain(question: str, *names: str) -> list[str]:
    """Every description in the order it is found, when each is known by one of `names`, and what is left to ask."""
    chain = []
    for name in names:
        described = innermost(question)
        if described is None:
            break
        chain.append(described.text)
        question = described.replaced(question, name)
    return [*chain, question]


def test_a_three_hop_question_comes_apart_link_by_link() -> None:
    question = "Which river flows through the city where the inventor of the telephone was born?"
    assert _chain(question, "Bell", "Edinburgh") == [
        "the inventor of the telephone",
        "the city where Bell was born",
        "Which river flows through Edinburgh?",
    ]


@pytest.mark.parametrize(
    ("question", "described", "noun"),
    [
        ("Where was the author of Things Fall Apart born?", "the author of Things Fall Apart", "author"),
        ("When was the publisher of Crux launched?", "the publisher of Crux", "publisher"),
        (
            "In which city was the composer of the music for Psycho born?",
            "the composer of the music for Psycho",
            "composer",
        ),
        ("When was the team that developed penicillin founded?", "the team that developed penicillin", "team"),
        (
            "What post did the person who introduced the DISCLOSE Act hold?",
            "the person who introduced the DISCLOSE Act",
            "person",
        ),
        ("Which river rises near the birthplace of Ada Lovelace?", "the birthplace of Ada Lovelace", "birthplace"),
        ("Who drank the drug discovered by Alexander Fleming?", "the drug discovered by Alexander Fleming", "drug"),
        ("What university is Anthony Marten's college part of?", "Anthony Marten's college", "college"),
        ("When did St James' organist die?", "St James' organist", "organist"),
        ("Where was the author of A Walk to the Sea born?", "the author of A Walk to the Sea", "author"),
        ("When did the council that met in 1921 end?", "the council that met in 1921", "council"),
        ("When did the Model B manufacturer close?", "the Model B manufacturer", "manufacturer"),
        ("Which port lies on the body of water in which Gozo lies?", "the body of water in which Gozo lies", "body"),
        (
            "How large is the city where the opening race was held in Wales?",
            "the city where the opening race was held in Wales",
            "city",
        ),
        (
            "Who led the society that wrote the code of ethics for nurses in Norway?",
            "the society that wrote the code of ethics for nurses in Norway",
            "society",
        ),
    ],
)
def test_a_description_is_found_whole_with_its_noun(question: str, described: str, noun: str) -> None:
    found = innermost(question)
    assert found is not None
    assert (found.text, found.noun) == (described, noun)
    assert question[found.start : found.end] == described


@pytest.mark.parametrize(
    "question",
    [
        "Which river flows through Edinburgh?",
        "Who was born earlier, Edvard Grieg or Henrik Ibsen?",
        "Who was the mother of Mary Shelley?",  # what is sought is not described
        "What is the length of the Salzach?",
        "Are Cypress and Ajuga genera?",
        "Who signed the declaration of independence?",  # of what sort, not of what thing
        "Where was the German composer Wagner born?",
        "Where did the German composer die?",
        "Who is the Model B manufacturer?",
        "",
    ],
)
def test_a_plain_question_holds_no_description(question: str) -> None:
    assert innermost(question) is None


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("The director of Rashomon was born where?", "Who is the director of Rashomon?"),
        ("In which town was the librettist of The Magic Flute born?", "Who is the librettist of The Magic Flute?"),
        ("In which town was the sculptor who designed Liberty born?", "Which sculptor designed Liberty?"),
        ("Which river flows through the city where Bell was born?", "In which city was Bell born?"),
        ("Who drank the drug discovered by Alexander Fleming?", "Which drug was discovered by Alexander Fleming?"),
        ("Which river rises near the birthplace of Ada Lovelace?", "What is the birthplace of Ada Lovelace?"),
        ("What university is Anthony Marten's college part of?", "What is Anthony Marten's college?"),
        ("When did the Model B manufacturer close?", "Who is the manufacturer of Model B?"),
    ],
)
def test_the_description_as_a_question(question: str, asked: str) -> None:
    found = innermost(question)
    assert found is not None
    assert found.as_question == asked


@given(st.text(max_size=80))
def test_any_text_is_read_without_an_error_and_located_inside_itself(text: str) -> None:
    found = innermost(text)
    assert found is None or text[found.start : found.end] == found.text != ""

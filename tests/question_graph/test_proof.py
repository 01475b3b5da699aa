"""The proof of an answer: which cited sentences lead from a name in the question to it, and where there is no proof."""

from __future__ import annotations

import pytest

from ras_agent.contracts.records import Citation, Source, Triple
from ras_agent.question_graph.proof import ProofStep, proof_of

BELL = (
    "Which river flows through the city where the inventor of the telephone was born?"
)
TELEPHONE = ("Telephone", "The telephone was patented by Alexander Graham Bell.")
BIRTH = ("Alexander Graham Bell", "He was born in Edinburgh.")
LEITH = ("Water of Leith", "The Water of Leith is the main river of Edinburgh.")


def cited(
    *sentences: tuple[str, str], facts: tuple[Triple, ...] = ()
) -> list[Citation]:
    return [
        Citation(
            number,
            f"p{number}",
            title,
            0,
            len(text),
            text,
            tuple(fact.id for fact in facts),
        )
        for number, (title, text) in enumerate(sentences, 1)
    ]


def names(
    question: str, answer: str, *sentences: tuple[str, str]
) -> list[tuple[str, str, int]]:
    return [
        (step.start, step.end, step.citation)
        for step in proof_of(question, answer, cited(*sentences), {})
    ]


def test_a_proof_leads_over_the_names_that_sentences_share_to_the_one_that_holds_the_answer() -> (
    None
):
    assert names(BELL, "Water of Leith", TELEPHONE, BIRTH, LEITH) == [
        ("Telephone", "Alexander Graham Bell", 1),
        ("Alexander Graham Bell", "Edinburgh", 2),
        ("Edinburgh", "Water of Leith", 3),
    ]


def test_its_order_is_that_of_the_names_whatever_the_order_of_the_citations() -> None:
    assert [
        step for *_, step in names(BELL, "Water of Leith", LEITH, TELEPHONE, BIRTH)
    ] == [2, 3, 1]


def test_a_class_word_connects_nothing_and_begins_nothing() -> None:
    assert (
        names(
            "Which river passes the city of painters?",
            "Arno",
            ("Pisa", "The Arno is a river near a city."),
        )
        == []
    )
    assert (
        names(BELL, "Arno", TELEPHONE, ("Florence", "A river in the city is the Arno."))
        == []
    )
    # a page about rivers is no name of this question
    assert (
        names("Which river is old?", "Arno", ("River", "An old river is the Arno."))
        == []
    )


def test_a_missing_sentence_leaves_no_proof() -> None:
    assert names(BELL, "Water of Leith", TELEPHONE, LEITH) == []
    assert names(BELL, "Water of Leith", BIRTH, LEITH) == []


def test_the_last_sentence_holds_the_answer_or_there_is_no_proof() -> None:
    assert names(BELL, "Clyde", TELEPHONE, BIRTH, LEITH) == []


def test_a_sentence_of_a_passage_about_the_answer_holds_it() -> None:
    made = ("Ines Brandl", "She made the Lion of Velmora.")
    assert names("Who made the Lion of Velmora?", "Ines Brandl", made) == [
        ("Lion of Velmora", "Ines Brandl", 1)
    ]


def test_a_name_of_the_question_may_lead_on_to_another_sentence() -> None:
    song = ("Rain (Ines Brandl song)", "Rain is a song by Ines Brandl.")
    born = ("Ines Brandl", "She was born in 1957.")
    assert names(
        "When was the singer of Rain (Ines Brandl song) born?", "1957", song, born
    ) == [
        ("Rain", "Ines Brandl", 1),
        ("Ines Brandl", "1957", 2),
    ]


def test_a_part_of_a_longer_name_is_another_name() -> None:
    question = "Where was the founder of Velmora born?"
    founder = ("Velmora", "It was founded by Bell.")
    assert (
        names(
            question,
            "Ulm",
            founder,
            ("Bell Telephone Company", "Bell Telephone Company opened in Ulm."),
        )
        == []
    )
    assert names(question, "Ulm", founder, ("Bell", "Bell was born in Ulm.")) == [
        ("Velmora", "Bell", 1),
        ("Bell", "Ulm", 2),
    ]


def test_a_name_that_another_tells_of_is_the_same_name() -> None:
    question = "When did the state of the Kraus Mounds join the union?"
    mounds = ("Kraus Mounds", "The Kraus Mounds lie in Mississippi.")
    history = ("History of Mississippi", "It joined the union in 1817.")
    assert names(question, "1817", mounds, history) == [
        ("Kraus Mounds", "Mississippi", 1),
        ("Mississippi", "1817", 2),
    ]


def test_a_proof_bears_every_name_of_the_question_that_the_citations_bear() -> None:
    question = "What share of the edits of the Velmora Encyclopaedia came from the country of Ostrell?"
    share = (
        "Velmora Encyclopaedia",
        "The Velmora Encyclopaedia got 5 % of its edits from Karelia.",
    )
    assert names(question, "5 %", share) == [("Velmora Encyclopaedia", "5 %", 1)]
    assert names(question, "5 %", share, ("Ostrell", "Ostrell is a town.")) == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Was Bell born in Edinburgh?", "yes"),
        ("Is Edinburgh or Glasgow older?", "Edinburgh"),
        ("Where is Bell?", ""),
    ],
)
def test_a_verdict_and_a_choice_are_not_led_to(question: str, answer: str) -> None:
    assert names(question, answer, ("Bell", "Bell was born in Edinburgh.")) == []


def test_facts_of_the_sentence_that_have_both_names_are_named() -> None:
    born = Triple(
        "Ines Brandl", "was born in", "river port Ostrell", (Source("p1", 0, 20, 1),)
    )
    elsewhere = Triple("Ines Brandl", "lived in", "Ostrell", (Source("p1", 90, 99, 1),))
    other = Triple("Ines Brandl", "was", "painter", (Source("p1", 0, 20, 1),))
    facts = {fact.id: fact for fact in (born, elsewhere, other)}
    citations = cited(("", "She was born in Ostrell."), facts=(born, elsewhere, other))
    assert proof_of("Where was Ines Brandl born?", "Ostrell", citations, facts) == (
        ProofStep("Ines Brandl", "Ostrell", 1, (born.id,)),
    )


def test_an_answer_in_a_sentence_is_led_to_by_a_name_that_it_has() -> None:
    answer = "The founder of Velmora was Ines Brandl, a painter."
    assert names(
        "Who founded Velmora?",
        answer,
        ("Velmora", "Velmora was founded by Ines Brandl."),
    ) == [("Velmora", "Ines Brandl", 1)]


def test_many_citations_that_share_many_names_are_searched_in_bounded_time() -> None:
    text = " ".join(f"Name{chr(65 + n)}x," for n in range(20))
    sentences = [(f"Page {n}", f"{text} and Velmora.") for n in range(12)]
    assert (
        len(
            names("Who leads Velmora?", "Ulm", *sentences, ("Ulm", "NameAx is in Ulm."))
        )
        == 0
    )

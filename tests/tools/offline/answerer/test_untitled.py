"""Texts without titles: things are compared by the subjects of sentences, and no neighbour's answer is given."""

from collections.abc import Sequence

import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.records import Passage
from ras_agent.tools.offline.answerer.answer import LEAST_CONFIDENCE, OfflineAnswerer
from ras_agent.tools.offline.answerer.unmet import lacks_what_is_named
from ras_agent.tools.offline.chain import without_clause
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.offline.reading import read

READER = Reader()


def reply(texts: Sequence[str], question: str) -> tuple[str, float]:
    """Return the likeliest answer and how sure it is."""
    passages = read(Passage(str(number), text) for number, text in enumerate(texts))
    found = OfflineAnswerer(READER).reply(question, passages, [])
    assert found is not None
    assert found.confidence is not None
    return found.text, found.confidence


@pytest.mark.parametrize(
    ("texts", "question", "answer"),
    [
        (
            [
                "Gannet Tower was designed by Edmund Fairlie.",
                "Opal Hall was designed by Edmund Fairlie.",
            ],
            "Were Gannet Tower and Opal Hall designed by the same architect?",
            "yes",
        ),
        (
            ["Opal Hall is 1931 metres high.", "Tarn House is 1950 metres high."],
            "Which is higher, Opal Hall or Tarn House?",
            "Tarn House",
        ),
        (
            ["Edmund Fairlie designed Gannet Tower. He also designed Opal Hall."],
            "Were Gannet Tower and Opal Hall designed by the same architect?",
            "yes",
        ),
        (
            [
                "Gannet Tower was founded by Ada Crane in Varn.",
                "Opal Hall was founded by Bo Dell in Varn.",
            ],
            "Were Gannet Tower and Opal Hall founded by the same person?",
            "no",
        ),
        (
            [
                "Tarn House stands in Varn. It was built by Ada Crane.",
                "Opal Hall stands in Orvik. It was built by Ada Crane.",
            ],
            "Were Tarn House and Opal Hall built by the same person?",
            "yes",
        ),
        (
            ["Anna Berg was born in Norway. Karl Lund was born in Norway."],
            "Were Anna Berg and Karl Lund born in different countries?",
            "no",
        ),
        (
            ["Anna Berg is Norwegian.", "Karl Lund is Danish."],
            "Do Anna Berg and Karl Lund have the same nationality?",
            "no",
        ),
        (
            [
                "Ilse Marrow was born on 3 May 1938. Tomas Quill was born on 4 June 1961."
            ],
            "Who was born earlier, Ilse Marrow or Tomas Quill?",
            "Ilse Marrow",
        ),
        (
            ["Gannet Tower is 80 metres high.", "Opal Hall is 120 metres high."],
            "Which is higher, Gannet Tower or Opal Hall?",
            "Opal Hall",
        ),
        (
            [
                "Opal Hall was built by Ada Crane.",
                "Ada Crane built Gannet Tower.",
            ],
            "Was Opal Hall built by the same person as Gannet Tower?",
            "yes",
        ),
        (
            ["Opal Hall was completed in 1911, Gannet Tower in 1904."],
            "Which was completed first, Opal Hall or Gannet Tower?",
            "Gannet Tower",
        ),
        (
            ["Ada Crane is 1711 mm tall. Bo Dell is 1804 mm tall."],
            "Who is taller, Ada Crane or Bo Dell?",
            "Bo Dell",
        ),
        (
            ["Opal Hall cost 1900 crowns.", "Gannet Tower cost 1200 crowns."],
            "Which was more expensive, Opal Hall or Gannet Tower?",
            "Opal Hall",
        ),
    ],
)
def test_two_things_are_compared_over_the_sentences_about_them(
    texts: list[str], question: str, answer: str
) -> None:
    told, sure = reply(texts, question)
    assert told == answer
    assert sure >= LEAST_CONFIDENCE


def test_a_proof_names_the_thing_that_its_pronouns_stand_for() -> None:
    text = (
        "The Little Auk left Dunmere in 1911. That ship carried coal. "
        "Her captain, Jonas Berg, was born in Varn."
    )
    asked = "Who was the captain of the Little Auk?"
    found = OfflineAnswerer(READER).reply(asked, read([Passage("1", text)]), [])
    assert found is not None
    assert found.text == "Jonas Berg"
    assert [one.text.split(" ")[0] for one in found.grounds] == ["The", "Her"]


@pytest.mark.parametrize(
    ("texts", "question"),
    [
        (
            ["Edmund Fairlie designed Gannet Tower."],
            "Were Gannet Tower and Opal Hall designed by the same architect?",
        ),
        (
            ["Gannet Tower was designed by Edmund Fairlie.", "Opal Hall is in Varn."],
            "Were Gannet Tower and Opal Hall designed by the same architect?",
        ),
        (
            ["Anna Berg was born in 1938.", "Karl Lund died in 1961."],
            "Who was born earlier, Anna Berg or Karl Lund?",
        ),
    ],
)
def test_nothing_is_sure_where_one_of_two_things_is_not_told(
    texts: list[str], question: str
) -> None:
    assert reply(texts, question)[1] < 0.5


@pytest.mark.parametrize(
    ("text", "met", "unmet"),
    [
        (
            "Invoice 4711 was signed by Ada Crane.",
            "Who signed invoice 4711?",
            "Who signed invoice 4712?",
        ),
        (
            "The fare is 1,200 crowns.",
            "What costs 1200 crowns?",
            "What costs 1300 crowns?",
        ),
        (
            "Flight BA117 leaves at noon.",
            "When does flight ba117 leave?",
            "When does flight BA171 leave?",
        ),
        (
            "Varn Mills was founded by Ada Crane.",
            "Who founded Varn Mills?",
            "Who founded Korl Works?",
        ),
        (
            "The mayor of Dunmere visited Brennhaven.",
            "Who is the mayor of Dunmere?",
            "Who is the mayor of Brennhaven?",
        ),
        (
            "The wind harp was invented by Ada Crane.",
            "Who invented the wind harp?",
            "Who is the inventor of the steam harp?",
        ),
        (
            "The highest peak of the range is called Korl.",
            "What is the highest peak of the range called?",
            "What is the lowest peak of the range called?",
        ),
        (
            "The captain of the Little Auk met the Northern Gull.",
            "Who is the captain of the Little Auk?",
            "Who is the captain of the Northern Gull?",
        ),
        (
            "Ada Crane has been the mayor of Varn since 2019.",
            "Who is the mayor of Varn?",
            "Who was the mayor of Varn before?",
        ),
        (
            "Before that, Bo Dell was the mayor of Varn.",
            "Who was the previous mayor of Varn?",
            "Who is the mayor of Varn?",
        ),
        (
            "One of the AL's first clubs was founded by Ada Crane of Varn.",
            "Who founded one of the American League's clubs, Ada Crane?",
            "Who founded one of the first clubs of Korl?",
        ),
    ],
)
def test_a_proof_has_the_figures_names_and_roles_of_the_question(
    text: str, met: str, unmet: str
) -> None:
    (passage,) = read([Passage("1", text)])
    assert not lacks_what_is_named(met, passage.sentences)
    assert lacks_what_is_named(unmet, passage.sentences)


def test_a_sentence_about_a_pronoun_leads_to_the_one_named_before_it() -> None:
    texts = [
        "Ada Crane is a painter from Varn. She founded Opal Hall.",
        "Bo is a cook.",
    ]
    question = "Which town does the founder of Opal Hall come from?"
    out = create_ras_agent(index=texts).invoke({"question": question})
    assert out["answer"] == "Varn"
    quotes = [citation["quote"] for citation in out["citations"]]
    assert "She founded Opal Hall." in quotes


@pytest.mark.parametrize(
    ("text", "question", "denied"),
    [
        ("Ada Crane did not attend the fair.", "Who attended the fair?", True),
        ("Ada Crane didn't attend the fair.", "Who attended the fair?", True),
        ("Ada Crane was never the owner of Korl.", "Who was the owner of Korl?", True),
        ("Ada Crane, not Bo Lund, attended the fair.", "Who attended the fair?", False),
        ("Ada Crane not only built Korl.", "Who built Korl?", False),
        ("Bo Lund did not sign it. Ada Crane did sign it.", "Who did sign it?", False),
        ("Ada Crane did not attend.", "Who did not attend?", False),
        ("Neither Ada Crane nor Bo Lund won the cup.", "Who won the cup?", True),
        ("No member of Korl signed it.", "Who signed it?", True),
        ("Korl is no longer owned by Ada Crane.", "Who owned Korl?", True),
        ("Ada Crane signed no. 5.", "Who signed no. 5?", False),
        (
            "Cy Fox won the cup. Neither Ada nor Bo won the cup.",
            "Who won the cup?",
            True,
        ),
    ],
)
def test_what_a_proof_only_denies_is_not_said(
    text: str, question: str, denied: bool
) -> None:
    (passage,) = read([Passage("1", text)])
    assert lacks_what_is_named(question, passage.sentences) is denied


@pytest.mark.parametrize(
    ("text", "question", "only_listed"),
    [
        ("Present: Ada Crane (Korl Works), Bo Lund", "Who founded Korl Works?", True),
        (
            "Ship Korl: Captain Ada Crane; Route Varn - Pell.",
            "Who is the captain of the Korl?",
            False,
        ),
        (
            "Founders of Korl: Ada Crane, Bo Lund",
            "Who were the founders of Korl?",
            False,
        ),
        ("Tarn Hall is in Orvena.", "Where is Tarn Hall?", False),
    ],
)
def test_a_list_of_names_proves_only_what_it_says(
    text: str, question: str, only_listed: bool
) -> None:
    (passage,) = read([Passage("1", text)])
    assert lacks_what_is_named(question, passage.sentences) is only_listed


def test_a_name_may_stand_before_the_sentence_or_in_the_title() -> None:
    (passage,) = read(
        [Passage("1", "Korl Works makes ropes. It was founded by Ada Crane.")]
    )
    assert not lacks_what_is_named("Who founded Korl Works?", passage.sentences[1:])
    (titled,) = read([Passage("2", "It was founded by Ada Crane.", "Korl Works")])
    assert not lacks_what_is_named("Who founded Korl Works?", titled.sentences)


def test_a_part_of_a_name_stands_for_it_and_a_longer_name_with_that_part_does_not() -> (
    None
):
    (passage,) = read([Passage("1", "Bell was born in Edinburgh.")])
    assert not lacks_what_is_named(
        "Where was Alexander Graham Bell born?", passage.sentences
    )
    (other,) = read([Passage("1", "Varn Mills was founded by Ada Crane.")])
    assert lacks_what_is_named("Who founded Korl Mills?", other.sentences)


def test_who_was_present_is_not_known_to_be_of_the_family() -> None:
    (passage,) = read(
        [Passage("1", "Present: Bo Tellis (chair), Petra Halloran, Jonas Weld")]
    )
    assert lacks_what_is_named(
        "Who is the husband of Petra Halloran?", passage.sentences
    )
    assert not lacks_what_is_named(
        "Who was present with Petra Halloran?", passage.sentences
    )


def test_a_proof_of_the_opposite_is_of_something_else() -> None:
    (passage,) = read([Passage("1", "The first mayor of Varn was Ada Crane.")])
    assert lacks_what_is_named("Who was the last mayor of Varn?", passage.sentences)
    assert lacks_what_is_named(
        "Who was not the first mayor of Varn?", passage.sentences
    )
    assert not lacks_what_is_named(
        "Who was the first mayor of Varn?", passage.sentences
    )


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        (
            "Ada Crane, 1931-2011\n\nAda Crane, the founder of Korl Works, died in Varn.",
            "Who founded Korl Works?",
            "Ada Crane",
        ),
        (
            "The council voted for a new bridge across the Orn. The bridge was designed by Ada Crane.",
            "Who designed the bridge across the Orn?",
            "Ada Crane",
        ),
    ],
)
def test_years_of_a_life_are_no_answer_and_the_bridge_is_the_one_before(
    text: str, question: str, answer: str
) -> None:
    said, sure = reply([text], question)
    assert said == answer
    assert sure > LEAST_CONFIDENCE


def test_one_of_several_names_is_enough() -> None:
    (passage,) = read([Passage("1", "Rose McGowan played Paige in Charmed.")])
    assert not lacks_what_is_named(
        "Which series of The WB had Rose McGowan in it?", passage.sentences
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Tarn Observatory lost the shutter of its smaller dome", "Tarn Observatory"),
        ("Water of Leith", "Water of Leith"),
        ("Ada Crane, a baker", "Ada Crane, a baker"),
        ("a baker from Varn", "a baker from Varn"),
    ],
)
def test_a_clause_is_no_name(text: str, name: str) -> None:
    assert without_clause(text) == name


def test_a_pronoun_means_the_subject_of_the_sentence_before() -> None:
    texts = [
        "Ada Crane is a smith from Varn. She invented the tide clock.",
        "Bo Dell is a baker from Orvik.",
    ]
    assert reply(texts, "Who invented the tide clock?")[0] == "Ada Crane"


def test_what_the_answerer_leaves_unsaid_the_planner_does_not_say_either() -> None:
    agent = create_ras_agent(index=["Invoice 4711 was signed by Ada Crane."])
    out = agent.invoke({"question": "Who signed invoice 4712?"})
    assert out["abstained"]
    assert not any("says it: Ada Crane" in plan["reason"] for plan in out["plans"])

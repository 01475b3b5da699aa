"""Which language a text seems to be in, and the names of languages."""

import pytest

from ras_agent.text.languages import foreign_language, language_name
from tests.messages import says


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wo wurde Frau Müller geboren?", "german"),
        ("In welcher Stadt liegt das Depot?", "german"),
        (
            "Frau Müller wurde in Würzburg geboren. Sie gründete mit Herrn Brandl die Firma.",
            "german",
        ),
        ("Quelle rivière traverse la ville?", "french"),
        ("¿Dónde nació Cervantes?", "spanish"),
        ("Chi ha fondato Velmora?", "italian"),
        ("贝尔出生在哪里？", "chinese"),
        ("ベルはどこで生まれましたか？", "japanese"),
        ("Где родился Белл?", "russian"),
    ],
)
def test_function_words_and_scripts_tell_the_language(text: str, language: str) -> None:
    assert foreign_language(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1876",
        "Where was Frau Müller born?",
        "Who directed Portrait de la jeune fille en feu?",
        "What kind of film was Светлана Светличная famous for?",
        "Cast of El laberinto del fauno",
        "Die Hard director",
        "Was Bell born in Edinburgh?",
        "Der Spiegel is a weekly magazine, published in Hamburg by Der Spiegel GmbH und Co. KG.",
    ],
)
def test_names_make_no_foreign_text(text: str) -> None:
    assert foreign_language(text) == ""


def test_a_language_goes_by_its_name_and_its_code() -> None:
    assert [language_name(given) for given in ("de", "German", "zh", "none")] == [
        "german",
        "german",
        "chinese",
        "none",
    ]
    with pytest.raises(
        ValueError, match=says("unknown language 'klingon'", "known: arabic, armenian")
    ):
        language_name("klingon")

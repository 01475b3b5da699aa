"""Which words and figures of a phrase a text has, in whatever writing."""

import pytest

from ras_agent.text.wording import Comparison, Wording

BRIDGE = "The bridge opened on 3 March 1876 for 1,200 people."
GERMAN = "Der Fluss fließt durch die Hauptstadt Österreichs und ist 1.200 Meter lang."
CHINESE = "爱因斯坦于1879年出生在德国的乌尔姆市。"
RUSSIAN = "Алексей родился в Москве в 1901 году."
ARABIC = "ولد الشاعر في القاهرة عام ١٩٠١."


def compare(text: str, phrase: str) -> Comparison:
    return Wording(text).compare(phrase)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        (BRIDGE, "March 3, 1876"),
        (BRIDGE, "1876"),
        (BRIDGE, "March 1876"),
        (BRIDGE, "1200"),
        (BRIDGE, "the bridges"),
        ("He worked for the World Health Organization.", "WHO"),
        ("He lives in the U.S.", "the United States"),
        ("Einstein met Smith.", "Dr. J. Smith"),
        ("The Who released it.", "The Who"),
        ("She made fifty bowls.", "50"),
        (GERMAN, "Österreich"),
        (GERMAN, "1200"),
        (CHINESE, "乌尔姆"),
        (CHINESE, "1879"),
        (RUSSIAN, "Москва"),
        (ARABIC, "القاهرة"),
        (ARABIC, "1901"),
        ("서울에서 태어났다.", "서울"),
    ],
)
def test_a_text_has_a_phrase_in_another_writing(text: str, phrase: str) -> None:
    compared = compare(text, phrase)
    assert compared.held
    assert (compared.lacking, compared.unclear) == ((), ())


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        (BRIDGE, "4 March 1876"),
        (BRIDGE, "1877"),
        (BRIDGE, "1,250"),
        ("It opened in 1876.", "3 March 1876"),
        ("The Who released it.", "The Them"),
        ("Bell was born in Edinburgh.", "London"),
        (GERMAN, "Berlin"),
        (CHINESE, "慕尼黑"),
        (RUSSIAN, "Киев"),
        (ARABIC, "دمشق"),
    ],
)
def test_a_text_lacks_another_phrase(text: str, phrase: str) -> None:
    compared = compare(text, phrase)
    assert len(compared.lacking) == 1
    assert compared.held == ()


def test_of_a_word_in_another_script_nothing_can_be_told() -> None:
    assert compare(CHINESE, "Ulm").unclear == ("ulm",)
    assert compare(RUSSIAN, "Moscow in 1902").lacking == ("1902",)


def test_parts_keep_the_order_of_figures_then_words() -> None:
    compared = compare(BRIDGE, "1250 persons crossed the bridge")
    assert [(part.text, part.is_held) for part in compared.parts] == [
        ("1250", False),
        ("persons", False),
        ("crossed", False),
        ("bridge", True),
    ]

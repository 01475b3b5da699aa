"""A fact stands in its text if the words and figures of both its ends are there; undecidable facts are unknown."""

from __future__ import annotations

import pytest

from ras_agent.text import canonical, standing
from ras_agent.text.standing import FactText, Standing, Words, Writing, writing_of

TEXT = (
    "Nora Quill is a potter who lives in Harlow. She has made 1,200 bowls since 14 March 1990. "
    "Her father, Dr. Tom Quill of the United States, directed three films about the fourteenth century."
)
NORA = FactText(TEXT, "Nora Quill (potter)")
STANDS, UNKNOWN, MISSING = Standing.STANDS, Standing.UNKNOWN, Standing.MISSING


@pytest.mark.parametrize(
    "fact",
    [
        ("Nora Quill", "lives in", "Harlow"),
        ("She", "has made", "bowls"),
        ("Ms. Quill", "made", "a bowl"),
        ("Nora Quill's father", "is", "Tom Quill"),
        ("Nora Quill", "made", "1200 bowls"),
        ("Nora Quill", "has made bowls since", "1990-03-14"),
        ("Nora Quill", "has made bowls since", "March 14th, 1990"),
        ("Tom Quill", "is", "American"),
        ("Tom Quill", "is", "director of 3 films"),
        ("films", "are about", "the 14th century"),
        ("T. Quill", "directed", "films"),
    ],
)
def test_a_fact_in_the_texts_words_or_in_other_forms_of_them_stands(
    fact: tuple[str, str, str],
) -> None:
    assert NORA.standing(*fact) is STANDS


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (("Nora Quill", "worked with", "Bruce Heezen"), ["Bruce", "Heezen"]),
        (("Zed Marlow", "lives in", "Harlow"), ["Zed", "Marlow"]),
        (("Nora Quill", "was born in", "1991"), ["1991"]),
        (("Nora Quill", "made", "200 bowls"), ["200"]),
        (("Nora Quill", "was born on", "14 May 1990"), ["May"]),
        (("Nora Quill", "lives in", "a castle in Harlow"), ["castle"]),
    ],
)
def test_a_fact_is_missing_if_one_word_or_figure_of_an_end_is(
    fact: tuple[str, str, str], words: list[str]
) -> None:
    assert NORA.standing(*fact) is MISSING
    assert [term.text for term in NORA.missing(fact[0], fact[2])] == words


def test_signs_stand_for_their_words() -> None:
    text = FactText(
        "The revenue of Acme was $3.5bn in 2020, 45% of it from the UK, at 6 °C with -2 in the night."
    )
    assert text.standing("Acme", "had a revenue of", "3.5 billion dollars") is STANDS
    assert text.standing("revenue", "from the UK was", "45 percent") is STANDS
    assert text.standing("Acme", "was at", "6 degrees Celsius") is STANDS
    assert text.standing("Acme", "was at", "2 degrees Celsius") is MISSING


def test_the_title_is_part_of_the_text() -> None:
    bled = FactText("It lies in the Julian Alps of Slovenia.", "Lake Bled")
    assert bled.standing("Lake Bled", "lies in", "Slovenia") is STANDS


def test_a_name_of_small_words_has_to_be_there_whole() -> None:
    assert FactText("Who is The Who?").standing("The Who", "is", "The Who") is STANDS
    assert (
        FactText("He has been there with the band.").standing("The Who", "is", "there")
        is MISSING
    )


GERMAN = FactText(
    "Albert Einstein wurde am 14. März 1879 in Ulm geboren. Er entwickelte die Relativitätstheorie und arbeitete "
    "später an den Universitäten von Zürich und Berlin."
)
SPANISH = FactText(
    "Gabriel García Márquez nació en Aracataca, Colombia, el 6 de marzo de 1927. Ganó el Premio Nobel de Literatura en "
    "1982 por sus novelas y cuentos."
)
CHINESE = FactText(
    "阿尔伯特·爱因斯坦于1879年3月14日出生在德国乌尔姆。他提出了相对论。", "爱因斯坦"
)
ARABIC = FactText(
    "وُلد نجيب محفوظ في القاهرة عام 1911 وحصل على جائزة نوبل في الأدب عام 1988. كتب ثلاثية القاهرة."
)
RUSSIAN = FactText("Мария Склодовская-Кюри родилась в Варшаве в 1867 году.")
FINNISH = FactText(
    "Tove Jansson syntyi Helsingissä vuonna 1914 ja kirjoitti Muumi-kirjat."
)


KYOTO = FactText(
    "京都は日本の都市で、人口は約百四十六万人で、面積は827平方キロです。", "京都"
)


def test_each_text_is_read_as_its_writing_allows() -> None:
    assert writing_of(TEXT) is Writing.ENGLISH
    assert {one.words.writing for one in (GERMAN, SPANISH, RUSSIAN, FINNISH)} == {
        Writing.LETTERS
    }
    assert {one.words.writing for one in (CHINESE, ARABIC)} == {Writing.UNSPACED}


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (GERMAN, ("Einstein", "wurde geboren am", "14. März 1879")),
        (GERMAN, ("Albert Einstein", "was born on", "March 14, 1879")),
        (GERMAN, ("Einstein", "arbeitete an", "Universität Zürich")),
        (GERMAN, ("Einstein", "entwickelte", "Theorie der Relativität")),
        (SPANISH, ("García Márquez", "nació en", "Aracataca")),
        (SPANISH, ("Gabriel Garcia Marquez", "escribió", "novela")),
        (SPANISH, ("García Márquez", "nació el", "1927-03-06")),
        (CHINESE, ("爱因斯坦", "出生于", "乌尔姆")),
        (CHINESE, ("爱因斯坦", "出生日期", "1879年3月14日")),
        (CHINESE, ("爱因斯坦", "出生于", "1879年")),
        (ARABIC, ("نجيب محفوظ", "حصل على", "جائزة نوبل")),
        (ARABIC, ("محفوظ", "ولد عام", "١٩١١")),
        (RUSSIAN, ("Мария Кюри", "родилась в", "Варшава")),
        (FINNISH, ("Tove Jansson", "syntyi", "Helsinki")),
    ],
)
def test_other_languages_are_compared_by_first_letters_or_as_they_are(
    text: FactText, fact: tuple[str, str, str]
) -> None:
    assert text.standing(*fact) is STANDS


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (GERMAN, ("Einstein", "was born in", "Germany")),
        (CHINESE, ("爱因斯坦", "提出", "广义相对论")),
        (CHINESE, ("Einstein", "was born in", "Ulm")),
        (KYOTO, ("Kyoto", "has", "1,460,000 people")),
        (ARABIC, ("محفوظ", "كتب", "روايات")),
        (RUSSIAN, ("Marie Curie", "was born in", "Warsaw")),
    ],
)
def test_what_cannot_be_told_is_unknown(
    text: FactText, fact: tuple[str, str, str]
) -> None:
    assert text.standing(*fact) is UNKNOWN


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (GERMAN, ("Einstein", "arbeitete mit", "Bruce Heezen")),
        (GERMAN, ("Einstein", "starb am", "18. April 1955")),
        (SPANISH, ("García Márquez", "nació en", "Madrid")),
        (SPANISH, ("García Márquez", "murió en", "2014")),
        (CHINESE, ("爱因斯坦", "出生于", "1880年")),
        (ARABIC, ("محفوظ", "توفي عام", "2006")),
        (RUSSIAN, ("Мария Кюри", "родилась в", "Париж")),
        (FINNISH, ("Tove Jansson", "syntyi", "Turku")),
    ],
)
def test_foreign_names_and_figures_are_missing_in_other_languages_too(
    text: FactText, fact: tuple[str, str, str]
) -> None:
    assert text.standing(*fact) is MISSING


def test_the_sentence_of_a_fact_holds_both_ends_where_one_does() -> None:
    text = FactText(
        "Quill met Marlow and Marlow met Quill in Bath. Quill lives in Harlow. Harlow is a town."
    )
    start, end = text.sentence("Quill", "met and lives with Marlow in", "Harlow") or (
        0,
        0,
    )
    assert text.text[start:end] == "Quill lives in Harlow."


def test_the_sentence_of_a_fact_about_she_holds_the_object() -> None:
    start, end = NORA.sentence("Nora Quill", "has made", "bowls") or (0, 0)
    assert NORA.text[start:end].startswith("She has made")
    assert NORA.sentence("Zed Marlow", "met", "Bob Inch") is None


def test_a_phrase_is_searched_once_in_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    canonical_key = canonical.canonical_key

    def noted(phrase: str) -> str:
        searched.append(phrase)
        return canonical_key(phrase)

    monkeypatch.setattr(standing, "canonical_key", noted)
    text = FactText("Quill lives in Harlow.")
    for place in ("Harlow", "Bath", "Harlow", "Bath"):
        text.standing("Quill", "lives in", place)
    assert [phrase for phrase in searched if phrase != text.text] == [
        "Quill",
        "Harlow",
        "Bath",
    ]


def test_a_text_remembers_few_phrases_and_no_long_one() -> None:
    words = Words("Quill lives in Harlow.", Writing.ENGLISH)
    for number in range(2000):
        assert words.standing(f"Harlow {number}") is MISSING
    assert words.standing("Harlow " * 200) is STANDS
    remembered = words._standings
    assert len(remembered) <= 512
    assert max(map(len, remembered)) < 500

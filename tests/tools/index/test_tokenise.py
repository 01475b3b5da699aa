"""Terms of passages and queries, in any script."""

import subprocess
import sys

import pytest

from ras_agent.tools.index.tokenise import Tokeniser
from tests.messages import says


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The inventors of the telephones", ["inventor", "telephon"]),
        (
            "Bell's snake_case e-mail, 1,847!",
            ["bell", "snake", "case", "e", "mail", "1847", "email"],
        ),
        ("Bell’s — café ﬁlm", ["bell", "cafe", "film"]),
        ("Straße STRASSE", ["strass", "strass"]),
        ("Malcolm X", ["malcolm", "x"]),
        ("... !?", []),
        ("", []),
    ],
)
def test_english_is_folded_stripped_of_stop_words_and_stemmed(
    text: str, terms: list[str]
) -> None:
    assert Tokeniser().terms(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("हिन्दी भाषा", ["हिंदी", "भाषा"]),  # vowel signs stay in their words
        ("שָׁלוֹם עולם", ["שלום", "עולם"]),
        ("Привет, мир", ["привет", "мир"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("水", ["水"]),
        ("สวัสดี", ["สว", "วั", "ัส", "สด", "ดี"]),
        ("서울은 Seoul", ["서울", "울은", "seoul"]),
        ("ＡＢＣ１２", ["abc12", "abc", "12"]),
        ("iPhone15は新しい", ["iphone15", "iphone", "15", "は新", "新し", "しい"]),
    ],
)
def test_other_scripts_part_into_words_or_pairs_of_characters(
    text: str, terms: list[str]
) -> None:
    assert Tokeniser(None).terms(text) == terms


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert (
        Tokeniser().terms("Beyonce\u0301") == Tokeniser().terms("Beyoncé") == ["beyonc"]
    )


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Málaga", "Malaga"),
        ("Łódź", "Lodz"),
        ("Grosstal\u00adsperre", "Grosstalsperre"),
        ("Gross\u200btalsperre", "Grosstalsperre"),
        ("Ёлка", "Елка"),
        ("أحمد", "احمد"),
        ("مُحَمَّد", "محمد"),
        ("کتاب", "كتاب"),
        ("за\u0301мок", "замок"),
        ("Αθήνα", "Αθηνα"),
        ("٢٠١١", "2011"),
        ("1,250,000", "1250000"),
        ("1’250\u00a0", "1250"),
        ("12,34,567", "1234567"),
        ("１，０００", "1000"),
        ("١٬٠٠٠", "1000"),
        ("២៥", "25"),
        ("10⁶", "10^6"),
        ("1½", "1 1/2"),
        ("résumé", "resume"),
        ("Əliyev", "Aliyev"),
        ("İstanbul", "Istanbul"),
        ("צה״ל", "צהל"),
        ('צה"ל', "צהל"),
        ("हिन्दी चाँद", "हिंदी चांद"),
    ],
)
def test_words_that_a_reader_sees_as_one_have_one_term(text: str, same: str) -> None:
    assert Tokeniser().terms(text) == Tokeniser().terms(same)


@pytest.mark.parametrize(
    ("text", "other", "shared"),
    [
        ("U.S.", "US", {"us"}),
        ("U.S.A", "USA", {"usa"}),
        ("Ph.D.", "PhD", {"phd"}),
        ("J. R. R. Tolkien", "JRR Tolkien", {"jrr", "tolkien"}),
        ("PPR9087", "PPR-9087", {"ppr", "9087", "ppr9087"}),
        ("COVID19", "Covid 19", {"covid", "19"}),
        ("X-1", "X1", {"x", "1", "x1"}),
        ("5V", "5 V", {"5", "v"}),
        ("5 kg", "5kg", {"5", "kg"}),
        ("v2.3", "2.3", {"2", "3"}),
        ("AT&T", "ATT", {"att"}),
        ("O'Brien", "OBrien", {"obrien"}),
        ("978-3-16-148410-0", "9783161484100", {"9783161484100"}),
        ("10 000 crowns", "10,000", {"10000"}),
        ("2010-11", "201011", set()),
        ("a1f9c2e4", "9", set()),
        ("2nd", "ND 2", set()),
        ("1930s", "1930", set()),
        ("Müller", "Mueller", {"mueller"}),
        ("e-mail", "email", {"email"}),
        ("co\u2011operate", "cooperation", {"cooper"}),
        ("HomePageContainer", "home page container", {"home", "page", "contain"}),
        ("settingsPage", "settings of a page", {"set", "page"}),
        ("XMLHttpRequest", "an XML request", {"xml", "request"}),
        ("Ann MacDonald", "Donald", set()),
        ("1,2,3", "123", set()),
        ("1.000", "1000", set()),  # a decimal in English
    ],
)
def test_other_writings_of_a_name_or_number_share_terms(
    text: str, other: str, shared: set[str]
) -> None:
    assert {*Tokeniser().terms(text)} & {*Tokeniser().terms(other)} == shared


def test_an_accent_of_the_language_itself_tells_words_apart_and_may_be_left_out() -> (
    None
):
    spanish = Tokeniser("spanish")
    assert spanish.terms("año") == ["año", "ano"]
    assert spanish.terms("ano") == ["ano"]


def test_a_point_parts_thousands_but_in_english() -> None:
    assert Tokeniser("german").terms("1.250.000") == ["1250000"]


def test_turkish_letters_keep_their_dots() -> None:
    turkish = Tokeniser("turkish")
    assert turkish.terms("IŞIK İZMİR") == turkish.terms("ışık izmir")


def test_another_language_brings_its_stemmer_and_stop_words() -> None:
    assert Tokeniser("german").terms("Die Häuser der Stadt") == ["haus", "stadt"]
    assert Tokeniser("finnish").terms("taloissa") == ["talo"]


def test_stop_words_and_stemming_can_be_chosen_or_left_out() -> None:
    assert Tokeniser(None).terms("The inventors") == ["the", "inventors"]
    assert Tokeniser(stem=False).terms("The inventors") == ["inventors"]
    assert Tokeniser(stop_words=["inventors"]).terms("The inventors") == ["the"]


def test_a_language_without_stemmer_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        ValueError, match=says("no stemmer for language 'klingon'", "known:", "english")
    ):
        Tokeniser("klingon")


def test_it_can_be_written_down_and_made_again() -> None:
    again = Tokeniser.from_dict(Tokeniser("german", stem=False).to_dict())
    assert again.terms("Die Häuser") == ["häuser", "hauser", "haeuser"]


def test_stop_words_come_with_the_package_for_each_language_that_has_a_list() -> None:
    counts = {
        language: len(Tokeniser(language).stop_words)
        for language in ("german", "russian", "turkish", "finnish", "chinese")
    }
    assert counts == {
        "german": 231,
        "russian": 151,
        "turkish": 162,
        "finnish": 0,
        "chinese": 0,
    }
    code = (
        "import sys; sys.modules['bm25s'] = None; from ras_agent.tools.index.tokenise import Tokeniser; "
        "print(Tokeniser().terms('the sea'))"
    )
    without_bm25s = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert without_bm25s.stdout == "['sea']\n"

"""Canonical keys: which surface forms are one entity."""

import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.text.canonical import canonical_key

TEXT = st.text(
    st.one_of(
        st.characters(), st.sampled_from("the an'’s&#- \u0301\u200d\u0345\u00adıİſﬁǅ")
    ),
    max_size=16,
)
NAME = st.lists(
    st.text(string.ascii_lowercase, min_size=2, max_size=8), min_size=1, max_size=4
).filter(lambda words: not {"the", "an"} & set(words))


@given(TEXT)
def test_a_key_is_its_own_key(surface: str) -> None:
    assert canonical_key(canonical_key(surface)) == canonical_key(surface)


# pieces that a rule takes away or turns into another piece, joined so that the rules follow each other in every order
_TAKEN_AWAY = [
    "the",
    "The",
    "a",
    "AN",
    "an",
    "'s",
    "’s",
    "-",
    "!",
    "\u00ad",
    "\u200d",
    "\ufe0f",
    "\x07",
]
_TURNED = ["&", "and", "ß", "İ", "\u0301", "\u0345", "\u0308", "ﬁ", "Ǆ", "\uff21", "Ⅷ"]
PIECES = st.lists(
    st.sampled_from([*_TAKEN_AWAY, *_TURNED, "x", "Bell", " ", " ", " "]), max_size=8
).map("".join)


@given(PIECES)
def test_a_key_made_of_marks_articles_and_joined_letters_is_its_own_key(
    surface: str,
) -> None:
    assert canonical_key(canonical_key(surface)) == canonical_key(surface)


@given(TEXT)
def test_a_surface_with_a_letter_has_a_key(surface: str) -> None:
    assert canonical_key(surface + "x")


@given(NAME, st.sampled_from([str.upper, str.title, str.capitalize]))
def test_case_does_not_matter(words: list[str], change: Callable[[str], str]) -> None:
    name = " ".join(words)
    assert canonical_key(change(name)) == name


@given(NAME, st.sampled_from(["the ", "The ", "a ", "AN "]))
def test_a_leading_article_does_not_matter(words: list[str], article: str) -> None:
    assert canonical_key(article + " ".join(words)) == " ".join(words)


@given(NAME, st.sampled_from(["-", " – ", ", ", ". ", "/", "  ", "\u00a0", "'"]))
def test_punctuation_and_spaces_only_part_words(words: list[str], gap: str) -> None:
    surface = f"“{gap.join([*words[:-1], 'x', words[-1]])}”!"
    assert canonical_key(surface) == " ".join([*words[:-1], "x", words[-1]])


@given(NAME)
def test_compatibility_forms_do_not_matter(words: list[str]) -> None:
    full_width = str.maketrans(
        {char: chr(ord(char) + 0xFEE0) for char in string.ascii_lowercase}
    )
    assert canonical_key(" ".join(words).translate(full_width)) == " ".join(words)


@pytest.mark.parametrize(
    ("surface", "key"),
    [
        ("The  Beatles", "beatles"),
        ("J.R.R. Tolkien’s", "jrr tolkien"),
        ("J. R. R. Tolkien", "jrr tolkien"),
        ("JRR Tolkien", "jrr tolkien"),
        ("A. A. Milne", "aa milne"),
        ("the U.S.", "us"),
        ("U.S.A.", "usa"),
        ("I.B.M.’s", "ibm"),
        ("Malcolm X", "malcolm x"),
        ("vitamin A", "vitamin a"),
        ("Simon & Garfunkel", "simon and garfunkel"),
        ("Marie Skłodowska–Curie", "marie skłodowska curie"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ﬁlm Ⅷ", "film viii"),
        ("co\u00adoperate", "cooperate"),
        ("Cafe\u0301", "café"),
        ("❤\ufe0f", "❤"),
        ("हिन्दी", "हिन्दी"),
        ("東京", "東京"),
        ("C++", "c++"),
        ("The The", "the"),
        ("a the Beatles", "beatles"),
        ("ß\u0301", "sś"),  # the letters that folding makes of ß join the accent
        ("Bell\x07Leith", "bell leith"),
        ("Bell\u200bLeith", "bellleith"),
        ("the!", "the"),
        ("  ", ""),
        ("!!!", "!!!"),
        ("'s", "'s"),
    ],
)
def test_keys(surface: str, key: str) -> None:
    assert canonical_key(surface) == key


def test_articles_inside_a_name_count() -> None:
    assert canonical_key("Bank of the West") != canonical_key("Bank of West")


def test_all_articles_in_front_go_but_the_last_word_stays() -> None:
    assert canonical_key("the a an the Who") == "who"
    assert canonical_key("a the") == "the"


@pytest.mark.parametrize("selector", ["\ufe00", "\ufe0f", "\U000e0100", "\U000e01ef"])
def test_the_first_and_the_last_variation_selectors_are_invisible(
    selector: str,
) -> None:
    assert canonical_key(f"葛{selector}城") == "葛城"


@pytest.mark.parametrize("neighbour", ["\ufdff", "\ufe10", "\U000e00ff", "\U000e01f0"])
def test_what_is_beside_the_variation_selectors_is_not(neighbour: str) -> None:
    assert canonical_key(f"葛{neighbour}城") != "葛城"

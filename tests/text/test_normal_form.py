"""Normal forms of Unicode, and how many marks a letter keeps."""

import pytest

from ras_agent.text.canonical import canonical_key
from ras_agent.text.normal_form import normal_form, storable


def test_a_text_has_the_normal_form_that_unicode_gives_it() -> None:
    assert normal_form("NFKC", "e\u0301 ﬁ") == "\u00e9 fi"
    assert normal_form("NFKD", "\u00e9") == "e\u0301"


def test_thirty_marks_in_a_row_stay_and_those_behind_them_are_left_out() -> None:
    marks = "\u0316\u0301" * 40  # below and above
    assert (
        normal_form("NFKD", f"x{marks}y") == "x" + "\u0316" * 15 + "\u0301" * 15 + "y"
    )


def test_a_key_with_many_marks_is_its_own_key() -> None:
    key = canonical_key("x" + "\u0344" * 100)  # each is two marks in its normal form
    assert canonical_key(key) == key


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a\0b", "a\ufffdb"),
        ("é\ud800\0", "é\ufffd\ufffd"),
        ("Bell", "Bell"),
        ("Zoë 🦉\n\x1b", "Zoë 🦉\n\x1b"),
    ],
)
def test_what_no_file_or_database_holds_is_replaced_one_by_one(
    text: str, stored: str
) -> None:
    assert storable(text) == stored

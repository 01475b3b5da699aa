"""Titles as names."""

import pytest

from ras_agent.text.titles import bare_title


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Alien (film)", "Alien"),
        ("Alien (film) (1979)", "Alien (film)"),
        ("(film)", "(film)"),
        ("Alien  (film) ", "Alien"),
        ("f(x)", "f"),
        ("Alien (film", "Alien (film"),
        ("Will &amp; Grace", "Will & Grace"),
    ],
)
def test_a_title_is_a_name_without_the_parentheses_at_its_end(
    title: str, name: str
) -> None:
    assert bare_title(title) == name


def test_a_character_reference_of_thousands_of_digits_stays_as_it_is() -> None:
    title = f"&#{'1' * 5000};"
    assert bare_title(title) == title

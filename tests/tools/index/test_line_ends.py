"""Words that a line end divides, as PDF files have them."""

import pytest

from ras_agent.tools.index.line_ends import joined_words


@pytest.mark.parametrize(
    ("divided", "joined"),
    [
        ("in Mitten-\nau today", "in Mittenau today"),
        ("in Mitten- \r\n  au", "in Mittenau"),
        ("Donau\u00ad\ndampf", "Donaudampf"),
        ("Haupt-\nund Nebenfach", "Haupt-\nund Nebenfach"),
        ("the Anglo-\nSaxons", "the Anglo-\nSaxons"),
        ("from 1914-\n18", "from 1914-\n18"),
        ("a dash -\nand more", "a dash -\nand more"),
        ("état-\nmajor", "étatmajor"),
    ],
)
def test_the_parts_are_joined_unless_the_hyphen_is_the_words_own(divided: str, joined: str) -> None:
    assert joined_words([divided]) == [joined]


def test_a_compound_that_another_page_has_keeps_its_hyphen() -> None:
    assert joined_words(["a well-\nknown town", "Well-known towns"]) == ["a well-known town", "Well-known towns"]

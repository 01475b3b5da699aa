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
        ("the chief engi-\nneer", "the chief engineer"),
        ("a well-\nknown town", "a well-known town"),
        ("twenty-\nthree and self-\nevident", "twenty-three and self-evident"),
        ("his mother-in-\nlaw", "his mother-in-law"),
        ("an editor-\nin-chief", "an editor-in-chief"),
        ("a state-\nof-the-art mill", "a state-of-the-art mill"),
        (
            "an inter-\nest in the super-\nstructure",
            "an interest in the superstructure",
        ),
        ("a door-\npost, the doorpost", "a doorpost, the doorpost"),
    ],
)
def test_the_parts_are_joined_unless_the_hyphen_is_the_words_own(
    divided: str, joined: str
) -> None:
    assert joined_words([divided]) == [joined]


def test_a_compound_that_another_page_has_keeps_its_hyphen() -> None:
    assert joined_words(["a well-\nknown town", "Well-known towns"]) == [
        "a well-known town",
        "Well-known towns",
    ]


@pytest.mark.parametrize("foot", ["", "\n7"])
def test_a_word_that_two_pages_divide_is_joined_over_their_heads(foot: str) -> None:
    first = f"Annual report 1\nThe chief engi-{foot}"
    second = f"Annual report 2\nneer, Oda Wren, led a well-{foot}"
    third = "Annual report 3\nknown yard."
    assert joined_words([first, second, third]) == [
        f"Annual report 1\nThe chief engineer,{foot}",
        f"Annual report 2\nOda Wren, led a well-known{foot}",
        "Annual report 3\nyard.",
    ]
    assert joined_words(["pre-", "and postwar"]) == ["pre-", "and postwar"]

"""A name of a list is answered with all of its names; why, and summaries of a text, with sentences."""

from __future__ import annotations

import pytest

from ras_agent.contracts.records import Passage
from ras_agent.tools.offline.reading import Sentence, read
from ras_agent.tools.offline.said import all_of_list, sentences_that_say

MINUTES = Passage(
    "m",
    "Jonas Pell was away. The move was postponed on 12 March because the sprinklers failed. The budget is 612 euros.",
    "Minutes of the mill",
)
MUSEUM = Passage(
    "v",
    "# Harbour museum\n\nThe museum opened in 1952.\n\n## What to see\n\nThe lifeboat saved 61 people at sea.",
    "Harbour museum",
)


def _said(question: str, *passages: Passage) -> list[str]:
    return [one.text for one in sentences_that_say(question, read(passages)) or ()]


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("Why was the move postponed?", True),
        ("What was the cause of the fire?", True),
        ("Summarise the minutes.", True),
        ("What can visitors see in the museum?", True),
        ("How do I swap a shift?", True),
        ("How does the mill work?", False),
        ("What did the museum buy?", False),
        ("When was the move postponed?", False),
    ],
)
def test_questions_for_sentences_are_known_by_how_they_begin(
    question: str, asks: bool
) -> None:
    assert (sentences_that_say(question, []) is not None) is asks


def test_why_is_answered_with_the_sentence_that_gives_the_reason() -> None:
    assert _said("Why was the move postponed?", MUSEUM, MINUTES) == [
        "The move was postponed on 12 March because the sprinklers failed."
    ]


def test_a_reason_for_something_else_is_no_answer() -> None:
    assert _said("Why was Jonas Pell away from the harbour?", MINUTES) == []


def test_what_one_can_do_is_told_from_the_heading_that_has_the_words() -> None:
    assert _said("What can visitors see in the harbour museum?", MUSEUM, MINUTES)[
        -1
    ] == ("The lifeboat saved 61 people at sea.")
    assert "The museum opened in 1952." not in _said(
        "What can visitors see in the harbour museum?", MUSEUM
    )


def test_a_summary_is_the_first_sentences_of_the_passage_that_it_names() -> None:
    assert (
        _said("Summarise the minutes of the mill.", MUSEUM, MINUTES)[0]
        == "Jonas Pell was away."
    )
    assert _said("Summarise the travel policy of Velmora.", MUSEUM, MINUTES) == []


FAQ = Passage(
    "f",
    "**How do I swap a shift?**\n1. Open the shift.\n2. Choose somebody who can come.\n\n"
    "**Why do my shifts appear twice?** You have subscribed to two links. Remove one of them again.\n\n"
    "**How much is it?** It is free for teams of ten people.",
    "Help",
)


def test_what_a_heading_asks_is_answered_with_what_is_below_it() -> None:
    assert _said("How can I swap my shift?", FAQ) == [
        "1. Open the shift.",
        "2. Choose somebody who can come.",
    ]
    assert _said("Why do shifts appear twice?", FAQ) == [
        "You have subscribed to two links.",
        "Remove one of them again.",
    ]
    assert _said("Why do prices rise twice?", FAQ) == []


def test_steps_need_no_full_stops_and_end_with_their_section() -> None:
    steps = ["1. Open the shift calendar now", "2. Choose somebody who can come"]
    text = (
        "## Swap a shift\n\n"
        + "\n".join(steps)
        + "\n\n## Prices\n\nIt is free for teams of ten."
    )
    assert _said("How do I swap a shift?", Passage("s", text, "Help")) == steps


def test_a_question_on_a_line_of_its_own_is_a_heading() -> None:
    text = "Where is the office?\nThe office is in Bath.\n\nHow do I swap a shift?\nOpen the shift and choose somebody."
    assert _said("How do I swap a shift?", Passage("q", text, "Help")) == [
        "Open the shift and choose somebody."
    ]


def test_a_short_section_is_told_and_not_the_next_one() -> None:
    text = "# Prices to pay\n\nFree\n\n# Parking\n\nThe car park is behind the hall."
    assert _said("What must I pay?", Passage("p", text, "Help")) == ["Free"]
    above = Passage(
        "m", "The mill closed in 1950 after a flood.\n\n## The mill", "Report"
    )
    assert _said("Summarise the report on the mill.", above) == [
        "The mill closed in 1950 after a flood."
    ]


def test_a_heading_that_asks_something_else_gives_no_reason() -> None:
    assert _said("Why?", FAQ) == []
    assert _said("Why do people swap a shift?", FAQ) == []


def test_a_summary_leaves_out_headings_and_lines_of_names() -> None:
    study = Passage(
        "s",
        "# Packs in the winter\n\nAnn Ray, Bo Lind, Cy Falk\n\nPacks lose capacity in winter.",
        "x",
    )
    assert _said("Summarise the study about packs in the winter.", study) == [
        "Packs lose capacity in winter."
    ]


BULLETS = "Maintainers\n\n- Ann Ray\n- Bo Lind\n- Cy Falk\n\nLicence: free."


def _sentence(text: str, word: str) -> Sentence:
    (passage,) = read([Passage("p", text)])
    return next(one for one in passage.sentences if word in one.text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "It was founded by Ann Ray, Bo Lind and Cy Falk in 1990.",
            "Ann Ray, Bo Lind and Cy Falk",
        ),
        ("Present: Ann Ray (chair), Bo Lind, Cy Falk", "Ann Ray, Bo Lind, Cy Falk"),
        (
            "It was begun by Bo Lind and the brothers Al and Ed Orr.",
            "Bo Lind and the brothers Al and Ed Orr",
        ),
        (BULLETS, "Ann Ray, Bo Lind, Cy Falk"),
        ("Bo Lind founded it in Ulm.", "Bo Lind"),
    ],
)
def test_who_is_answered_with_the_whole_list(text: str, names: str) -> None:
    answer, sentences = all_of_list(
        "Who founded it?", "Bo Lind", _sentence(text, "Bo Lind")
    )
    assert answer == names
    assert any("Bo Lind" in sentence.text for sentence in sentences)


def test_one_thing_is_no_list_and_neither_is_what_is_no_name() -> None:
    sentence = _sentence("It passes Ulm, Passau and Vienna.", "Passau")
    assert all_of_list("Which town does it pass?", "Passau", sentence)[0] == "Passau"
    assert (
        all_of_list("Which towns does it pass?", "Passau", sentence)[0]
        == "Ulm, Passau and Vienna"
    )
    assert all_of_list("Who passes?", "passes Ulm", sentence)[0] == "passes Ulm"

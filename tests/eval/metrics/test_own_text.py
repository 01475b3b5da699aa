"""Answers to questions of one's own, compared as a reader would."""

from __future__ import annotations

import pytest

from ras_agent.eval.metrics.own_text import exact_text, text_f1

EQUAL = [
    ("Zürich", "Zu\u0308rich"), ("1914–1918", "1914-1918"), ("−5", "-5"), ("Earth’s", "Earth's"), ("“Dune”", "Dune"),
    ("«Война и мир»", "Война и мир"), ("３５", "35"), ("東京。", "東京"), ("35\u202fkm", "35 km"), ("3,000", "3000"),
    ("Yes.", "yes"), ("The The", "the the"), ("!!!", "!!!"), ("İstanbul", "istanbul"), ("Straße", "STRASSE"),
    ("ﬁsh", "fish"), ("Beyoncé", "Beyonce"), ("word\u200bword", "wordword"), ("U.S.", "US"), ("**C++**", "C++"),
    ("(the Water of Leith)", "Water of Leith"), ("", ""),
]  # fmt: skip
OTHER = [
    ("-5", "5"), ("3.5", "35"), ("3.000", "3000"), ("$1.5", "$15"), ("$5", "€5"), ("1,5 km", "15 km"), ("C++", "C"),
    ("C#", "C"), ("A*", "A"), ("", "Edinburgh"), ("й", "и"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "gold"), EQUAL)
def test_the_same_text_is_equal_in_any_spelling(answer: str, gold: str) -> None:
    assert (exact_text(answer, [gold]), text_f1(answer, [gold])) == (1.0, 1.0)


@pytest.mark.parametrize(("answer", "gold"), OTHER)
def test_other_numbers_signs_and_names_are_not_equal(answer: str, gold: str) -> None:
    assert exact_text(answer, [gold]) == 0.0


def test_characters_of_chinese_and_japanese_are_words() -> None:
    assert text_f1("東京都", ["東京"]) == pytest.approx(0.8)


def test_a_yes_scores_whole_or_not_at_all() -> None:
    assert (text_f1("yes it is", ["yes"]), text_f1("no", ["no fixed term"])) == (
        0.0,
        0.0,
    )


def test_the_best_of_several_gold_answers_counts() -> None:
    assert exact_text("Leith", ["Forth", "Leith"]) == 1.0
    assert text_f1("River Leith", ["Forth", "Water of Leith"]) == pytest.approx(0.4)

"""ROUGE-Lsum: the named package's own figure on one-sentence texts, and its formula by hand on several sentences."""

import random
import sys

import pytest

from ras_agent.contracts.errors import MissingExtra
from ras_agent.eval.metrics.answers import rouge_lsum, rouge_scorer

WORDS = ("mill", "river", "wheel", "turns", "old", "the", "grain", "Orr", "ran")


def test_the_best_reference_counts() -> None:
    assert (
        rouge_lsum("Orr ran the mill.", ["Nothing like it.", "Orr ran the mill."])
        == 1.0
    )
    assert rouge_lsum("Orr", []) == 0.0


def test_stems_and_case_do_not_matter() -> None:
    assert rouge_lsum("MILLS TURNED", ["mill turn"]) == 1.0


def test_sentences_are_matched_one_by_one() -> None:
    # the same two sentences in another order: each is found whole
    assert rouge_lsum("Grain is old. Orr ran it.", ["Orr ran it. Grain is old."]) == 1.0


def test_an_abbreviation_ends_no_sentence() -> None:
    # one sentence of 4 words against one of 4, longest common subsequence "dr orr ran"
    assert rouge_lsum("Dr. Orr ran mills.", ["Dr. Orr ran wheels."]) == pytest.approx(
        0.75
    )


def _longest(one: list[str], other: list[str]) -> int:
    if not one or not other:
        return 0
    row = [0] * (len(other) + 1)
    for left in one:
        before = row
        row = [0]
        for place, right in enumerate(other):
            row.append(
                before[place] + 1 if left == right else max(row[-1], before[place + 1])
            )
    return row[-1]


def test_200_single_sentences_score_by_their_longest_common_subsequence() -> None:
    stemmer = pytest.importorskip("nltk.stem.porter").PorterStemmer()
    generator = random.Random(11)
    for _ in range(200):
        one, other = (
            generator.choices(WORDS, k=generator.randint(1, 9)) for _ in range(2)
        )
        # rouge-score stems words of more than three letters
        stems = [
            [
                stemmer.stem(word.lower()) if len(word) > 3 else word.lower()
                for word in text
            ]
            for text in (one, other)
        ]
        shared = _longest(*stems)
        expected = 2 * shared / (len(one) + len(other)) if shared else 0.0
        assert rouge_lsum(" ".join(one), [" ".join(other)]) == pytest.approx(
            expected
        ), (one, other)


def test_without_the_package_the_install_line_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    rouge_scorer.cache_clear()
    with pytest.raises(MissingExtra, match=r"ras-agent\[eval\]"):
        rouge_lsum("Orr", ["Orr"])

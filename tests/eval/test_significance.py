"""Intervals and tests on cases whose answer is known, and against SciPy's."""

from itertools import product
from math import comb
from statistics import fmean

import numpy as np
import pytest

from ras_agent.eval import significance
from ras_agent.eval.significance import (
    Comparison,
    Estimate,
    compare,
    holm,
    mean_interval,
    paired_interval,
    paired_permutation,
)


def test_equal_systems_have_no_difference() -> None:
    found = compare({"a": 0.2, "b": 0.8}, {"a": 0.2, "b": 0.8})
    assert (found.difference.mean, found.permutation_p, found.differing) == (0, 1, 0)


def test_a_system_better_on_every_question_is_surely_better() -> None:
    better = {str(number): 1.0 for number in range(20)}
    found = compare(better, dict.fromkeys(better, 0.5))
    assert found.difference.mean == 0.5
    assert found.difference.low > 0.4
    assert found.permutation_p < 0.001


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [1.0, 2.0])])
def test_unequal_or_empty_lists_are_errors(a: list[float], b: list[float]) -> None:
    for measure in (paired_interval, paired_permutation):
        with pytest.raises(ValueError, match="equal, non-zero"):
            measure(a, b)


def test_equal_scores_have_an_interval_as_if_they_varied_a_little() -> None:
    found = mean_interval([0.5] * 4)
    assert (found.mean, found.n) == (0.5, 4)
    assert (found.low, found.high) == pytest.approx((0.258, 0.742), abs=0.001)


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [
        (10, 10, 0.722, 1.0),
        (0, 6, 0.0, 0.390),
        (9, 10, 0.596, 0.982),
        (36, 40, 0.769, 0.960),
        (1, 1, 0.207, 1.0),
    ],
)
def test_a_share_has_wilsons_interval(
    right: int, n: int, low: float, high: float
) -> None:
    found = mean_interval([1.0] * right + [0.0] * (n - right))
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.001)


@pytest.mark.parametrize("n", [6, 10, 40, 150])
def test_intervals_of_shares_cover_95_percent_of_all_shares(n: int) -> None:
    shares = np.linspace(0.02, 0.98, 193)
    intervals = [
        mean_interval([1.0] * right + [0.0] * (n - right)) for right in range(n + 1)
    ]
    covered = [
        sum(
            comb(n, k) * p**k * (1 - p) ** (n - k)
            for k, found in enumerate(intervals)
            if found.low <= p <= found.high
        )
        for p in shares
    ]
    assert 0.93 <= fmean(covered) <= 0.97


@pytest.mark.parametrize("n", [6, 10, 40, 150])
def test_intervals_of_partly_right_answers_cover_95_percent(n: int) -> None:
    rng = np.random.default_rng(n)
    values = np.array([0.0, 0.33, 0.5, 0.67, 1.0])
    weights = np.array([0.3, 0.05, 0.1, 0.05, 0.5])
    mean = float(values @ weights)
    drawn = rng.choice(values, (800, n), p=weights)
    found = [mean_interval(list(row)) for row in drawn]
    assert 0.93 <= fmean(one.low <= mean <= one.high for one in found) <= 0.97


# of fewer, the values outside the sample decide
@pytest.mark.parametrize("n", [10, 40, 150])
@pytest.mark.parametrize(
    ("values", "weights", "most"),
    [
        ([0.0, 1.0, -1.0], [0.5, 0.3, 0.2], 0.985),
        ([0.0, 0.5, -0.25, 1.0], [0.5, 0.2, 0.2, 0.1], 0.985),
        ([0.1, -0.1, 0.3, 0.0], [0.4, 0.3, 0.2, 0.1], 0.985),
        # of six questions hardly one differs
        (
            [0.0, 1.0, -1.0],
            [0.85, 0.1, 0.05],
            1.0,
        ),
    ],
)
def test_intervals_of_paired_differences_cover_95_percent(
    values: list[float], weights: list[float], most: float, n: int
) -> None:
    rng = np.random.default_rng(n)
    drawn = rng.choice(values, (800, n), p=weights)
    mean = float(np.dot(values, weights))
    found = [paired_interval(list(row), [0.0] * n) for row in drawn]
    covered = fmean(low <= mean <= high for low, high in found)
    assert 0.89 <= covered <= most


def test_no_difference_in_few_questions_is_not_known_to_be_none() -> None:
    assert paired_interval([1.0] * 6, [1.0] * 6) == pytest.approx(
        (-0.280, 0.280), abs=0.001
    )
    low, high = paired_interval([1.0] * 6, [0.0] * 6)
    assert (0.4 < low < 0.5, high) == (True, 1.0)


def test_p_values_are_corrected_for_their_number() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_order_of_the_scores_does_not_matter() -> None:
    assert mean_interval([0.1, 0.9, 0.4]) == mean_interval([0.9, 0.4, 0.1])


def test_a_mean_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one score"):
        mean_interval([])


def test_an_interval_beyond_shares_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    scores = 10 * np.random.default_rng(3).random(150)
    found = mean_interval(list(scores))
    low, high = stats.t.interval(0.95, 149, scores.mean(), stats.sem(scores))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-4)
    assert found.mean == pytest.approx(scores.mean())


def test_one_score_beyond_shares_has_no_width() -> None:
    assert mean_interval([2.5]) == Estimate(2.5, 2.5, 2.5, 1)


def test_few_questions_are_swapped_in_every_way() -> None:
    a, b = [0.9, 0.4, 0.8, 0.7, 0.6], [0.2, 0.5, 0.1, 0.7, 0.3]
    differences = [x - y for x, y in zip(a, b, strict=True)]
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=5)
    ]
    # 1.6; only 1.8 and 1.6 itself are as far from nought, each with both signs
    observed = abs(sum(differences))
    assert sum(found >= observed - 1e-9 for found in sums) / 32 == 0.25
    assert paired_permutation(a, b) == 0.25


def test_many_questions_give_scipys_p_value() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(5)
    a = rng.random(60)
    b = a + rng.normal(-0.05, 0.2, 60)
    theirs = stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        rng=np.random.default_rng(6),
    )
    assert paired_permutation(list(a), list(b), samples=20_000) == pytest.approx(
        theirs.pvalue, abs=0.02
    )


def test_equal_systems_are_not_told_apart() -> None:
    assert paired_permutation([0.5] * 30, [0.5] * 30) == 1.0


def test_always_better_is_the_rarest_swap() -> None:
    assert paired_permutation([1.0] * 40, [0.0] * 40, samples=999) == pytest.approx(
        1 / 1000
    )


def test_runs_are_compared_on_the_questions_they_share() -> None:
    found = compare(
        {"q1": 1.0, "q2": 0.0, "q3": 1.0}, {"q3": 0.0, "q1": 1.0, "q4": 1.0, "q5": 0.0}
    )
    assert found.n == 2
    assert found.difference.mean == 0.5
    # one question differs: both of its swaps are as extreme
    assert found.permutation_p == 1.0


def test_runs_of_different_sets_are_not_compared() -> None:
    with pytest.raises(ValueError, match="no question was scored in both runs"):
        compare({"q1": 1.0}, {"q2": 1.0})


@pytest.mark.parametrize("better", [True, False])
@pytest.mark.parametrize("cells", [4_000_000, 15 * 64])
def test_a_p_value_of_random_swaps_is_that_of_the_sign_test(
    better: bool, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(significance, "_CELLS", cells)  # drawn at once, or in 157 parts
    a, b = [1.0] * 11 + [0.0] * 4 + [1.0] * 30, [0.0] * 11 + [1.0] * 4 + [1.0] * 30
    found = paired_permutation(a, b) if better else paired_permutation(b, a)
    # 10,000 samples are fewer than the 2 ** 15 swaps; 11 : 4 or rarer, either way, has a chance of 0.1185
    assert found == pytest.approx(0.1185, abs=0.012)


def test_random_swaps_of_a_difference_of_nought_are_all_as_extreme() -> None:
    assert paired_permutation([1.0] * 20 + [0.0] * 20, [0.0] * 20 + [1.0] * 20) == 1.0


def test_every_swap_is_tried_if_there_are_just_as_many_as_samples() -> None:
    a, b = [0.9, 0.4, 0.8, 0.7, 0.6], [0.2, 0.5, 0.1, 0.6, 0.3]
    # 1.7 as observed and 1.9 with the second question swapped too, of 2 ** 5 = 32, each with both signs; beside them
    # 1.7 with the second and the fourth swapped
    assert paired_permutation(a, b, samples=32) == 6 / 32
    assert paired_permutation(a, b, samples=31) * 32 == pytest.approx(
        round(paired_permutation(a, b, samples=31) * 32)
    )


def test_a_comparison_has_10000_swaps_from_seed_0() -> None:
    rng = np.random.default_rng(8)
    a, b = list(rng.random(60)), list(rng.random(60))
    permutation = paired_permutation(a, b)
    assert permutation == paired_permutation(a, b, samples=10_000, seed=0)
    assert permutation != paired_permutation(a, b, seed=1)
    scores = [
        {str(number): score for number, score in enumerate(run)} for run in (a, b)
    ]
    low, high = paired_interval(a, b)
    found = compare(scores[0], scores[1])
    mean = found.difference.mean
    assert mean == pytest.approx(fmean(a) - fmean(b))
    assert found == Comparison(
        60, Estimate(mean, low, high, 60), permutation, differing=60
    )


def test_no_more_numbers_than_allowed_are_drawn_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(significance, "_CELLS", 12)
    assert list(significance._batches(10, 3)) == [4, 4, 2]
    assert list(significance._batches(3, 12)) == [1, 1, 1]
    assert list(significance._batches(2, 100)) == [1, 1]  # a row is drawn whole

"""The paired bootstrap on cases whose answer is known."""

import pytest

from ras_agent.eval.significance import paired_bootstrap


def test_equal_systems_have_no_difference() -> None:
    result = paired_bootstrap([0.2, 0.8, 1.0], [0.2, 0.8, 1.0])
    assert (result.mean, result.low, result.high, result.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_a_system_better_on_every_question_is_surely_better() -> None:
    result = paired_bootstrap([1.0] * 20, [0.5] * 20)
    assert (result.mean, result.low, result.high) == (0.5, 0.5, 0.5)
    assert result.p_value == pytest.approx(1e-4)


def test_an_interval_of_noise_holds_zero() -> None:
    result = paired_bootstrap([1.0, 0.0] * 25, [0.0, 1.0] * 25)
    assert result.low < 0 < result.high
    assert result.p_value > 0.5


def test_the_same_seed_gives_the_same_interval() -> None:
    a, b = [0.1, 0.9, 0.4, 0.7], [0.3, 0.2, 0.5, 0.1]
    assert paired_bootstrap(a, b) == paired_bootstrap(a, b)


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [1.0, 2.0])])
def test_unequal_or_empty_lists_are_errors(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match="equal, non-zero"):
        paired_bootstrap(a, b)

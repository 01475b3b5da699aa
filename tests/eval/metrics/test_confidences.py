"""How far confidences are off, and how well they sort right answers from wrong ones."""

import pytest

from ras_agent.eval.metrics.confidences import (
    area_under_risk,
    calibration_error,
    confidence_figures,
    risks_by_coverage,
)


def test_the_error_is_the_mean_distance_over_bins() -> None:
    # the bin of 0.9: sure 0.9, right half of the time; that of 0.2: 0.2 off
    error = calibration_error([0.9, 0.9, 0.2, 0.2], [1.0, 0.0, 0.0, 0.0])
    assert error == pytest.approx((0.8 + 0.4) / 4)


def test_the_risk_is_that_of_the_surest_answers() -> None:
    risks = risks_by_coverage([0.2, 0.9, 0.6], [0, 1, 0])
    assert risks.tolist() == pytest.approx([0.0, 0.5, 2 / 3])


def test_equal_confidences_have_one_risk_in_any_order() -> None:
    one = area_under_risk([0.75] * 4, [1, 1, 0, 0])
    other = area_under_risk([0.75] * 4, [0, 0, 1, 1])
    assert (one, other) == (pytest.approx(0.5), pytest.approx(0.5))


def test_figures_have_intervals_and_a_curve() -> None:
    figures = confidence_figures([0.9, 0.8, 0.3, 0.2] * 10, [1, 1, 0, 0] * 10)
    assert figures is not None
    assert figures.n == 40
    assert figures.error.low <= figures.error.mean <= figures.error.high
    assert figures.area.mean == pytest.approx(0.15, abs=0.02)
    assert (figures.risk_at(0.5), figures.risk_at(1.0)) == (0.0, 0.5)


def test_without_confidences_there_are_no_figures() -> None:
    assert confidence_figures([], []) is None

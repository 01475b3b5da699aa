"""How far confidences are from what answers are worth."""

import pytest

from lab.calibration import calibration_error


def test_confidences_that_are_met_have_no_error() -> None:
    assert calibration_error([0.75, 0.75, 0.75, 0.75], [1.0, 1.0, 1.0, 0.0], bins=10) == pytest.approx(0.0)


def test_bins_are_counted_by_their_answers() -> None:
    assert calibration_error([0.9, 0.9, 0.2], [1.0, 0.0, 0.2], bins=5) == pytest.approx(2 / 3 * 0.4)


def test_bins_that_are_too_sure_and_too_unsure_do_not_make_up_for_each_other() -> None:
    sure, worths = [0.9, 0.1], [0.5, 0.5]
    assert calibration_error(sure, worths, bins=2) == pytest.approx(0.4)
    assert calibration_error(sure, worths, bins=1) == pytest.approx(0.0)


def test_a_full_confidence_is_in_the_last_bin() -> None:
    assert calibration_error([1.0], [1.0], bins=5) == 0.0

"""How far confidences are from what answers are worth."""

import math
import random

import pytest

from lab.calibration import Told, calibration_error, fitted


def test_confidences_that_are_met_have_no_error() -> None:
    assert calibration_error(
        [0.75, 0.75, 0.75, 0.75], [1.0, 1.0, 1.0, 0.0], bins=10
    ) == pytest.approx(0.0)


def test_bins_are_counted_by_their_answers() -> None:
    assert calibration_error([0.9, 0.9, 0.2], [1.0, 0.0, 0.2], bins=5) == pytest.approx(
        2 / 3 * 0.4
    )


def test_bins_that_are_too_sure_and_too_unsure_do_not_make_up_for_each_other() -> None:
    sure, worths = [0.9, 0.1], [0.5, 0.5]
    assert calibration_error(sure, worths, bins=2) == pytest.approx(0.4)
    assert calibration_error(sure, worths, bins=1) == pytest.approx(0.0)


def test_a_full_confidence_is_in_the_last_bin() -> None:
    assert calibration_error([1.0], [1.0], bins=5) == 0.0


def test_the_curve_that_answers_follow_is_found() -> None:
    rng, told = random.Random(0), []
    for _ in range(4000):
        sign, borne = rng.random(), rng.uniform(-9, 9)
        likely = 1 / (1 + math.exp(2 - sign - 0.3 * borne))
        told.append(Told(0.0, float(rng.random() < likely), "wholes", sign, borne))
    offset, of_sign, of_borne = fitted(told)
    assert offset == pytest.approx(-2, abs=0.4)
    assert of_sign == pytest.approx(1, abs=0.4)
    assert of_borne == pytest.approx(0.3, abs=0.05)

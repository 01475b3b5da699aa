"""How far confidences are from the worth of the answers."""

import random
from pathlib import Path

import pytest

from lab.calibration import Told, calibration_error, fitted, keep, kept
from ras_agent.tools.offline.answerer.confidence import Signals, likelihood


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


def test_the_weights_that_answers_follow_are_found() -> None:
    rng = random.Random(0)
    wanted = {"offset": -2, "borne": 0.3, "first": 1, "likely": 0, "chained": 0}
    told = []
    for _ in range(4000):
        signals = Signals(
            borne=rng.uniform(-9, 9),
            first=float(rng.random() < 0.5),
            likely=rng.random(),
            chained=0.0,
            of_another=float(rng.random() < 0.3),
        )
        likely = likelihood(signals, {**wanted, "of_another": 0.4})
        told.append(Told(signals, float(rng.random() < likely)))
    weights = fitted([told])
    assert weights["offset"] == pytest.approx(-2, abs=0.4)
    assert weights["borne"] == pytest.approx(0.3, abs=0.05)
    assert weights["first"] == pytest.approx(1, abs=0.4)
    assert weights["of_another"] == pytest.approx(0.4, abs=0.08)


def test_signals_that_were_kept_are_those_that_were_told(tmp_path: Path) -> None:
    sets = [("kind", "set", [Told(Signals(1.5, 1.0, 0.5, 0.0, 0.0), 1.0)])]
    keep(sets, tmp_path / "signals.jsonl")
    assert kept(tmp_path / "signals.jsonl") == sets

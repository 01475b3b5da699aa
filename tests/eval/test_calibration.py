"""A confidence fitted to a run, its threshold, and the refusal where a run is too small."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.linear_model import LogisticRegression

from ras_agent.contracts.errors import RunError, SettingsError
from ras_agent.eval.calibration import (
    Rule,
    calibrated,
    chosen_threshold,
    cross_validated,
    fitted,
    least_count,
    upper_bound,
)
from ras_agent.eval.run.result import Result
from ras_agent.running.confidence import RiskRow, Signals

PLAIN = Signals(0.5, 0, 0, 0, 0, 0, 1, 0.4, 0, 0.2, 0, 0, 1, 1)


def planted(n: int, seed: int) -> tuple[list[Signals], list[float]]:
    """Answers that are right nine times in ten where two documents state them, else twice in ten."""
    draw = np.random.default_rng(seed)
    signals = []
    right = []
    for _ in range(n):
        twice = float(draw.random() < 0.5)
        margin = draw.normal() / 3
        signals.append(replace(PLAIN, stated_twice=twice, read_margin=margin))
        right.append(float(draw.random() < (0.97 if twice else 0.2)))
    return signals, right


@pytest.mark.parametrize(("wrong", "n"), [(0, 22), (1, 38), (7, 50), (49, 50)])
def test_the_bound_is_clopper_and_pearsons(wrong: int, n: int) -> None:
    expected = beta.ppf(0.9, wrong + 1, n - wrong)
    assert upper_bound(wrong, n, 0.9) == pytest.approx(expected, abs=1e-9)


def test_nothing_said_or_all_wrong_has_no_bound() -> None:
    assert (upper_bound(0, 0, 0.9), upper_bound(3, 3, 0.9)) == (1.0, 1.0)


def test_the_weights_are_those_of_a_logistic_regression() -> None:
    draw = np.random.default_rng(3)
    rows = draw.normal(size=(200, 3))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    right = (draw.random(200) < 1 / (1 + np.exp(-(rows[:, 0] - 0.5)))).astype(float)
    ours = fitted(rows, right)
    model = LogisticRegression(max_iter=1000, tol=1e-10).fit(rows, right)
    # two solvers end at the same minimum, apart from their tolerances
    assert ours.columns == pytest.approx(np.ravel(model.coef_), abs=1e-4)
    assert ours.offset == pytest.approx(float(model.intercept_[0]), abs=1e-4)


def test_a_signal_that_never_changes_has_no_weight() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    weights = fitted(rows, np.array([0.0, 1.0, 0.0, 1.0]))
    assert weights.columns[1] == 0
    assert weights.columns[0] > 0


def test_a_run_of_right_answers_only_is_fitted() -> None:
    rows = np.arange(20.0).reshape(10, 2)
    assert fitted(rows, np.ones(10)).of(rows) == pytest.approx(np.ones(10), abs=1e-3)


def test_an_answers_own_outcome_does_not_change_its_cross_validated_confidence() -> (
    None
):
    rows = np.random.default_rng(1).normal(size=(50, 2))
    right = (rows[:, 0] > 0).astype(float)
    other = right.copy()
    other[7] = 1 - other[7]
    before = cross_validated(rows, right)
    assert cross_validated(rows, other)[7] == pytest.approx(before[7], abs=1e-12)


def test_the_lowest_threshold_above_the_first_that_fails_is_chosen() -> None:
    table = [
        RiskRow(0.9, 20, 0, 0.11),  # too few to be tested
        RiskRow(0.8, 40, 0, 0.06),
        RiskRow(0.7, 60, 2, 0.09),
        RiskRow(0.6, 80, 8, 0.16),
        RiskRow(0.5, 900, 50, 0.07),  # behind one that failed
    ]
    assert chosen_threshold(table, 0.1, (40,)) == 0.7
    assert chosen_threshold(table[3:], 0.1, (40,)) is None


def test_a_mistake_among_the_surest_few_does_not_end_the_sequence_of_half() -> None:
    table = [
        RiskRow(0.9, 40, 3, 0.16),
        RiskRow(0.7, 100, 4, 0.09),
        RiskRow(0.6, 120, 5, 0.095),
        RiskRow(0.5, 200, 30, 0.2),
    ]
    assert chosen_threshold(table, 0.1, (40, 100)) == 0.6


def test_an_error_that_is_planted_is_left_unsaid() -> None:
    signals, right = planted(300, seed=1)
    calibration = calibrated(signals, right, run="mine")
    sure = replace(PLAIN, stated_twice=1.0)
    assert calibration.confidence(sure) > calibration.threshold
    assert calibration.confidence(PLAIN) < calibration.threshold
    assert (calibration.n, calibration.risk, calibration.sure) == (300, 0.1, 0.9)
    assert "stated_twice" in calibration.weights
    assert "own" not in calibration.weights  # never differs in this run
    assert "questions like those of mine" in calibration.condition


def test_a_run_that_is_too_small_is_refused_with_the_number_needed() -> None:
    signals, right = planted(20, seed=1)
    with pytest.raises(RunError, match=r"has 20 answers, but a risk of 0\.1 needs"):
        calibrated(signals, right)
    assert least_count(0.1, 0.95) == 46


def test_a_run_whose_surest_answers_are_wrong_is_refused() -> None:
    signals = [PLAIN] * 100
    right = [1.0, 0.0] * 50
    with pytest.raises(RunError, match=r"no threshold keeps a risk of 0\.1"):
        calibrated(signals, right)


def test_a_disputed_answer_is_at_most_as_sure_as_its_share() -> None:
    signals, right = planted(300, seed=2)
    calibration = calibrated(signals, right)
    disputed = replace(PLAIN, stated_twice=1.0, undisputed=0.5)
    assert calibration.confidence(disputed) == 0.5


def test_the_hash_of_settings_ignores_the_threshold_and_nothing_else() -> None:
    signals, right = planted(100, seed=3)

    def hashed(**settings: object) -> str:
        manifest = {"graph": "ras", "settings": settings}
        return calibrated(signals, right, risk=0.5, manifest=manifest).settings_sha256

    assert hashed(k=5) == hashed(k=5, least_confidence=0.0)
    assert hashed(k=5) != hashed(k=6)


def test_a_rule_is_a_metric_and_its_least_score() -> None:
    rule = Rule.read("f1>=0.5")
    assert rule.holds_for(Result("1", "?", scores={"f1": 0.5}))
    assert not Rule.read("f1 > 0.5").holds_for(Result("1", "?", scores={"f1": 0.5}))
    with pytest.raises(RunError, match=r"'1' has no score in 'f1'; its metrics: em"):
        rule.holds_for(Result("1", "?", scores={"em": 1.0}))


@pytest.mark.parametrize("text", ["f1", "f1=0.5", "f1>=much", "f1>=0.5.1", ""])
def test_another_rule_is_told(text: str) -> None:
    with pytest.raises(
        SettingsError, match="--right: expected a metric and its lowest score"
    ):
        Rule.read(text)


@pytest.mark.slow("measurements")
def test_the_bound_is_kept_as_often_as_it_says() -> None:
    population, outcomes = planted(4_000, seed=9)
    draw = np.random.default_rng(0)
    violations = 0
    tried = 0
    for _ in range(100):
        rows = draw.choice(len(population), 150, replace=False)
        try:
            calibration = calibrated(
                [population[row] for row in rows], [outcomes[row] for row in rows]
            )
        except RunError:
            continue
        tried += 1
        said = [
            outcome
            for one, outcome in zip(population, outcomes, strict=True)
            if calibration.confidence(one) >= calibration.threshold
        ]
        violations += 1 - np.mean(said) > 0.1
    assert tried > 50
    assert violations <= 0.15 * tried  # one in ten, and what chance makes of it

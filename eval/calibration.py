"""Fits the confidence of answers to the results of a run, and chooses a threshold that bounds the share of
wrong answers.

The confidence is a logistic regression on an answer's signals. For the risk table each confidence is
cross-validated: its weights were fitted to other questions. The upper bound of the risk at a threshold is
Clopper and Pearson's.

Thresholds are tested from the highest downwards, until the first whose bound is above the allowed risk (learn
then test, Angelopoulos et al. 2021, arXiv:2110.01052). A second sequence of tests begins at the threshold that
half of the answers reach, because one mistake among the few highest confidences would end the first sequence at
once. Each sequence gets half of the allowed error probability.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import ge, gt
from typing import NamedTuple

import numpy as np

from ras_agent.contracts.arrays import Doubles
from ras_agent.contracts.errors import RunError, SettingsError
from ras_agent.eval.metrics.confidences import area_under_risk, calibration_error
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.result import Result
from ras_agent.running.confidence import (
    Calibration,
    RiskRow,
    Signals,
    answer_of,
    asked_in,
    cited_texts,
    signals_of_trace,
)
from ras_agent.running.protocols import SpanReader
from ras_agent.running.trace import Trace

_FOLDS = 5
_PENALTY = 1.0  # on squared weights of standardised signals, as in scikit-learn
_ROUNDS = 50
_THRESHOLDS = [place / 100 for place in range(99, 0, -1)]
_SHOWN = 5  # each fifth threshold is shown
_RIGHT = re.compile(r"\s*(?P<metric>\w+)\s*(?P<sign>>=?)\s*(?P<least>[\d.]+)\s*")


class Rule(NamedTuple):
    """Decides which results count as right: those whose score in a metric is at least (or above) a number."""

    metric: str
    compare: Callable[[float, float], bool]
    least: float

    @classmethod
    def read(cls, text: str) -> Rule:
        """Parse a rule such as "f1>=0.5".

        Raises:
            SettingsError: If the text has another form.
        """
        match = _RIGHT.fullmatch(text)
        try:
            if match is not None:
                compare = ge if match["sign"] == ">=" else gt
                return cls(match["metric"], compare, float(match["least"]))
        except ValueError:
            pass
        raise SettingsError(
            f"--right: expected a metric and its lowest score, such as 'f1>=0.5', got {text!r:.80}"
        )

    def holds_for(self, result: Result) -> bool:
        """Tell whether a result is right.

        Raises:
            RunError: the result has no score of the metric.
        """
        score = result.scores.get(self.metric)
        if score is None:
            raise RunError(
                f"question {result.id!r} has no score in {self.metric!r}; its metrics: {', '.join(result.scores) or 'none'}"
            )
        return self.compare(score, self.least)


@dataclass(frozen=True, slots=True)
class Weights:
    """Holds the weights of a logistic function: one for each column, and the offset."""

    offset: float
    columns: Doubles

    def of(self, rows: Doubles) -> Doubles:
        """Return the probability of each row of `rows`, (n, d)."""
        return _logistic(self.offset + rows @ self.columns)


def _logistic(log_odds: Doubles) -> Doubles:
    probabilities: Doubles = 1 / (1 + np.exp(-np.clip(log_odds, -30, 30)))
    return probabilities


def fitted(rows: Doubles, right: Doubles) -> Weights:
    """Fit a logistic regression with a penalty on the squared weights, by Newton's method.

    Args:
        rows: The signals of each answer, shape (n, d). A constant column gets the weight 0.
        right: 1 for each right answer, 0 for a wrong one, shape (n,).
    """
    centre = rows.mean(axis=0)
    spread = rows.std(axis=0)
    varies = spread > 1e-9
    scaled = (rows - centre)[:, varies] / spread[varies]
    ones = np.ones((len(rows), 1))
    design = np.hstack([ones, scaled])  # (n, 1 + d)
    penalty = np.full(design.shape[1], _PENALTY)
    penalty[0] = 1e-6  # nearly none on the offset: all answers may be right
    solution = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        likely = _logistic(design @ solution)
        slope = design.T @ (likely - right) + penalty * solution
        curvature = (design.T * (likely * (1 - likely))) @ design + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        length = float(np.abs(step).max())
        solution = solution - step * min(1.0, 4 / max(length, 1e-12))
        if length < 1e-9:
            break
    columns = np.zeros(rows.shape[1])
    columns[varies] = solution[1:] / spread[varies]
    offset = float(solution[0] - columns @ centre)
    return Weights(offset, columns)


def cross_validated(rows: Doubles, right: Doubles) -> Doubles:
    """Return the probability that each row is right, computed with weights that were fitted to the other folds.

    Args:
        rows: The signals of each answer, shape (n, d).
        right: 1 for each right answer, 0 for a wrong one, shape (n,).
    """
    order = np.random.default_rng(0).permutation(len(rows))
    sure = np.zeros(len(rows))
    for fold in range(_FOLDS):
        held_out = order[fold::_FOLDS]
        others = np.setdiff1d(order, held_out)
        weights = fitted(rows[others], right[others])
        sure[held_out] = weights.of(rows[held_out])
    return sure


@cache
def upper_bound(wrong: int, n: int, sure: float) -> float:
    """Return Clopper and Pearson's one-sided upper bound for the share of wrong answers, if `wrong` of `n` were
    wrong.

    The bound holds with probability `sure`. It is 1.0 if `n` is 0.

    >>> round(upper_bound(0, 22, 0.9), 4), round(upper_bound(1, 38, 0.9), 4)
    (0.0994, 0.0985)
    """
    if wrong >= n:
        return 1.0
    low = wrong / n
    high = 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(wrong, n, middle) > 1 - sure:
            low = middle
        else:
            high = middle
    return high


def _at_most(count: int, n: int, share: float) -> float:
    """Return the probability of at most `count` successes in `n` trials, each of which succeeds with
    probability `share`.
    """
    if share >= 1:
        return float(count >= n)
    total = 0.0
    for number in range(count + 1):
        ways = (
            math.lgamma(n + 1) - math.lgamma(number + 1) - math.lgamma(n - number + 1)
        )
        odds = number * math.log(share) if number else 0.0
        total += math.exp(ways + odds + (n - number) * math.log1p(-share))
    return total


def least_count(risk: float, sure: float) -> int:
    """Return the smallest number of answers for which one wrong answer still keeps the upper bound within
    `risk`.

    >>> least_count(0.1, 0.9), least_count(0.2, 0.9)
    (38, 18)
    """
    n = 2
    while upper_bound(1, n, sure) > risk:
        n += 1
    return n


def risk_table(sure: Doubles, right: Doubles, level: float) -> list[RiskRow]:
    """Return the risk at each threshold, the highest threshold first.

    Args:
        sure: The confidence of each answer.
        right: 1 for each right answer, 0 for a wrong one.
        level: The probability with which each bound holds.
    """
    table = []
    for threshold in _THRESHOLDS:
        said = sure >= threshold
        wrong = int(np.sum(said & (right < 1)))
        count = int(said.sum())
        table.append(RiskRow(threshold, count, wrong, upper_bound(wrong, count, level)))
    return table


def chosen_threshold(
    table: Sequence[RiskRow], risk: float, starts: Sequence[int]
) -> float | None:
    """Return the lowest threshold that passes its tests; None if no threshold does.

    A threshold passes if its bound is at most `risk`. Thresholds are tested in sequences; each goes from its
    start downwards and ends at the first threshold that fails.

    Args:
        table: The risk at each threshold, the highest first.
        risk: The allowed share of wrong answers.
        starts: For each sequence, the number of answers that its first threshold needs.
    """
    chosen = []
    for start in starts:
        for row in table:
            if row.said < start:
                continue
            if row.at_most > risk:
                break
            chosen.append(row.threshold)
    return min(chosen, default=None)


def answered(folder: RunFolder, rule: Rule) -> Iterator[tuple[Trace, bool]]:
    """Yield the trace of each answered question of a run, and whether `rule` counts the answer as right.

    Raises:
        RunError: If the run has no traces, was asked with a calibration, or withheld answers by a threshold.
    """
    settings = folder.manifest().get("settings", {})
    if settings.get("calibration"):
        raise RunError(
            f"the run {folder.path} already used a calibration: give a run without --calibration"
        )
    says_all = settings.get("least_confidence") == 0
    for result in folder.results():
        if result.error:
            continue
        if result.abstained and result.confidence is not None and not says_all:
            raise RunError(
                f"the run {folder.path} withheld answers below its least confidence, and a calibration needs them: run it "
                "again with --least-confidence 0"
            )
        if result.abstained:
            continue
        if result.trace is None:
            raise RunError(
                f"{folder.path} has no traces, from which signals are computed: run it again with --traces"
            )
        yield Trace.from_dict(result.trace, str(folder.path)), rule.holds_for(result)


def signals_in(
    folder: RunFolder, rule: Rule, reader: SpanReader
) -> tuple[list[Signals], list[float]]:
    """Return the signals of each answer of a run, and a list with 1.0 for each right answer and 0.0 for each
    wrong one.

    Args:
        folder: The run.
        rule: Decides which answers are right.
        reader: Reads spans in the cited passages; its spans are the basis of some signals.
    """
    signals = []
    right = []
    for trace, is_right in answered(folder, rule):
        texts = cited_texts(answer_of(trace), trace.passages)
        spans = reader.read(trace.question, texts)
        signals.append(signals_of_trace(trace, spans))
        right.append(float(is_right))
    return signals, right


def calibrated(
    signals: Sequence[Signals],
    right: Sequence[float],
    *,
    risk: float = 0.1,
    sure: float = 0.9,
    rule: str = "f1>=0.5",
    run: str = "the run",
    manifest: Mapping[str, object] | None = None,
) -> Calibration:
    """Fit a calibration to answers and choose its threshold.

    Args:
        signals: The signals of each answer.
        right: 1 for each right answer, 0 for a wrong one.
        risk: The allowed share of wrong answers among those whose confidence reaches the threshold.
        sure: The probability with which the bound of the risk holds.
        rule: The rule by which answers were counted as right; it is stored with the calibration.
        run: The folder of the run.
        manifest: The run's manifest.

    Raises:
        RunError: If there are too few answers, or no threshold keeps the risk.
    """
    level = 1 - (1 - sure) / 2
    enough = least_count(risk, level)
    if len(signals) < enough:
        raise RunError(
            f"{run} has {len(signals)} answers, but a risk of {risk:g} needs at least {enough}: ask more questions, "
            "or allow a higher --risk"
        )
    manifest = manifest or {}
    names = list(Signals.__dataclass_fields__)
    rows = np.array([[getattr(one, name) for name in names] for one in signals])
    outcomes = np.array(right, dtype=np.float64)
    caps = rows[:, names.index("undisputed")]
    confidences = np.minimum(cross_validated(rows, outcomes), caps)
    table = risk_table(confidences, outcomes, level)
    half = max(enough, math.ceil(len(signals) / 2))
    threshold = chosen_threshold(table, risk, (enough, half))
    if threshold is None:
        first = next((row for row in table if row.said >= half), table[-1])
        raise RunError(
            f"{run}: no threshold keeps a risk of {risk:g}: {first.wrong} of the {first.said} most confident answers "
            f"are wrong, a risk of up to {first.at_most:.2f}; allow a higher --risk, or ask more questions"
        )
    weights = fitted(rows, outcomes)
    by_name = {}
    for name, weight in zip(names, weights.columns, strict=True):
        if weight:
            by_name[name] = float(weight)
    return Calibration(
        run=run,
        condition=f"questions like those of {run}, asked in the same way",
        asked_by=_asked_by(manifest),
        settings_sha256=_settings_hash(manifest),
        right=rule,
        risk=risk,
        sure=sure,
        n=len(signals),
        count_right=int(outcomes.sum()),
        offset=weights.offset,
        weights=by_name,
        threshold=threshold,
        table=tuple(table[_SHOWN - 1 :: _SHOWN]),
        error=calibration_error(confidences, right),
        area=area_under_risk(confidences, right),
    )


def _asked_by(manifest: Mapping[str, object]) -> dict[str, str]:
    loop = str(manifest.get("graph", ""))
    roles = manifest.get("roles")
    settings = manifest.get("settings")
    samples = 1
    if isinstance(settings, Mapping):
        samples = settings.get("samples") or 1
    return asked_in(loop, roles if isinstance(roles, Mapping) else {}, samples)


def _settings_hash(manifest: Mapping[str, object]) -> str:
    """Return a hash of everything that shaped the answers: loop, roles, limits and settings, but not the
    threshold.
    """
    named = {name: manifest.get(name) for name in ("graph", "roles", "limits")}
    settings = manifest.get("settings")
    if isinstance(settings, Mapping):
        named["settings"] = {
            key: settings[key] for key in settings if key != "least_confidence"
        }
    text = json.dumps(named, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()

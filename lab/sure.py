"""Does a calibrated threshold keep its risk, and does its confidence sort answers better than what there was?

    python -m lab.sure RUN...
    python -m lab.sure --planted

A run is a folder that `ras-agent eval --least-confidence 0` wrote with traces. Its answers are split in two at random,
200 times: a calibration is fitted to one half, and the other half says how often it is wrong. --planted does so with
answers whose signals and errors are drawn, so that the true share of wrong answers is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import binom

from ras_agent.config.registry import find
from ras_agent.contracts.arrays import Doubles
from ras_agent.contracts.errors import RunError
from ras_agent.eval.calibration import (
    Rule,
    calibrated,
    cross_validated,
    signals_in,
)
from ras_agent.eval.metrics.confidences import area_under_risk, calibration_error
from ras_agent.eval.run.folder import RunFolder
from ras_agent.running.confidence import Signals, logistic
from ras_agent.running.program import run_program

_SPLITS = 200
_NAMES = list(Signals.__dataclass_fields__)
_PLAIN = Signals(0.5, 0, 0, 0, 0, 0, 1, 0.4, 0, 0.2, 0, 0, 1, 1)


def planted(n: int, seed: int, strength: float) -> tuple[list[Signals], list[float]]:
    """Return the signals of answers, and which are right, all drawn by a hidden ease of their questions."""
    draw = np.random.default_rng(seed)
    signals = []
    right = []
    for _ in range(n):
        ease = draw.normal()
        one = replace(
            _PLAIN,
            own=draw.random(),
            proof=float(draw.random() < logistic(ease)),
            supported=draw.random(),
            stated=float(draw.random() < logistic(ease + 1)),
            stated_twice=float(draw.random() < logistic(2 * ease)),
            hops=draw.integers(1, 6) / 5,
            read_margin=float(np.clip(ease / 2 + draw.normal() / 4, -1, 1)),
            read_same=float(draw.random() < logistic(2 * ease)),
        )
        signals.append(one)
        right.append(float(draw.random() < logistic(strength * ease + strength / 2)))
    return signals, right


def rows_of(signals: Sequence[Signals]) -> Doubles:
    """Return signals as rows of numbers."""
    return np.array([[getattr(one, name) for name in _NAMES] for one in signals])


def splits(
    signals: Sequence[Signals], right: Sequence[float], size: int, risk: float
) -> str:
    """Return in words how often the answers outside of random parts of this size are wrong more often than the risk."""
    rows = rows_of(signals)
    outcomes = np.array(right)
    draw = np.random.default_rng(0)
    refused = 0
    above = 0
    surely_above = 0
    risks = []
    coverages = []
    for _ in range(_SPLITS):
        order = draw.permutation(len(outcomes))
        chosen = order[:size]
        others = order[size:]
        try:
            fit = calibrated(
                [signals[place] for place in chosen],
                outcomes[chosen].tolist(),
                risk=risk,
            )
        except RunError:
            refused += 1
            continue
        weights = np.array([fit.weights.get(name, 0.0) for name in _NAMES])
        sure = 1 / (1 + np.exp(-(fit.offset + rows[others] @ weights)))
        said = others[sure >= fit.threshold]
        wrong = float(np.sum(1 - outcomes[said]))
        share = wrong / max(1, len(said))
        risks.append(share)
        coverages.append(len(said) / len(others))
        above += share > risk
        surely_above += binom.sf(wrong - 1, len(said), risk) < 0.05
    kept = _SPLITS - refused
    if not kept:
        return f"{size} answers, risk {risk:g}: all {_SPLITS} refused"
    return (
        f"{size} answers, risk {risk:g}: {refused} refused; of {kept} others {above} above the risk, {surely_above} of them "
        f"surely; wrong {100 * np.mean(risks):.1f} % of the {100 * np.mean(coverages):.0f} % said"
    )


def main() -> None:
    """Print areas and errors of confidences, and how often the risk is kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--planted", action="store_true")
    arguments = parser.parse_args()
    if arguments.planted:
        for strength in (4.0, 8.0):
            signals, right = planted(6000, 1, strength)
            print(f"strength {strength:g}: {100 * np.mean(right):.0f} % right")
            for size in (100, 200):
                for risk in (0.1, 0.2):
                    print(" ", splits(signals, right, size, risk), flush=True)
        return
    signals = []
    right = []
    for run in arguments.runs:
        found, outcomes = signals_in(
            RunFolder(run), Rule.read("f1>=0.5"), find("judge", "offline")()
        )
        signals += found
        right += outcomes
    own = [one.own for one in signals]
    fitted = cross_validated(rows_of(signals), np.array(right))
    print(f"{len(right)} answers, {100 * np.mean(right):.0f} % right")
    named: dict[str, Sequence[float] | Doubles] = {
        "fitted": fitted,
        "own": own,
        "always 0.75": [0.75] * len(own),
    }
    for name, sure in named.items():
        area = area_under_risk(sure, right)
        error = calibration_error(sure, right)
        print(f"{name}: AURC {100 * area:.1f}, ECE {100 * error:.1f}")
    for risk in (0.1, 0.2, 0.3):
        print(splits(signals, right, len(right) // 2, risk), flush=True)


if __name__ == "__main__":
    run_program(main)

"""How far the confidences of an evaluation's answers are from what the answers are worth.

    python -m lab.calibration RUN...

A run is a folder that `ras-agent eval --least-confidence 0` wrote; several are parts of one. The expected calibration
error is the mean distance of confidence and worth over equally wide bins, each counted by its answers (Guo et al. 2017,
arXiv:1706.04599).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from ras_agent.eval.run.folder import RunFolder
from ras_agent.program import run_program

_RIGHT = 0.5  # token F1 from which an answer counts as right


def calibration_error(confidences: Sequence[float], worths: Sequence[float], bins: int) -> float:
    """Return the expected calibration error, 0..1. confidences and worths: 0..1, one of each for an answer.

    >>> round(calibration_error([0.9, 0.9, 0.1], [1.0, 0.0, 0.1], bins=2), 3)
    0.267
    """
    rows = list(zip(confidences, worths, strict=True))
    groups = [[row for row in rows if min(int(row[0] * bins), bins - 1) == place] for place in range(bins)]
    return sum(abs(sum(sure - worth for sure, worth in group)) for group in groups) / len(rows)


def main() -> None:
    """Print the error against token F1 and against being right, in points."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    results = [one for run in parser.parse_args().runs for one in RunFolder(run).results() if not one.abstained]
    rows = [(one.confidence, one.scores["f1"]) for one in results if one.confidence is not None]
    sure, f1 = [confidence for confidence, _ in rows], [worth for _, worth in rows]
    right = [float(worth >= _RIGHT) for worth in f1]
    print(f"{len(rows)} answers, mean confidence {100 * fmean(sure):.1f}, F1 {100 * fmean(f1):.1f}")
    for bins in (5, 10):
        errors = (100 * calibration_error(sure, worths, bins) for worths in (f1, right))
        print(f"{bins} bins: error against F1 {next(errors):.1f}, against right {next(errors):.1f}")


if __name__ == "__main__":
    run_program(main)

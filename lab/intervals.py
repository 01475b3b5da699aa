"""Coverage of the 95 % intervals of means and of paired differences, by simulation: `python -m lab.intervals`.

Scores are drawn from populations whose mean is known, and it is counted how often an interval holds it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ras_agent.arrays import Doubles
from ras_agent.eval.significance import mean_interval, paired_interval

QUESTIONS = (6, 10, 40, 150)
_DRAWN = 500  # by a bootstrap

Interval = Callable[[Doubles], tuple[float, float]]


class Population(NamedTuple):
    """Values with their shares; a score or a difference is one of them."""

    name: str
    values: Sequence[float]
    shares: Sequence[float]


MEANS = (
    Population("half right", (0, 1), (0.5, 0.5)),
    Population("nine of ten right", (0, 1), (0.1, 0.9)),
    Population("some partly right", (0, 0.33, 0.5, 0.67, 1), (0.3, 0.05, 0.1, 0.05, 0.5)),
    Population("many partly right", (0, 0.2, 0.5, 0.8, 1), (0.2, 0.2, 0.2, 0.2, 0.2)),
    Population("most right, some partly", (0, 0.4, 0.67, 1), (0.05, 0.1, 0.05, 0.8)),
    Population("all partly right", (0.5, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.4, 0.2, 0.1)),
)
DIFFERENCES = (
    Population("half differ", (0, 1, -1), (0.5, 0.3, 0.2)),
    Population("one in seven differs", (0, 1, -1), (0.85, 0.1, 0.05)),
    Population("all to one side", (0, 1), (0.8, 0.2)),
    Population("half differ, partly", (0, 0.5, -0.25, 1), (0.5, 0.2, 0.2, 0.1)),
    Population("all differ a little", (0.15, 0.05, -0.05, -0.1), (0.25, 0.25, 0.25, 0.25)),
)


def percentile_bootstrap(rng: np.random.Generator) -> Interval:
    """Return the interval between the 2.5th and the 97.5th of the resampled means."""

    def interval(scores: Doubles) -> tuple[float, float]:
        places = rng.integers(0, len(scores), (_DRAWN, len(scores)))
        means = scores[places].mean(axis=1)
        low, high = np.percentile(means, [2.5, 97.5])
        return float(low), float(high)

    return interval


def own_mean(scores: Doubles) -> tuple[float, float]:
    found = mean_interval(list(scores))
    return found.low, found.high


def own_difference(scores: Doubles) -> tuple[float, float]:
    return paired_interval(list(scores), [0.0] * len(scores))


def coverage(population: Population, n: int, interval: Interval, times: int, rng: np.random.Generator) -> float:
    """Return how often the interval of `n` values out of a population holds its mean."""
    values = np.asarray(population.values, dtype=np.float64)
    mean = float(np.dot(values, population.shares))
    held = 0
    for row in rng.choice(values, (times, n), p=population.shares):
        low, high = interval(row)
        held += low - 1e-12 <= mean <= high + 1e-12
    return held / times


def main() -> None:
    """Print a table of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=4000, help="samples of each population and number of questions")
    times = parser.parse_args().times
    rng = np.random.default_rng(0)
    bootstrap = percentile_bootstrap(rng)
    for title, populations, own in (("mean", MEANS, own_mean), ("difference", DIFFERENCES, own_difference)):
        heads = [f"{kind}, n {n}" for kind in ("bootstrap", "ours") for n in QUESTIONS]
        print(f"| {title} | {' | '.join(heads)} |")
        print("| --- |" + " ---: |" * len(heads))
        for population in populations:
            cells = []
            for interval in (bootstrap, own):
                for n in QUESTIONS:
                    cells.append(f"{100 * coverage(population, n, interval, times, rng):.1f}")
            print(f"| {population.name} | {' | '.join(cells)} |", flush=True)
        print()


if __name__ == "__main__":
    main()

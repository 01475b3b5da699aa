"""Coverage of the 95 % intervals of means and of paired differences, by simulation: `python -m lab.intervals`.

Populations whose mean is known are drawn by lot: one kind to choose a method by, another kind to report on, and two that
were written down before any interval of them was seen: one for means, one for pairs of systems. Scores are drawn from
each, and it is counted how often an interval holds the mean, or the difference.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from math import factorial, prod, sqrt

import numpy as np

from ras_agent.contracts.arrays import Doubles
from ras_agent.eval.significance import mean_interval, paired_interval

QUESTIONS = (6, 10, 40, 150)
POPULATIONS = 30
_DRAWN = 500  # by a bootstrap
_QUESTIONS = 100_000  # of a blind population, which they are
_BLIND_SEED = 20_261_129
_PAIRS_SEED = 20_261_130
_SCORES = np.array([0, 0.2, 0.25, 0.33, 0.4, 0.5, 0.57, 0.67, 0.75, 0.8, 0.86, 1.0])

Interval = Callable[[Doubles], tuple[float, float]]
PairedInterval = Callable[[Doubles, Doubles], tuple[float, float]]
Population = tuple[Doubles, Doubles]
"""Values, and the share of each: a score or a difference is one of them"""


def chosen_by(rng: np.random.Generator) -> Population:
    """Draw a population of the kind that the method was chosen by: any share of each score, more of 0 and 1."""
    partly = rng.uniform(0.1, 1)
    shares = partly * rng.dirichlet([0.7] * len(_SCORES))
    shares[[0, -1]] += (1 - partly) * rng.dirichlet([1, 1])
    return _SCORES, shares


def reported_on(rng: np.random.Generator) -> Population:
    """Draw a population of the kind that is reported on: a beta distribution of sixteenths, and more of 0 and 1."""
    scores = np.arange(17) / 16
    inside = np.clip(scores, 0.01, 0.99)
    mean = rng.uniform(0.1, 0.9)
    narrow = rng.choice([1.0, 3.0, 8.0, 20.0])
    density = inside ** (mean * narrow - 1) * (1 - inside) ** ((1 - mean) * narrow - 1)
    partly = rng.uniform(0.2, 1)
    shares = partly * density / density.sum()
    right = rng.uniform()
    shares[[0, -1]] += (1 - partly) * np.array([1 - right, right])
    return scores, shares


def token_f1(easy: Doubles, rng: np.random.Generator) -> Doubles:
    """Return the token F1 of an answer to each question: words of it, words of the gold answer, words that both have."""
    gold = rng.integers(1, rng.integers(2, 8), len(easy))
    extra = rng.geometric(rng.uniform(0.2, 0.9), len(easy)) - 1
    shared = rng.binomial(gold, easy)
    return 2 * shared / (shared + extra + gold)


def recall_of_few(easy: Doubles, rng: np.random.Generator) -> Doubles:
    """Return the recall of two to four supporting passages, each of which is found as easily as its question is."""
    supporting = rng.integers(2, 5, len(easy))
    return np.asarray(rng.binomial(supporting, easy) / supporting)


def reciprocal_rank(easy: Doubles, rng: np.random.Generator) -> Doubles:
    """Return the reciprocal rank of the first right passage, 0 below the tenth."""
    rank = rng.geometric(np.clip(easy, 0.02, 1.0))
    return np.where(rank <= 10, 1 / rank, 0.0)


def grade(easy: Doubles, rng: np.random.Generator) -> Doubles:
    """Return a judge's grade of four quarters, which is off by a quarter as often as not."""
    off = rng.integers(-1, 2, len(easy))
    return np.clip(np.rint(4 * easy) + off, 0, 4) / 4


def right_or_wrong(easy: Doubles, rng: np.random.Generator) -> Doubles:
    return (rng.uniform(size=len(easy)) < easy).astype(np.float64)


BLIND = (token_f1, recall_of_few, reciprocal_rank, grade, right_or_wrong)


def statements(easy: Doubles, rng: np.random.Generator) -> Doubles:
    """Return the share of the gold answer's one to eight statements that an answer makes."""
    gold = rng.integers(1, 9, len(easy))
    return np.asarray(rng.binomial(gold, easy) / gold)


def set_f1(easy: Doubles, rng: np.random.Generator) -> Doubles:
    """Return the F1 of a list of answers: of one to five that are right, some are named, and others next to them."""
    gold = rng.integers(1, 6, len(easy))
    named = rng.binomial(gold, easy)
    wrong = rng.poisson(0.7, len(easy))
    return np.asarray(2 * named / (gold + named + wrong))


def discounted_gain(easy: Doubles, rng: np.random.Generator) -> Doubles:
    """Return nDCG@10 where one passage is right."""
    rank = rng.geometric(np.clip(easy, 0.02, 1.0))
    return np.where(rank <= 10, 1 / np.log2(1 + rank), 0.0)


def two_judges(easy: Doubles, rng: np.random.Generator) -> Doubles:
    """Return the mean of two judges, each of whom says right or wrong."""
    return np.asarray(rng.binomial(2, easy) / 2)


PAIRED = (right_or_wrong, statements, set_f1, discounted_gain, two_judges)


def pairs(kind: int, rng: np.random.Generator) -> tuple[Doubles, Doubles]:
    """Return the scores of two systems on the same questions.

    On some questions the second does the same as the first; where it does not, the question is as hard for it, or a
    little harder or easier throughout.
    """
    score = PAIRED[kind % len(PAIRED)]
    mean = rng.uniform(0.1, 0.9)
    narrow = rng.uniform(0.7, 8)
    easy = rng.beta(mean * narrow, (1 - mean) * narrow, _QUESTIONS)
    better = np.exp(rng.normal(0, 0.4))
    first = score(easy, rng)
    again = score(easy**better, rng)
    same = rng.uniform(size=_QUESTIONS) < rng.uniform(0, 0.9)
    return first, np.where(same, first, again)


def blind(kind: int, rng: np.random.Generator) -> tuple[Population, Population]:
    """Return the scores of a system, and its differences to a second one, over questions that are hard for both."""
    score = BLIND[kind % len(BLIND)]
    mean = rng.uniform(0.05, 0.95)
    narrow = rng.uniform(0.5, 6)
    shared = rng.beta(mean * narrow, (1 - mean) * narrow, _QUESTIONS)
    own = rng.beta(mean * narrow, (1 - mean) * narrow, _QUESTIONS)
    alike = rng.uniform(0.2, 0.95)
    second = np.where(rng.uniform(size=_QUESTIONS) < alike, shared, own)
    state = rng.bit_generator.state
    scores = score(shared, rng)
    if rng.uniform() < 0.5:  # both systems are as lucky where a question is as easy
        rng.bit_generator.state = state
    return _counted(scores), _counted(scores - score(second, rng))


def _counted(values: Doubles) -> Population:
    distinct, counts = np.unique(np.round(values, 6), return_counts=True)
    return distinct, counts / len(values)


def difference_of(
    first: Population, second: Population, rng: np.random.Generator
) -> Population:
    """Return the differences of two systems' scores, of which a share drawn by lot is equal."""
    equal = rng.uniform(0.1, 0.9)
    apart = np.outer(first[1], second[1]) * (1 - equal)
    values = np.subtract.outer(first[0], second[0])
    return np.append(values, 0.0), np.append(apart, equal)


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


def of_differences(interval: Interval) -> PairedInterval:
    """Return the interval of two systems that reads only their differences."""
    return lambda a, b: interval(a - b)


def own_pair(a: Doubles, b: Doubles) -> tuple[float, float]:
    return paired_interval(list(a), list(b))


def newcombe(a: Doubles, b: Doubles) -> tuple[float, float]:
    """Return Newcombe's (1998, method 10), of the means' own intervals and the correlation, half a question less sure."""
    first = mean_interval(list(a))
    second = mean_interval(list(b))
    together = 0.0
    if np.ptp(a) and np.ptp(b):
        together = float(np.corrcoef(a, b)[0, 1]) * len(a) / (len(a) + 0.5)

    def joined(x: float, y: float) -> float:
        return sqrt(max(0.0, x * x - 2 * together * x * y + y * y))

    mean = first.mean - second.mean
    down = joined(first.mean - first.low, second.high - second.mean)
    up = joined(first.high - first.mean, second.mean - second.low)
    return mean - down, mean + up


def tango(a: Doubles, b: Doubles) -> tuple[float, float]:
    """Return Tango's (1998) score interval of two shares of the same questions, by trying 4,001 differences."""
    n = len(a)
    only_a = int(np.sum(a > b))
    only_b = int(np.sum(b > a))
    tried = np.linspace(-0.9999, 0.9999, 4001)
    linear = (2 * n - only_a + only_b) * tried - only_a - only_b
    rest = -only_b * tried * (1 - tried)
    root = np.sqrt(np.maximum(0.0, linear**2 - 8 * n * rest))
    share = (root - linear) / (4 * n)
    variance = np.maximum(1e-12, n * (2 * share + tried * (1 - tried)))
    fits = tried[(only_a - only_b - n * tried) ** 2 <= 1.96**2 * variance]
    return float(fits[0]), float(fits[-1])


def exact_coverage(interval: PairedInterval, n: int, differing: float) -> list[float]:
    """Return how often, in percent, an interval holds the difference of two systems that are right or wrong.

    They differ on a share of the questions; one row for each share of these that is the first's (half to 95 %), and of
    the others that both have right (20 to 80 %). Nothing is drawn: the chance of each outcome is summed up.
    """
    outcomes = []
    found = []
    for both, first, second in product(range(n + 1), repeat=3):
        neither = n - both - first - second
        if neither >= 0:
            a = [1.0] * (both + first) + [0.0] * (second + neither)
            b = [1.0] * both + [0.0] * first + [1.0] * second + [0.0] * neither
            outcomes.append((both, first, second, neither))
            found.append(interval(np.array(a), np.array(b)))
    low, high = np.array(found).T
    ways = [factorial(n) / prod(map(factorial, outcome)) for outcome in outcomes]
    covered = []
    for better, right in product((0.5, 0.65, 0.8, 0.95), (0.2, 0.5, 0.8)):
        alike = 1 - differing
        apart = [differing * better, differing * (1 - better)]
        chances = [alike * right, *apart, alike * (1 - right)]
        likely = ways * np.prod(np.array(chances) ** np.array(outcomes), axis=1)
        difference = apart[0] - apart[1]
        holds = (low - 1e-9 <= difference) & (difference <= high + 1e-9)
        covered.append(100 * float(likely[holds].sum()))
    return covered


def coverage(
    population: Population,
    n: int,
    interval: Interval,
    times: int,
    rng: np.random.Generator,
) -> float:
    """Return the percentage of the intervals of `n` values out of a population that hold its mean."""
    values, shares = population
    mean = float(np.dot(values, shares))
    held = 0
    for row in rng.choice(values, (times, n), p=shares.ravel() / shares.sum()):
        low, high = interval(row)
        held += low - 1e-9 <= mean <= high + 1e-9
    return 100 * held / times


def paired_coverage(
    systems: tuple[Doubles, Doubles],
    n: int,
    interval: PairedInterval,
    times: int,
    rng: np.random.Generator,
) -> float:
    """Return the percentage of the intervals of two systems on `n` questions that hold the mean difference."""
    first, second = systems
    difference = float(np.mean(first - second))
    held = 0
    for row in rng.integers(0, len(first), (times, n)):
        low, high = interval(first[row], second[row])
        held += low - 1e-9 <= difference <= high + 1e-9
    return 100 * held / times


def main() -> None:
    """Print a row for each kind of population, of interval and of figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--times",
        type=int,
        default=1000,
        help="samples of each population and number of questions",
    )
    parser.add_argument("--blind", action="store_true", help="only the third kind")
    parser.add_argument(
        "--pairs", action="store_true", help="only pairs of systems, drawn and exact"
    )
    arguments = parser.parse_args()
    if arguments.pairs:
        _print_pairs(arguments.times)
        return
    print(f"| populations | interval | {' | '.join(f'n {n}' for n in QUESTIONS)} |")
    print("| --- | --- |" + " ---: |" * len(QUESTIONS))
    rng = np.random.default_rng(0)
    if not arguments.blind:
        for draw in (chosen_by, reported_on):
            means = [draw(rng) for _ in range(POPULATIONS)]
            differences = [
                difference_of(draw(rng), draw(rng), rng) for _ in range(POPULATIONS)
            ]
            _print_rows(draw.__name__, means, differences, arguments.times, rng)
    rng = np.random.default_rng(_BLIND_SEED)
    drawn = [blind(kind, rng) for kind in range(POPULATIONS)]
    means = [scores for scores, _ in drawn]
    differences = [apart for _, apart in drawn]
    _print_rows("blind", means, differences, arguments.times, rng)


def _print_pairs(times: int) -> None:
    """Print the coverage of intervals of differences: of pairs that are drawn, and exact for right and wrong."""
    rng = np.random.default_rng(_PAIRS_SEED)
    drawn = [pairs(kind, rng) for kind in range(POPULATIONS)]
    methods = {
        "bootstrap": of_differences(percentile_bootstrap(rng)),
        "ours": own_pair,
        "Newcombe": newcombe,
        "Tango": tango,
    }
    print(f"| interval | {' | '.join(f'n {n}' for n in QUESTIONS)} |")
    print("| --- |" + " ---: |" * len(QUESTIONS))
    for name in ("bootstrap", "ours", "Newcombe"):
        cells = []
        for n in QUESTIONS:
            held = [paired_coverage(one, n, methods[name], times, rng) for one in drawn]
            low, high = np.percentile(held, [5, 95])
            cells.append(f"{np.mean(held):.1f} ({low:.1f} to {high:.1f})")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print("\n| n | differing | none differs | ours | Newcombe | Tango |")
    print("| ---: |" + " ---: |" * 5)
    for n, differing in product((6, 10), (0.05, 0.1, 0.2, 0.3, 0.5)):
        cells = [f"{100 * differing:.0f} %", f"{100 * (1 - differing) ** n:.0f} %"]
        for name in ("ours", "Newcombe", "Tango"):
            held = exact_coverage(methods[name], n, differing)
            cells.append(f"{np.mean(held):.1f} (least {min(held):.1f})")
        print(f"| {n} | {' | '.join(cells)} |", flush=True)


def _print_rows(
    kind: str,
    means: list[Population],
    differences: list[Population],
    times: int,
    rng: np.random.Generator,
) -> None:
    """Print the rows of one kind of population: of both figures, by both intervals."""
    bootstrap = percentile_bootstrap(rng)
    for figure, populations, own in (
        ("mean", means, own_mean),
        ("difference", differences, own_difference),
    ):
        for name, interval in (("bootstrap", bootstrap), ("ours", own)):
            cells = []
            for n in QUESTIONS:
                held = [coverage(one, n, interval, times, rng) for one in populations]
                low, high = np.percentile(held, [5, 95])
                cells.append(f"{np.mean(held):.1f} ({low:.1f} to {high:.1f})")
            print(f"| {kind}, {figure} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

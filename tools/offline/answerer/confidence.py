"""How likely an answer to an open question is to be right, by a few signals that have the same meaning everywhere.

`python -m lab.calibration --fit DATA` fits their weights, ras_agent/data/confidence.json, to sets of several kinds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

OFFSET = "offset"


@dataclass(frozen=True, slots=True)
class Signals:
    """Holds the signals of an answer, each a number."""

    borne: float
    """The margin by which the sentences of the proof, read by themselves, give the answer"""
    first: float
    """1 where they give no other answer before it"""
    likely: float
    """How likely the reader takes it to be among all passages, of a chain its least likely part, 0..1"""
    chained: float
    """1 where each part of the question was found and put in its place"""
    of_another: float
    """1 where the proof lacks a figure or all names of the question, denies it, or is of something else"""


WEIGHTS: Mapping[str, float] = json.loads(
    (files("ras_agent.data") / "confidence.json").read_text("utf-8")
)
"""Signal -> weight, the offset, and the share of the likelihood that is left to a proof of something else"""


def logistic(log_odds: float) -> float:
    """Return the probability with these log odds."""
    return 1 / (1 + math.exp(-log_odds))


def confidence(signals: Signals) -> float:
    """Return how likely an answer is to be right, 0..1."""
    return likelihood(signals, WEIGHTS)


def likelihood(signals: Signals, weights: Mapping[str, float]) -> float:
    """Return the logistic function of the weighted sum of signals, and a share of it for a proof of something else.

    >>> weights = {"offset": -1, "borne": 0.5, "first": 0, "likely": 0, "chained": 0, "of_another": 0.4}
    >>> from dataclasses import replace
    >>> same = Signals(borne=2, first=1, likely=0.5, chained=0, of_another=0)
    >>> likelihood(same, weights), likelihood(replace(same, of_another=1), weights)
    (0.5, 0.2)
    """
    total = (
        weights[OFFSET]
        + weights["borne"] * signals.borne
        + weights["first"] * signals.first
        + weights["likely"] * signals.likely
        + weights["chained"] * signals.chained
    )
    likely = logistic(total)
    if signals.of_another:
        return likely * weights["of_another"]
    return likely

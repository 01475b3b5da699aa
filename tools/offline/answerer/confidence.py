"""Computes how likely an answer to an open question is to be right, from a few signals that are comparable
across texts.

`python -m lab.calibration --fit DATA` fits their weights, ras_agent/data/confidence.json, on data sets of several
kinds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from ras_agent.running.confidence import logistic

OFFSET = "offset"


@dataclass(frozen=True, slots=True)
class Signals:
    """Holds the signals of an answer, each a number. Its proof is the sentences that support it."""

    borne: float
    """The margin by which the sentences of the proof, read without other sentences, give the answer."""
    first: float
    """1 if the proof gives no other answer before this one."""
    likely: float
    """The probability of the answer by the reader, over all passages, 0..1; for a chain that of its least likely part.
    """
    chained: float
    """1 if each part of the question was answered and replaced by its answer."""
    of_another: float
    """1 if the proof lacks a figure or all names of the question, denies it, or is about something else."""


WEIGHTS: Mapping[str, float] = json.loads(
    (files("ras_agent.data") / "confidence.json").read_text("utf-8")
)
"""The weight of each signal, the offset, and the factor for a proof that is about something else."""


def confidence(signals: Signals) -> float:
    """Return the probability, 0..1, that an answer is right."""
    return likelihood(signals, WEIGHTS)


def likelihood(signals: Signals, weights: Mapping[str, float]) -> float:
    """Return the logistic function of the weighted sum of signals, reduced if the proof is about something else.

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

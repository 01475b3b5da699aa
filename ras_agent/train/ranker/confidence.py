"""How good a ranker is on questions left out, and how sure it may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats
from ras_agent.eval.metrics import token_f1
from ras_agent.tools.offline.answerer.rank import Ranker, pooled
from ras_agent.train.ranker.config import Config
from ras_agent.train.ranker.network import train_ranker
from ras_agent.train.ranker.spans import Example

__all__ = ["LeftOut", "best_f1", "calibrated", "cross_validated"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What rankers make of questions that they were not trained on.

    figures: token F1 of each set in per cent. confidence: its slope and offset (2,). rankers: one a fold; number n has
    not seen the groups whose number leaves n, divided by the number of folds.
    """

    figures: dict[str, float]
    confidence: Floats
    rankers: tuple[Ranker, ...]


def cross_validated(
    sets: Mapping[tuple[str, str], Sequence[Example]],
    fixed: Mapping[str, npt.NDArray[Any]],
    config: Config,
) -> LeftOut:
    """Train a ranker for each fold on all others, and ask it what was left out.

    `config.share` is in the order of `sets`.
    """
    told: dict[tuple[str, str], list[tuple[float, float]]] = {name: [] for name in sets}
    weights = []
    for fold in range(config.folds):
        kept = [[one for one in made if one.group % config.folds != fold] for made in sets.values()]
        weights.append({**fixed, **train_ranker(kept, config)})
        ranker = Ranker(weights[-1])
        for name, made in sets.items():
            told[name] += best_f1(ranker, [one for one in made if one.group % config.folds == fold])
    figures = {", ".join(name): round(100 * float(np.mean([f1 for _, f1 in found])), 1) for name, found in told.items()}
    trained_on = [one for found, share in zip(told.values(), config.share, strict=True) if share for one in found]
    confidence = np.array(calibrated(trained_on), np.float32)
    return LeftOut(figures, confidence, tuple(Ranker({**one, "confidence": confidence}) for one in weights))


def best_f1(ranker: Ranker, made: Iterable[Example]) -> list[tuple[float, float]]:
    """(share, token F1) of the best candidate of each question that asks for a span."""
    told = []
    for one in made:
        if one.asked.kind in ("open", "shared"):
            logits = ranker.score(one.inputs)
            best = pooled(one.found, np.where(one.fits, logits, -np.inf) if one.fits.any() else logits)[0]
            told.append((best.share, token_f1(best.text, one.answers)))
    return told


def calibrated(told: Sequence[tuple[float, float]], rounds: int = 2000) -> tuple[float, float]:
    """Slope and offset of the logistic map from a candidate's share (its log odds) to its expected token F1."""
    share = np.array([s for s, _ in told]).clip(1e-4, 1 - 1e-4)
    odds, f1 = np.log(share / (1 - share)), np.array([f for _, f in told])
    slope, offset = 1.0, 0.0
    for _ in range(rounds):
        error = 1 / (1 + np.exp(-(slope * odds + offset))) - f1
        slope -= 0.05 * float((error * odds).mean())
        offset -= 0.05 * float(error.mean())
    return slope, offset

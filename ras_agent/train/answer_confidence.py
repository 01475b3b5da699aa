"""How good a ranker is on questions left out, and how sure it may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.eval.metrics import token_f1
from ras_agent.tools.answer.rank import Ranker, pooled
from ras_agent.train.answer_config import SETS, Config
from ras_agent.train.answer_network import train_ranker
from ras_agent.train.answer_spans import Example

__all__ = ["best_f1", "calibrated", "cross_validated"]

Floats = npt.NDArray[np.float32]


def cross_validated(
    sets: Sequence[Sequence[Example]],
    fixed: Mapping[str, npt.NDArray[Any]],
    config: Config,
) -> tuple[dict[str, float], Floats]:
    """Token F1 of each set in per cent, and the slope and offset of the confidence, on questions left out."""
    told: list[list[tuple[float, float]]] = [[] for _ in SETS]
    for fold in range(config.folds):
        kept = [[one for one in made if one.group % config.folds != fold] for made in sets]
        ranker = Ranker({**fixed, **train_ranker(kept, config)})
        for found, made in zip(told, sets, strict=True):
            found += best_f1(ranker, [one for one in made if one.group % config.folds == fold])
    figures = {
        f"{name}, {loop}": round(100 * float(np.mean([f1 for _, f1 in found])), 1)
        for (name, loop), found in zip(SETS, told, strict=True)
    }
    trained_on = [one for found, share in zip(told, config.share, strict=True) if share for one in found]
    return figures, np.array(calibrated(trained_on), np.float32)


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

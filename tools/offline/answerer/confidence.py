"""How far an answer may be trusted: the token F1 to expect of a span, judged by the signs under which it was found.

`ras_agent.train.confidence.train` fits the weights, on questions that the corpus answers and on questions whose
passages were withheld, so that an answer to what no passage says gets little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Doubles
from ras_agent.errors import WeightsError
from ras_agent.tools.offline.answerer.coverage import QuestionWords, Rarity
from ras_agent.tools.offline.answerer.rank import INPUTS, Ranked
from ras_agent.tools.offline.answerer.weights import read_safetensors
from ras_agent.tools.offline.question import QuestionAnalysis
from ras_agent.tools.offline.reading import ReadPassage

_SEEN = (
    *("linked", "chained", "names", "others", "near_others", "nearest_other", "focus"),
    *("noun_defined", "noun_inside", "noun_before", "noun_after"),
    *("fact_relation", "fact_entity", "fact_noun", "facts", "rarity", "spans", "asked", "type", "type_below_best"),
)
SIGNS = ("odds", "lead", "heard_names", "heard_others", "passages", "hops", *(f"span_{name}" for name in _SEEN))
"""What is looked at: the answer's share as log odds, its lead over the second, how much of the question's names and of
its other words any passage says, how many passages and hops there were, and what the ranker saw of the span."""

_COLUMNS = [INPUTS.index(name) for name in _SEEN]
_LEAST_SHARE = 1e-4
_MOST_LEAD = 5.0


class Confidence:
    """Maps signs to the token F1 to expect: a logistic function of their weighted sum."""

    def __init__(self, weights: Mapping[str, npt.NDArray[Any]]) -> None:
        """`weights` holds mean, deviation and weight, each (len(SIGNS),), and offset (1,); WeightsError if not."""
        if weights["weight"].shape != (len(SIGNS),):
            raise WeightsError(
                f"the confidence's weights are for {len(weights['weight'])} signs, this version has {len(SIGNS)}; "
                "make them again: python -m ras_agent.train.confidence.train --help"
            )
        self._weight = weights["weight"] / weights["deviation"]
        self._offset = float(weights["offset"][0]) - float(self._weight @ weights["mean"])

    def __call__(self, signs: Doubles) -> float:
        """Return the token F1 to expect, in 0..1, of an answer with these `signs` (len(SIGNS),)."""
        return float(1 / (1 + np.exp(-(self._weight @ signs + self._offset))))


def signs_of(
    asked: QuestionAnalysis,
    best: Ranked,
    ranked: Sequence[Ranked],
    passages: Sequence[ReadPassage],
    hops: int,
    rarity: Rarity,
) -> Doubles:
    """Return (len(SIGNS),): what tells how good the answer `best` is, which is one of `ranked`."""
    share = min(max(best.share, _LEAST_SHARE), 1 - _LEAST_SHARE)
    second = max((one.share for one in ranked if one is not best), default=0.0)
    names, others = _heard(asked.question, passages, rarity)
    lead = min(np.log(share / max(second, _LEAST_SHARE)), _MOST_LEAD)
    count, steps = np.log1p(len(passages)), np.log1p(hops)
    return np.array([np.log(share / (1 - share)), lead, names, others, count, steps, *best.inputs[_COLUMNS]])


def _heard(question: str, passages: Sequence[ReadPassage], rarity: Rarity) -> tuple[float, float]:
    """Return how much of the question's names, and of its other words, some passage says; 1 where it has none."""
    words = QuestionWords.of(question, rarity)
    said = words.present(root for passage in passages for root in passage.stems)
    shares = []
    for kind in (words.named, ~words.named):
        total = words.worth[kind].sum()
        shares.append(float(words.worth[kind & said].sum() / total) if total > 0 else 1.0)
    return shares[0], shares[1]


@lru_cache(maxsize=1)
def packaged_confidence() -> Confidence:
    """Return the weights that come with the package; read once."""
    with as_file(files("ras_agent.data")) as folder:
        return Confidence(read_safetensors(Path(folder) / "answer_confidence.safetensors"))

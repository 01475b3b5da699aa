"""Ranks candidate answers: a small network over their features and their type, its spans pooled by candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.errors import WeightsError
from ras_agent.protocols import SpanReader
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage
from ras_agent.tools.offline.answerer.answer_type import TypeModel
from ras_agent.tools.offline.answerer.features import FEATURES, Candidates, describe
from ras_agent.tools.offline.answerer.fitting import fitting
from ras_agent.tools.offline.answerer.question_words import Rarity
from ras_agent.tools.offline.answerer.reader_scores import reader_logits
from ras_agent.tools.offline.answerer.reading import Read
from ras_agent.tools.offline.answerer.weights import read_safetensors
from ras_agent.tools.offline.question import QuestionAnalysis

__all__ = ["INPUTS", "Ranked", "Ranker", "packaged_ranker"]

INPUTS = (*FEATURES, "type", "type_below_best")
_CLIP = 5.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its likeliest span. share: of all candidates' probability, in 0..1."""

    text: str
    key: str
    sentence: Read
    share: float


class Ranker:
    """Scores candidates with fixed weights; may be used from several threads at once."""

    def __init__(self, weights: dict[str, npt.NDArray[Any]]) -> None:
        """`weights` as `ras_agent.train.ranker.train` writes them. Raises WeightsError for another layout."""
        if weights["mean"].shape != (len(INPUTS),):
            raise WeightsError(
                f"the ranker's weights are for {len(weights['mean'])} features, this version has {len(INPUTS)}; "
                "make them again: python -m ras_agent.train.ranker.train --help"
            )
        self.rarity = Rarity(weights["rarity"])
        self.types = TypeModel(weights["type.questions"], weights["type.answers"])
        self._net = {name: array for name, array in weights.items() if array.dtype == np.float32}
        self._slope, self._offset = weights.get("confidence", np.array([1.0, 0.0]))

    def rank(
        self,
        asked: QuestionAnalysis,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        sentences: Sequence[Read],
        reader: SpanReader | None = None,
    ) -> list[Ranked]:
        """The candidates that have the form of an answer, best first; where none has, all with no share.

        Empty where there is nothing to read. A `reader` has its say on each.
        """
        found = describe(asked, graph, passages, sentences, self.rarity)
        if found is None:
            return []
        logits = self.score(self.inputs(asked, found))
        if reader is not None:
            logits = logits + reader_logits(reader, asked.question, passages, found).astype(np.float32)
        fits = fitting(asked, found.texts, found.sentences, found.mentions)
        if not fits.any():
            return [replace(one, share=0.0) for one in pooled(found, logits)]
        logits[~fits] = -np.inf
        return [one for one in pooled(found, logits) if one.share > 0]

    def inputs(self, asked: QuestionAnalysis, found: Candidates) -> npt.NDArray[np.float32]:
        """(M, len(INPUTS))"""
        types = self.types.scores(asked, found.texts)
        return np.column_stack([found.features, types, types - types.max()]).astype(np.float32)

    def confidence(self, share: float) -> float:
        """The token F1 to expect of a candidate with this share, in 0..1."""
        share = min(max(share, 1e-4), 1 - 1e-4)
        odds = float(np.log(share / (1 - share)))
        return float(1 / (1 + np.exp(-(self._slope * odds + self._offset))))

    def score(self, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """(M,) logits of being the answer: a linear map plus one hidden layer."""
        net = self._net
        scaled = np.clip((inputs - net["mean"]) / net["deviation"], -_CLIP, _CLIP)
        hidden = np.tanh(scaled @ net["hidden.weight"] + net["hidden.bias"])
        logits: npt.NDArray[np.float32] = scaled @ net["linear"] + hidden @ net["out"]
        return logits


def pooled(found: Candidates, logits: npt.NDArray[np.float32]) -> list[Ranked]:
    """One entry a key, its spans' probabilities added up, told by the likeliest span."""
    probability = np.exp(logits - logits.max())
    probability /= probability.sum()
    shares: dict[str, float] = {}
    best: dict[str, int] = {}
    for place, key in enumerate(found.keys):
        shares[key] = shares.get(key, 0.0) + float(probability[place])
        if key not in best or probability[place] > probability[best[key]]:
            best[key] = place
    order = sorted(shares, key=lambda key: (-shares[key], best[key]))
    return [Ranked(found.texts[best[key]], key, found.sentences[best[key]], shares[key]) for key in order]


@lru_cache(maxsize=1)
def packaged_ranker() -> Ranker:
    """The ranker that comes with the package; read once."""
    with as_file(files("ras_agent.data")) as folder:
        return Ranker(read_safetensors(Path(folder) / "answer_ranker.safetensors"))

"""Ranks candidate answers: a small network over their features and their type, its spans pooled by candidate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.errors import WeightsError
from ras_agent.question_graph import QuestionGraph
from ras_agent.text.values import figures_in
from ras_agent.text.words import stem, stems
from ras_agent.tools.offline.answerer.answer_type import TypeModel
from ras_agent.tools.offline.answerer.coverage import Rarity
from ras_agent.tools.offline.answerer.features import FEATURES, Candidates, describe
from ras_agent.tools.offline.answerer.weights import read_safetensors
from ras_agent.tools.offline.question import POINTS_IN_TIME, QuestionAnalysis, head_type
from ras_agent.tools.offline.reading import Mention, ReadPassage, Sentence

INPUTS = (*FEATURES, "type", "type_below_best")
_CLIP = 5.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """Holds a candidate with its likeliest span, whose `inputs` (len(INPUTS),) the ranker saw.

    share: of all candidates' probability, in 0..1.
    """

    text: str
    key: str
    sentence: Sentence
    share: float
    inputs: npt.NDArray[np.float32]


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

    def rank(
        self,
        asked: QuestionAnalysis,
        graph: QuestionGraph,
        passages: Sequence[ReadPassage],
    ) -> list[Ranked]:
        """Return the candidates that have the form of an answer, best first; where none has, all with no share.

        Empty where there is nothing to read.
        """
        found = describe(asked, graph, passages, self.rarity)
        if found is None:
            return []
        inputs = self.inputs(asked, found)
        logits = self.score(inputs)
        fits = fitting(asked, found.texts, found.sentences, found.mentions)
        if not fits.any():
            return [replace(one, share=0.0) for one in pooled(found, inputs, logits)]
        logits[~fits] = -np.inf
        return [one for one in pooled(found, inputs, logits) if one.share > 0]

    def inputs(self, asked: QuestionAnalysis, found: Candidates) -> npt.NDArray[np.float32]:
        """Return (M, len(INPUTS))"""
        types = self.types.scores(asked, found.texts)
        return np.column_stack([found.features, types, types - types.max()]).astype(np.float32)

    def score(self, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return (M,) logits of being the answer: a linear map plus one hidden layer."""
        net = self._net
        scaled = np.clip((inputs - net["mean"]) / net["deviation"], -_CLIP, _CLIP)
        hidden = np.tanh(scaled @ net["hidden.weight"] + net["hidden.bias"])
        logits: npt.NDArray[Any] = scaled @ net["linear"] + hidden @ net["out"]
        return logits


def pooled(found: Candidates, inputs: npt.NDArray[np.float32], logits: npt.NDArray[np.float32]) -> list[Ranked]:
    """Return one entry a key, its spans' probabilities added up, told by the likeliest span."""
    probability = np.exp(logits - logits.max())
    probability /= probability.sum()
    shares: dict[str, float] = {}
    best: dict[str, int] = {}
    for place, key in enumerate(found.keys):
        shares[key] = shares.get(key, 0.0) + float(probability[place])
        if key not in best or probability[place] > probability[best[key]]:
            best[key] = place
    order = sorted(shares, key=lambda key: (-shares[key], best[key]))
    return [
        Ranked(found.texts[best[key]], key, found.sentences[best[key]], shares[key], inputs[best[key]]) for key in order
    ]


def likeliest(asked: QuestionAnalysis, ranked: Sequence[Ranked]) -> Ranked:
    """Return the first of `ranked` that says more than the question's own words, else the first."""
    known = set(stems(asked.question))
    return next((one for one in ranked if not set(stems(one.text)) <= known), ranked[0])


@lru_cache(maxsize=1)
def packaged_ranker() -> Ranker:
    """Return the ranker that comes with the package; read once."""
    with as_file(files("ras_agent.data")) as folder:
        return Ranker(read_safetensors(Path(folder) / "answer_ranker.safetensors"))


# asked for these, an answer states when; an "age" or a "time" may be given in many ways
_COUNTS = re.compile(r"\bhow many\b", re.IGNORECASE)
_NAMED = frozenset({"person", "place", "organisation", "work", "nationality"})


def fitting(
    asked: QuestionAnalysis, texts: Sequence[str], sentences: Sequence[Sentence], mentions: Sequence[Mention | None]
) -> npt.NDArray[np.bool_]:
    """Return (M,): False for spans whose form cannot answer. All True where the question does not tell what it wants.

    What is counted ("How many children") must be spoken of in the span's sentence. A span without a mention is a
    passage's title, which names something whatever its form ("1984").
    """
    kinds = [mention.kind if mention else "title" for mention in mentions]
    if asked.answer_type == "date" and (not asked.answer_noun or asked.answer_noun[-1] in POINTS_IN_TIME):
        return np.array([kind == "date" or _tells(text, date=True) for kind, text in zip(kinds, texts, strict=True)])
    if asked.answer_type == "number":
        counted = stem(asked.answer_noun[-1]) if asked.answer_noun and _COUNTS.search(asked.question) else None
        return np.array(
            [
                kind != "date" and _tells(text, date=False) and (counted is None or counted in sentence.stems)
                for kind, text, sentence in zip(kinds, texts, sentences, strict=True)
            ]
        )
    if asked.answer_type in _NAMED and (not asked.answer_noun or head_type(asked.answer_noun) in _NAMED):
        return np.array([kind not in ("date", "number") for kind in kinds])
    return np.ones(len(texts), dtype=bool)


def _tells(text: str, *, date: bool) -> bool:
    """Return whether a date, or a number, is in the text."""
    return any((figure.kind not in ("number", "ordinal")) == date for figure in figures_in(text))

"""Builds scorers by their names in compositions, each once, when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from threading import RLock
from typing import Any

from ras_agent.config.registry import check_call, find
from ras_agent.contracts.errors import SettingsError
from ras_agent.running.protocols import Embedder, Scorer
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.scorers.bm25 import BM25Scorer
from ras_agent.tools.subgraph.scorers.encoders import (
    CrossEncoderScorer,
    EncoderScorer,
    PathHead,
)
from ras_agent.tools.subgraph.scorers.graph_vectors import GraphVectorScorer
from ras_agent.tools.subgraph.scorers.llm import LLMScorer


@dataclass(frozen=True, slots=True)
class ScorerModels:
    """Holds the models that scorers use."""

    embedder: object = "minilm"
    """For st and st-ft: any embedder that resolve_embedder takes."""
    path_encoder: str | Path | PathHead | None = None
    """For st-ft: a PathHead or its folder; by default the packaged one, trained on PathQuestion over the packaged
    MiniLM.
    """
    reranker: Any = None
    """For rerank: a CrossEncoder, or its name or folder."""
    llm: object = None
    """For llm: a chat model, or a string that names one."""
    tuned_llm: object = None
    """For llm-ft: a fine-tuned chat model, or a string that names one."""
    graph: Graph | None = None
    """For kg: a graph of a KGIndex with vectors."""
    at_most: int = 64
    """The number of texts that a chat model reads for a question; the encoder of st chooses them."""
    prompts_dir: str | Path | None = None
    """A folder with files that override the packaged prompts of chat models."""
    settings: ChatSettings | None = None
    """How chat models are called."""


class Scorers:
    """Holds scorers by name, and builds each when it is first needed. Safe for use by several threads."""

    def __init__(
        self,
        models: ScorerModels | None = None,
        scorers: Mapping[str, Scorer] | None = None,
    ) -> None:
        """Take the models.

        Args:
            scorers: scorers of your own, which replace those with the same names.
        """
        self._models = models or ScorerModels()
        self._scorers: dict[str, Scorer] = dict(scorers or {})
        self._lock = RLock()

    def __getitem__(self, name: str) -> Scorer:
        """Return the scorer with this name, which is built at the first call and kept.

        Raises UnknownName, and SettingsError for a scorer that needs a model which ScorerModels lacks.
        """
        with self._lock:
            if name not in self._scorers:
                self._scorers[name] = self._make(name)
            return self._scorers[name]

    def _make(self, name: str) -> Scorer:
        make = find("scorer", name)
        check_call("scorer", name, make, models=self._models, scorers=self)
        scorer = make(self._models, self)
        if not isinstance(scorer, Scorer):
            raise TypeError(
                f"the scorer {name!r} has to be an object with the methods of ras_agent.protocols.Scorer, got {scorer!r:.200}"
            )
        return scorer


def bm25(models: ScorerModels, _: Scorers) -> Scorer:
    """Build the scorer "bm25": BM25 of the text for the question."""
    return BM25Scorer()


def sentence_encoder(models: ScorerModels, _: Scorers) -> Scorer:
    """Build the scorer "st": the cosine of the text and the question, by the embedder of the models."""
    return EncoderScorer(models.embedder)


def tuned_encoder(models: ScorerModels, _: Scorers) -> Scorer:
    """Build the scorer "st-ft": the cosine by the embedder, with a trained head."""
    head = models.path_encoder
    if not head:
        packaged = str(files("ras_agent.data"))
        head = Path(packaged) / "path_encoder"
    if not isinstance(head, PathHead):
        head = PathHead.load(head)
    return EncoderScorer(models.embedder, head)


def graph_vectors(models: ScorerModels, _: Scorers) -> Scorer:
    """Build the scorer "kg": the cosine of the question and the mean graph vector of the names in the text."""
    graph = _require("kg", models.graph, "graph", "a graph made from a KGIndex")
    if isinstance(models.embedder, Embedder):
        return GraphVectorScorer(graph, models.embedder)
    return GraphVectorScorer(graph)


def cross_encoder(models: ScorerModels, _: Scorers) -> Scorer:
    """Build the scorer "rerank": a cross-encoder that reads question and text together."""
    model = _require(
        "rerank",
        models.reranker,
        "reranker",
        "a cross-encoder's name or folder",
    )
    return CrossEncoderScorer(model)


_CHAT = "a chat model, such as vllm:http://host:8000/v1#name"
_TUNED = f"graphllm:FOLDER with the folder of `python -m ras_agent.train.paths.scorer`, or {_CHAT}"


def _chat(
    name: str, option: str, needed: str
) -> Callable[[ScorerModels, Scorers], Scorer]:
    def make(models: ScorerModels, scorers: Scorers) -> Scorer:
        model = _require(
            name,
            getattr(models, option),
            option,
            needed,
        )
        return LLMScorer(
            model,
            first=scorers["st"],
            at_most=models.at_most,
            prompts_dir=models.prompts_dir,
            settings=models.settings,
        )

    return make


chat_model = _chat("llm", "llm", _CHAT)
tuned_chat_model = _chat("llm-ft", "tuned_llm", _TUNED)


def _require(scorer: str, value: Any, option: str, what: str) -> Any:
    if value is None:
        raise SettingsError(f"scorer {scorer!r} has no model: give {option}, {what}")
    return value

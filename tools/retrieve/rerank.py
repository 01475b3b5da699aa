"""Rerankers rank the first hits of a search again by reading the query and each text together.

ce:MODEL                    a cross-encoder of sentence-transformers, a name or a folder
http://host/rerank#MODEL    a server (ras_agent.tools.retrieve.rerank_server)
llm:provider:model          a chat model, which divides a score of 1 among the texts
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from math import isfinite

from ras_agent.contracts.errors import MissingExtra, ModelCallError, SettingsError
from ras_agent.contracts.records import Hit
from ras_agent.running.budget import current_ledger
from ras_agent.running.protocols import Scorer
from ras_agent.tools.roles import RoleOptions
from ras_agent.tools.subgraph.scorers.encoders import CrossEncoderScorer
from ras_agent.tools.subgraph.scorers.llm import LLMScorer

CANDIDATES = 40
"""The number of hits that a reranker reads, unless a setting says otherwise."""
_MOST_READ = 1000


def by_scores(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """Return the hits sorted by a reranker's scores, which replace their own; ties keep their order.

    Raises ModelCallError unless there is one finite score for each hit.
    """
    numbers = [float(score) for score in scores]
    if len(numbers) != len(hits):
        raise ModelCallError(
            f"the reranker gave {len(numbers)} scores for {len(hits)} texts: check that its model is a reranker"
        )
    if not all(map(isfinite, numbers)):
        raise ModelCallError(
            "the reranker gave scores that are NaN or infinite: check that its model is a reranker"
        )
    ranked = []
    for hit, number in zip(hits, numbers, strict=True):
        ranked.append(replace(hit, score=number))
    return sorted(ranked, key=lambda hit: -hit.score)


class ScorerReranker:
    """Makes a reranker of a scorer of texts, such as a cross-encoder or a chat model."""

    def __init__(self, scorer: Scorer, name: str) -> None:
        self.name = name
        self._scorer = scorer

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text. Raises ModelCallError if the scorer could not score any of them.

        If it could score only some, its failures are noted in the run's ledger.
        """
        scored = self._scorer.score(query, texts)
        messages = [failure.message for failure in scored.failures]
        if messages and not (scored.values >= 0).any():
            raise ModelCallError(messages[0])
        for message in messages:
            current_ledger().note(f"reranker {self.name}: {message}", role="reranker")
        values: list[float] = scored.values.tolist()
        return values


def cross_encoder(model: str, options: RoleOptions) -> ScorerReranker:
    """Build the reranker "ce:MODEL".

    Raises SettingsError without a model name, and MissingExtra if sentence-transformers is not installed.
    """
    if not model:
        raise SettingsError(
            "reranker 'ce' needs a model: ce:NAME or ce:/folder of a cross-encoder"
        )
    if find_spec("sentence_transformers") is None:
        raise MissingExtra(f"reranker 'ce:{model}'", "embeddings")
    return ScorerReranker(CrossEncoderScorer(model), f"ce:{model}")


def llm_reranker(model: object, options: RoleOptions) -> ScorerReranker:
    """Build the reranker "llm:provider:model", a chat model that divides a score of 1 among the texts."""
    scorer = LLMScorer(
        model,
        at_most=_MOST_READ,
        prompts_dir=options.prompts_dir,
        settings=options.chat,
        prompt="share-passages",
    )
    return ScorerReranker(scorer, f"llm:{scorer.name}")

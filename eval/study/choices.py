"""What a study may vary, as its user lists it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ras_agent.errors import SettingsError
from ras_agent.eval.study.fact_shares import Evidence
from ras_agent.settings import Settings

__all__ = ["Choices"]


@dataclass(frozen=True, slots=True)
class Choices:
    """Several values of what a run has one of; empty where the settings' own value holds.

    gold: files of texts with gold triples; gold_limit: how many texts of each are read. shares: of a graph's triples,
    each over 0 and at most 1, in `shuffles` orders. evidence: what an answerer sees beside the triples kept.
    """

    planners: tuple[str, ...] = ()
    extractors: tuple[str, ...] = ()
    answerers: tuple[str, ...] = ()
    retrievers: tuple[str, ...] = ()
    hops: tuple[int, ...] = ()
    ks: tuple[int, ...] = ()
    gold: tuple[Path, ...] = ()
    gold_limit: int | None = None
    shares: tuple[float, ...] = ()
    shuffles: int = 5
    evidence: Evidence = "kept"

    def single(self, settings: Settings, *varied: str) -> Settings:
        """`settings` with the choices that are no list in this study. Raises SettingsError where one is."""
        fields = {
            "planners": "planner",
            "extractors": "extractor",
            "answerers": "answerer",
            "retrievers": "retriever",
            "hops": "max_hops",
            "ks": "k",
        }
        update = {}
        for name, setting in fields.items():
            values = getattr(self, name)
            if name in varied or not values:
                continue
            if len(values) > 1:
                raise SettingsError(
                    f"this study does not vary the {setting}, and was given {len(values)} of them; give one"
                )
            update[setting] = values[0]
        return Settings.model_validate({**settings.model_dump(exclude_unset=True), **update})

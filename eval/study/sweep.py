"""Hops and k: every hop limit with every number of passages a hop."""

from __future__ import annotations

from functools import partial

from ras_agent.eval.run.evaluation import Configuration, Material
from ras_agent.eval.study.choices import Choices
from ras_agent.eval.study.design import Design, extended
from ras_agent.eval.study.shown import show_crossed
from ras_agent.settings import Settings

__all__ = ["sweep_design"]

HOPS, KS = (1, 2, 3, 5), (3, 5, 10)


def sweep_design(material: Material, settings: Settings, choices: Choices) -> Design:
    """A run for each pair. Shown: the headline metric, and how often all gold passages were found at any hop."""
    settings = choices.single(settings, "hops", "ks")
    runs, cells = [], {}
    for hops in dict.fromkeys(choices.hops or HOPS):
        for k in dict.fromkeys(choices.ks or KS):
            cells[str(hops), str(k)] = name = f"{hops} hops, k {k}"
            runs.append(
                Configuration(
                    name,
                    settings.model_copy(update={"max_hops": hops, "k": k}),
                    metrics=extended(material.asked.metrics, "all_recall"),
                    variant={"max_hops": hops, "k": k},
                )
            )
    metrics = extended((material.asked.headline,), "all_recall")
    show = partial(show_crossed, cells=cells, metrics=metrics, titles=("hops", "k"))
    return Design("sweep", tuple((material, run) for run in runs), show, material.asked.headline)

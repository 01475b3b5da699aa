"""What answers the questions of an evaluation, here or in another process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ras_agent.eval.metrics.registry import Outcome, score
from ras_agent.eval.question import Question
from ras_agent.eval.run.material import Material, load_material
from ras_agent.eval.run.runner import Ask, Score, System, agent_asker, ask_one, retrieval_asker
from ras_agent.graphs.from_settings import agent_from_settings
from ras_agent.graphs.registry import graph_spec
from ras_agent.settings import Settings
from ras_agent.tools.spread.pool import Do

if TYPE_CHECKING:
    from ras_agent.graphs.state import Inputs

__all__ = ["asker_of", "asks_elsewhere", "scorer_of"]


def asks_elsewhere(
    *,
    name: str,
    data: str,
    corpus: str | None,
    settings: Mapping[str, Any],
    graph: str,
    roles: Mapping[str, str],
    metrics: Sequence[str],
    retrieval_only: bool,
    traces: bool,
    replies: str | None = None,
    facts: str | None = None,
) -> Do:
    """What `prepare_run` sets up, in another process: plain values in, its own index and clients out.

    replies, facts: where they are kept, if not in the files of `settings`.
    """
    kept = {"cache": replies, "triple_cache": facts}
    known = Settings.model_validate({**settings, **{name: place for name, place in kept.items() if place}})
    material = load_material(name, Path(data), known, corpus=Path(corpus) if corpus else None)
    return partial(ask_one, System(asker_of(material, known, retrieval_only), scorer_of(metrics), graph, roles, traces))


def asker_of(material: Material, settings: Settings, retrieval_only: bool) -> Ask:
    """The agent of `settings`, or its retriever alone."""
    if retrieval_only:
        return retrieval_asker(material.index.retriever(settings.retriever), settings.k)
    task = material.asked.instructions.get("answer", "")
    return agent_asker(agent_from_settings(settings, material.index, task=task), partial(_inputs, material, settings))


def scorer_of(metrics: Sequence[str]) -> Score:
    """What an output is worth by `metrics`."""

    def scores(question: Question, output: Mapping[str, Any]) -> dict[str, float]:
        return score(question, Outcome.from_output(output), metrics)

    return scores


def _inputs(material: Material, settings: Settings, question: Question) -> Inputs:
    """Return the agent's input; graphs without a static mode take the given passages for their first hop."""
    given = material.asked.inputs(question)
    if "static_passages" in given and not graph_spec(settings.graph).static:
        given["seed_passages"] = given.pop("static_passages")
    return cast("Inputs", given)

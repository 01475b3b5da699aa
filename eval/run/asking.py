"""Makes what answers the questions of an evaluation, in any process: an agent, a bare search, a baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ras_agent.calling import acall
from ras_agent.errors import UnknownName
from ras_agent.eval.metrics.registry import Outcome, score
from ras_agent.eval.question import Question
from ras_agent.eval.run.material import Material, load_material
from ras_agent.eval.run.runner import (
    NOTHING,
    AskQuestion,
    EvaluatedSystem,
    ScoreOutput,
    agent_asker,
    ask_one,
    retrieval_asker,
)
from ras_agent.graphs.registry import graph_spec
from ras_agent.graphs.resolve import agent_from_settings
from ras_agent.protocols import Retriever
from ras_agent.records import Passage
from ras_agent.settings import Settings
from ras_agent.tools.retrieve.resolve import resolve_retriever, retriever_options
from ras_agent.tools.retrieve.search import scoped
from ras_agent.tools.spread.pool import Do

if TYPE_CHECKING:
    from ras_agent.graphs.state import Inputs

_SAYS: dict[str, Callable[[Sequence[Passage]], str]] = {
    "yes": lambda found: "yes",
    "no": lambda found: "no",
    "top-title": lambda found: found[0].title if found else "",
}
BASELINES = tuple(_SAYS)


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
    embedder: str | None = None,
    instruction: str = "answer",
    replies: str | None = None,
    facts: str | None = None,
) -> Do:
    """Set up in another process what `prepare_run` sets up here, from plain values: it opens its own index and clients.

    replies, facts: where models' replies and read facts are cached, if not in the files that `settings` name.
    """
    caches = {"cache": replies, "triple_cache": facts}
    known = Settings.model_validate({**settings, **{name: place for name, place in caches.items() if place}})
    # bad records were reported where the questions come from
    place = Path(corpus) if corpus else None
    material = load_material(
        name, Path(data), known, corpus=place, embedder=embedder, instruction=instruction, on_bad=lambda _: None
    )
    return partial(
        ask_one, EvaluatedSystem(asker_of(material, known, retrieval_only), scorer_of(metrics), graph, roles, traces)
    )


def asker_of(material: Material, settings: Settings, retrieval_only: bool) -> AskQuestion:
    """Return what asks the agent of `settings`, or searches with its retriever alone."""
    if retrieval_only:
        made = resolve_retriever(settings.retriever, material.index, **retriever_options(settings))
        found = scoped(made, settings.filter)
        return retrieval_asker(found, settings.k)
    task = material.asked.instructions.get("answer", "")
    return agent_asker(agent_from_settings(settings, material.index, task=task), partial(_inputs, material, settings))


def scorer_of(metrics: Sequence[str]) -> ScoreOutput:
    """Return what scores an output by `metrics`."""

    def scores(question: Question, output: Mapping[str, Any]) -> dict[str, float]:
        return score(question, Outcome.from_output(output), metrics)

    return scores


def _inputs(material: Material, settings: Settings, question: Question) -> Inputs:
    """Return the agent's input; graphs without a static mode take the given passages for their first hop."""
    given = material.asked.inputs(question)
    if "static_passages" in given and not graph_spec(settings.graph).static:
        given["seed_passages"] = given.pop("static_passages")
    return cast("Inputs", given)


def baseline(name: str, retriever: Retriever, k: int) -> AskQuestion:
    """Return a system that searches once and answers "yes", "no", or the best passage's title. Raises UnknownName."""
    if name not in _SAYS:
        raise UnknownName("baseline", name, BASELINES)
    says = _SAYS[name]

    async def ask(question: Question) -> Mapping[str, Any]:
        hits = await acall(retriever, "retrieve", question.question, k)
        found = [hit.passage for hit in hits]
        passages = {passage.id: passage.to_dict() for passage in found}
        return {**NOTHING, "answer": says(found), "passages": passages, "steps": [{}], "stop_reason": "single_shot"}

    return ask

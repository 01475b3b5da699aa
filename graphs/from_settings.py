"""From settings to an agent: roles by name, how their models are asked, limits, the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from ras_agent.budget import Limits
from ras_agent.errors import SettingsError
from ras_agent.graphs.registry import GraphSpec, graph_spec
from ras_agent.records import Passage
from ras_agent.settings import Settings

if TYPE_CHECKING:
    from ras_agent.graphs.assembly import Agent
    from ras_agent.protocols import Answerer, Extractor, Retriever
    from ras_agent.tools.chat.client import ChatSettings
    from ras_agent.tools.index.store import PassageIndex

_OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Roles:
    """An agent's parts, ready to be put together, once or with some of them replaced.

    graph: a registered name. planner: what the graph's planner is, such as IRCoT's Reasoner; None in a graph that plans
    nothing. extractor: None in a graph that reads no facts.
    """

    graph: str
    planner: object | None
    extractor: Extractor | None
    answerer: Answerer
    retriever: Retriever
    limits: Limits
    preset: str | None = None


def agent_from_settings(
    settings: Settings, index: PassageIndex | Sequence[Passage], *, task: str = "", reasons: int = 0
) -> Agent:
    """Make the agent that `settings` describe, over `index`. Raises RasError children for what cannot be set up.

    task: a task's own instruction for planner and answerer on a chat model, shown above the question. reasons: how many
    each hit carries, from a retriever that gives any.
    """
    from ras_agent.tools.retrieve.ranker import explained

    roles = roles_from_settings(settings, index, task=task)
    if reasons:
        roles = replace(roles, retriever=explained(roles.retriever, reasons))
    return agent_of(roles)


def roles_from_settings(settings: Settings, index: PassageIndex | Sequence[Passage], *, task: str = "") -> Roles:
    """Make the parts of the agent that `agent_from_settings` makes."""
    from ras_agent.graphs.assembly import preset_named
    from ras_agent.tools.retrieve.resolve import resolve_retriever
    from ras_agent.tools.roles import resolve_answerer

    graph = graph_spec(settings.graph)
    if settings.preset and not graph.presets:
        raise SettingsError(f"graph {settings.graph!r} takes no preset, got {settings.preset!r}")
    specs, style = role_specs(settings), settings.style or graph.style
    options = _asking(settings) | ({"task": task} if task else {})
    preset = preset_named(settings.preset)
    planning = options | (preset.planning if graph.presets else {})
    return Roles(
        graph=settings.graph,
        planner=_planner(graph, specs["planner"], planning) if "planner" in specs else None,
        extractor=extractor_from_settings(settings, specs["extractor"]) if "extractor" in specs else None,
        answerer=resolve_answerer(specs["answerer"], **options, style=style, **preset.answering),
        retriever=resolve_retriever(settings.retriever, index),
        limits=limits_of(settings),
        preset=settings.preset,
    )


def extractor_from_settings(settings: Settings, spec: str) -> Extractor:
    """Make the extractor that `spec` names, with the triple cache of the settings if any. Raises RasError children."""
    from ras_agent.tools.roles import resolve_extractor
    from ras_agent.tools.structure.cache import CachedExtractor, TripleCache

    extractor = resolve_extractor(spec, **_asking(settings))
    return CachedExtractor(extractor, TripleCache(settings.triple_cache)) if settings.triple_cache else extractor


def agent_of(roles: Roles) -> Agent:
    """Put the parts together to an agent."""
    graph = graph_spec(roles.graph)
    parts: dict[str, Any] = {"answerer": roles.answerer, "retriever": roles.retriever, "limits": roles.limits}
    if graph.planner is not None:
        parts["planner"] = roles.planner
    if graph.facts != "never":
        parts["extractor"] = roles.extractor
    if graph.presets:
        parts["preset"] = roles.preset
    return graph.build(**parts)


def role_specs(settings: Settings) -> dict[str, str]:
    """Return who plays which role: the role's own setting, else `llm`, else "offline".

    An extractor that nobody chose follows the planner, or the answerer where nothing is planned or facts are read for
    the answerer's sake.
    """
    from ras_agent.graphs.assembly import matching_extractor, needs_facts

    graph, anyone = graph_spec(settings.graph), settings.llm or _OFFLINE
    specs = {"answerer": settings.answerer or anyone}
    leader = specs["answerer"]
    if graph.planner is not None:
        specs = {"planner": settings.planner or anyone, **specs}
        leader = specs["planner"] if graph.facts == "always" else leader
    if graph.facts == "always" or (graph.facts == "if needed" and (settings.extractor or needs_facts(leader))):
        specs["extractor"] = settings.extractor or settings.llm or str(matching_extractor(leader))
    return specs


def limits_of(settings: Settings) -> Limits:
    """Return the settings that bound a run."""
    chosen = settings.model_dump(include=set(Limits.names()))
    return Limits(**chosen)


def chat_settings(settings: Settings) -> ChatSettings:
    """Return how models are asked."""
    from ras_agent.tools.chat.client import ChatSettings
    from ras_agent.tools.chat.limits import Rates

    return ChatSettings(
        temperature=settings.temperature,
        timeout=settings.timeout,
        rates=Rates(settings.requests_per_minute, settings.tokens_per_minute, settings.in_flight),
        cache=settings.cache,
    )


def _asking(settings: Settings) -> dict[str, Any]:
    """Return the options of a role on a chat model."""
    return {
        "settings": chat_settings(settings),
        "prompts_dir": settings.prompts,
        "few_shot": settings.few_shot,
    }


def _planner(graph: GraphSpec, spec: str, options: dict[str, Any]) -> object:
    from ras_agent.tools.roles import resolve_planner, resolve_reasoner

    if callable(graph.planner):
        known = signature(graph.planner).parameters
        return graph.planner(spec, **{name: option for name, option in options.items() if name in known})
    return resolve_reasoner(spec, **options) if graph.planner == "reasoner" else resolve_planner(spec, **options)

"""From settings to an agent: roles by name, how their models are asked, limits, the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ras_agent.budget import Limits
from ras_agent.errors import SettingsError
from ras_agent.records import Passage
from ras_agent.settings import Settings

if TYPE_CHECKING:
    from ras_agent.graphs.assembly import Agent
    from ras_agent.protocols import Answerer, Extractor, Planner, Reasoner, Retriever
    from ras_agent.tools.chat.client import ChatSettings
    from ras_agent.tools.index.store import PassageIndex

__all__ = [
    "Roles",
    "agent_from_settings",
    "agent_of",
    "extractor_from_settings",
    "chat_settings",
    "limits_of",
    "role_specs",
    "roles_from_settings",
]

OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Roles:
    """An agent's parts, ready to work: to be put together once, or with some of them replaced.

    planner: IRCoT's reasoner where `graph` is "ircot", None in the single-shot graph. extractor: None where the graph
    reads no facts.
    """

    graph: str
    planner: Planner | Reasoner | None
    extractor: Extractor | None
    answerer: Answerer
    retriever: Retriever
    limits: Limits
    preset: str | None = None


def agent_from_settings(
    settings: Settings, index: PassageIndex | Sequence[Passage], *, task: str = "", reasons: int = 0
) -> Agent:
    """The agent that `settings` describe, over `index`. Raises RasError children for what cannot be set up.

    task: a task's own instruction for an answerer on a chat model, shown above the question. reasons: how many each hit
    carries, from a retriever that can tell.
    """
    from ras_agent.tools.retrieve.ranker import explained

    roles = roles_from_settings(settings, index, task=task)
    if reasons:
        roles = replace(roles, retriever=explained(roles.retriever, reasons))
    return agent_of(roles)


def roles_from_settings(settings: Settings, index: PassageIndex | Sequence[Passage], *, task: str = "") -> Roles:
    """The parts of `agent_from_settings`, which see."""
    from ras_agent.graphs.presets import preset_named
    from ras_agent.tools.retrieve.resolve import resolve_retriever
    from ras_agent.tools.roles import resolve_answerer, resolve_planner, resolve_reasoner

    if settings.preset and settings.graph != "ras":
        raise SettingsError(f"preset {settings.preset!r} is for graph 'ras', not for {settings.graph!r}")
    preset, specs = preset_named(settings.preset), role_specs(settings)
    asking: dict[str, Any] = {"settings": chat_settings(settings), "prompts_dir": settings.prompts}
    examples = {"few_shot": settings.few_shot}
    style = settings.style or ("reader" if settings.graph == "ircot" else "short")
    planner: Planner | Reasoner | None = None
    if settings.graph == "ras":
        planner = resolve_planner(specs["planner"], **asking, **examples)
    elif settings.graph == "ircot":
        planner = resolve_reasoner(specs["planner"], **asking)
    return Roles(
        graph=settings.graph,
        planner=planner,
        extractor=extractor_from_settings(settings, specs["extractor"]) if "extractor" in specs else None,
        answerer=resolve_answerer(
            specs["answerer"],
            **asking,
            # the reader's prompt has no worked examples
            **({} if style == "reader" else examples),
            **({"task": task} if task else {}),
            style=style,
            may_abstain=preset.may_abstain,
        ),
        retriever=resolve_retriever(settings.retriever, index),
        limits=limits_of(settings),
        preset=settings.preset,
    )


def extractor_from_settings(settings: Settings, spec: str) -> Extractor:
    """The extractor that `spec` names, over the triple cache if the settings name one. Raises RasError children."""
    from ras_agent.tools.roles import resolve_extractor
    from ras_agent.tools.structure.cache import CachedExtractor, TripleCache

    extractor = resolve_extractor(
        spec, settings=chat_settings(settings), prompts_dir=settings.prompts, few_shot=settings.few_shot
    )
    return CachedExtractor(extractor, TripleCache(settings.triple_cache)) if settings.triple_cache else extractor


def agent_of(roles: Roles) -> Agent:
    """The agent that these parts make."""
    from ras_agent.graphs.ircot import create_ircot_agent
    from ras_agent.graphs.ras import create_ras_agent
    from ras_agent.graphs.single_shot import create_single_shot_agent

    shared: dict[str, Any] = {
        "answerer": roles.answerer,
        "extractor": roles.extractor,
        "retriever": roles.retriever,
        "limits": roles.limits,
    }
    if roles.graph == "ras":
        return create_ras_agent(planner=cast(Any, roles.planner), preset=roles.preset, **shared)
    if roles.graph == "ircot":
        return create_ircot_agent(planner=cast(Any, roles.planner), **shared)
    return create_single_shot_agent(**shared)


def role_specs(settings: Settings) -> dict[str, str]:
    """Who plays which role: the role's own setting, else `llm`, else "offline".

    An extractor that nobody chose follows the planner (in the single-shot graph the answerer). IRCoT reads facts only
    for an answerer that lives on them.
    """
    from ras_agent.graphs.assembly import extractor_beside, needs_facts

    anyone = settings.llm or OFFLINE
    specs = {"planner": settings.planner or anyone, "answerer": settings.answerer or anyone}
    leader = specs["answerer"] if settings.graph != "ras" else specs["planner"]
    if settings.extractor or settings.graph != "ircot" or needs_facts(specs["answerer"]):
        specs["extractor"] = settings.extractor or settings.llm or str(extractor_beside(leader))
    if settings.graph == "single-shot":
        del specs["planner"]
    return specs


def limits_of(settings: Settings) -> Limits:
    """The settings that bound a run."""
    chosen = settings.model_dump(include=set(Limits.names()))
    return Limits(**chosen)


def chat_settings(settings: Settings) -> ChatSettings:
    """How models are asked."""
    from ras_agent.tools.chat.client import ChatSettings
    from ras_agent.tools.chat.limits import Rates

    return ChatSettings(
        temperature=settings.temperature,
        timeout=settings.timeout,
        rates=Rates(settings.requests_per_minute, settings.tokens_per_minute, settings.in_flight),
        cache=settings.cache,
    )

"""The door to every agent: its parts, made of what a caller gives and, for all the rest, of settings.

`create_ras_agent` and the other factories, the command line, evaluations and studies all come through `roles_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

from ras_agent.errors import SettingsError
from ras_agent.graphs.registry import GraphSpec, graph_spec
from ras_agent.registry import known, names
from ras_agent.review import Place, places
from ras_agent.settings import Settings

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from ras_agent.budget import Limits
    from ras_agent.graphs.assembly import Agent, AnyCheckpointer, AnyIndex, Preset
    from ras_agent.graphs.memory import ThreadMemory
    from ras_agent.protocols import Answerer, Extractor, Retriever, Rewriter

_OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Roles:
    """An agent's parts, ready to be put together, once or with some of them replaced.

    graph: a registered name. planner: what the graph's planner is, such as IRCoT's Reasoner; None in a graph that plans
    nothing. extractor: None in a graph that reads no facts. review: where a run waits for a person.
    rewriter: None where a conversation's follow-up questions stay as they are. memory: of what a thread has found.
    """

    graph: str
    planner: Any
    extractor: Any
    answerer: Answerer
    retriever: Retriever
    limits: Limits
    preset: Preset | None = None
    review: tuple[Place, ...] = ()
    rewriter: Rewriter | None = None
    memory: ThreadMemory | None = None


def roles_of(
    graph: str,
    settings: Settings | None = None,
    index: AnyIndex = None,
    task: str = "",
    *,
    planner: object = None,
    extractor: object = None,
    answerer: object = None,
    retriever: object = None,
    rewriter: object = None,
    limits: Limits | None = None,
    preset: str | Preset | None = None,
    review: str | Sequence[str] | None = None,
    store: BaseStore | None = None,
) -> Roles:
    """Return the parts of an agent. What is given as an argument wins over `settings`, their `graph` included.

    task: a task's own instruction, which roles on a chat model show. Raises RasError children for what cannot be set
    up, and TypeError for an object that fits no protocol.
    """
    from ras_agent.graphs.assembly import preset_named
    from ras_agent.graphs.memory import ThreadMemory
    from ras_agent.tools.index.language import language_of
    from ras_agent.tools.index.postgres import PostgresIndex
    from ras_agent.tools.index.store import PassageIndex
    from ras_agent.tools.retrieve.resolve import open_for, resolve_retriever, retriever_options
    from ras_agent.tools.retrieve.search import scoped
    from ras_agent.tools.roles import resolve_answerer, resolve_rewriter

    spec, settings = graph_spec(graph), settings or Settings()
    preset = preset or settings.preset
    if preset and not spec.presets:
        raise SettingsError(f"graph {graph!r} takes no preset, got {preset!r}")
    parts = _chosen(spec, settings, planner, extractor, answerer)
    searching = retriever or settings.retriever
    opened = open_for(searching, settings.index if index is None else index, settings.language)
    language = settings.language or (language_of(opened) if isinstance(opened, PassageIndex | PostgresIndex) else "")
    options = _options(settings) | ({"task": task} if task else {})
    style = settings.style or spec.style
    fixed = preset_named(preset, from_memory=settings.from_memory, layout=settings.layout)
    answering = options | fixed.answering | {"style": style, "answer_tokens": settings.answer_tokens}
    if _is_registered(parts["answerer"], "answerer"):
        answering["language"] = language
        if settings.least_confidence is not None:
            answering["least_confidence"] = settings.least_confidence
    planning = options | (fixed.planning if spec.presets else {})
    if _is_registered(parts.get("planner"), "planner", "reasoner"):
        planning = planning | {"language": language}
    chosen = _planner(spec, parts["planner"], planning) if "planner" in parts else None
    chosen, answering_role = _shown_less(chosen, resolve_answerer(parts["answerer"], **answering), settings)
    waits = _waits(graph, spec, settings.review if review is None else review, "extractor" in parts)
    # what a graph reads of a planner of its own kind is no model's name
    leader = parts["planner"] if spec.planner in ("planner", "reasoner") else parts["answerer"]
    found_by = scoped(
        resolve_retriever(
            searching,
            opened,
            **retriever_options(settings, retriever),
        ),
        settings.filter,
    )
    return Roles(
        graph=graph,
        planner=chosen,
        extractor=extractor_from_settings(settings, parts["extractor"], language) if "extractor" in parts else None,
        answerer=answering_role,
        retriever=found_by,
        limits=limits or settings.limits,
        preset=fixed if spec.presets else None,
        review=waits,
        rewriter=resolve_rewriter(
            rewriter or settings.rewriter or _rewriting(settings.llm or leader),
            settings=options["settings"],
            prompts_dir=options["prompts_dir"],
        ),
        memory=None if store is None else ThreadMemory(store, found_by),
    )


def _waits(graph: str, spec: GraphSpec, wanted: str | Sequence[str] | None, structured: bool) -> tuple[Place, ...]:
    """Return where a run is to wait for a person. Raises SettingsError for a place that the graph does not have."""
    named = places(wanted)
    for place in named:
        if place not in spec.review or (place == "facts" and not structured):
            why = "reads no facts without an extractor" if place in spec.review else "has no such place"
            known = ", ".join(one for one in spec.review if one != place) or "none"
            raise SettingsError(f"graph {graph!r} cannot be reviewed at {place}: it {why}; other places: {known}")
    return named


def agent_of(roles: Roles, checkpointer: AnyCheckpointer = None) -> Agent:
    """Put the parts together to an agent. Raises SettingsError where it is to be reviewed and has no checkpointer."""
    graph = graph_spec(roles.graph)
    parts: dict[str, Any] = {"answerer": roles.answerer, "retriever": roles.retriever, "limits": roles.limits}
    if graph.planner is not None:
        parts["planner"] = roles.planner
    if graph.facts != "never":
        parts["extractor"] = roles.extractor
    if graph.presets:
        parts["preset"] = roles.preset
    if checkpointer is not None:
        parts["checkpointer"] = checkpointer
    if roles.review:
        if checkpointer is None or checkpointer is False:
            raise SettingsError(
                f"review = {','.join(roles.review)!r}: nobody can be waited for here, as there is no checkpointer; "
                "leave review out, or ask the question with `ras-agent ask --review`"
            )
        parts["review"] = roles.review
    if "rewriter" in signature(graph.build).parameters:
        parts["rewriter"] = roles.rewriter
    if roles.memory is not None:
        parts["store"] = roles.memory.store
    return graph.build(**parts)


def agent_from_settings(settings: Settings, index: AnyIndex, *, task: str = "") -> Agent:
    """Make the agent that `settings` describe, whichever graph they name, over `index`."""
    return agent_of(roles_of(settings.graph, settings, index, task))


def extractor_from_settings(settings: Settings, spec: object, language: str | None = None) -> Extractor:
    """Make the extractor that `spec` names, with the triple cache of the settings if any.

    language: of the texts; if not given, that of the settings. Raises RasError children.
    """
    from ras_agent.tools.roles import resolve_extractor
    from ras_agent.tools.structure.cache import CachedExtractor, TripleCache

    options = _options(settings)
    if _is_registered(spec, "extractor"):
        options["language"] = language or settings.language or ""
    extractor = resolve_extractor(spec, **options)
    return CachedExtractor(extractor, TripleCache(settings.triple_cache)) if settings.triple_cache else extractor


def role_specs(settings: Settings) -> dict[str, str]:
    """Return who plays which role: the role's own setting, else `llm`, else "offline".

    An extractor that nobody chose follows the planner, or the answerer where nothing is planned or facts are read for
    the answerer's sake.
    """
    return cast("dict[str, str]", _chosen(graph_spec(settings.graph), settings))


def _chosen(
    graph: GraphSpec, settings: Settings, planner: object = None, extractor: object = None, answerer: object = None
) -> dict[str, object]:
    """Return who plays which role, as `role_specs` does; what is given comes first."""
    from ras_agent.graphs.assembly import matching_extractor, needs_facts

    anyone, extractor = settings.llm or _OFFLINE, extractor or settings.extractor
    specs: dict[str, object] = {"answerer": answerer or settings.answerer or anyone}
    leader = specs["answerer"]
    if graph.planner is not None:
        specs = {"planner": planner or settings.planner or anyone, **specs}
        leader = specs["planner"] if graph.facts == "always" else leader
    if graph.facts == "always" or (graph.facts == "if needed" and (extractor or needs_facts(leader))):
        specs["extractor"] = extractor or settings.llm or matching_extractor(leader)
    return specs


def _is_registered(spec: object, *kinds: str) -> bool:
    """Return whether a role is named by a registered name, whose factory is given what it has parameters for."""
    name = spec.partition(":")[0] if isinstance(spec, str) else ""
    return name != "llm" and any(known(kind, name) for kind in kinds)


def _rewriting(leader: object) -> object:
    """Return the rewriter that goes with the role that leads the run: on the same model, or the rule."""
    from ras_agent.tools.chat.runnables import is_chat_model

    if is_chat_model(leader):
        return leader
    if isinstance(leader, str):
        name, colon, _ = leader.partition(":")
        if colon and name not in (*names("planner"), *names("reasoner"), *names("answerer")):
            return leader
    return _OFFLINE


def _planner(graph: GraphSpec, spec: object, options: dict[str, Any]) -> object:
    from ras_agent.tools.roles import resolve_planner, resolve_reasoner

    if callable(graph.planner):
        known = signature(graph.planner).parameters
        return graph.planner(spec, **{name: option for name, option in options.items() if name in known})
    return resolve_reasoner(spec, **options) if graph.planner == "reasoner" else resolve_planner(spec, **options)


def _shown_less(planner: object, answerer: Answerer, settings: Settings) -> tuple[object, Answerer]:
    """Return both roles as they are, or around a pruner of their facts. A planner that reads no graph stays."""
    if not settings.prune_facts:
        return planner, answerer
    from ras_agent.protocols import Planner
    from ras_agent.tools.graph_tokens.fact_orders import fact_order
    from ras_agent.tools.graph_tokens.pruned import FactPruner, PrunedAnswerer, PrunedPlanner

    pruner = FactPruner(fact_order(settings.prune_facts), settings.prune_to)
    wrapped = PrunedPlanner(planner, pruner) if isinstance(planner, Planner) else planner
    return wrapped, PrunedAnswerer(answerer, pruner)


def _options(settings: Settings) -> dict[str, Any]:
    """Return the options of a role on a chat model."""
    from ras_agent.tools.chat.client import ChatSettings

    return {"settings": ChatSettings.of(settings), "prompts_dir": settings.prompts, "few_shot": settings.few_shot}

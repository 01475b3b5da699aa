"""The one place where an agent's parts are resolved: from what a caller gives and, for all the rest, from settings.

`create_ras_agent` and its siblings, the command line, the server, evaluations and studies all come through
`resolve_parts`; a graph then assembles what is ready (ras_agent.graphs.registry.GraphSpec).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from typing_extensions import Unpack

from ras_agent.address import Address
from ras_agent.errors import ReviewError, SettingsError, did_you_mean
from ras_agent.graphs.agent import Agent
from ras_agent.graphs.parts import AgentArguments, AgentParts, AnyCheckpointer, AnyIndex, Preset, preset_named
from ras_agent.graphs.registry import GraphSpec, graph_spec
from ras_agent.prompts import prompt_names
from ras_agent.protocols import Extractor
from ras_agent.registry import find, names
from ras_agent.review import Place, places
from ras_agent.settings import Settings
from ras_agent.text.languages import ENGLISH
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.chat.runnables import is_chat_model
from ras_agent.tools.graph_tokens.fact_orders import FactPruner, fact_order
from ras_agent.tools.index.chunk import Chunking
from ras_agent.tools.index.language import language_of
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.langchain_adapter import langchain_retriever
from ras_agent.tools.retrieve.resolve import open_for, resolve_retriever, retriever_options
from ras_agent.tools.retrieve.search import scoped
from ras_agent.tools.roles import (
    RoleOptions,
    resolve_answerer,
    resolve_extractor,
    resolve_planner,
    resolve_reasoner,
    resolve_rewriter,
    role_name,
)
from ras_agent.tools.structure.cache import CachedExtractor, TripleCache

_OFFLINE = "offline"
_STOP = "stop"


def create_agent(graph: str, **arguments: Unpack[AgentArguments]) -> Agent:
    """Make the agent of the graph registered as `graph`; AgentArguments has what may be given.

    Raises RasError children for what cannot be set up, and TypeError for an object that fits no protocol.
    """
    agent = graph_spec(graph).assemble(resolve_parts(graph, **arguments), arguments.get("checkpointer"))
    agent.recipe = partial(create_agent, graph, **arguments)
    return agent


def agent_from_settings(settings: Settings, index: AnyIndex, *, task: str = "") -> Agent:
    """Make the agent that `settings` describe, whichever graph they name, over `index`."""
    return assemble_agent(resolve_parts(settings.graph, settings=settings, index=index, task=task))


def assemble_agent(parts: AgentParts, checkpointer: AnyCheckpointer = None) -> Agent:
    """Put resolved parts together to an agent that runs by itself, as no node of a bigger graph.

    Raises SettingsError where it is to be reviewed and has no checkpointer.
    """
    if parts.review and (checkpointer is None or checkpointer is False):
        raise SettingsError(
            f"review = {','.join(parts.review)!r}: nobody can be waited for here, as there is no checkpointer; "
            "leave review out, or ask the question with `ras-agent ask --review`"
        )
    return graph_spec(parts.graph).assemble(parts, checkpointer)


def resolve_parts(graph: str, **arguments: Unpack[AgentArguments]) -> AgentParts:
    """Return the parts of an agent, each resolved once. The graph is `graph`, whatever the settings name.

    Raises RasError children for what cannot be set up, and TypeError for an argument that there is not and for an
    object that fits no protocol.
    """
    _check_names(arguments)
    spec = graph_spec(graph)
    settings = arguments.get("settings") or Settings()
    preset_name = arguments.get("preset") or settings.preset
    if preset_name and isinstance(preset_name, str) and not spec.presets:
        raise SettingsError(f"graph {graph!r} takes no preset, got {preset_name!r}")
    specs = _role_specs(spec, settings, arguments)
    llm = arguments.get("llm") or settings.llm
    retriever_spec, index = _retriever_and_index(settings, arguments)
    language = settings.language or (language_of(index) if isinstance(index, PassageIndex) else "")
    preset = preset_named(
        preset_name,
        from_memory=settings.from_memory,
        layout=settings.layout,
    )
    options = replace(
        role_options(settings),
        task=arguments.get("task", ""),
        language=language,
        layout=preset.layout,
        follows_any=preset.follows_any,
        style=settings.style or spec.style,
        may_abstain=preset.may_abstain,
        asks_anyway=preset.asks_anyway,
    )
    if "planner" in specs:
        planner = _planner(spec, specs["planner"], options)
    else:
        planner = None
    answerer = resolve_answerer(specs["answerer"], options)
    if settings.prune_facts:
        pruner = FactPruner(fact_order(settings.prune_facts), settings.prune_to)
    else:
        pruner = None
    review = arguments.get("review")
    review = review_points(
        graph,
        settings.review if review is None else review,
        reads_facts="extractor" in specs,
    )
    # what a graph reads of a planner of its own kind is no model's name
    if spec.planner in ("planner", "reasoner"):
        default_role = specs["planner"]
    else:
        default_role = specs["answerer"]
    retriever = resolve_retriever(
        retriever_spec,
        index,
        **retriever_options(settings, arguments.get("retriever")),
    )
    return AgentParts(
        graph=graph,
        planner=planner,
        extractor=_extractor(specs["extractor"], options, settings) if "extractor" in specs else None,
        answerer=answerer,
        retriever=scoped(retriever, settings.filter),
        limits=arguments.get("limits") or settings.limits,
        preset=preset,
        review=review,
        rewriter=resolve_rewriter(
            arguments.get("rewriter") or settings.rewriter or _default_rewriter(llm or default_role), options
        ),
        store=arguments.get("store"),
        pruner=pruner,
        judge=find("judge", _OFFLINE)(),
        role_names={role: role_name(spec) for role, spec in specs.items()},
        fallbacks=_fallbacks(spec, specs, options, settings.fallback or _usual_fallback(preset, language)),
        name=arguments.get("name", ""),
        brief=arguments.get("brief", False),
    )


def _retriever_and_index(settings: Settings, arguments: AgentArguments) -> tuple[object, Any]:
    """Return what a caller says of the retriever, and the index that it searches, opened; None for one without.

    Raises SettingsError where both are given and only one can be meant.
    """
    spec = arguments.get("retriever")
    index = arguments.get("index")
    index = settings.index if index is None else index
    if (store := langchain_retriever(index)) is not None:
        name = spec or (settings.retriever if "retriever" in settings.model_fields_set else None)
        if name is not None:
            raise SettingsError(
                f"the index is {type(index).__name__}, which is searched as it is, and the retriever is {name!r:.80}: "
                "leave one of them out"
            )
        return store, None
    spec = spec or settings.retriever
    if isinstance(index, str) and index.count(" ") > 3 and not PassageIndex.exists(index):
        raise SettingsError(f"no index at {index!r:.80}; if it is a text to search, give it in a list: index=['...']")
    opened = index is None or isinstance(index, PassageIndex | str | Path | Address)
    chunking = Chunking.of(settings.chunk_size, settings.overlap)
    return spec, open_for(spec, index, settings.language, chunking, None if opened else settings.embedder)


def _check_names(arguments: Mapping[str, object]) -> None:
    """Raise TypeError for an argument that an agent does not have, which Python does not look at here."""
    names = AgentArguments.__annotations__
    for name in arguments:
        if name not in names:
            remedy = did_you_mean(name, names)
            raise TypeError(f"an agent has no argument {name!r}; known: {', '.join(names)}{remedy and f'; {remedy}'}")


def review_points(graph: str, review: str | Sequence[str] | None, *, reads_facts: bool) -> tuple[Place, ...]:
    """Return where a run is to wait for a person. Raises ReviewError for a place that the graph does not have."""
    points = places(review)
    spec = graph_spec(graph)
    for place in points:
        if place not in spec.review or (place == "facts" and not reads_facts):
            if place in spec.review:
                why = "reads no facts without an extractor"
            else:
                why = "has no such place"
            others = ", ".join(other for other in spec.review if other != place) or "none"
            raise ReviewError(f"graph {graph!r} cannot be reviewed at {place}: it {why}; other places: {others}")
    return points


def extractor_from_settings(settings: Settings, spec: object) -> Extractor:
    """Make the extractor that `spec` names, with the triple cache of the settings if any. Raises RasError children."""
    return _extractor(spec, role_options(settings), settings)


def _extractor(spec: object, options: RoleOptions, settings: Settings) -> Extractor:
    extractor = resolve_extractor(spec, options)
    if settings.triple_cache:
        return CachedExtractor(extractor, TripleCache(settings.triple_cache))
    return extractor


def role_specs(settings: Settings) -> dict[str, str]:
    """Return who plays which role: the role's own setting, else `llm`, else "offline".

    An extractor that nobody chose follows the planner, or the answerer where nothing is planned or facts are read for
    the answerer's sake.
    """
    return cast("dict[str, str]", _role_specs(graph_spec(settings.graph), settings, {}))


def _role_specs(spec: GraphSpec, settings: Settings, arguments: AgentArguments) -> dict[str, object]:
    """Return who plays which role, as `role_specs` does; an argument comes first."""
    llm = arguments.get("llm") or settings.llm
    extractor = arguments.get("extractor") or settings.extractor
    anyone = llm or _OFFLINE
    specs: dict[str, object] = {"answerer": arguments.get("answerer") or settings.answerer or anyone}
    default_role = specs["answerer"]
    if spec.planner is not None:
        specs = {"planner": arguments.get("planner") or settings.planner or anyone, **specs}
        if spec.facts == "always":
            default_role = specs["planner"]
    if spec.facts == "always" or (spec.facts == "if needed" and (extractor or needs_facts(default_role))):
        specs["extractor"] = extractor or llm or matching_extractor(default_role)
    return specs


def needs_facts(answerer: object) -> bool:
    """Tell whether the answerer needs facts from an extractor: it does if an extractor of its name is registered.

    Such an answerer uses no chat model.
    """
    return role_name(answerer).partition(":")[0] in names("extractor")


def matching_extractor(role: object) -> object:
    """Return the extractor that goes with a planner or answerer: the same model or registered name, else "offline"."""
    if is_chat_model(role):
        return role
    if isinstance(role, str):
        name, colon, _ = role.partition(":")
        # a name without a model that nobody knows is the role's own mistake, and its resolver says so
        if name in names("extractor") or (colon and name not in names("planner") + names("answerer")):
            return role
    return _OFFLINE


def _default_rewriter(role: object) -> object:
    """Return the rewriter that goes with a planner or answerer: on the same model, or the rule."""
    if is_chat_model(role):
        return role
    if isinstance(role, str):
        name, colon, _ = role.partition(":")
        if colon and name not in (*names("planner"), *names("reasoner"), *names("answerer")):
            return role
    return _OFFLINE


def _usual_fallback(preset: Preset, language: str) -> str:
    """Return who plays a step whose model could not be understood, if no setting says: offline roles read English."""
    if preset.falls_back and language in ("", ENGLISH):
        return _OFFLINE
    return _STOP


def _fallbacks(graph: GraphSpec, specs: Mapping[str, object], options: RoleOptions, fallback: str) -> dict[str, object]:
    """Return the offline role for each of `specs` that a chat model plays; none where the step is to stop."""
    if fallback == _STOP:
        return {}
    options = replace(options, dialect=None)
    resolve = {
        "planner": resolve_planner,
        "extractor": resolve_extractor,
        "answerer": resolve_answerer,
    }
    if graph.planner == "reasoner":
        resolve["planner"] = resolve_reasoner
    return {role: resolve[role](fallback, options) for role, spec in specs.items() if _is_model(role, spec)}


def _is_model(role: str, spec: object) -> bool:
    """Tell whether a role is played by a chat model, given as one or as `provider:model`."""
    if isinstance(spec, str):
        name, colon, _ = spec.partition(":")
        return bool(colon) and name not in (*names(role), *names("reasoner"))
    return is_chat_model(spec)


def _planner(graph: GraphSpec, spec: object, options: RoleOptions) -> object:
    if callable(graph.planner):
        return graph.planner(spec, options.for_role("planner"))
    if graph.planner == "reasoner":
        return resolve_reasoner(spec, options)
    return resolve_planner(spec, options)


def role_options(settings: Settings) -> RoleOptions:
    """Return the options that settings give to every role, whatever the graph.

    Raises PromptError for a folder of prompts that does not exist, whether a role reads prompts or not.
    """
    prompt_names(settings.prompts)
    return RoleOptions(
        chat=ChatSettings.of(settings),
        role_chats={role: ChatSettings.of(settings.for_role(role)) for role in settings.roles or ()},
        prompts_dir=settings.prompts,
        few_shot=settings.few_shot,
        form=settings.form,
        dialect=settings.dialect,
        keeps_thoughts=settings.thinking,
        language=settings.language or "",
        answer_tokens=settings.answer_tokens,
        least_confidence=settings.least_confidence,
    )

"""Resolves an agent's parts from the caller's arguments, and from settings where an argument is missing.

`create_ras_agent` and its siblings, the command line, the server, evaluations and studies all use
`resolve_parts`. A loop then assembles the parts (ras_agent.graphs.registry.GraphSpec).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

from langgraph.store.base import BaseStore
from typing_extensions import Unpack

from ras_agent.config.address import Address
from ras_agent.config.registry import find, names
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import ReviewError, SettingsError, did_you_mean
from ras_agent.contracts.schema import Schema
from ras_agent.graphs.agent import Agent
from ras_agent.graphs.parts import (
    AgentArguments,
    AgentParts,
    AnyCheckpointer,
    AnyIndex,
    Preset,
    preset_named,
)
from ras_agent.graphs.registry import GraphSpec, graph_spec
from ras_agent.graphs.toolset import AnyTool, Toolset, toolset
from ras_agent.prompts import prompt_names
from ras_agent.running.budget import Limits
from ras_agent.running.confidence import Calibration, Sureness, asked_in
from ras_agent.running.protocols import Extractor, Linker, Retriever
from ras_agent.running.review import Place, places
from ras_agent.text.languages import ENGLISH
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.chat.runnables import is_chat_model
from ras_agent.tools.graph_tokens.fact_orders import FactPruner, fact_order
from ras_agent.tools.index.chunk import Chunking
from ras_agent.tools.index.language import language_of
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.functional import KnownRelations
from ras_agent.tools.retrieve.choices import choices_over
from ras_agent.tools.retrieve.langchain_adapter import langchain_retriever
from ras_agent.tools.retrieve.resolve import (
    graph_options,
    open_for,
    resolve_retriever,
    retriever_options,
)
from ras_agent.tools.retrieve.search import scoped
from ras_agent.tools.roles import (
    RoleOptions,
    resolve_answerer,
    resolve_extractor,
    resolve_linker,
    resolve_planner,
    resolve_reasoner,
    resolve_reranker,
    resolve_rewriter,
    role_name,
)
from ras_agent.tools.structure.cache import CachedExtractor, TripleCache
from ras_agent.tools.structure.schema import with_schema

_OFFLINE = "offline"
_STOP = "stop"


def create_agent(graph: str, **arguments: Unpack[AgentArguments]) -> Agent:
    """Make an agent of the loop registered as `graph`. AgentArguments lists the arguments.

    Raises:
        RasError: a subclass of it, for a part that cannot be set up.
        TypeError: for an object that fits no protocol.
    """
    parts = resolve_parts(graph, **arguments)
    agent = graph_spec(graph).assemble(parts, arguments.get("checkpointer"))
    agent.recipe = partial(create_agent, graph, **arguments)
    return agent


def agent_from_settings(
    settings: Settings, index: AnyIndex, *, task: str = ""
) -> Agent:
    """Make the agent that `settings` describe over `index`. The settings also choose the loop.

    Args:
        task: an instruction that roles on chat models add to their prompts.
    """
    parts = resolve_parts(settings.loop, settings=settings, index=index, task=task)
    return assemble_agent(parts)


def assemble_agent(parts: AgentParts, checkpointer: AnyCheckpointer = None) -> Agent:
    """Assemble resolved parts into an agent that runs by itself, not as a node of a bigger graph.

    Raises:
        SettingsError: if runs are to be reviewed and there is no checkpointer.
    """
    if parts.review and (checkpointer is None or checkpointer is False):
        raise SettingsError(
            f"review = {','.join(parts.review)!r}: a review needs a checkpointer, and there is no checkpointer here; "
            "leave review out, or ask the question with `ras-agent ask --review`"
        )
    return graph_spec(parts.graph).assemble(parts, checkpointer)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choices:
    """Holds the caller's arguments, merged with the settings for the missing ones, before any part is made."""

    settings: Settings
    index: Any
    llm: object
    planner: object
    answerer: object
    extractor: object
    retriever: object
    reranker: object
    rewriter: object
    limits: Limits
    preset: str | Preset | None
    review: str | Sequence[str] | None
    names_retriever: bool
    """Whether the caller or the settings name a retriever; if not, the default is used."""
    store: BaseStore | None = None
    task: str = ""
    name: str = ""
    brief: bool = False
    tools: Sequence[AnyTool] | None = None

    @property
    def spec_of_reranker(self) -> object:
        """Return the spec of the reranker; "llm" stands for the model `llm`."""
        return self.llm if self.reranker == "llm" else self.reranker

    @classmethod
    def of(cls, arguments: AgentArguments) -> Self:
        settings = arguments.get("settings") or Settings()
        chosen: dict[str, Any] = {name: getattr(settings, name) for name in _CHOSEN}
        for name, value in arguments.items():
            # an empty review is a choice: no review
            is_blank = isinstance(value, str) and value == "" and name != "review"
            if value is None or is_blank:
                continue
            if name in cls.__dataclass_fields__:
                chosen[name] = value
        chosen["settings"] = settings
        if chosen.get("tools") is None and settings.tools:
            chosen["tools"] = settings.tools.replace(",", " ").split()
        chosen["names_retriever"] = (
            bool(arguments.get("retriever")) or "retriever" in settings.model_fields_set
        )
        return cls(**chosen)

    def roles(self, spec: GraphSpec) -> dict[str, object]:
        """Return the spec of each role that the graph has."""
        anyone = self.llm or _OFFLINE
        roles: dict[str, object] = {}
        if spec.planner is not None:
            roles["planner"] = self.planner or anyone
        roles["answerer"] = self.answerer or anyone
        leading = roles["answerer"]
        if spec.planner is not None and spec.facts == "always":
            leading = roles["planner"]
        reads_facts = spec.facts == "always"
        if spec.facts == "if needed":
            reads_facts = bool(self.extractor) or needs_facts(leading)
        if reads_facts:
            roles["extractor"] = (
                self.extractor or self.llm or matching_extractor(leading)
            )
        return roles


# the fields that may be given both as an argument and as a setting
_CHOSEN = (
    *("index", "llm", "planner", "answerer", "extractor", "retriever", "reranker"),
    *("rewriter", "limits", "preset", "review"),
)


def resolve_parts(graph: str, **arguments: Unpack[AgentArguments]) -> AgentParts:
    """Return the parts of an agent of the loop `graph`, each resolved once. The loop that the settings name is
    ignored.

    Raises a subclass of RasError for a part that cannot be set up, and TypeError for an unknown argument or an
    object that fits no protocol.
    """
    _check_names(arguments)
    spec = graph_spec(graph)
    chosen = _Choices.of(arguments)
    settings = chosen.settings
    if isinstance(chosen.preset, str) and chosen.preset and not spec.presets:
        raise SettingsError(
            f"loop {graph!r} has no presets, got {chosen.preset!r}: leave preset out"
        )
    specs = chosen.roles(spec)
    retriever_spec, index = _retriever_and_index(chosen)
    language = settings.language or ""
    if not language and isinstance(index, PassageIndex):
        language = language_of(index)
    preset = preset_named(
        chosen.preset,
        from_memory=settings.from_memory,
        layout=settings.layout,
        on_conflict=settings.on_conflict,
    )
    options = replace(
        role_options(settings),
        task=chosen.task,
        language=language,
        layout=preset.layout,
        follows_any=preset.follows_any,
        style=settings.style or spec.style,
        may_abstain=preset.may_abstain,
        asks_anyway=preset.asks_anyway,
    )
    offered = Toolset()
    if spec.tools or settings.dialect:
        # a plan may name the retriever, as the argument of a tool call or as an action of a dialect
        retrievers = retrievers_by_name(settings, index, chosen.spec_of_reranker)
        offered = toolset(chosen.tools, retrievers)
    if spec.tools:
        options = replace(options, tools=offered.tools)
    elif chosen.tools is not None:
        raise SettingsError(
            f"loop {graph!r} calls no tools: leave tools out, or take --loop react (create_react_agent)"
        )
    planner = None
    if "planner" in specs:
        planner = _planner(spec, specs["planner"], options)
    _check_samples(specs["answerer"], options)
    answerer = resolve_answerer(specs["answerer"], options)
    extractor = None
    if "extractor" in specs:
        extractor = _extractor(specs["extractor"], options, settings)
        extractor = with_schema(extractor, options.schema)
    pruner = None
    if settings.prune_facts:
        pruner = FactPruner(fact_order(settings.prune_facts), settings.prune_to)
    review = review_points(graph, chosen.review, reads_facts=extractor is not None)
    # a planner made by the graph's own function is not named after a model, so the answerer's spec is used
    leading = specs[
        "planner" if spec.planner in ("planner", "reasoner") else "answerer"
    ]
    rewriter = chosen.rewriter or _default_rewriter(chosen.llm or leading)
    linker = linker_of(settings, options, chosen.llm)
    retriever = resolve_retriever(
        retriever_spec, index, **retriever_options(settings, chosen.retriever, linker)
    )
    reranker = chosen.spec_of_reranker
    named = dict(specs)
    if reranker is not None:
        named["reranker"] = reranker
    asked_by = named | {"retriever": retriever_spec}
    players = {role: role_name(spec) for role, spec in asked_by.items()}
    fallback = settings.fallback or _usual_fallback(preset, language)
    return AgentParts(
        graph=graph,
        planner=planner,
        extractor=extractor,
        answerer=answerer,
        retriever=in_stages(retriever, settings, options, reranker),
        tools=offered.tools if spec.tools else (),
        retrievers=offered.retrievers,
        limits=chosen.limits,
        preset=preset,
        review=review,
        rewriter=resolve_rewriter(rewriter, options),
        store=chosen.store,
        pruner=pruner,
        judge=find("judge", _OFFLINE)(),
        functional=KnownRelations(index, options.schema),
        sureness=_sureness(settings, asked_in(graph, players, options.samples)),
        role_names={role: role_name(spec) for role, spec in named.items()},
        fallbacks=_fallbacks(spec, specs, options, fallback),
        name=chosen.name,
        brief=chosen.brief,
    )


def _sureness(settings: Settings, asked_by: Mapping[str, str]) -> Sureness:
    """Return how an answer's confidence is computed, and how high it has to be.

    Raises:
        SettingsError: for a calibration that cannot be read.
    """
    if settings.calibration is None:
        return Sureness(settings.least_confidence)
    calibration = Calibration.load(settings.calibration)
    unlike = calibration.unlike(asked_by)
    return Sureness(settings.least_confidence, calibration, unlike)


def retrievers_by_name(
    settings: Settings, index: object, reranker: object = None
) -> dict[str, Retriever]:
    """Return the retrievers for which the index has all the data, each with all stages of the settings.

    Args:
        reranker: replaces the reranker of the settings.

    Raises:
        RasError: a subclass of it, for settings that cannot be followed.
    """
    if reranker is None:
        reranker = settings.llm if settings.reranker == "llm" else settings.reranker
    options = role_options(settings)

    def staged(retriever: Retriever) -> Retriever:
        return in_stages(retriever, settings, options, reranker)

    linker = linker_of(settings, options)
    return choices_over(index, graph_options(settings, linker), staged)


def search_from_settings(settings: Settings, index: AnyIndex) -> Retriever:
    """Build the retriever of the settings with all its stages. Raises a subclass of RasError if that is not possible."""
    options = role_options(settings)
    linker = linker_of(settings, options)
    retriever = resolve_retriever(
        settings.retriever, index, **retriever_options(settings, linker=linker)
    )
    reranker = settings.llm if settings.reranker == "llm" else settings.reranker
    return in_stages(retriever, settings, options, reranker)


def linker_of(
    settings: Settings, options: RoleOptions, llm: object = None
) -> Linker | None:
    """Return the linker of the settings; None if they name no linker.

    Args:
        llm: the model that the spec "llm" refers to; by default the settings' model.

    Raises:
        RasError: a subclass of it, if the linker cannot be built.
    """
    spec: object = settings.linker
    if spec == "llm":
        spec = llm or settings.llm
        if spec is None:
            raise SettingsError(
                "--linker llm uses the model of --llm, which is not set: give --llm provider:model, or --linker provider:model"
            )
    return resolve_linker(spec, options)


def in_stages(
    retriever: Retriever, settings: Settings, options: RoleOptions, reranker: object
) -> Retriever:
    """Wrap a retriever in the settings' filter and a reranker.

    Raises:
        RasError: a subclass of it, if one of them cannot be resolved.
    """
    return scoped(
        retriever,
        settings.filter,
        resolve_reranker(reranker, options),
        settings.candidates,
    )


def _retriever_and_index(chosen: _Choices) -> tuple[object, Any]:
    """Return the spec of the retriever, and the opened index to search, or None if the retriever needs no
    index.

    Raises:
        SettingsError: if the index is itself a retriever and a retriever is named too, or if a text is given as
            an index.
    """
    index = chosen.index
    store = langchain_retriever(index)
    if store is not None and chosen.names_retriever:
        raise SettingsError(
            f"the index is {type(index).__name__}, which is a retriever itself, and the option retriever is "
            f"{chosen.retriever!r:.80}: leave one of them out"
        )
    if store is not None:
        return store, None
    if (
        isinstance(index, str)
        and index.count(" ") > 3
        and not PassageIndex.exists(index)
    ):
        raise SettingsError(
            f"no index at {index!r:.80}; if it is a text to search, give it in a list: index=['...']"
        )
    settings = chosen.settings
    is_text = index is not None and not isinstance(
        index, PassageIndex | str | Path | Address
    )
    opened = open_for(
        chosen.retriever,
        index,
        settings.language,
        Chunking.of(settings.chunk_size, settings.overlap),
        settings.embedder if is_text else None,
    )
    return chosen.retriever, opened


def _check_names(arguments: Mapping[str, object]) -> None:
    """Raise TypeError for an unknown argument. Python does not check the keys of AgentArguments."""
    known = AgentArguments.__annotations__
    for name in arguments:
        if name in known:
            continue
        message = f"an agent has no argument {name!r}; known: {', '.join(known)}"
        remedy = did_you_mean(name, known)
        raise TypeError(f"{message}; {remedy}" if remedy else message)


def review_points(
    graph: str, review: str | Sequence[str] | None, *, reads_facts: bool
) -> tuple[Place, ...]:
    """Return the places where a run waits for a person. Raises ReviewError for a place that the graph does not have."""
    points = places(review)
    spec = graph_spec(graph)
    for place in points:
        why = ""
        if place not in spec.review:
            why = "has no such place"
        elif place == "facts" and not reads_facts:
            why = "reads no facts without an extractor"
        if why:
            others = (
                ", ".join(other for other in spec.review if other != place) or "none"
            )
            raise ReviewError(
                f"loop {graph!r} cannot be reviewed at {place}: it {why}; other places: {others}"
            )
    return points


def extractor_from_settings(settings: Settings, spec: object) -> Extractor:
    """Build the extractor that `spec` names, with the triple cache of the settings if they have one.

    Raises a subclass of RasError if it cannot be built.
    """
    options = role_options(settings)
    return _extractor(spec, options, settings)


def _extractor(spec: object, options: RoleOptions, settings: Settings) -> Extractor:
    extractor = resolve_extractor(spec, options)
    if settings.triple_cache:
        return CachedExtractor(extractor, TripleCache(settings.triple_cache))
    return extractor


def role_specs(settings: Settings) -> dict[str, str]:
    """Return the spec of each role: the role's own setting, else `llm`, else "offline".

    An extractor without a setting is the one that matches the planner. It matches the answerer if the loop does
    not plan, or reads facts only because the answerer needs them.
    """
    chosen = _Choices.of({"settings": settings})
    return cast("dict[str, str]", chosen.roles(graph_spec(settings.loop)))


def needs_facts(answerer: object) -> bool:
    """Return whether the answerer needs facts from an extractor.

    It does if an extractor is registered under the answerer's name. Such an answerer uses no chat model.
    """
    name, _, _ = role_name(answerer).partition(":")
    return name in names("extractor")


def matching_extractor(role: object) -> object:
    """Return the extractor that matches a planner or answerer: the same model or registered name, else "offline"."""
    if is_chat_model(role):
        return role
    if isinstance(role, str):
        name, colon, _ = role.partition(":")
        # an unknown name without a model is reported by the resolver of the role itself
        if name in names("extractor") or (
            colon and name not in names("planner") + names("answerer")
        ):
            return role
    return _OFFLINE


def _default_rewriter(role: object) -> object:
    """Return the rewriter that matches a planner or answerer: one on the same model, else the rule-based one."""
    if is_chat_model(role):
        return role
    if isinstance(role, str):
        name, colon, _ = role.partition(":")
        if colon and name not in (
            *names("planner"),
            *names("reasoner"),
            *names("answerer"),
        ):
            return role
    return _OFFLINE


def _usual_fallback(preset: Preset, language: str) -> str:
    """Return which role takes over after an unreadable reply if no setting says so.

    This is the offline role, but not in other languages than English, because offline roles read only English.
    """
    if preset.falls_back and language in ("", ENGLISH):
        return _OFFLINE
    return _STOP


def _fallbacks(
    graph: GraphSpec, specs: Mapping[str, object], options: RoleOptions, fallback: str
) -> dict[str, object]:
    """Return the fallback for each role in `specs` that runs on a chat model; {} if `fallback` is "stop"."""
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
    fallbacks: dict[str, object] = {}
    for role, spec in specs.items():
        if _is_model(role, spec):
            fallbacks[role] = resolve[role](fallback, options)
    extractor = fallbacks.get("extractor")
    if extractor is not None:
        fallbacks["extractor"] = with_schema(cast(Extractor, extractor), options.schema)
    return fallbacks


def _is_model(role: str, spec: object) -> bool:
    """Tell whether a role runs on a chat model, given as an object or as a spec `provider:model`."""
    if not isinstance(spec, str):
        return is_chat_model(spec)
    name, colon, _ = spec.partition(":")
    registered = (*names(role), *names("reasoner"))
    return bool(colon) and name not in registered


def _check_samples(spec: object, options: RoleOptions) -> None:
    """Raise SettingsError if several samples of an answer would all be equal, or if their texts cannot be
    compared.
    """
    if options.samples == 1:
        return
    if not _is_model("answerer", spec):
        raise SettingsError(
            f"samples = {options.samples}: the answerer {role_name(spec)!r} is no chat model, and its samples would be "
            "equal; leave samples out, or name a model with --answerer"
        )
    if options.style == "long":
        raise SettingsError(
            f"samples = {options.samples}: full texts are never equal, so they cannot agree; leave samples out, or "
            "choose another --style"
        )


def _planner(graph: GraphSpec, spec: object, options: RoleOptions) -> object:
    if callable(graph.planner):
        return graph.planner(spec, options.for_role("planner"))
    if graph.planner == "reasoner":
        return resolve_reasoner(spec, options)
    return resolve_planner(spec, options)


def role_options(settings: Settings) -> RoleOptions:
    """Return the options that the settings give to every role, whatever the loop.

    Raises PromptError if the folder of prompts does not exist, even if no role reads prompts.
    """
    prompt_names(settings.prompts)
    return RoleOptions(
        chat=ChatSettings.of(settings),
        role_chats={
            role: ChatSettings.of(settings.for_role(role))
            for role in settings.roles or ()
        },
        prompts_dir=settings.prompts,
        few_shot=settings.few_shot,
        form=settings.form,
        schema=Schema.load(settings.schema_file) if settings.schema_file else None,
        dialect=settings.dialect,
        keeps_thoughts=settings.thinking,
        language=settings.language or "",
        answer_tokens=settings.answer_tokens,
        samples=settings.samples or 1,
        least_confidence=0.0 if settings.calibration else settings.least_confidence,
    )

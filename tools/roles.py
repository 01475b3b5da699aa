"""Turns a user's spec of a role into the object that plays the role.

A role is given as an object that fits its protocol, as a LangChain chat model or a runnable around one
(`with_fallbacks`, `bind`, `with_retry`, a chain, a configurable model), or as a string:

    offline                      a registered name (see ras_agent.config.registry)
    graphllm:/path               a registered name with its argument
    openai:gpt-4o-mini           any provider and model that LangChain's init_chat_model knows
    vllm:http://host:port/v1#m   model m behind an OpenAI-compatible server

A registered name refers to a factory, `make(argument, options)`: the text after the colon, and a RoleOptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from ras_agent.config.registry import check_call, find, is_registered, names
from ras_agent.contracts.errors import SettingsError, UnknownName
from ras_agent.contracts.records import AnswerStyle, EvidenceLayout
from ras_agent.contracts.schema import Schema
from ras_agent.running.protocols import (
    Answerer,
    Extractor,
    Linker,
    Planner,
    Reasoner,
    Reranker,
    Rewriter,
)
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.chat.form import FormUse
from ras_agent.tools.chat.names import model_name
from ras_agent.tools.chat.runnables import is_chat_model
from ras_agent.tools.chat.secrets import printable

_PROTOCOLS: dict[str, type] = {
    "planner": Planner,
    "extractor": Extractor,
    "answerer": Answerer,
    "reasoner": Reasoner,
    "rewriter": Rewriter,
    "reranker": Reranker,
    "linker": Linker,
}
# by how the names of their models begin
_PROVIDERS = {
    **dict.fromkeys(("gpt-", "chatgpt", "o1", "o3", "o4"), "openai"),
    **{
        "claude": "anthropic",
        "gemini": "google_genai",
        "grok": "xai",
        "deepseek": "deepseek",
        "command": "cohere",
    },
    **dict.fromkeys(("mistral", "ministral", "codestral"), "mistralai"),
    **dict.fromkeys(("llama", "qwen", "gemma", "phi"), "ollama"),
}
# asked to decide and to copy, not to write: their models sample at temperature 0 unless a setting says otherwise
_PRECISE = frozenset(
    ("planner", "reasoner", "extractor", "rewriter", "reranker", "linker")
)


@dataclass(frozen=True, slots=True)
class RoleOptions:
    """Holds the options that an agent passes to each of its roles. A role uses those that it needs."""

    chat: ChatSettings = field(default_factory=ChatSettings)
    prompts_dir: str | Path | None = None
    few_shot: bool = False
    task: str = ""
    language: str = ""
    layout: EvidenceLayout | None = None
    dialect: str | None = None
    keeps_thoughts: bool = True
    follows_any: bool = False
    style: AnswerStyle = "short"
    may_abstain: bool = True
    asks_anyway: bool = False
    answer_tokens: int | None = None
    samples: int = 1
    """How often the answerer's model is asked; the answer that most replies agree on is kept."""
    least_confidence: float | None = None
    form: FormUse = "auto"
    schema: Schema | None = None
    """The relations that an extractor's model is shown."""
    tools: tuple[Any, ...] = ()
    """The tools that a planner offers to its model (ras_agent.tools.plan.graph_tools.Tool); () for the usual ones."""
    role_chats: Mapping[str, ChatSettings] = field(default_factory=dict)
    """How the models of single roles are called, by role, if differently from `chat`."""

    def for_role(self, kind: str) -> RoleOptions:
        """Return the options with the `chat` of one role. A reasoner has the planner's."""
        if kind == "reasoner":
            kind = "planner"
        chat = self.role_chats.get(kind, self.chat)
        return replace(self, chat=chat)


DEFAULT_OPTIONS = RoleOptions()


def resolve_planner(spec: object, options: RoleOptions = DEFAULT_OPTIONS) -> Planner:
    """Return the planner that `spec` names; an object is returned unchanged.

    Args:
        spec: an object or a string, see above.
        options: for the factory of a registered name or, if `spec` names a chat model, for
            ras_agent.tools.plan.llm:llm_planner.

    Raises:
        UnknownName, MissingExtra, SettingsError: if the role cannot be built.
        TypeError: for an object that does not fit the protocol, and for a factory that cannot be called with an
            argument and options.
    """
    planner = _resolve("planner", spec, options)
    return cast(Planner, planner)


def resolve_extractor(
    spec: object, options: RoleOptions = DEFAULT_OPTIONS
) -> Extractor:
    """Return the extractor that `spec` names, like `resolve_planner`; for a chat model by
    ras_agent.tools.structure.llm:llm_extractor.
    """
    extractor = _resolve("extractor", spec, options)
    return cast(Extractor, extractor)


def resolve_answerer(spec: object, options: RoleOptions = DEFAULT_OPTIONS) -> Answerer:
    """Return the answerer that `spec` names, like `resolve_planner`; for a chat model by
    ras_agent.tools.answer.llm:llm_answerer.
    """
    answerer = _resolve("answerer", spec, options)
    return cast(Answerer, answerer)


def resolve_reasoner(spec: object, options: RoleOptions = DEFAULT_OPTIONS) -> Reasoner:
    """Return the reasoner that `spec` names, like `resolve_planner`; for a chat model by
    ras_agent.tools.plan.llm_reasoner:llm_reasoner.
    """
    reasoner = _resolve("reasoner", spec, options)
    return cast(Reasoner, reasoner)


def resolve_rewriter(spec: object, options: RoleOptions = DEFAULT_OPTIONS) -> Rewriter:
    """Return the rewriter that `spec` names, like `resolve_planner`; for a chat model by
    ras_agent.tools.plan.followup:llm_rewriter.
    """
    rewriter = _resolve("rewriter", spec, options)
    return cast(Rewriter, rewriter)


def resolve_reranker(
    spec: object, options: RoleOptions = DEFAULT_OPTIONS
) -> Reranker | None:
    """Return the reranker that `spec` names, like `resolve_planner`; None for None and "none". A model may be written
    "llm:MODEL".

    The factory of a registered name gets the options of all roles, so that a server is not sent the keys of other
    roles.
    """
    if spec is None or spec == "none":
        return None
    if not isinstance(spec, str):
        return cast(Reranker, _resolve("reranker", spec, options))
    spec = spec.removeprefix("llm:")
    name, _, _ = spec.partition(":")
    if is_registered("reranker", name):
        return cast(Reranker, _of_string("reranker", spec, options))
    return cast(Reranker, _resolve("reranker", spec, options))


def resolve_linker(
    spec: object, options: RoleOptions = DEFAULT_OPTIONS
) -> Linker | None:
    """Return the linker that `spec` names, like `resolve_planner`; None for None. A model may be written "llm:MODEL"."""
    if spec is None:
        return None
    if isinstance(spec, str):
        spec = spec.removeprefix("llm:")
    return cast(Linker, _resolve("linker", spec, options))


def role_name(role: object) -> str:
    """Return a short name for traces, without secrets: "offline", "openai:gpt-4o-mini", or the name of a class."""
    if isinstance(role, str):
        return printable(role)
    if is_chat_model(role):
        return model_name(role)
    name = getattr(role, "name", None)
    if name and isinstance(name, str):
        return printable(name)
    return type(role).__name__


def _resolve(kind: str, spec: object, options: RoleOptions) -> object:
    options = options.for_role(kind)
    without_model = kind == "reasoner"
    if kind == "planner" and isinstance(spec, str):
        name, _, _ = spec.partition(":")
        without_model = is_registered(kind, name)
    if options.dialect and without_model:
        raise SettingsError(
            f"dialect {options.dialect!r} is for a model that plans, and the {kind} is {role_name(spec)}: leave "
            "--dialect out, or give --loop ras and --planner provider:model"
        )
    if isinstance(spec, str):
        return _of_string(kind, spec, options)
    if is_chat_model(spec) and not isinstance(spec, _PROTOCOLS[kind]):
        return find(kind, "llm")(spec, options)
    return _fitting(kind, spec)


def _of_string(kind: str, spec: str, options: RoleOptions) -> object:
    name, _, argument = spec.partition(":")
    registered = tuple(other for other in names(kind) if other != "llm")
    if name in registered:
        make = find(kind, name)
        check_call(kind, name, make, argument=argument, options=options)
        return _fitting(kind, make(argument, options))
    if not argument:
        raise UnknownName(
            kind, spec, (*registered, "<provider>:<model>"), _spec_meant_by(spec)
        )
    if kind in _PRECISE and options.chat.temperature is None:
        options = replace(options, chat=replace(options.chat, temperature=0.0))
    try:
        return find(kind, "llm")(spec, options)
    except SettingsError as error:
        raise SettingsError(
            f"{error}; or name a registered {kind}: {', '.join(registered)}"
        ) from error


def _spec_meant_by(name: str) -> str:
    """Return the spec that the bare name of a model was meant for, "" for a name that tells no provider."""
    for start, provider in _PROVIDERS.items():
        if name.lower().startswith(start):
            return f"{provider}:{name}"
    return ""


def _fitting(kind: str, role: object) -> object:
    protocol = _PROTOCOLS[kind]
    if isinstance(role, type) or not isinstance(role, protocol):
        methods = f"ras_agent.protocols.{protocol.__name__}"
        raise TypeError(
            f"the {kind} has to be an object with the methods of {methods}, got {role!r:.200}"
        )
    return role

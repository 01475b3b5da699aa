"""Turns what a user writes into the object that plays a role.

A role is written as an object that fits its protocol, as a LangChain chat model or a runnable around one
(`with_fallbacks`, `bind`, `with_retry`, a chain, a configurable model), or as a string:

    offline                      a registered name (see ras_agent.registry)
    graphllm:/path               a registered name with its argument
    openai:gpt-4o-mini           any provider and model that LangChain's init_chat_model knows
    vllm:http://host:port/v1#m   model m behind an OpenAI-compatible server
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any, cast

from ras_agent.errors import SettingsError, UnknownName
from ras_agent.protocols import Answerer, Extractor, Planner, Reasoner, Rewriter
from ras_agent.registry import find, names
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.chat.models import model_name, printable
from ras_agent.tools.chat.runnables import is_chat_model

_PROTOCOLS: dict[str, type] = {
    "planner": Planner,
    "extractor": Extractor,
    "answerer": Answerer,
    "reasoner": Reasoner,
    "rewriter": Rewriter,
}
# by how the names of their models begin
_PROVIDERS = {
    **dict.fromkeys(("gpt-", "chatgpt", "o1", "o3", "o4"), "openai"),
    **{"claude": "anthropic", "gemini": "google_genai", "grok": "xai", "deepseek": "deepseek", "command": "cohere"},
    **dict.fromkeys(("mistral", "ministral", "codestral"), "mistralai"),
    **dict.fromkeys(("llama", "qwen", "gemma", "phi"), "ollama"),
}
# asked to decide and to copy, not to write: their models sample at temperature 0 unless a setting says otherwise
_PRECISE = frozenset(("planner", "reasoner", "extractor", "rewriter"))


def resolve_planner(spec: object, **options: Any) -> Planner:
    """Return the planner that `spec` names; an object is returned as it is.

    options: passed to ras_agent.tools.plan.llm:LLMPlanner if `spec` names a chat model; to a registered name's factory
    only those that it has parameters for.
    Raises UnknownName, MissingExtra, SettingsError, or TypeError for an object that does not fit the protocol.
    """
    return cast(Planner, _resolve("planner", spec, options))


def resolve_extractor(spec: object, **options: Any) -> Extractor:
    """Return the extractor that `spec` names, as above; on a model: ras_agent.tools.structure.llm:LLMExtractor."""
    return cast(Extractor, _resolve("extractor", spec, options))


def resolve_answerer(spec: object, **options: Any) -> Answerer:
    """Return the answerer that `spec` names, as above; on a model: ras_agent.tools.answer.llm:LLMAnswerer."""
    return cast(Answerer, _resolve("answerer", spec, options))


def resolve_reasoner(spec: object, **options: Any) -> Reasoner:
    """Return the reasoner that `spec` names, as above; on a model: ras_agent.tools.plan.llm_reasoner:LLMReasoner."""
    return cast(Reasoner, _resolve("reasoner", spec, options))


def resolve_rewriter(spec: object, **options: Any) -> Rewriter:
    """Return the rewriter that `spec` names, as above; on a model: ras_agent.tools.plan.followup:LLMRewriter."""
    return cast(Rewriter, _resolve("rewriter", spec, options))


def role_name(role: object) -> str:
    """Return a short name for traces, without secrets: "offline", "openai:gpt-4o-mini", or the name of a class."""
    if isinstance(role, str):
        return printable(role)
    if is_chat_model(role):
        return model_name(role)
    name = getattr(role, "name", None)
    return printable(name) if isinstance(name, str) and name else type(role).__name__


def _resolve(kind: str, spec: object, options: dict[str, Any]) -> object:
    if isinstance(spec, str):
        return _named(kind, spec, options)
    if is_chat_model(spec) and not isinstance(spec, _PROTOCOLS[kind]):
        return find(kind, "llm")(spec, **options)
    return _fitting(kind, spec)


def _named(kind: str, spec: str, options: dict[str, Any]) -> object:
    name, _, argument = spec.partition(":")
    registered = tuple(known for known in names(kind) if known != "llm")
    if name in registered:
        make = find(kind, name)
        return _fitting(kind, make(*filter(None, [argument]), **_understood(make, options)))
    if not argument:
        raise UnknownName(kind, spec, (*registered, "<provider>:<model>"), _meant(spec))
    if kind in _PRECISE:
        asking = options.get("settings") or ChatSettings()
        asking = asking if asking.temperature is not None else replace(asking, temperature=0.0)
        options = {**options, "settings": asking}
    try:
        return find(kind, "llm")(spec, **options)
    except SettingsError as error:
        raise SettingsError(f"{error}; or take a registered one: {', '.join(registered)}") from error


def _meant(name: str) -> str:
    """Return the spec that the bare name of a model was meant for, "" for a name that tells no provider."""
    provider = next((provider for start, provider in _PROVIDERS.items() if name.lower().startswith(start)), "")
    return f"{provider}:{name}" if provider else ""


def _understood(make: Callable[..., object], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that `make` has parameters for."""
    parameters = signature(make).parameters
    return {name: value for name, value in options.items() if name in parameters}


def _fitting(kind: str, role: object) -> object:
    protocol = _PROTOCOLS[kind]
    if isinstance(role, type) or not isinstance(role, protocol):
        methods = f"ras_agent.protocols.{protocol.__name__}"
        raise TypeError(f"the {kind} has to be an object with the methods of {methods}, got {role!r:.200}")
    return role

"""Chat models by name: `provider:model` strings, the names that traces show, and the secrets that nothing prints."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ras_agent.errors import MissingExtra, SettingsError
from ras_agent.tools.chat.http import openai_clients

_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY = re.compile(r"\?[^#\s]*")
_BEARER = re.compile(r"(?i)\b(bearer\s+|api[_-]?key[\"']?\s*[:=]\s*[\"']?)[^\s\"',}]+")
_KEY = re.compile(r"\b(?:sk|pk|xai|gsk|hf)[-_][\w*-]{8,}")

_URL_ATTRIBUTES = ("openai_api_base", "base_url", "anthropic_api_url", "azure_endpoint", "endpoint_url")
_SAMPLING_ATTRIBUTES = (
    *("temperature", "top_p", "top_k", "n", "seed", "stop", "stop_sequences", "max_tokens", "max_completion_tokens"),
    *("num_predict", "num_ctx", "frequency_penalty", "presence_penalty", "repeat_penalty", "reasoning_effort"),
    *("reasoning", "thinking", "model_kwargs", "extra_body"),
)
# OpenAI and Anthropic, Ollama, Gemini, Hugging Face
_REPLY_LIMITS = ("max_tokens", "num_predict", "max_output_tokens", "max_new_tokens")

_FORMS = "provider:model, as openai:gpt-4o-mini, or vllm:http://host:port/v1#model"


def is_chat_model(thing: object) -> bool:
    """Return whether `thing` is a LangChain BaseChatModel. Without LangChain loaded nothing can be one."""
    module = sys.modules.get("langchain_core.language_models.chat_models")
    return module is not None and isinstance(thing, module.BaseChatModel)


def retries_itself(model: object) -> bool:
    """Return whether a model object has retries of its own, on or off: its owner has decided on them."""
    return hasattr(model, "max_retries")


def build_chat_model(
    spec: str,
    *,
    timeout: float = 60.0,
    temperature: float | None = None,
    max_tokens: int | None = None,
    context_window: int | None = None,
) -> Any:
    """Build the LangChain chat model that `spec` names, with its own retries off: ours would multiply them.

    spec: `provider:model` as init_chat_model takes it, or `vllm:http://host:port/v1#model` for any OpenAI-compatible
        server (its key, if it wants one, in VLLM_API_KEY).
    context_window: what Ollama is told to load the model with; other servers have their own, which no request changes.
    Raises MissingExtra if the provider's package is missing, SettingsError if the model cannot be set up.
    """
    provider, _, name = spec.partition(":")
    options = _given(temperature=temperature, max_tokens=max_tokens)
    if provider == "vllm":
        spec, options = _openai_compatible(name, options)
        provider = "openai"
    if provider == "ollama":
        options |= _given(num_ctx=context_window)
    try:
        from langchain.chat_models import init_chat_model

        return init_chat_model(spec, **options, **_client_options(provider, timeout))
    except ImportError as error:
        raise _MissingProvider(provider, str(error)) from error
    except Exception as error:
        why = without_secrets(str(error)).rstrip(".")
        if "model_provider" in why:  # for an unknown provider LangChain advises an argument that we do not have
            supported = [line.rstrip(".") for line in why.splitlines() if line.startswith("Supported providers")]
            why = ". ".join([f"no known provider: write {_FORMS}", *supported])
        message = f"cannot set up the chat model {printable(spec)!r}: {why}"
        raise SettingsError(message) from None  # the provider's error may show the key


def capped(model: Any, most: int) -> Any:
    """Return a copy of a chat model whose replies have at most `most` tokens; the model itself if it has no such limit.

    A smaller limit of its own stays. Servers that speak OpenAI's protocol get the limit by its older name too, which
    is the one that all of them know.
    """
    fields = getattr(type(model), "model_fields", {})
    name = next((name for name in _REPLY_LIMITS if name in fields), None)
    if name is None or not is_chat_model(model):
        return model
    own = getattr(model, name)
    most = min(most, own) if isinstance(own, int) and own > 0 else most
    update: dict[str, Any] = {name: most}
    if "extra_body" in fields and getattr(model, "openai_api_base", None):
        update["extra_body"] = {**(model.extra_body or {}), "max_tokens": most}
    return model.model_copy(update=update)


def model_name(model: Any) -> str:
    """Return a name for traces: the provider's model name, else the name of the class."""
    for attribute in ("model_name", "model", "model_id"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return printable(value)
    return type(model).__name__


def endpoint_of(model: Any) -> str:
    """Return the name under which calls share rate limits: the server's address or model's class, and model."""
    for attribute in _URL_ATTRIBUTES:
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return f"{printable(value)}#{model_name(model)}"
    return f"{type(model).__name__}#{model_name(model)}"


def sampling_parameters(model: Any) -> dict[str, Any]:
    """Return what decides a model's reply besides the messages. It is part of the key of a cached reply."""
    return {"class": type(model).__name__, "endpoint": endpoint_of(model)} | _given(
        **{name: getattr(model, name, None) for name in _SAMPLING_ATTRIBUTES}
    )


def printable(spec: str) -> str:
    """Return a role spec without the parts of a URL that may hold a secret: user info and query."""
    return _QUERY.sub("", _USERINFO.sub("", spec))


def without_secrets(text: str, model: object = None) -> str:
    """Return `text` with `***` for everything that looks like a credential and for the secrets that `model` holds."""
    fields: Mapping[str, object] = getattr(model, "__dict__", {})
    for value in fields.values():
        reveal = getattr(value, "get_secret_value", None)
        secret = reveal() if callable(reveal) else None
        if isinstance(secret, str) and secret and secret != "EMPTY":
            text = text.replace(secret, "***")
    return _KEY.sub("***", _BEARER.sub("\\1***", _USERINFO.sub("***@", text)))


class _MissingProvider(MissingExtra):
    """Raised when the provider's LangChain package is not installed."""

    def __init__(self, provider: str, reason: str) -> None:
        package = re.search(r"`pip install ([\w-]+)`", reason)
        install = "'ras-agent[openai]'" if provider == "openai" else package[1] if package else f"langchain-{provider}"
        ImportError.__init__(self, f"chat models from {provider!r} need a package: pip install {install}")
        self.feature, self.extra = provider, provider


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _openai_compatible(address: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    url, _, name = address.partition("#")
    if not (url.startswith(("http://", "https://")) and name):
        raise SettingsError(f"expected 'vllm:http://host:port/v1#model', got {printable(f'vllm:{address}')!r}")
    try:
        urlsplit(url).port  # noqa: B018  (raises for a port that is none)
    except ValueError as error:
        raise SettingsError(f"{printable(f'vllm:{address}')!r}: {error}; correct the address") from None
    # OPENAI_API_KEY is not for this server; stream_usage, because LangChain sets it for OpenAI's own servers alone
    key = os.environ.get("VLLM_API_KEY", "EMPTY")
    return f"openai:{name}", options | {"base_url": url, "api_key": key, "stream_usage": True}


def _client_options(provider: str, timeout: float) -> dict[str, Any]:
    """Return the options by which each provider's class turns its own retries off and limits a call's time."""
    if provider == "ollama":
        return {"client_kwargs": {"timeout": timeout}}
    if provider.startswith("bedrock"):
        return {}
    options = openai_clients() if provider == "openai" else {}
    return {"timeout": timeout, "max_retries": 0, **options}

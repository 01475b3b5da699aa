"""Chat models by name: `provider:model` strings, the names that traces show, and the secrets that nothing prints."""

from __future__ import annotations

import os
import re
import warnings
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from ras_agent.errors import MissingExtra, SettingsError, did_you_mean
from ras_agent.records import JSON
from ras_agent.tools.chat.fields import NO_FIELDS, RequestFields
from ras_agent.tools.chat.held_secrets import HeldSecrets, held
from ras_agent.tools.chat.runnables import (
    bound_arguments,
    changed,
    chat_models_in,
    described,
    is_plain,
    plays_a_model,
)

_BETWEEN_URLS = re.compile(r",\s*(?=https?://)")
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY = re.compile(r"\?[^#\s]*")
_BEARER = re.compile(r"(?i)\b(bearer\s+|api[_-]?key[\"']?\s*[:=]\s*[\"']?)[^\s\"',}]+")
_IN_QUERY = re.compile(r"(?i)([?&][\w.-]{0,40}(?:key|token|secret|password|signature|sig)=)[^&#\s\"'<>]+")
_KEY = re.compile(r"\b(?:sk|pk|xai|gsk|hf)[-_][\w*-]{8,}")

_URL_ATTRIBUTES = ("openai_api_base", "base_url", "anthropic_api_url", "azure_endpoint", "endpoint_url")
_SAMPLING_ATTRIBUTES = (
    *("temperature", "top_p", "top_k", "n", "seed", "stop", "stop_sequences", "max_tokens", "max_completion_tokens"),
    *("num_predict", "num_ctx", "frequency_penalty", "presence_penalty", "repeat_penalty", "reasoning_effort"),
    *("reasoning", "thinking", "model_kwargs", "extra_body"),
)
OPENAI_LIMITS = ("max_completion_tokens", "max_tokens")
"""How a request in OpenAI's protocol limits its reply, the newer name first"""
# OpenAI and Anthropic, Ollama, Gemini, Hugging Face
_REPLY_LIMITS = ("max_tokens", "num_predict", "max_output_tokens", "max_new_tokens")

_TURNS = 10  # calls that a call may wait for at a server, by the client's own limit of its time
_OPENAI = "https://api.openai.com/v1"
_FORMS = "provider:model, as openai:gpt-4o-mini, or vllm:http://host:port/v1#model"


def build_chat_model(
    spec: str,
    *,
    timeout: float = 60.0,
    temperature: float | None = None,
    max_tokens: int | None = None,
    context_window: int | None = None,
    key: str = "",
    request: RequestFields = NO_FIELDS,
) -> Any:
    """Build the LangChain chat model that `spec` names, with its own retries off: ours would multiply them.

    spec: `provider:model` as init_chat_model takes it, or `vllm:http://host:port/v1#model` for any OpenAI-compatible
        server (its key, if it wants one, in VLLM_API_KEY), or for several with commas: `vllm:http://a/v1,http://b/v1#m`.
    temperature: 0 is left out for models that LangChain knows to take no temperature, which reason and would refuse it.
    timeout: seconds after which a provider's own client gives a call up; ours leaves that to who asks.
    context_window: what Ollama is told to load the model with; other servers have their own, which no request changes.
    key: for a model that is built where no key is set, since it is never asked, only its parameters are.
    request: what is added to each request. What a provider's class does not take is left out, with a warning.
    Raises MissingExtra if the provider's package is missing, SettingsError if the model cannot be set up.
    """
    provider, _, name = spec.partition(":")
    options = _given(temperature=temperature, max_tokens=max_tokens)
    if provider in ("openai", "vllm"):
        return _openai_chat(provider, name, options, key, request)
    if provider == "ollama":
        options |= _given(num_ctx=context_window)
    try:
        from langchain.chat_models import init_chat_model

        options |= _client_options(provider, timeout)
        # a provider's class takes its key by one of two names, and may refuse another's
        own_names: list[dict[str, Any]] = [{"api_key": key}, {f"{provider}_api_key": key}] if key else []
        if request.keys:
            own_key = _one_key(request, spec, key)
            own_names = [{"api_key": own_key}, {f"{provider}_api_key": own_key}]
        else:
            own_names.insert(0, {})

        def build(more: Mapping[str, Any]) -> Any:
            return _first_built([partial(init_chat_model, spec, **options, **more, **named) for named in own_names])

        model = _with_fields(build({}), build, options, request, spec, asked=not key)
        return _without_refused_zero(model)
    except SettingsError:
        raise
    except ImportError as error:
        raise _MissingProvider(provider, str(error)) from error
    except Exception as error:
        why = without_secrets(str(error)).rstrip(".")
        if "model_provider" in why:  # for an unknown provider LangChain advises an argument that we do not have
            supported = [line.rstrip(".") for line in why.splitlines() if line.startswith("Supported providers")]
            meant = did_you_mean(provider, ["vllm", *" ".join(supported).replace(",", " ").split()])
            why = ". ".join([" ".join(filter(None, ("no known provider:", meant, f"write {_FORMS}"))), *supported])
        message = f"cannot set up the chat model {printable(spec)!r}: {why}"
        raise SettingsError(message) from None  # the provider's error may show the key


def _first_built(makers: Sequence[Callable[[], Any]]) -> Any:
    """Return what the first of the makers makes that raises nothing; raise what the first one raises if all do."""
    errors = []
    for make in makers:
        try:
            return make()
        except Exception as error:
            errors.append(error)
    raise errors[0]


def _with_fields(
    model: Any,
    build: Callable[[Mapping[str, Any]], Any],
    options: dict[str, Any],
    request: RequestFields,
    spec: str,
    *,
    asked: bool,
) -> Any:
    """Return a model of LangChain's, built again with what its class takes of a request's fields and headers."""
    more, left_out = request.options_of(type(model), asked=asked)
    for name in more.keys() & options.keys():  # the client's arguments: its time, and headers
        more[name] = {**options.pop(name), **more[name]}
    if left_out:
        refused = ", ".join(left_out)
        message = f"{printable(spec)} takes no {refused}: left out of its requests"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return build(more) if more else model


def _one_key(request: RequestFields, spec: str, key: str) -> str:
    """Return the key of a model of LangChain's. Raises SettingsError for several, which only our own client takes."""
    keys = request.sent_keys(asked=not key)
    if len(keys) != 1:
        raise SettingsError(f"{printable(spec)} takes one key; several are for openai:NAME and vllm:URL#NAME")
    return keys[0]


def _openai_chat(provider: str, name: str, options: dict[str, Any], key: str, request: RequestFields) -> Any:
    """Return the model of ours for an address that speaks OpenAI's protocol."""
    try:
        import aiohttp  # noqa: F401  (asked for here, not when the first question is)
    except ImportError as error:
        raise _MissingProvider(provider, str(error)) from error
    keys = request.sent_keys(asked=not key)
    sent_headers = request.sent_headers(asked=not key)
    if request.body:
        options["model_kwargs"] = request.body
    if provider == "vllm":
        urls, name = server_addresses(name, "vllm:")
        return _at_places(urls, keys or (_server_key(),), default_headers=sent_headers, model=name, **options)
    environment = os.environ
    keys = keys or tuple(filter(None, (environment.get("OPENAI_API_KEY", key),)))
    if not keys:
        raise SettingsError(
            f"cannot set up the chat model {printable(f'openai:{name}')!r}: set OPENAI_API_KEY to a key of the server"
        )
    url = openai_url()
    named = {
        "OpenAI-Organization": environment.get("OPENAI_ORG_ID") or environment.get("OPENAI_ORGANIZATION"),
        "OpenAI-Project": environment.get("OPENAI_PROJECT_ID"),
    }
    headers = {header: value for header, value in named.items() if value} | sent_headers
    # a server of the user's own may know the older name of the limit alone, and no usage of streams
    own = {"stream_usage": False} if not is_openai(url) else {"limit_name": OPENAI_LIMITS[0], "profile": _profile(name)}
    return _without_refused_zero(_at_places((url,), keys, default_headers=headers, model=name, **own, **options))


def _at_places(urls: Sequence[str], keys: Sequence[str], **options: Any) -> Any:
    """Return a model of ours at one address with one key, or balanced over several of them.

    Raises SettingsError where it is not clear which key is whose.
    """
    from ras_agent.tools.chat.openai_chat import OpenAIChat

    if len(urls) == len(keys) == 1:
        return OpenAIChat(base_url=urls[0], api_key=SecretStr(keys[0]), **options)
    if len(keys) == 1:
        keys = [keys[0]] * len(urls)
    elif len(urls) == 1:
        urls = [urls[0]] * len(keys)
    if len(urls) != len(keys):
        raise SettingsError(
            f"the model has {len(urls)} addresses, and api_keys names {len(keys)} variables; name one for all, or one "
            "for each address in their order"
        )
    from ras_agent.tools.chat.balance import BalancedChat

    places = tuple((url, SecretStr(key)) for url, key in zip(urls, keys, strict=True))
    base_url = ",".join(dict.fromkeys(urls))
    return BalancedChat(base_url=base_url, api_key=places[0][1], places=places, **options)


def openai_url() -> str:
    """Return the address that `openai:NAME` is asked at."""
    return os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE") or _OPENAI


def _profile(name: str) -> Any:
    """Return what LangChain knows of a model of OpenAI's; None without langchain-openai."""
    try:
        from langchain_openai import ChatOpenAI
    except ImportError:
        return None
    return ChatOpenAI(model=name, api_key="none").profile  # type: ignore[arg-type]


def _without_refused_zero(model: Any) -> Any:
    """Return a model without its temperature 0 where LangChain knows that it takes none, and would refuse it."""
    profile = getattr(model, "profile", None) or {}
    if getattr(model, "temperature", None) == 0 and profile.get("temperature") is False:
        return model.model_copy(update={"temperature": None})
    return model


def capped(model: Any, most: int | None, refused: Collection[str] = ()) -> Any:
    """Return a copy of a chat model whose replies have at most `most` tokens; the model itself if it has no such limit.

    A smaller limit of its own stays, and is all there is without `most`. Of a runnable around models each is limited.
    refused: names of this limit in
    OpenAI's protocol that the server does not take. OpenAI refuses the older one for its newer models, max_tokens; of
    the servers that speak its protocol some know no other, and some refuse the newer one.
    """
    return changed(model, lambda one: _capped(one, most, refused))


def _capped(model: Any, most: int | None, refused: Collection[str]) -> Any:
    if _is_ours(model):
        given = [one for one in (most, model.max_tokens) if one]
        limit = next((name for name in _names_of_limit(model.base_url) if name not in refused), "")
        return model.model_copy(update={"max_tokens": min(given, default=None), "limit_name": limit})
    fields = getattr(type(model), "model_fields", {})
    name = next((name for name in _REPLY_LIMITS if name in fields), None)
    if name is None:
        return model
    openai = _is_chat_openai(model)
    body = dict(model.extra_body or {}) if openai else {}
    wanted = (most, getattr(model, name), body.pop(OPENAI_LIMITS[1], None))
    most = min((one for one in wanted if isinstance(one, int) and one > 0), default=None)
    if most is None:
        return model
    if not openai:
        return model.model_copy(update={name: most})
    address = getattr(getattr(model, "root_client", None), "base_url", None) or model.openai_api_base
    sent = next((name for name in _names_of_limit(str(address or "")) if name not in refused), None)
    if sent == OPENAI_LIMITS[1]:  # ChatOpenAI sends its own field by the newer name, whatever the server
        body[sent] = most
    own = most if sent == OPENAI_LIMITS[0] else None
    return model.model_copy(update={"max_tokens": own, "extra_body": body or None})


def longest_reply(model: Any) -> int | None:
    """Return the most tokens that requests of a chat model allow a reply; None for any number."""
    fields = [getattr(one, name, None) for one in chat_models_in(model) for name in _REPLY_LIMITS]
    bodies = [getattr(one, "extra_body", None) or {} for one in chat_models_in(model)]
    stated = [*fields, *(body.get(name) for body in bodies for name in OPENAI_LIMITS)]
    return max((one for one in stated if isinstance(one, int)), default=None)


def limits_sent(model: Any) -> set[str]:
    """Return the names by which requests of a chat model limit their replies, of those in OpenAI's protocol."""
    ours = {one.limit_name for one in chat_models_in(model) if _is_ours(one) and one.max_tokens and one.limit_name}
    models = [one for one in chat_models_in(model) if _is_chat_openai(one)]
    return ours | {
        name
        for one in models
        for name, value in zip(OPENAI_LIMITS, (one.max_tokens, (one.extra_body or {}).get("max_tokens")), strict=True)
        if value is not None
    }


def _is_chat_openai(model: Any) -> bool:
    return any(base.__name__ == "ChatOpenAI" for base in type(model).__mro__)


def _is_ours(model: Any) -> bool:
    return hasattr(type(model), "model_fields") and "limit_name" in type(model).model_fields


@lru_cache(maxsize=256)
def _names_of_limit(url: str) -> tuple[str, ...]:
    """Return the names of a reply's limit in the order in which to try them at an address."""
    return OPENAI_LIMITS if is_openai(url) else OPENAI_LIMITS[::-1]


def is_openai(url: str) -> bool:
    """Return whether an address is OpenAI's own."""
    host = urlsplit(url).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")


def with_options(model: Any, options: Mapping[str, Any]) -> Any:
    """Return a copy of a chat model that is called with further options; of a runnable around models, each is."""
    return changed(model, lambda one: one.bind(**options)) if options else model


def with_tools(model: Any, tools: Sequence[JSON]) -> Any:
    """Return a copy of a chat model that may call `tools`; of a runnable around models, each may.

    Raises SettingsError for a model that LangChain knows no tools for.
    """
    if plays_a_model(model):
        return model.bind_tools(list(tools))
    return changed(model, lambda one: _with_tools(one, tools))


def _with_tools(model: Any, tools: Sequence[JSON]) -> Any:
    try:
        return model.bind_tools(list(tools))
    except NotImplementedError:
        raise SettingsError(
            f"{model_name(model)} cannot call tools: take a model that can, or a graph that needs none (--graph ras)"
        ) from None


def model_name(model: Any) -> str:
    """Return a name for traces: the provider's model name, else the name of the class. Fallbacks follow in order."""
    names = dict.fromkeys(map(_own_name, chat_models_in(model)))
    named = (arguments.get("model") for arguments in bound_arguments(model))
    if len(names) < 2 and (bound := next((name for name in named if isinstance(name, str)), "")):
        return printable(bound)
    return ", else ".join(names) or _own_name(model)


def answering_model(model: Any, message: Any) -> str:
    """Return the name of the one of several models that gave a message; "" where there is no choice, or no telling."""
    names = list(dict.fromkeys(map(_own_name, chat_models_in(model))))
    told = getattr(message, "response_metadata", None) or {}
    name = next((told[key] for key in ("model_name", "model") if isinstance(told.get(key), str)), "")
    if is_plain(model) or not name:
        return ""
    # providers add a date to the name, as in gpt-4o-mini-2024-07-18
    return max((known for known in names if name.startswith(known)), key=len, default=printable(name))


def _own_name(model: Any) -> str:
    for attribute in ("model_name", "model", "model_id"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return printable(value)
    name = getattr(model, "name", None)
    return printable(name) if isinstance(name, str) and name else type(model).__name__


def endpoint_of(model: Any) -> str:
    """Return the name under which calls share rate limits: the server's address or model's class, and model.

    Calls of a model with fallbacks count at the endpoint of the first.
    """
    model = next(iter(chat_models_in(model)), model)
    for attribute in _URL_ATTRIBUTES:
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return f"{printable(value)}#{model_name(model)}"
    return f"{type(model).__name__}#{model_name(model)}"


def sampling_parameters(model: Any, *, where: bool = True) -> dict[str, Any]:
    """Return what decides a model's reply besides the messages. It is part of the key of a cached reply."""
    return described(model, partial(_sampling, where=where))


def _sampling(model: Any, *, where: bool) -> dict[str, Any]:
    return {"class": type(model).__name__, "endpoint": endpoint_of(model) if where else None} | _given(
        **{name: getattr(model, name, None) for name in _SAMPLING_ATTRIBUTES}
    )


def printable(spec: str) -> str:
    """Return a role spec without the parts of a URL that may hold a secret: user info and query."""
    return _QUERY.sub("", _USERINFO.sub("", spec))


def without_secrets(text: str, model: object = None) -> str:
    """Return `text` with `***` for everything that looks like a credential and for the secrets that `model` holds."""
    text = secrets_of(model).masked(text)
    text = _IN_QUERY.sub("\\1***", _USERINFO.sub("***@", text))
    return _KEY.sub("***", _BEARER.sub("\\1***", text))


def secrets_of(model: object) -> HeldSecrets:
    """Return what masks the secrets that a model holds, in the forms in which its server may send them back."""
    return held(tuple(dict.fromkeys(_secrets(model))))


def _secrets(model: object) -> Iterator[str]:
    """Yield the keys that a model holds, those of all its fallbacks, and those in its headers and addresses."""
    for one in chat_models_in(model) or (model,):
        for name in _URL_ATTRIBUTES:
            for address in _BETWEEN_URLS.split(str(getattr(one, name, None) or "")):
                yield from _in_address(address)
        for value in getattr(one, "__dict__", {}).values():
            yield from _revealed(value)
        yield from _header_values(getattr(one, "default_headers", None))
    for arguments in bound_arguments(model):
        yield from _header_values(arguments.get("extra_headers"))


def _in_address(address: str) -> Iterator[str]:
    """Yield the password of an address, and what is sent of its user as a header: name and password in base64."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return
    if parts.password:
        password, user = unquote(parts.password), unquote(parts.username or "")
        yield password
        yield b64encode(f"{user}:{password}".encode()).decode()


def _revealed(value: object) -> Iterator[str]:
    """Yield the secrets in a field of a model: a key, or places with a key each."""
    if isinstance(value, tuple):
        for part in value:
            yield from _revealed(part)
        return
    reveal = getattr(value, "get_secret_value", None)
    secret = reveal() if callable(reveal) else None
    if isinstance(secret, str):
        yield secret


def _header_values(headers: object) -> Iterator[str]:
    if isinstance(headers, Mapping):
        yield from (value for value in headers.values() if isinstance(value, str))


class _MissingProvider(MissingExtra):
    """Raised when the provider's LangChain package is not installed."""

    def __init__(self, provider: str, reason: str) -> None:
        package = re.search(r"`pip install ([\w-]+)`", reason)
        install = (
            "'ras-agent[openai]'"
            if provider in ("openai", "vllm")
            else package[1]
            if package
            else f"langchain-{provider}"
        )
        ImportError.__init__(self, f"chat models from {provider!r} need a package: pip install {install}")
        self.feature, self.extra = provider, provider


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def server_address(address: str, form: str) -> tuple[str, str, str]:
    """Return the URL and the model's name in `http://host:port/v1#model`, and the server's key, if it wants one.

    form: how the whole spec is written, for the message. Raises SettingsError for another form.
    """
    urls, name = server_addresses(address, form)
    if len(urls) != 1:
        raise SettingsError(f"{printable(f'{form}{address}')!r} has {len(urls)} addresses, and one is taken here")
    return urls[0], name, _server_key()


def server_addresses(addresses: str, form: str) -> tuple[tuple[str, ...], str]:
    """Return the URLs, which commas divide, and the model's name in `http://a/v1,http://b/v1#model`.

    form: how the whole spec is written, for the message. Raises SettingsError for another form.
    """
    before, _, name = addresses.partition("#")
    urls = tuple(_BETWEEN_URLS.split(before))
    if not (all(url.startswith(("http://", "https://")) for url in urls) and name):
        raise SettingsError(f"expected '{form}http://host:port/v1#model', got {printable(f'{form}{addresses}')!r}")
    for url in urls:
        try:
            urlsplit(url).port  # noqa: B018  (raises for a port that is none)
        except ValueError as error:
            raise SettingsError(f"{printable(f'{form}{addresses}')!r}: {error}; correct the address") from None
    return urls, name


def _server_key() -> str:
    """Return the key of a user's own server; OPENAI_API_KEY is not for it."""
    return os.environ.get("VLLM_API_KEY", "EMPTY")


def _client_options(provider: str, timeout: float) -> dict[str, Any]:
    """Return the options by which each provider's class turns its own retries off and limits a call's time."""
    if provider == "ollama":  # it takes calls in turn, and a call's time begins with its turn
        return {"client_kwargs": {"timeout": _TURNS * timeout}}
    if provider.startswith("bedrock"):
        return {}
    return {"timeout": timeout, "max_retries": 0}

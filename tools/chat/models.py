"""Builds chat models from `provider:model` strings, and copies of models with options and tools."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from ras_agent.contracts.errors import MissingExtra, SettingsError, did_you_mean
from ras_agent.contracts.records import JSON, without_none
from ras_agent.tools.chat.fields import NO_FIELDS, RequestFields
from ras_agent.tools.chat.names import model_name
from ras_agent.tools.chat.refusals import OPENAI_LIMITS, is_openai
from ras_agent.tools.chat.runnables import changed, plays_a_model
from ras_agent.tools.chat.secrets import BETWEEN_URLS, printable, without_secrets

_TURNS = 10  # factor of the timeout that a client gets if its calls may wait for others at the server
_FORMS = "provider:model, as openai:gpt-4o-mini, or vllm:http://host:port/v1#model"
_OURS = ("openai", "vllm")


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
    """Build the LangChain chat model that `spec` names. It does not retry by itself, since the callers do.

    Args:
        spec: `provider:model` as init_chat_model takes it; `vllm:http://host:port/v1#model` for any
            OpenAI-compatible server (its key, if it needs one, in VLLM_API_KEY); or
            `vllm:http://a/v1,http://b/v1#m` for several.
        timeout: the seconds after which a provider's own client gives up a call. This package's models leave that
            to the caller.
        temperature, max_tokens: None for the provider's default.
        context_window: the window with which Ollama loads the model. Other servers' windows cannot be set by a
            request.
        key: a placeholder for a missing key, for a model that is built only to read its parameters.
        request: additions to each request. Those that a provider's class does not take are left out, with a
            warning.

    Raises:
        MissingExtra: if the provider's package is not installed.
        SettingsError: if the model cannot be set up.
    """
    provider, _, name = spec.partition(":")
    options = without_none({"temperature": temperature, "max_tokens": max_tokens})
    try:
        if provider in _OURS:
            import aiohttp  # noqa: F401  (so that a missing package is noticed before the first call)

            model = _our_chat(provider, name, options, key, request)
        else:
            if provider == "ollama":
                options |= without_none({"num_ctx": context_window})
            options |= _client_options(provider, timeout)
            model = _providers_chat(spec, options, key, request)
    except SettingsError:
        raise
    except ImportError as error:
        raise _MissingProvider(provider, str(error)) from error
    except Exception as error:
        why = _reason(provider, without_secrets(str(error)))
        message = f"cannot set up the chat model {printable(spec)!r}: {why}"
        raise SettingsError(message) from None  # the provider's error may show the key
    return model


def _client_options(provider: str, timeout: float) -> JSON:
    """Return the options that turn off the retries of a provider's class and limit the seconds of a call."""
    # Ollama takes calls one after the other, and the client's time includes the waiting
    if provider == "ollama":
        return {"client_kwargs": {"timeout": _TURNS * timeout}}
    if provider.startswith("bedrock"):
        return {}
    return {"timeout": timeout, "max_retries": 0}


def _providers_chat(spec: str, options: JSON, key: str, request: RequestFields) -> Any:
    """Return a provider's LangChain model, with those request fields and headers that its class takes."""
    keys = list(_key_options(spec, key, request))
    model = _first_built(spec, options, keys)
    more, left_out = request.options_of(type(model), asked=not key)
    if left_out:
        message = f"{printable(spec)} takes no {', '.join(left_out)}: left out of its requests"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    if not more:
        return model
    # both may hold arguments of the client, such as its timeout and headers
    for name in more.keys() & options.keys():
        more[name] = options[name] | more[name]
    return _first_built(spec, options | more, keys)


def _first_built(spec: str, options: JSON, keys: Sequence[JSON]) -> Any:
    """Return the model built with the first of several ways to pass the key that works.

    Raises the first error if none does.

    Args:
        keys: the arguments that pass the key, one mapping for each way.
    """
    from langchain.chat_models import init_chat_model

    first_error: Exception | None = None
    for key in keys:
        try:
            return init_chat_model(spec, **options, **key)
        except Exception as error:
            first_error = first_error or error
    raise first_error or AssertionError("there is a way to give the key")


def _key_options(spec: str, key: str, request: RequestFields) -> Iterator[JSON]:
    """Yield the arguments that pass a model's key; its class accepts one of two names, and may refuse the other.

    Raises SettingsError if there are several keys, which only this package's models take.
    """
    if request.keys:
        keys = request.sent_keys(asked=not key)
        if len(keys) != 1:
            raise SettingsError(
                f"{printable(spec)} takes one key, but api_keys names {len(keys)} variables: name one, since only openai:NAME "
                "and vllm:URL#NAME take several"
            )
        key = keys[0]
    else:
        yield {}
    if key:
        provider = spec.partition(":")[0]
        yield {"api_key": key}
        yield {f"{provider}_api_key": key}


def _reason(provider: str, error: str) -> str:
    """Return the text of an error; for an unknown provider, with our advice in place of LangChain's."""
    if "model_provider" not in error:
        return error.rstrip(".")
    supported = [
        line.rstrip(".")
        for line in error.splitlines()
        if line.startswith("Supported providers")
    ]
    known = " ".join(supported).replace(",", " ").split()
    meant = did_you_mean(provider, ["vllm", *known])
    remedy = f"{meant} write {_FORMS}" if meant else f"write {_FORMS}"
    return ". ".join([f"no known provider: {remedy}", *supported])


def _our_chat(
    provider: str, name: str, options: JSON, key: str, request: RequestFields
) -> Any:
    """Return this package's model for a server that speaks OpenAI's protocol."""
    keys = request.sent_keys(asked=not key)
    headers = request.sent_headers(asked=not key)
    if request.body:
        options["model_kwargs"] = request.body
    if provider == "vllm":
        urls, name = server_addresses(name, "vllm:")
        return _at_places(
            urls,
            keys or (server_key(),),
            default_headers=headers,
            model=name,
            **options,
        )
    key = os.environ.get("OPENAI_API_KEY", key)
    if not keys and not key:
        raise SettingsError(
            f"cannot set up the chat model {printable(f'openai:{name}')!r}: set OPENAI_API_KEY to a key of the server"
        )
    url = openai_url()
    if is_openai(url):
        options |= {"limit_name": OPENAI_LIMITS[0], "profile": _profile(name)}
    else:  # another server may know only the older name of the limit, and no option for the usage of streams
        options["stream_usage"] = False
    return _at_places(
        (url,),
        keys or (key,),
        default_headers=_account() | headers,
        model=name,
        **options,
    )


def _account() -> dict[str, str]:
    """Return the headers for OpenAI's organisation and project, if the environment names them."""
    organisation = os.environ.get("OPENAI_ORG_ID") or os.environ.get(
        "OPENAI_ORGANIZATION"
    )
    named = {
        "OpenAI-Organization": organisation,
        "OpenAI-Project": os.environ.get("OPENAI_PROJECT_ID"),
    }
    return {header: value for header, value in named.items() if value}


def _at_places(urls: Sequence[str], keys: Sequence[str], **options: Any) -> Any:
    """Return this package's model for one address and key, or a model that balances calls over several.

    Raises SettingsError if the numbers of keys and addresses do not match.
    """
    from ras_agent.tools.chat.balance import BalancedChat
    from ras_agent.tools.chat.openai_chat import OpenAIChat

    if len(urls) == len(keys) == 1:
        return OpenAIChat(base_url=urls[0], api_key=SecretStr(keys[0]), **options)
    several = max(len(urls), len(keys))
    if len(keys) == 1:
        keys = [keys[0]] * several
    if len(urls) == 1:
        urls = [urls[0]] * several
    if len(urls) != len(keys):
        raise SettingsError(
            f"the model has {len(urls)} addresses, and api_keys names {len(keys)} variables: name one variable for all "
            "addresses, or one for each, in the same order"
        )
    places = tuple((url, SecretStr(key)) for url, key in zip(urls, keys, strict=True))
    base_url = ",".join(dict.fromkeys(urls))
    return BalancedChat(
        base_url=base_url, api_key=places[0][1], places=places, **options
    )


def _profile(name: str) -> Any:
    """Return LangChain's profile of an OpenAI model; None without langchain-openai."""
    try:
        from langchain_openai import ChatOpenAI
    except ImportError:
        return None
    return ChatOpenAI(model=name, api_key="none").profile  # type: ignore[arg-type]


def with_options(model: Any, options: JSON) -> Any:
    """Return a copy of a chat model, or of a runnable around models, with further options bound to each model."""
    if not options:
        return model
    return changed(model, lambda one: one.bind(**options))


def with_tools(model: Any, tools: Sequence[JSON]) -> Any:
    """Return a copy of a chat model, or of a runnable around models, that may call `tools`.

    Raises SettingsError if LangChain cannot bind tools to a model.
    """
    if plays_a_model(model):
        return model.bind_tools(list(tools))
    return changed(model, lambda one: _with_tools(one, tools))


def _with_tools(model: Any, tools: Sequence[JSON]) -> Any:
    try:
        return model.bind_tools(list(tools))
    except NotImplementedError:
        raise SettingsError(
            f"{model_name(model)} cannot call tools: choose a model that can, or a loop without tools (--loop ras)"
        ) from None


class _MissingProvider(MissingExtra):
    """Reports that the provider's LangChain package is not installed."""

    def __init__(self, provider: str, reason: str) -> None:
        named = re.search(r"`pip install ([\w-]+)`", reason)
        package = named[1] if named else f"langchain-{provider}"
        if provider in _OURS:
            package = "'ras-agent[openai]'"
        ImportError.__init__(
            self, f"chat models from {provider!r} need a package: pip install {package}"
        )
        self.feature = provider
        self.extra = provider


# ---- addresses in specs


_OPENAI = "https://api.openai.com/v1"


def openai_url() -> str:
    """Return the address of the server for `openai:NAME`: OPENAI_BASE_URL, OPENAI_API_BASE, or OpenAI's own."""
    return (
        os.environ.get("OPENAI_BASE_URL")
        or os.environ.get("OPENAI_API_BASE")
        or _OPENAI
    )


def server_key() -> str:
    """Return the key for a user's own server, from VLLM_API_KEY, by default "EMPTY". OPENAI_API_KEY is never sent
    there.
    """
    return os.environ.get("VLLM_API_KEY", "EMPTY")


def server_address(address: str, form: str) -> tuple[str, str, str]:
    """Return the URL and the model's name in `http://host:port/v1#model`, and the key for the server.

    Raises SettingsError if the address has another form, or there are several.

    Args:
        form: the prefix of the whole spec, such as "vllm:", for messages.
    """
    urls, name = server_addresses(address, form)
    if len(urls) != 1:
        raise SettingsError(
            f"{printable(f'{form}{address}')!r} has {len(urls)} addresses, but this model takes one: leave the others out"
        )
    return urls[0], name, server_key()


def server_addresses(addresses: str, form: str) -> tuple[tuple[str, ...], str]:
    """Return the URLs and the model name in `http://a/v1,http://b/v1#model`.

    Raises SettingsError if the addresses have another form.

    Args:
        form: the prefix of the whole spec, such as "vllm:", for messages.
    """
    before, _, name = addresses.partition("#")
    urls = tuple(BETWEEN_URLS.split(before))
    shown = repr(printable(f"{form}{addresses}"))
    if not name or not all(url.startswith(("http://", "https://")) for url in urls):
        raise SettingsError(
            f"{shown} is not the address of a model: write it as '{form}http://host:port/v1#model'"
        )
    for url in urls:
        try:
            urlsplit(url).port  # noqa: B018  (raises for an invalid port)
        except ValueError as error:
            raise SettingsError(f"{shown}: {error}: correct the address") from None
    return urls, name

"""Names models for traces, for endpoints that share rate limits, and for the keys of cached replies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ras_agent.contracts.records import JSON
from ras_agent.tools.chat.runnables import (
    bound_arguments,
    chat_models_in,
    described,
    is_plain,
)
from ras_agent.tools.chat.secrets import URL_ATTRIBUTES, printable

_SAMPLING_ATTRIBUTES = (
    "temperature",
    "top_p",
    "top_k",
    "n",
    "seed",
    "stop",
    "stop_sequences",
    "max_tokens",
    "max_completion_tokens",
    "num_predict",
    "num_ctx",
    "frequency_penalty",
    "presence_penalty",
    "repeat_penalty",
    "reasoning_effort",
    "reasoning",
    "thinking",
    "model_kwargs",
    "extra_body",
)


def model_name(model: Any) -> str:
    """Return a model's name for traces: the provider's name, else the class name. Fallbacks are listed in order."""
    names = _own_names(model)
    if len(names) < 2:
        for arguments in bound_arguments(model):
            bound = arguments.get("model")
            if isinstance(bound, str):
                return printable(bound)
    return ", else ".join(names) or _own_name(model)


def answering_model(model: Any, message: Any) -> str:
    """Return the name of the model that wrote a message; "" if a runnable contains only one model, or it is unknown."""
    if is_plain(model):
        return ""
    about = getattr(message, "response_metadata", None) or {}
    for key in ("model_name", "model"):
        name = about.get(key)
        if isinstance(name, str) and name:
            # providers add a date to the name, as in gpt-4o-mini-2024-07-18
            known = [one for one in _own_names(model) if name.startswith(one)]
            return max(known, key=len, default=printable(name))
    return ""


def _own_names(model: Any) -> list[str]:
    names = map(_own_name, chat_models_in(model))
    return list(dict.fromkeys(names))


def _own_name(model: Any) -> str:
    stated = _first_text(model, ("model_name", "model", "model_id", "name"))
    return stated or type(model).__name__


def _first_text(model: Any, attributes: Sequence[str]) -> str:
    """Return the first of a model's attributes that is a non-empty string, without secrets; "" if none is."""
    for attribute in attributes:
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return printable(value)
    return ""


def endpoint_of(model: Any) -> str:
    """Return the name under which calls share rate limits: the server's address, or the model's class, and the model's
    name.

    Calls of a model with fallbacks count at the endpoint of the first model.
    """
    models = chat_models_in(model)
    first = models[0] if models else model
    address = _first_text(first, URL_ATTRIBUTES)
    place = address or type(first).__name__
    return f"{place}#{model_name(first)}"


def sampling_parameters(model: Any, *, where: bool = True) -> JSON:
    """Return the parameters, in addition to the messages, that determine a model's reply. They are part of a cached
    reply's key.

    Args:
        where: whether the endpoint is included.
    """
    return described(model, partial(_sampling, where=where))


def _sampling(model: Any, *, where: bool) -> JSON:
    parameters = {
        "class": type(model).__name__,
        "endpoint": endpoint_of(model) if where else None,
    }
    for name in _SAMPLING_ATTRIBUTES:
        value = getattr(model, name, None)
        if value is not None:
            parameters[name] = value
    return parameters

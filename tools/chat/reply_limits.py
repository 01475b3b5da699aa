"""Limits of a model's reply: by which field each provider takes them, and under which of two names OpenAI's servers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import urlsplit

from ras_agent.records import JSON
from ras_agent.tools.chat.runnables import changed, chat_models_in, class_names

OPENAI_LIMITS = ("max_completion_tokens", "max_tokens")
"""How a request in OpenAI's protocol limits its reply, the newer name first"""
_NEWER, _OLDER = OPENAI_LIMITS
# OpenAI and Anthropic, Ollama, Gemini, Hugging Face
_FIELDS = ("max_tokens", "num_predict", "max_output_tokens", "max_new_tokens")


def capped(model: Any, most: int | None, refused: Collection[str] = ()) -> Any:
    """Return a copy of a chat model whose replies have at most `most` tokens; the model itself if it has no such limit.

    A smaller limit of its own stays, also without `most`. Of a runnable around models each is limited.
    refused: names of this limit in OpenAI's protocol that the server does not take. OpenAI refuses the older one for
        its newer models; of the servers that speak its protocol some know no other, and some refuse the newer one.
    """
    return changed(model, lambda one: _capped(one, most, refused))


def _capped(model: Any, most: int | None, refused: Collection[str]) -> Any:
    fields = getattr(type(model), "model_fields", {})
    own_fields = [name for name in _FIELDS if name in fields]
    if not own_fields:
        return model
    field = own_fields[0]
    least = _least(most, getattr(model, field))
    update: JSON = {}
    if "limit_name" in fields:  # the model of this package
        update["limit_name"] = _name_sent(model.base_url, refused)
        update[field] = least
    elif _is_chat_openai(model):
        update = _openai_update(model, most, refused)
    elif least is not None:
        update[field] = least
    return model.model_copy(update=update) if update else model


def _openai_update(model: Any, most: int | None, refused: Collection[str]) -> JSON:
    """Return the fields by which ChatOpenAI limits its reply. It sends its own by the newer name, to any server."""
    body = dict(model.extra_body or {})
    least = _least(most, model.max_tokens, body.pop(_OLDER, None))
    if least is None:
        return {}
    client = getattr(model, "root_client", None)
    address = getattr(client, "base_url", None) or model.openai_api_base
    sent = _name_sent(str(address or ""), refused)
    newer = None
    if sent == _NEWER:
        newer = least
    elif sent == _OLDER:
        body[_OLDER] = least
    return {"max_tokens": newer, "extra_body": body or None}


def _least(*limits: object) -> int | None:
    """Return the smallest of the limits that are numbers of tokens."""
    given = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(given, default=None)


def _name_sent(url: str, refused: Collection[str]) -> str:
    """Return the name by which a request to an address limits its reply; "" where both are refused."""
    names = OPENAI_LIMITS
    if not is_openai(url):
        names = OPENAI_LIMITS[::-1]
    for name in names:
        if name not in refused:
            return name
    return ""


def is_openai(url: str) -> bool:
    """Return whether an address is OpenAI's own."""
    host = urlsplit(url).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")


def longest_reply(model: Any) -> int | None:
    """Return the most tokens that requests of a chat model allow a reply; None for any number."""
    stated = []
    for one in chat_models_in(model):
        body = getattr(one, "extra_body", None) or {}
        stated += [getattr(one, name, None) for name in _FIELDS]
        stated += [body.get(name) for name in OPENAI_LIMITS]
    limits = [limit for limit in stated if isinstance(limit, int)]
    return max(limits, default=None)


def limits_sent(model: Any) -> set[str]:
    """Return the names by which requests of a chat model limit their replies, of those in OpenAI's protocol."""
    names: set[str] = set()
    for one in chat_models_in(model):
        names.update(_limits_of(one))
    return names


def _limits_of(model: Any) -> Iterator[str]:
    own = getattr(model, "max_tokens", None)
    name = getattr(model, "limit_name", "")
    if own and name:
        yield name
    elif _is_chat_openai(model):
        if own is not None:
            yield _NEWER
        if _OLDER in (model.extra_body or {}):
            yield _OLDER


def _is_chat_openai(model: Any) -> bool:
    return "ChatOpenAI" in class_names(model)

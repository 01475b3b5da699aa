"""Limits of a model's reply: by which field each provider takes them, and under which of two names OpenAI's servers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from ras_agent.tools.chat.runnables import changed, chat_models_in

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
    name = next((name for name in _FIELDS if name in fields), "")
    if not name:
        return model
    own = getattr(model, name)
    if "limit_name" in fields:  # the model of this package
        update = {
            "max_tokens": _least(most, own),
            "limit_name": _name_sent(model.base_url, refused),
        }
    elif _is_chat_openai(model):
        update = _openai_update(model, most, refused)
    else:
        least = _least(most, own)
        update = {name: least} if least else {}
    return model.model_copy(update=update) if update else model


def _openai_update(
    model: Any, most: int | None, refused: Collection[str]
) -> dict[str, Any]:
    """Return the fields by which ChatOpenAI limits its reply. It sends its own by the newer name, to any server."""
    body = dict(model.extra_body or {})
    least = _least(most, model.max_tokens, body.pop(_OLDER, None))
    if least is None:
        return {}
    client = getattr(model, "root_client", None)
    address = getattr(client, "base_url", None) or model.openai_api_base
    sent = _name_sent(str(address or ""), refused)
    if sent == _OLDER:
        body[_OLDER] = least
    return {"max_tokens": least if sent == _NEWER else None, "extra_body": body or None}


def _least(*limits: object) -> int | None:
    """Return the smallest of the limits that are numbers of tokens."""
    given = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(given, default=None)


def _name_sent(url: str, refused: Collection[str]) -> str:
    """Return the name by which a request to an address limits its reply; "" where both are refused."""
    return next((name for name in _names_at(url) if name not in refused), "")


@lru_cache(maxsize=256)
def _names_at(url: str) -> tuple[str, ...]:
    """Return the names of the limit in the order in which to try them at an address."""
    return OPENAI_LIMITS if is_openai(url) else OPENAI_LIMITS[::-1]


def is_openai(url: str) -> bool:
    """Return whether an address is OpenAI's own."""
    host = urlsplit(url).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")


def longest_reply(model: Any) -> int | None:
    """Return the most tokens that requests of a chat model allow a reply; None for any number."""
    stated = []
    for one in chat_models_in(model):
        stated += [getattr(one, name, None) for name in _FIELDS]
        body = getattr(one, "extra_body", None) or {}
        stated += [body.get(name) for name in OPENAI_LIMITS]
    return max((one for one in stated if isinstance(one, int)), default=None)


def limits_sent(model: Any) -> set[str]:
    """Return the names by which requests of a chat model limit their replies, of those in OpenAI's protocol."""
    return {name for one in chat_models_in(model) for name in _limits_of(one)}


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
    return any(base.__name__ == "ChatOpenAI" for base in type(model).__mro__)

"""Chat models by name: `provider:model` strings, what to call a model in a trace, and what must never be printed."""

from __future__ import annotations

import re
import sys
from typing import Any

__all__ = ["is_chat_model", "model_name", "printable"]

_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY = re.compile(r"\?[^#\s]*")


def is_chat_model(thing: object) -> bool:
    """Whether `thing` is a LangChain BaseChatModel. Without LangChain loaded nothing can be one."""
    module = sys.modules.get("langchain_core.language_models.chat_models")
    return module is not None and isinstance(thing, module.BaseChatModel)


def model_name(model: Any) -> str:
    """A name for traces: the provider's model name, else the class's."""
    for attribute in ("model_name", "model", "model_id"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return printable(value)
    return type(model).__name__


def printable(spec: str) -> str:
    """A role spec without the parts of a URL that may hold a secret: user info and query."""
    return _QUERY.sub("", _USERINFO.sub("", spec))

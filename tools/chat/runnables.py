"""Looks inside a runnable that plays a chat model: made by `with_fallbacks`, `bind`, `with_retry`, or a chain.

LangChain's wrappers hide the model that answers. Its name, endpoint, secrets and sampling are looked up here, in the
order in which the models are asked.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ras_agent.records import JSON

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def is_chat_model(thing: object) -> bool:
    """Return whether `thing` is a LangChain chat model, or a runnable that asks one.

    A function as a runnable counts too, and another library's runnable that binds tools, such as ART's; whatever these
    ask cannot be seen. Without LangChain loaded nothing is either.
    """
    known = _is(
        thing, "BaseChatModel", "RunnableLambda", "_ConfigurableModel"
    ) or plays_a_model(thing)
    return known or any(map(is_chat_model, _inner(thing)))


def plays_a_model(thing: object) -> bool:
    """Return whether `thing` is another library's runnable that stands for a chat model: it binds tools as one does."""
    own = type(thing).__module__.startswith(("langchain_core.", "langchain."))
    return (
        not own
        and _is(thing, "Runnable")
        and not _is(thing, "BaseChatModel")
        and hasattr(thing, "bind_tools")
    )


def chat_models_in(thing: object) -> tuple[Any, ...]:
    """Return the chat models that a runnable asks, the first choice first; () if it cannot be looked into.

    Of a configurable model it is the one that the running call's configuration names.
    """
    if _is(thing, "BaseChatModel"):
        return (thing,)
    return tuple(model for inner in _inner(thing) for model in chat_models_in(inner))


def is_plain(thing: object) -> bool:
    """Return whether one model answers whatever is asked: no fallback, no choice by configuration."""
    return not _is(
        thing, "RunnableWithFallbacks", "_ConfigurableModel", "DynamicRunnable"
    ) and all(map(is_plain, _inner(thing)))


def bound_arguments(thing: object) -> Iterator[JSON]:
    """Yield the arguments that `bind` has given to a runnable, the outermost first."""
    if _is(thing, "RunnableBindingBase") and (kwargs := getattr(thing, "kwargs", None)):
        yield kwargs
    for inner in _inner(thing):
        yield from bound_arguments(inner)


def retries_itself(thing: object) -> bool:
    """Return whether a model has retries of its own, on or off (`max_retries`, `with_retry`): its owner decided."""
    return (
        _is(thing, "RunnableRetry")
        or any(hasattr(model, "max_retries") for model in chat_models_in(thing))
        or any(map(retries_itself, _inner(thing)))
    )


def our_model(thing: Any) -> Any:
    """Return the model of this package that a runnable asks; None for others.

    It has no connections that belong to one event loop, its errors are named, and its server's list can be asked.
    """
    while _is(thing, "RunnableBindingBase"):
        thing = thing.bound
    return thing if getattr(type(thing), "in_any_loop", False) is True else None


Change = Callable[[Any], Any]


def changed(
    thing: Any,
    change: Change,
    bound: Callable[[JSON], JSON] = dict,
) -> Any:
    """Return a copy of a runnable in which `change` has replaced each chat model; parts that cannot be copied stay.

    bound: returns new arguments for those that are bound to a model.
    """
    if _is(thing, "BaseChatModel"):
        return change(thing)
    update: JSON = {}
    if _is(thing, "RunnableBindingBase"):
        update["kwargs"] = bound(thing.kwargs)
    fields = getattr(type(thing), "model_fields", {})
    for name in _PLACES:
        if name not in fields:
            continue
        value = getattr(thing, name, None)
        if isinstance(value, Mapping):
            update[name] = {
                key: changed(one, change, bound) for key, one in value.items()
            }
        elif isinstance(value, (list, tuple)):
            update[name] = [changed(one, change, bound) for one in value]
        elif value is not None:
            update[name] = changed(value, change, bound)
    return thing.model_copy(update=update) if update else thing


def described(thing: object, describe: Callable[[Any], JSON]) -> JSON:
    """Return JSON that identifies a runnable: the description of each model, and the wrappers around it.

    Bound arguments and the other steps of a chain are hashed, for they may hold a key.
    """
    if _is(thing, "BaseChatModel"):
        return dict(describe(thing))
    inner = [described(one, describe) for one in _inner(thing)]
    if _is(thing, "RunnableBindingBase"):
        about = inner[0]
        arguments = dict(getattr(thing, "kwargs", None) or {})
        if arguments:
            about["bound"] = [_digest(arguments), *about.get("bound", ())]
        return about
    if _is(thing, "_ConfigurableModel", "DynamicRunnable") and inner:
        return inner[0]
    name = type(thing).__name__
    if inner:
        return {"class": name, "inner": inner}
    return {"class": name, "is": _digest(thing)}


# where LangChain's wrappers hold their content: bindings and retries; fallbacks; chains; configurable fields
_PLACES = (
    "bound",
    "runnable",
    "fallbacks",
    "first",
    "middle",
    "last",
    "default",
    "alternatives",
)
_WRAPPERS = ("RunnableBindingBase", "RunnableWithFallbacks", "RunnableSequence")


def _inner(thing: object) -> tuple[Any, ...]:
    """Return the runnables that a wrapper of LangChain's asks, in order."""
    if _is(thing, "_ConfigurableModel", "DynamicRunnable"):
        return _configured(thing)
    if not _is(thing, *_WRAPPERS):
        return ()
    places = (thing.__dict__.get(name) for name in _PLACES)
    return tuple(one for value in places for one in _listed(value))


def _configured(thing: Any) -> tuple[Any, ...]:
    """Return the model that a configurable one is in the running call, then its alternatives; () if unknown."""
    try:
        if _is(thing, "_ConfigurableModel"):
            return (thing._model(),)
        from langchain_core.runnables.config import ensure_config

        now = thing.prepare(ensure_config())[0]
    except Exception:  # whatever a provider's class raises for a model without a name or a key; the call says it again
        return ()
    others = (thing.default, *_listed(getattr(thing, "alternatives", None)))
    return (now, *(one for one in others if one is not now and hasattr(one, "invoke")))


def _listed(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return tuple(value.values())
    if isinstance(value, (list, tuple)):
        return tuple(value)
    return (value,)


def class_names(thing: object) -> frozenset[str]:
    """Return the names of an object's class and of its bases, by which classes of packages that may be missing are known."""
    return frozenset(base.__name__ for base in type(thing).__mro__)


def _is(thing: object, *names: str) -> bool:
    """Return whether an object is of a class of LangChain, by its name: nothing is imported to find out."""
    kind: Any = type(thing)  # mypy takes no class for hashable
    return not _langchain_classes(kind).isdisjoint(names)


@lru_cache(maxsize=1024)
def _langchain_classes(kind: type) -> frozenset[str]:
    return frozenset(
        base.__name__
        for base in kind.__mro__
        if base.__module__.startswith(("langchain_core.", "langchain."))
    )


def _digest(value: object) -> str:
    """Return a hash of a value's own description, the same in every process."""
    try:
        from langchain_core.load import dumpd

        text = json.dumps(
            value if isinstance(value, dict) else dumpd(value),
            sort_keys=True,
            default=dumpd,
        )
    except (TypeError, ValueError):
        text = repr(value)
    return hashlib.sha256(_ADDRESS.sub("", text).encode()).hexdigest()[:16]

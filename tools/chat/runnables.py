"""Looks inside a runnable that acts as a chat model: one made by `with_fallbacks`, `bind` or `with_retry`, or a chain.

LangChain's wrappers hide the model that answers. This module finds the models inside, in the order in which they
are called, to read their names, endpoints, secrets and sampling parameters.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ras_agent.contracts.records import JSON

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def is_chat_model(thing: object) -> bool:
    """Return whether `thing` is a LangChain chat model, or a runnable that calls one.

    A function wrapped as a runnable counts, and so does another library's runnable that can bind tools, such as
    ART's, although the models inside these cannot be seen. LangChain is not imported: as long as it is not loaded,
    the result is False.
    """
    known = _is(
        thing, "BaseChatModel", "RunnableLambda", "_ConfigurableModel"
    ) or plays_a_model(thing)
    return known or any(map(is_chat_model, _inner(thing)))


def plays_a_model(thing: object) -> bool:
    """Return whether `thing` is another library's runnable that acts as a chat model: it can bind tools."""
    own = type(thing).__module__.startswith(("langchain_core.", "langchain."))
    return (
        not own
        and _is(thing, "Runnable")
        and not _is(thing, "BaseChatModel")
        and hasattr(thing, "bind_tools")
    )


def chat_models_in(thing: object) -> tuple[Any, ...]:
    """Return the chat models that a runnable calls, the first choice first; () if they cannot be seen.

    For a configurable model this is the model that the running call's configuration selects, then its alternatives.
    """
    if _is(thing, "BaseChatModel"):
        return (thing,)
    return tuple(model for inner in _inner(thing) for model in chat_models_in(inner))


def is_plain(thing: object) -> bool:
    """Return whether the same model answers every call: there are no fallbacks, and no choice by configuration."""
    return not _is(
        thing, "RunnableWithFallbacks", "_ConfigurableModel", "DynamicRunnable"
    ) and all(map(is_plain, _inner(thing)))


def bound_arguments(thing: object) -> Iterator[JSON]:
    """Yield the arguments that were bound to a runnable with `bind`, the outermost first."""
    if _is(thing, "RunnableBindingBase") and (kwargs := getattr(thing, "kwargs", None)):
        yield kwargs
    for inner in _inner(thing):
        yield from bound_arguments(inner)


def retries_itself(thing: object) -> bool:
    """Return whether a model has a retry mechanism (`max_retries`, `with_retry`), even if it is switched off."""
    return (
        _is(thing, "RunnableRetry")
        or any(hasattr(model, "max_retries") for model in chat_models_in(thing))
        or any(map(retries_itself, _inner(thing)))
    )


def our_model(thing: Any) -> Any:
    """Return the model of this package that a runnable calls; None if it is another package's.

    Such a model can be used from any event loop, raises errors of known classes, and can request its server's list
    of models.
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
    """Return a copy of a runnable in which `change` has replaced each chat model. Parts that cannot be copied are
    shared.

    Args:
        bound: takes the arguments that are bound to a model; returns new ones.
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
    """Return JSON that identifies a runnable: a description of each model, and of the wrappers around it.

    Bound arguments and the other steps of a chain are hashed, as they may contain a key.

    Args:
        describe: returns the description of a chat model.
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


# attributes in which LangChain's wrappers hold runnables: bindings and retries, fallbacks, chains, configurable fields
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
    """Return the runnables that a LangChain wrapper asks, in order; () for anything else."""
    if _is(thing, "_ConfigurableModel", "DynamicRunnable"):
        return _configured(thing)
    if not _is(thing, *_WRAPPERS):
        return ()
    places = (thing.__dict__.get(name) for name in _PLACES)
    return tuple(one for value in places for one in _listed(value))


def _configured(thing: Any) -> tuple[Any, ...]:
    """Return the model that the running call's configuration selects, then its alternatives; () if this fails."""
    try:
        if _is(thing, "_ConfigurableModel"):
            return (thing._model(),)
        from langchain_core.runnables.config import ensure_config

        now = thing.prepare(ensure_config())[0]
    except Exception:  # any error of a provider's class, as for a missing key; the call itself raises it again
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
    """Return the names of an object's class and its bases, to recognise classes that may not be installed."""
    return frozenset(base.__name__ for base in type(thing).__mro__)


def _is(thing: object, *names: str) -> bool:
    """Return whether an object's class has one of LangChain's class names, without importing LangChain."""
    kind: Any = type(thing)  # mypy does not accept classes as hashable
    return not _langchain_classes(kind).isdisjoint(names)


@lru_cache(maxsize=1024)
def _langchain_classes(kind: type) -> frozenset[str]:
    return frozenset(
        base.__name__
        for base in kind.__mro__
        if base.__module__.startswith(("langchain_core.", "langchain."))
    )


def _digest(value: object) -> str:
    """Return a hash of a value's content that is the same in every process."""
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

"""Registers retrievers, builds them by name over an index, and declares the options that they take.

A factory is called with an index, `make(index, **options)`. Callers may pass any of its options by name. Some
options are also passed by an agent's settings, by a mix and by evaluations, to each retriever that declares them:

    @takes("graph", "weights")
    def mine(index, *, graph=None, weights=None, depth=3): ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Protocol, TypeVar, runtime_checkable

from ras_agent.config.filters import Filter
from ras_agent.config.registry import find
from ras_agent.contracts.errors import UnknownName
from ras_agent.running.protocols import Retriever
from ras_agent.tools.index.store import PassageIndex

Factory = TypeVar("Factory", bound=Callable[..., Retriever])

OFFERED = ("graph", "linking", "mentions", "queries", "weights")
"""The options that are offered to factories which declare them.

graph: the index's knowledge graph, opened or already linked.
linking, mentions: how a query's names are found in the graph.
queries: the embedder of queries.
weights: the folder of a graph network's weights.
"""
_FILTERED = 8


def takes(*options: str) -> Callable[[Factory], Factory]:
    """Return a decorator that declares which of the options in OFFERED the factory of a retriever takes.

    Raises UnknownName for any other option, and TypeError if the factory has no parameter of that name.
    """

    def declared(factory: Factory) -> Factory:
        parameters = options_of(factory)
        for option in options:
            if option not in OFFERED:
                raise UnknownName(
                    "option that is offered to retrievers", option, OFFERED
                )
            if parameters is not None and option not in parameters:
                place = (
                    f"{factory.__module__}.{getattr(factory, '__qualname__', factory)}"
                )
                raise TypeError(
                    f"{place} declares the option {option!r} and has no parameter of that name: add the parameter, or "
                    f"correct @takes; its parameters are: {', '.join(sorted(parameters)) or '(no parameter)'}"
                )
        factory.takes = frozenset(options)  # type: ignore[attr-defined]
        return factory

    return declared


def taken_by(factory: object) -> frozenset[str]:
    """Return the options in OFFERED that a factory declares by `takes`."""
    taken: frozenset[str] = getattr(factory, "takes", frozenset())
    return taken


def options_of(factory: Callable[..., Any]) -> frozenset[str] | None:
    """Return the names of a factory's options: all its parameters but the index; None if it takes any keyword.

    A factory that is an object may list its options itself, in an attribute `options`.
    """
    options = getattr(factory, "options", None)
    if options is not None:
        return frozenset(options)
    parameters = inspect.signature(factory).parameters.values()
    _, *others = parameters
    kinds = {parameter.kind for parameter in parameters}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return None
    positional = inspect.Parameter.VAR_POSITIONAL
    return frozenset(
        parameter.name for parameter in others if parameter.kind is not positional
    )


def check_options(
    name: str, factory: Callable[..., Any], options: Iterable[str]
) -> None:
    """Raise UnknownName for an option that the factory of the retriever `name` does not take."""
    parameters = options_of(factory)
    if parameters is None:
        return
    for option in options:
        if option not in parameters:
            known = tuple(parameters) or ("none",)
            raise UnknownName(f"option of retriever {name!r}", option, known)


@runtime_checkable
class MakesRetrievers(Protocol):
    """Describes an index that builds its retrievers itself, such as one that combines several indexes."""

    def make_retriever(self, name: str, options: dict[str, Any]) -> Retriever:
        """Build the retriever with this name. Raises UnknownName for an unknown name or option."""
        ...


def retriever_over(
    index: PassageIndex, name: str = "bm25", **options: Any
) -> Retriever:
    """Build the retriever registered as `name` over the present state of an index; later changes are not seen.

    Raises UnknownName for an unknown name or option, and IndexMismatch if the index lacks vectors or a graph that
    the retriever needs.

    Args:
        options: passed to the retriever's factory.
    """
    if isinstance(index, MakesRetrievers):
        return index.make_retriever(name, options)
    factory = find("retriever", name)
    check_options(name, factory, options)
    retriever: Any = factory(index, **options)
    if hasattr(retriever, "filtered"):
        whole = index.within()

        def filtered(filter: Filter) -> Retriever:
            """Build the retriever over only the passages that a filter admits."""
            return retriever_over(whole.within(filter), name, **options)

        retriever.filtered = lru_cache(_FILTERED)(filtered)
    made: Retriever = retriever
    return made

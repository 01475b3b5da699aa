"""Lists the retrievers that an index supports, from which a model may choose one for each search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from ras_agent.running.protocols import Retriever
from ras_agent.tools.gfm.weights import same_encoder
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.registered import MakesRetrievers
from ras_agent.tools.retrieve.resolve import takes_option
from ras_agent.tools.retrieve.search import LiveRetriever

_OF_THE_GRAPH = ("ppr", "paths", "pcst", "kg-mix", "neighbours")
_PACKAGES = {"ppr": "scipy", "paths": "scipy", "pcst": "pcst_fast", "kg-mix": "scipy"}
_GFM_ENCODER = "minilm"  # the encoder of the packaged weights


def retrievers_of(index: object, *, has_weights: bool = False) -> tuple[str, ...]:
    """Return the names of the retrievers that can be built over `index`, given its vectors, its graph and installed
    packages.

    Args:
        index: an open PassageIndex. The result is empty for anything else, and for an index that combines several
            indexes, since these may support different retrievers.
        has_weights: whether the user gives weights of a graph network, so that "gfm" can be built for any encoder.
            Whether they fit the graph is only checked when they are loaded.
    """
    if not isinstance(index, PassageIndex) or isinstance(index, MakesRetrievers):
        return ()
    names = ["bm25"]
    if index.snapshot.manifest.embedder is not None:
        names.append("dense")
    if not KGIndex.exists(index):
        return tuple(names)
    for name in _OF_THE_GRAPH:
        if _is_installed(name):
            names.append(name)
    encoder = KGIndex.open(index).manifest.embedder
    if encoder and (has_weights or same_encoder(_GFM_ENCODER, encoder.name)):
        names.append("gfm")
    return tuple(names)


def _is_installed(name: str) -> bool:
    package = _PACKAGES.get(name)
    return package is None or find_spec(package) is not None


def choices_over(
    index: object,
    options: Mapping[str, Any],
    staged: Callable[[Retriever], Retriever],
) -> dict[str, Retriever]:
    """Return the retrievers named by `retrievers_of`, by name. Each one opens its part of the index at its first
    search.

    Args:
        index: as in `retrievers_of`.
        options: passed to each retriever that takes them.
        staged: wraps each retriever in the stages that every search has, such as a reranker.
    """
    retrievers: dict[str, Retriever] = {}
    for name in retrievers_of(index, has_weights="weights" in options):
        taken: dict[str, Any] = {}
        for key, value in options.items():
            if takes_option(name, key):
                taken[key] = value
        assert isinstance(index, PassageIndex)
        live = LiveRetriever(name, index, taken, at_once=False)
        retrievers[name] = staged(live)
    return retrievers

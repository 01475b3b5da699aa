"""Turns a name or an object that the user gives into a retriever."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any, cast

from ras_agent.config.address import Address
from ras_agent.config.registry import find
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import SettingsError
from ras_agent.running.protocols import Linker, Retriever
from ras_agent.text.languages import ENGLISH
from ras_agent.tools.index.chunk import DEFAULT_CHUNKING, Chunking
from ras_agent.tools.index.given import given_passages
from ras_agent.tools.index.language import check_language
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.retrieve.function_adapter import FunctionRetriever
from ras_agent.tools.retrieve.langchain_adapter import (
    LangChainRetriever,
    langchain_retriever,
)
from ras_agent.tools.retrieve.registered import taken_by
from ras_agent.tools.retrieve.search import LiveRetriever
from ras_agent.tools.retrieve.tool_adapter import ToolRetriever, is_langchain_tool

_USES = {
    "weights": "use a graph network, such as gfm or graph",
    "starts": "search a graph, such as gfm or ppr",
}


def resolve_retriever(spec: object, index: object = None, **options: Any) -> Retriever:
    """Return the retriever that `spec` describes.

    Args:
        spec: one of these:
            - a Retriever;
            - a function of the query;
            - a LangChain BaseRetriever or vector store;
            - a LangChain tool that takes a query, such as one of an MCP server;
            - a registered name ("bm25", "dense", "hybrid", entry points of `ras_agent.retriever`), built over
              `index` and following the index's commits;
            - a source without an index, "langchain:module:attribute", "sparql:https://host/path",
              "neo4j:bolt://host".
        index: an open index, the path or address of one, or texts, which are then indexed in memory (see
            `open_for`).
        options: passed to the factory of a registered name. For a path or texts, the option `embedder` names the
            embedder (see ras_agent.tools.embed.embedders.resolve_embedder).

    Raises:
        UnknownName: for a name that is not registered.
        SettingsError: for a name without an index.
        IndexNotFound, IndexMismatch: if the index does not exist, or does not fit the retriever.
        MissingExtra: if a package is not installed.
        TypeError: for an object that is not a retriever.
    """
    if isinstance(spec, str) and ":" in spec:
        source, _, address = spec.partition(":")
        make = find("source", source)
        return resolve_retriever(make(address))
    if isinstance(spec, str):
        find("retriever", spec)  # an unknown name is reported before an index is read
        if index is None:
            raise SettingsError(
                f"retriever {spec!r} needs an index: pass a PassageIndex, the path of an index, or texts"
            )
        if not isinstance(index, PassageIndex):
            index = open_for(spec, index, embedder=options.pop("embedder", None))
        return LiveRetriever(spec, cast(PassageIndex, index), options)
    if options:
        raise TypeError(
            f"{spec!r:.200} takes no options, since options are for retrievers given by name: leave out "
            f"{', '.join(options)}"
        )
    if is_langchain_tool(spec):
        return ToolRetriever(cast(Any, spec))
    langchain = langchain_retriever(spec)
    if langchain is not None:
        return LangChainRetriever(langchain)
    if isinstance(spec, Retriever) and not isinstance(spec, type):
        return spec
    if inspect.isroutine(spec) or isinstance(spec, partial):
        return FunctionRetriever(spec)
    raise TypeError(
        f"{spec!r:.200} is not a retriever: give a name, a function of the query, a LangChain retriever, vector store or "
        "tool, or an object with the method `retrieve(query, k)`"
    )


def open_for(
    spec: object,
    index: object,
    language: str | None = None,
    chunking: Chunking = DEFAULT_CHUNKING,
    embedder: object = None,
) -> Any:
    """Return an open index if `spec` is the name of a retriever that searches one; otherwise return `index` unchanged.

    Raises IndexMismatch if an index was made for another language.

    Args:
        index: an open index, the path or address of one, or texts (ras_agent.tools.index.given), which are cut by
            `chunking`, embedded by `embedder` if it is given, and indexed in memory.
        language: the language of the texts.
    """
    if not isinstance(spec, str) or ":" in spec or index is None:
        return index
    find("retriever", spec)  # an unknown name is reported before an index is read
    if isinstance(index, str | Path | Address):
        index = PassageIndex.open(index, embedder=embedder)
    if isinstance(index, PassageIndex):
        check_language(index, language)
        return index
    texts = given_passages(index, chunking)
    return PassageIndex.in_memory(
        texts, embedder, tokeniser=Tokeniser(language or ENGLISH)
    )


def retriever_options(
    settings: Settings, name: object = None, linker: Linker | None = None
) -> dict[str, Any]:
    """Return the options that the settings give to the retriever `name`; {} if `name` is an object.

    Raises SettingsError for a setting that this retriever does not use, and the errors of reading the file of
    starts.

    Args:
        name: a name or a retriever; by default the settings' own retriever.
        linker: the linker that the settings name, for retrievers that search a graph.
    """
    if name is None:
        name = settings.retriever
    is_named = isinstance(name, str)
    if linker is not None and not (is_named and takes_option(str(name), "linking")):
        raise SettingsError(
            f"--linker is for named retrievers that search a graph, such as gfm or ppr, not for {name!r:.80}: choose "
            "another --retriever, or leave --linker out"
        )
    if not isinstance(name, str):
        return {}
    options = graph_options(settings, linker)
    for setting, option in (("weights", "weights"), ("starts", "linking")):
        if option in options and not takes_option(name, option):
            raise SettingsError(
                f"--{setting} is for retrievers that {_USES[setting]}, not for {name!r}: choose another --retriever, "
                f"or leave --{setting} out"
            )
    return options


def graph_options(settings: Settings, linker: Linker | None = None) -> dict[str, Any]:
    """Return the options that the settings give to retrievers that search a graph: `weights` and `linking`.

    Raises the errors of reading the file of starts.
    """
    options: dict[str, Any] = {}
    if settings.weights:
        options["weights"] = settings.weights
    if settings.starts or linker is not None:
        from ras_agent.tools.kg.formats.gfm_questions import read_starts
        from ras_agent.tools.kg.link import Linking

        starts = None
        if settings.starts is not None:
            starts = read_starts(settings.starts)
        options["linking"] = Linking(starts=starts, linker=linker)
    return options


def takes_option(name: str, option: str) -> bool:
    """Return whether the retriever with this name declares that it takes an option. Raises UnknownName."""
    if ":" in name:
        return False
    return option in taken_by(find("retriever", name))


def reads_graph(name: str) -> bool:
    """Return whether the retriever with this name searches the index's knowledge graph. Raises UnknownName."""
    return takes_option(name, "graph")

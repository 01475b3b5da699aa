"""Finds plug-ins by name: one lazy table for each kind, extended by entry points and by `register`.

    planner, extractor, answerer,
    reasoner, rewriter, reranker, linker      a factory of the role: make(argument, options), see ras_agent.tools.roles
    encoder                                   make(argument), which returns a ras_agent.running.protocols.Embedder
    graph-encoder                             make(config), of ras_agent.tools.graph_tokens.encoders.EncoderConfig
    scorer                                    make(models, scorers), of ras_agent.tools.subgraph.scorers.resolve
    judge                                     make(), which returns a ras_agent.running.protocols.Judge
    store                                     a ras_agent.tools.store.database.Driver, by the scheme of its addresses
    attached                                  a ras_agent.tools.index.attached.Attached: data stored with passages
    retriever                                 a factory over an index: make(index, **options)
    tool                                      make(), which returns a LangChain tool that takes a query
    source                                    a retriever without an index, "NAME:ADDRESS": make(address)
    dialect                                   a ras_agent.tools.plan.dialects.Dialect
    loop                                      a ras_agent.graphs.registry.GraphSpec
    metric                                    see ras_agent.eval.metrics.registry
    benchmark                                 see ras_agent.eval.benchmarks.registry
    format                                    see ras_agent.eval.formats.registry

An installed package adds a plug-in through an entry point in the group `ras_agent.<kind>`; a script adds one through
`register`, and the command line runs such a script with `--plugin FILE`.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from traceback import extract_tb
from typing import Any, TypeVar

from ras_agent.contracts.errors import SettingsError, UnknownName

_Record = TypeVar("_Record")

PLUGINS: dict[str, dict[str, object]] = {
    "planner": {
        "offline": "ras_agent.tools.offline.roles:offline_planner",
        "llm": "ras_agent.tools.plan.llm:llm_planner",
        "graphllm": "ras_agent.tools.graph_tokens.roles:graphllm_planner",
    },
    "extractor": {
        "offline": "ras_agent.tools.offline.roles:offline_extractor",
        "llm": "ras_agent.tools.structure.llm:llm_extractor",
        "text2triple": "ras_agent.tools.structure.triple_model:text2triple",
        "text2triple-vllm": "ras_agent.tools.structure.triple_vllm:text2triple_vllm",
    },
    "answerer": {
        "offline": "ras_agent.tools.offline.roles:offline_answerer",
        "llm": "ras_agent.tools.answer.llm:llm_answerer",
        "graphllm": "ras_agent.tools.graph_tokens.roles:graphllm_answerer",
        "graphqa": "ras_agent.tools.graph_tokens.graph_answerer:graphqa_answerer",
    },
    "reasoner": {
        "offline": "ras_agent.tools.offline.roles:offline_reasoner",
        "llm": "ras_agent.tools.plan.llm_reasoner:llm_reasoner",
    },
    "rewriter": {
        "offline": "ras_agent.tools.offline.followup:offline_rewriter",
        "llm": "ras_agent.tools.plan.followup:llm_rewriter",
    },
    "reranker": {
        "ce": "ras_agent.tools.retrieve.rerank:cross_encoder",
        "http": "ras_agent.tools.retrieve.rerank_server:over_http",
        "https": "ras_agent.tools.retrieve.rerank_server:over_https",
        "llm": "ras_agent.tools.retrieve.rerank:llm_reranker",
    },
    "linker": {
        "llm": "ras_agent.tools.kg.llm_mentions:llm_linker",
        "facts": "ras_agent.tools.kg.fact_links:fact_linker",
    },
    "encoder": {"minilm": "ras_agent.tools.embed.minilm:minilm"},
    "graph-encoder": {
        "graph-transformer": "ras_agent.tools.graph_tokens.encoders:MessagePassing",
        "gat": "ras_agent.tools.graph_tokens.encoders:MessagePassing",
        "gcn": "ras_agent.tools.graph_tokens.encoders:MessagePassing",
    },
    "scorer": {
        "bm25": "ras_agent.tools.subgraph.scorers.resolve:bm25",
        "st": "ras_agent.tools.subgraph.scorers.resolve:sentence_encoder",
        "rerank": "ras_agent.tools.subgraph.scorers.resolve:cross_encoder",
        "st-ft": "ras_agent.tools.subgraph.scorers.resolve:tuned_encoder",
        "llm": "ras_agent.tools.subgraph.scorers.resolve:chat_model",
        "llm-ft": "ras_agent.tools.subgraph.scorers.resolve:tuned_chat_model",
        "kg": "ras_agent.tools.subgraph.scorers.resolve:graph_vectors",
    },
    "store": {
        "sqlite": "ras_agent.tools.store.sqlite:DRIVER",
        "postgresql": "ras_agent.tools.store.postgres:DRIVER",
        "postgres": "ras_agent.tools.store.postgres:DRIVER",
    },
    "attached": {"graph": "ras_agent.tools.kg.forget:ATTACHED"},
    "judge": {"offline": "ras_agent.tools.offline.roles:offline_judge"},
    "dialect": {
        "ras": "ras_agent.tools.plan.dialects:OWN",
        "search-r1": "ras_agent.tools.plan.dialects:SEARCH_R1",
        "r1-searcher": "ras_agent.tools.plan.dialects:R1_SEARCHER",
        "autorefine": "ras_agent.tools.plan.dialects:AUTOREFINE",
        "corag": "ras_agent.tools.plan.dialects:CORAG",
        "react": "ras_agent.tools.plan.dialects:REACT",
        "think-on-graph": "ras_agent.tools.plan.dialects:THINK_ON_GRAPH",
        "tool-json": "ras_agent.tools.plan.dialects:TOOL_JSON",
    },
    "retriever": {
        "bm25": "ras_agent.tools.retrieve.bm25:bm25",
        "dense": "ras_agent.tools.retrieve.dense:dense",
        "hybrid": "ras_agent.tools.retrieve.mix:hybrid",
        "kg-mix": "ras_agent.tools.retrieve.mix:kg_mix",
        "gfm": "ras_agent.tools.retrieve.gfm:gfm",
        "greasoner": "ras_agent.tools.retrieve.greasoner:greasoner",
        "ppr": "ras_agent.tools.retrieve.ppr:ppr",
        "pcst": "ras_agent.tools.retrieve.pcst:pcst",
        "paths": "ras_agent.tools.retrieve.paths:paths",
        "neighbours": "ras_agent.tools.retrieve.neighbours:neighbours",
    },
    "source": {
        "langchain": "ras_agent.tools.retrieve.langchain_adapter:named_object",
        "sparql": "ras_agent.tools.retrieve.sparql:sparql_retriever",
        "neo4j": "ras_agent.tools.retrieve.neo4j_graph:neo4j_retriever",
    },
    "tool": {},
    "loop": {
        "ras": "ras_agent.graphs.ras:RAS",
        "ircot": "ras_agent.graphs.ircot:IRCOT",
        "react": "ras_agent.graphs.react:REACT",
        "single-shot": "ras_agent.graphs.single_shot:SINGLE_SHOT",
    },
    # plug-ins of these kinds are registered in the modules that define them
    "metric": {},
    "benchmark": {},
    "format": {},
}
"""The plug-ins by kind and name: an object, or "module:attribute", which is imported when it is first needed."""

_JOINED = {"retriever": "ras_agent.tools.retrieve.mix:Mix"}
"""For kinds of plug-ins that can be combined by name, the class that makes "a+b" from a and b."""

_OLD_KINDS = {"graph": "loop"}
_OLD_NAMES = {("retriever", "graph"): "kg-mix"}
"""Names that are still accepted, with a warning, and the current name of each."""

_BUILT_IN = {kind: frozenset(table) for kind, table in PLUGINS.items()}
_NAME = re.compile(r"\w[\w.-]*")


def register(kind: str, name: str, plugin: object) -> None:
    """Add a plug-in under `name` in this process.

    Args:
        kind: The kind, such as "retriever"; see the table in the module's docstring.
        name: A word of letters, digits, '.', '_' and '-'. A second registration replaces the first, so that a
            notebook's cell can run twice.
        plugin: The object itself, or the place where it is imported from, "module:attribute".

    Raises:
        UnknownName: For an unknown kind.
        ValueError: For another form of name, or a name that is built in.
    """
    kind = _current_kind(kind)
    table = _table(kind)
    if name in _BUILT_IN[kind]:
        raise ValueError(f"{kind} {name!r} is built in: register yours by another name")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"a {kind}'s name is a word of letters, digits, '.', '_' and '-', got {name!r}"
        )
    table[name] = plugin


def run_plugin_file(path: Path) -> None:
    """Run a Python file that registers plug-ins. A second call with the same file does nothing.

    Raises:
        SettingsError: for a file that cannot be read or that fails; the message names the line.
    """
    name = f"ras_agent_plugin_{path.stem}"
    place = str(path.resolve())
    before = sys.modules.get(name)
    if before is not None and before.__file__ == place:
        return
    spec = spec_from_file_location(name, place)
    if spec is None or spec.loader is None or not path.is_file():
        raise SettingsError(
            f"--plugin: the Python file {str(path)!r} does not exist; correct the path"
        )
    module = module_from_spec(spec)
    # dataclasses and pickle look up the module of a class
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        lines = [
            at.lineno for at in extract_tb(error.__traceback__) if at.filename == place
        ]
        where = f" line {lines[-1]}" if lines else ""
        message = f"--plugin: {path}{where}: {type(error).__name__}: {error}"
        raise SettingsError(message) from error


def current_name(kind: str, name: str) -> str:
    """Return `name` with old names replaced by the current ones, also inside a mix "a+b". Warns of old names."""
    parts = []
    for part in name.split("+"):
        today = _OLD_NAMES.get((kind, part), part)
        if today != part and part not in _table(kind):
            warn_of_old_name(f"{kind} {part!r}", today)
            part = today
        parts.append(part)
    return "+".join(parts)


def warn_of_old_name(old: str, new: str) -> None:
    """Warn that `old` is now called `new`."""
    warnings.warn(
        f"{old} is called {new} now: write {new}", FutureWarning, stacklevel=3
    )


def _current_kind(kind: str) -> str:
    today = _OLD_KINDS.get(kind, kind)
    if today != kind:
        warn_of_old_name(f"the kind of plug-in {kind!r}", today)
    return today


def import_modules_of(package: str) -> None:
    """Import every module of a package, so that the plug-ins defined there register themselves."""
    for module in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")


def entry_points(**selected: str) -> Any:
    """Return the entry points of installed packages that match `selected`, as `importlib.metadata.entry_points`
    does.

    Reading them takes about 20 ms, because each installed package has its own file, and roles look up names in
    every run. So results are cached until the search path or the modification time of one of its folders
    changes, as when a package is installed.
    """
    search_path = tuple((folder, _changed(folder)) for folder in sys.path)
    return _selected(search_path, tuple(selected.items()))


@lru_cache(maxsize=1)
def _entry_points(path: tuple[tuple[str, int], ...]) -> Any:
    from importlib import metadata  # imports the e-mail modules

    return metadata.entry_points()


@lru_cache(maxsize=64)
def _selected(
    path: tuple[tuple[str, int], ...], selected: tuple[tuple[str, str], ...]
) -> Any:
    return _entry_points(path).select(**dict(selected))


def _changed(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:  # a search path may name missing folders
        return 0


def names(kind: str) -> tuple[str, ...]:
    """Return all names of plug-ins of a kind: built in, registered, and installed as entry points."""
    kind = _current_kind(kind)
    installed = [entry.name for entry in _installed(kind)]
    return tuple(dict.fromkeys([*_table(kind), *installed]))


def is_registered(kind: str, name: str) -> bool:
    """Tell whether a kind has a plug-in of this name, without importing it. A mix "a+b" counts if a and b are
    registered.
    """
    kind = _current_kind(kind)
    name = current_name(kind, name)
    if kind in _JOINED and "+" in name:
        return all(is_registered(kind, part) for part in name.split("+"))
    return name in _table(kind) or bool(_installed(kind, name=name))


def find(kind: str, name: str) -> Any:
    """Return the plug-in of this kind and name. Raises UnknownName, which lists the registered names."""
    kind = _current_kind(kind)
    name = current_name(kind, name)
    plugin = _table(kind).get(name)
    if isinstance(plugin, str):
        return _import(plugin)
    if plugin is not None:
        return plugin
    for entry in _installed(kind, name=name):
        return entry.load()
    if is_registered(kind, name):
        join = _import(_JOINED[kind])
        return join(name.split("+"))
    known = list(names(kind))
    if kind in _JOINED:
        mix = "+".join(known[:2])
        known.append(f"mixes of them such as {mix!r}")
    raise UnknownName(kind, name, tuple(known))


def find_a(record: type[_Record], kind: str, name: str) -> _Record:
    """Return the plug-in of this kind and name, which has to be an instance of the class `record`.

    Raises UnknownName, and TypeError for an instance of another class.
    """
    plugin = find(kind, name)
    if not isinstance(plugin, record):
        raise TypeError(
            f"{kind} {name!r} must be a {record.__module__}.{record.__qualname__}, got {plugin!r:.200}"
        )
    return plugin


def _installed(kind: str, **selected: str) -> list[Any]:
    """Return the entry points of a kind of plug-in, including those under the kind's old name."""
    groups = [kind]
    groups += [old for old, today in _OLD_KINDS.items() if today == kind]
    found: list[Any] = []
    for group in groups:
        found += entry_points(group=f"ras_agent.{group}", **selected)
    return found


def _import(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _table(kind: str) -> dict[str, object]:
    if kind not in PLUGINS:
        raise UnknownName("kind of plug-in", kind, tuple(PLUGINS))
    return PLUGINS[kind]


def check_call(
    kind: str, name: str, plugin: Callable[..., Any], **arguments: object
) -> None:
    """Raise TypeError if a plug-in cannot be called with these arguments by position. The message shows their
    names.
    """
    try:
        inspect.signature(plugin).bind(*arguments.values())
    except TypeError as error:
        form = f"({', '.join(arguments)})"
        raise TypeError(
            f"the {kind} {name!r} is called as {form}, but {plugin!r:.200} does not accept these arguments ({error}): "
            f"give it the parameters {form}"
        ) from None

"""Imports point one way: core <- prompts <- tools <- graphs <- eval <- gym <- train, app.

Inside tools: the foundations and `retrieve`, `plan`, `structure`, `answer` know nothing of each other's stages, neither
by imports nor by the names of the registry. Two rooms stand on both: GraphLLM, a model for two stages, and the offline
mode, a system of its own, which the registry names in strings, and which only training imports.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from ras_agent.config.registry import PLUGINS

ROOT = Path(__file__).resolve().parent.parent
CORE = ("text", "contracts", "question_graph", "running", "config", "page")
"""The rooms of the core, each of which imports only those before it"""
DRAWN_BY_THE_PAGE = ("running.trace", "page.notebook")
"""A trace shows itself in a notebook as the page draws it: imported only when it is shown"""
LAYERS = ("core", "prompts", "tools", "graphs", "eval", "gym", "train", "app")
PROGRAMS_OF_TESTING = {"testing.cassettes", "testing.plugin"}
"""What tests of agents load, which runs models as the command line does; the rest of testing is of the core"""
FOUNDATIONS = {
    "store",
    "index",
    "kg",
    "gfm",
    "chat",
    "embed",
    "workers",
    "subgraph",
    "roles",
}
STAGES = {"plan", "retrieve", "structure", "answer"}
ON_STAGES = {"graph_tokens", "offline"}
MAY_RESOLVE = {"roles", "subgraph", "embed", "index", "graph_tokens", "store"} | STAGES
"""Parts of tools that may look for a plug-in in the registry, or resolve a role, which does so; subgraph looks for scorers,
embed and graph_tokens for encoders and store for its drivers, which are their own, and index for what hangs on passages,
which is of foundations"""
MAY_IMPORT_OFFLINE = {"tools.offline", "train"}


def _name_of(path: Path) -> str:
    """Return the dotted name below `ras_agent` of a source file, "" for the package itself."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "ras_agent" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _sources() -> dict[str, ast.Module]:
    """Parse every source file, by its name; once, and not where only other tests are asked for."""
    return {
        _name_of(path): ast.parse(path.read_text("utf-8"))
        for folder in ("ras_agent", "prompts", "tools", "graphs", "eval")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if folder != "ras_agent"
        or not any(parent.is_symlink() for parent in path.parents)
    }


@cache
def _is_package(name: str) -> bool:
    return any(other.startswith(f"{name}.") for other in _sources())


def _imports(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of this package that a file imports anywhere, also in functions and only for types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from filter(
                None, (_module_of(alias.name, "") for alias in node.names)
            )
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from filter(
                None, (_module_of(node.module, alias.name) for alias in node.names)
            )


def _module_of(module: str, name: str) -> str:
    """Return the module below `ras_agent` that defines `name`; a package's re-exports are followed to their source."""
    package, _, inside = module.partition(".")
    if package != "ras_agent":
        return ""
    if (deeper := f"{inside}.{name}".strip(".")) in _sources():
        return deeper
    for node in _sources()[inside].body if inside and _is_package(inside) else ():
        if isinstance(node, ast.ImportFrom) and any(
            alias.name == name for alias in node.names
        ):
            return _module_of(node.module or "", name)
    return inside


@cache
def _imports_by_module() -> dict[str, set[str]]:
    return {name: set(_imports(tree)) - {name} for name, tree in _sources().items()}


def _layer(module: str) -> int:
    if module in PROGRAMS_OF_TESTING:
        return LAYERS.index("app")
    first = module.partition(".")[0]
    return LAYERS.index(first) if first in LAYERS else 0


def _part(module: str) -> str:
    """Return the folder of `tools` that a module is in, or its own name where it is in none."""
    return module.split(".")[1] if module.startswith("tools.") else ""


def _resolves(tree: ast.Module) -> list[str]:
    """List the functions that a file imports by which a name of the registry becomes a plug-in."""
    return [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if node.module == "ras_agent.config.registry"
        or (
            node.module == "ras_agent.tools.roles" and alias.name.startswith("resolve_")
        )
    ]


def _broken(rule: str, pairs: Iterator[tuple[str, str]]) -> str:
    return "".join(
        f"\n{rule}: {importer} imports {imported}"
        for importer, imported in sorted(pairs)
    )


def _all_imports() -> Iterator[tuple[str, str]]:
    return (
        (importer, imported)
        for importer, names in _imports_by_module().items()
        if importer
        for imported in names
    )


def test_no_module_imports_a_later_layer() -> None:
    wrong = (pair for pair in _all_imports() if _layer(pair[0]) < _layer(pair[1]))
    assert not _broken("a layer is below", wrong)


def test_no_room_of_the_core_imports_a_later_one() -> None:
    def room(module: str) -> int:
        name = module.partition(".")[0]
        return CORE.index(name) if name in CORE else -1

    wrong = {
        (importer, imported)
        for importer, imported in _all_imports()
        if 0 <= room(importer) < room(imported)
    }
    assert not _broken("a room is below", iter(wrong - {DRAWN_BY_THE_PAGE}))


def test_every_folder_is_in_a_list() -> None:
    tops = {
        name.partition(".")[0]
        for name in _sources()
        if _is_package(name.partition(".")[0])
    }
    # of the core
    assert tops - set(LAYERS) == {*CORE, "testing"}
    assert {_part(name) for name in _sources()} - {
        ""
    } == FOUNDATIONS | STAGES | ON_STAGES


def test_no_foundation_reaches_a_stage_by_its_name() -> None:
    reaching = {
        f"{module}: {name}"
        for module, tree in _sources().items()
        if _part(module) and _part(module) not in MAY_RESOLVE
        for name in _resolves(tree)
    }
    assert not reaching


def test_what_foundations_look_for_is_of_foundations() -> None:
    for kind, part in (
        ("scorer", "subgraph"),
        ("encoder", "embed"),
        ("graph-encoder", "graph_tokens"),
        ("attached", "kg"),
        ("store", "store"),
    ):
        for place in PLUGINS[kind].values():
            assert str(place).startswith(f"ras_agent.tools.{part}.")


def test_what_stands_on_stages_is_imported_by_none_of_them() -> None:
    def reaches_up(importer: str, imported: str) -> bool:
        return _part(importer) in FOUNDATIONS | STAGES and _part(imported) in ON_STAGES

    assert not _broken(
        "a stage needs no room above it",
        (pair for pair in _all_imports() if reaches_up(*pair)),
    )


def test_stages_import_neither_each_other_nor_are_they_imported_by_foundations() -> (
    None
):
    def crosses(importer: str, imported: str) -> bool:
        here, there = _part(importer), _part(imported)
        return here in FOUNDATIONS | STAGES and there in STAGES - {here}

    assert not _broken(
        "a stage is apart", (pair for pair in _all_imports() if crosses(*pair))
    )


def test_the_index_imports_nothing_of_its_graph() -> None:
    known = {
        (importer, imported)
        for importer, imported in _all_imports()
        if _part(importer) in ("store", "index")
    }
    assert not {pair for pair in known if _part(pair[1]) == "kg"}


def test_the_offline_mode_needs_only_foundations_and_only_training_imports_it() -> None:
    def reaches_in(importer: str, imported: str) -> bool:
        return _part(imported) == "offline" and not any(
            importer == name or importer.startswith(f"{name}.")
            for name in MAY_IMPORT_OFFLINE
        )

    def reaches_out(importer: str, imported: str) -> bool:
        return (
            _part(importer) == "offline"
            and bool(_part(imported))
            and _part(imported) not in {"offline", *FOUNDATIONS}
        )

    assert not _broken(
        "offline is removable", (pair for pair in _all_imports() if reaches_in(*pair))
    )
    assert not _broken(
        "offline needs no stage",
        (pair for pair in _all_imports() if reaches_out(*pair)),
    )


def test_there_is_no_circle_also_none_for_types() -> None:
    try:
        TopologicalSorter(
            {name: names for name, names in _imports_by_module().items() if name}
        ).prepare()
    except CycleError as error:
        raise AssertionError(" <- ".join(error.args[1])) from None


def test_importing_the_package_pulls_in_nothing_heavy() -> None:
    code = (
        "import sys, ras_agent, ras_agent.contracts.records, ras_agent.running.protocols, ras_agent.question_graph; "
        "heavy = ('torch', 'langgraph', 'langchain', 'faiss', 'sentence_transformers', 'bm25s'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[]"

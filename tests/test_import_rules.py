"""Imports point one way: core <- prompts <- tools <- graphs <- eval <- train, app."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("core", "prompts", "tools", "graphs", "eval", "train", "app")
STAGES = {"plan", "retrieve", "subgraph", "structure", "answer"}
FOLDERS = ("ras_agent", "prompts", "tools", "graphs", "eval")
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def _module(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[1:] if parts[0] == "ras_agent" else parts


def _layer(module: tuple[str, ...]) -> str:
    return module[0] if module and module[0] in LAYERS else "core"


def _imports(path: Path) -> Iterator[tuple[str, ...]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] == "ras_agent":
                yield tuple(name.split(".")[1:])


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_imports_a_later_layer(path: Path) -> None:
    if path == ROOT / "ras_agent" / "__init__.py":
        return  # offers the graph factories lazily and holds nothing else
    own = LAYERS.index(_layer(_module(path)))
    later = [".".join(name) for name in _imports(path) if name and LAYERS.index(_layer(name)) > own]
    assert not later


@pytest.mark.parametrize("path", [path for path in SOURCES if _module(path)[0] == "tools"], ids=lambda path: path.name)
def test_the_stages_do_not_import_each_other(path: Path) -> None:
    module = _module(path)
    stage = module[1] if len(module) > 2 else ""
    others = {name[1] for name in _imports(path) if len(name) > 1 and name[0] == "tools"} & STAGES - {stage}
    if stage in STAGES or stage in {"index", "encode"}:
        assert not others


def test_importing_the_package_pulls_in_nothing_heavy() -> None:
    code = (
        "import sys, ras_agent, ras_agent.records, ras_agent.protocols, ras_agent.question_graph; "
        "heavy = ('torch', 'langgraph', 'langchain', 'faiss', 'sentence_transformers', 'bm25s'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"

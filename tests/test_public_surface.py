"""`from ras_agent import ...`: every public name is there, for people, for type checkers, and only when it is used."""

import ast
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import ras_agent

PUBLIC = {
    "Answer", "Hit", "KGIndex", "Limits", "Passage", "PassageIndex", "Plan", "QuestionGraph", "RasError", "Settings",
    "Trace", "Triple", "aopen_checkpointer", "build_graph", "create_ircot_agent", "create_ras_agent",
    "create_react_agent", "create_single_shot_agent", "open_checkpointer", "record_call", "register", "retriever_over",
}  # fmt: skip
STUB = Path(ras_agent.__file__).with_suffix(".pyi")
PACKAGES = [
    name
    for _, name, is_package in pkgutil.walk_packages(ras_agent.__path__, "ras_agent.")
    if is_package
]


def test_the_public_names_are_those_of_the_stub_that_type_checkers_read() -> None:
    imports = [
        node
        for node in ast.parse(STUB.read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom)
    ]
    # "X as X" makes a name of a stub public
    assert {alias.asname for node in imports for alias in node.names} == PUBLIC
    assert set(ras_agent.__all__) == PUBLIC
    assert set(dir(ras_agent)) == PUBLIC | {"__version__"}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_is_the_object_of_its_module(name: str) -> None:
    found = getattr(ras_agent, name)
    assert getattr(import_module(found.__module__), found.__name__) is found


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(
        AttributeError, match="module 'ras_agent' has no attribute 'create_agent'"
    ):
        ras_agent.create_agent  # type: ignore[attr-defined]  # noqa: B018


def test_light_names_load_neither_langgraph_nor_torch() -> None:
    code = (
        "import sys; from ras_agent import Hit, Limits, Passage, QuestionGraph, RasError, Settings, Trace, Triple; "
        "heavy = ('torch', 'langgraph', 'langchain_core', 'faiss'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folder_has_every_name_that_it_lists_as_public(package: str) -> None:
    folder = import_module(package)
    assert folder.__doc__
    assert [
        name for name in getattr(folder, "__all__", ()) if not hasattr(folder, name)
    ] == []

"""The lists of files to mutate and of mutants that nobody can notice name parts of the code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.targets import TESTS

ROOT = Path(__file__).resolve().parents[2]


def _names(test_file: Path) -> set[str]:
    """Return the classes and functions of a test file, a class's dotted as pytest does."""
    names: set[str] = set()
    for node in ast.parse(test_file.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}::{part.name}"
                for part in node.body
                if isinstance(part, ast.FunctionDef)
            }
    return names


@pytest.mark.parametrize("path", TESTS)
def test_a_file_to_mutate_and_the_tests_that_are_to_notice_are_there(path: str) -> None:
    assert (ROOT / path).is_file()
    for test in TESTS[path]:
        file, _, name = test.partition("::")
        assert (ROOT / file).exists(), test
        assert not name or name in _names(ROOT / file), test


@pytest.mark.parametrize("path", EQUIVALENT)
def test_a_mutant_that_nobody_can_notice_changes_lines_that_are_there(
    path: str,
) -> None:
    assert path in TESTS
    # a mutant names the lines that it changes as one, without their indentation
    lines = "\n".join(
        ["", *map(str.strip, (ROOT / path).read_text("utf-8").splitlines()), ""]
    )
    gone = [
        old for old, _ in EQUIVALENT[path] if f" {old} " not in lines.replace("\n", " ")
    ]
    assert gone == []


def test_a_mutant_differs_from_what_it_is_made_of() -> None:
    assert [
        old for mutants in EQUIVALENT.values() for old, new in mutants if old == new
    ] == []

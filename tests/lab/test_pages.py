"""Pages of experiments say the question, the method and the decision; their links lead to files that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAB = sorted(page for page in (ROOT / "lab").glob("*.md") if page.name != "README.md")
PAGES = [
    *LAB,
    ROOT / "lab/README.md",
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", LAB, ids=lambda page: page.name)
def test_an_experiment_says_its_question_its_command_and_what_it_decided(
    page: Path,
) -> None:
    text = page.read_text("utf-8")
    for part in ("Question", "Command", "Decided"):
        assert re.search(rf"^\*\*{part}\.\*\* \S.*[.?`]$", text, re.MULTILINE), (
            f"{page.name} has no line **{part}.**"
        )
    assert f"({page.name})" in (ROOT / "lab/README.md").read_text("utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    targets = {
        target.partition("#")[0]
        for target in _LINK.findall(_CODE.sub("", page.read_text("utf-8")))
    }
    files = {
        target
        for target in targets
        if target and "://" not in target and not target.startswith("mailto:")
    }
    assert [
        target for target in sorted(files) if not (page.parent / target).exists()
    ] == []


def test_what_the_page_for_readers_of_the_code_names_is_there() -> None:
    page = (ROOT / "docs/read-the-code.md").read_text("utf-8")
    rows = re.findall(
        r"^\| \[[^]]+\]\(\.\./([^)]+)\) \| ([^|]+) \|", page, re.MULTILINE
    )
    assert len(rows) == 12
    for file, names in rows:
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        defined = {
            node.name
            for node in tree.body
            if isinstance(node, ast.ClassDef | ast.FunctionDef)
        }
        assert set(re.findall(r"`(\w+)`", names)) <= defined, file

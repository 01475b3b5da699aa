"""Fixtures for tests of the apps."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PASSAGES = [
    {
        "id": "tel",
        "title": "Telephone",
        "text": "The telephone was patented by Alexander Graham Bell in 1876.",
    },
    {
        "id": "bell",
        "title": "Alexander Graham Bell",
        "text": "Alexander Graham Bell was born in Edinburgh.",
    },
    {
        "id": "leith",
        "title": "Water of Leith",
        "text": "The Water of Leith is a river that flows through Edinburgh.",
    },
    {"id": "paris", "title": "Paris", "text": "Paris is the capital of France."},
]


@pytest.fixture
def passages_file(tmp_path: Path) -> Path:
    """Four passages about a telephone, its inventor, his city's river, and another city."""
    path = tmp_path / "wiki.jsonl"
    path.write_text("".join(json.dumps(passage) + "\n" for passage in PASSAGES))
    return path


@pytest.fixture
def bell_index(passages_file: Path, tmp_path: Path) -> Path:
    """An index of those passages."""
    from ras_agent.tools.index.ingest import ingest

    ingest([passages_file], tmp_path / "bell.index")
    return tmp_path / "bell.index"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """`cli("ask", "Who?", ...)`: the command line, 80 columns wide, without the settings of this machine."""
    from typer.testing import CliRunner

    from ras_agent.app.cli import build_program

    for name in os.environ:
        if name.startswith("RAS_AGENT_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    program = build_program()
    return lambda *arguments: CliRunner().invoke(
        program, [str(argument) for argument in arguments]
    )

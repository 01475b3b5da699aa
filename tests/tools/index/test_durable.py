"""Files that are whole or not there: what is on the disk, and in which order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ras_agent.tools.index.durable import replace_file


def test_a_file_is_on_the_disk_before_it_takes_its_name_and_its_name_before_the_call_ends(
    tmp_path: Path, disk_order: list[str]
) -> None:
    replace_file(tmp_path / "a.json", b"new")
    assert disk_order == ["a.json.new", "a.json replaced", "."]


def test_all_of_the_content_is_there_when_it_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda handle: found.extend(path.read_bytes() for path in tmp_path.glob("*.new")))
    replace_file(tmp_path / "a.json", b"new")
    assert found == [b"new"]
    assert (tmp_path / "a.json").read_bytes() == b"new"

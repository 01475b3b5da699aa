"""The parts that tests of files that survive a crash share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def disk_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List, as they come, each file or folder of `tmp_path` that is synced, and "NAME replaced" for a replacement."""
    if sys.platform == "win32":
        pytest.skip("folders are not synced there")
    order: list[str] = []
    fsync, put = os.fsync, os.replace

    def synced(handle: int) -> None:
        number = os.fstat(handle).st_ino
        (found,) = (
            path
            for path in (tmp_path, *tmp_path.rglob("*"))
            if path.stat().st_ino == number
        )
        order.append(str(found.relative_to(tmp_path)))
        fsync(handle)

    def replaced(old: Path, new: Path) -> None:
        order.append(f"{new.name} replaced")
        put(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    return order

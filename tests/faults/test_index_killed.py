"""Attacks on writing an index: killed, or out of disk space, at each file operation."""

from __future__ import annotations

from pathlib import Path

import pytest

from ras_agent.tools.index import ingest as runs
from ras_agent.tools.index import segment
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from tests.faults.attack import Attack
from tests.faults.interruptions import run


def _write(folder: Path, number: int) -> None:
    folder.mkdir()
    for name in range(number):
        (folder / f"f{name}.txt").write_text(
            f"Text {name} is about rivers, towns and many other things."
        )


@pytest.mark.parametrize(
    "batch", [128, 6], ids=["one write", "several writes and segments"]
)
def test_a_first_index_run(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """kill -9 a first `index` at each file operation: the rerun ends with every passage."""
    monkeypatch.setattr(runs, "FIRST_BATCH", batch)
    monkeypatch.setattr(segment, "SAVED_FROM", batch)
    _write(docs := tmp_path / "docs", 20)
    whole = run(lambda: ingest([docs], tmp_path / "whole"))
    assert not whole.error
    for number in range(whole.operations):
        out = tmp_path / f"out-{number}"
        run(lambda out=out: ingest([docs], out), kill_at=number)  # type: ignore[misc]
        ingest([docs], out)
        attack.expect(len(PassageIndex.open(out)) == 20, f"operation {number}")

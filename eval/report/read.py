"""Run folders as a report reads them, whether their runs have ended or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ras_agent.errors import RunError
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.result import Result

__all__ = ["Run", "load_runs"]


@dataclass(frozen=True, slots=True)
class Run:
    """A run: its name (no two in a report are alike), what was asked of whom, and what has ended so far."""

    name: str
    manifest: Mapping[str, Any]
    results: tuple[Result, ...]

    @property
    def by_id(self) -> dict[str, Result]:
        return {result.id: result for result in self.results}


def load_runs(folders: Sequence[Path], *, traces: bool = True) -> list[Run]:
    """The runs in `folders`; those of one name are told apart by a number. Without `traces` these are left out.

    Raises RunError for a folder that holds no run, a line that is no result, or a run without any result yet.
    """
    runs: list[Run] = []
    for path in folders:
        folder = RunFolder(path)
        manifest = folder.manifest()
        # by id: should a question stand there twice, the later result holds
        results = {one.id: one if traces else replace(one, trace=None) for one in folder.results()}
        if not results:
            raise RunError(f"{folder.results_path}: no question has ended yet; run it with `ras-agent eval`")
        own = str(manifest.get("name") or path.resolve().name)
        names, name, number = {run.name for run in runs}, own, 2
        while name in names:
            name, number = f"{own} ({number})", number + 1
        runs.append(Run(name, manifest, tuple(results.values())))
    return runs

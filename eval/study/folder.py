"""A study on disk: a folder of runs that differ in what is studied, and what they were compared in.

study.json       which study, which runs, what did not apply
runs/NAME/       a run each (see ras_agent.eval.run.folder), resumed as any run
replies.sqlite   model replies, shared: what two runs ask alike is asked once
tables.md        the comparison; tables.json holds the same figures, *.svg the pictures
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from ras_agent.errors import RunError
from ras_agent.eval.run.folder import RunFolder
from ras_agent.records import JSON
from ras_agent.tools.index.durable import replace_file

__all__ = ["SCHEMA", "VERSION", "LeftOut", "StudyFolder", "folder_names"]

SCHEMA, VERSION = "ras-agent/study", 1


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run that a study would have, and why it has none."""

    name: str
    why: str


class StudyFolder:
    """A study's folder."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def study_path(self) -> Path:
        return self.path / "study.json"

    @property
    def replies_path(self) -> Path:
        return self.path / "replies.sqlite"

    @classmethod
    def begin(
        cls,
        path: str | Path,
        study: str,
        runs: Mapping[str, Mapping[str, Any]],
        left_out: Sequence[LeftOut] = (),
        **told: Any,
    ) -> Self:
        """The folder of a new study, or of one of the same kind that was begun there; study.json lists the runs anew.

        runs: each run's name with what it changes. told: what else study.json says, such as benchmark and data. Whether
        a run may be resumed is its own manifest's business. Raises RunError for a folder that holds another study, or
        no study.
        """
        folder = cls(path)
        if folder.study_path.exists():
            begun = folder.study()
            if begun.get("study") != study:
                raise RunError(
                    f"{folder.path} holds the study {begun.get('study')!r}, not {study!r}; name another folder"
                )
        elif folder.path.is_dir() and any(folder.path.iterdir()):
            raise RunError(f"{folder.path} holds files but no study.json: it is no study; name another folder")
        else:
            begun = {"started": datetime.now(UTC).isoformat(timespec="seconds")}
        places = folder_names(runs)
        listed = [{"name": name, "folder": f"runs/{places[name]}", "variant": dict(runs[name])} for name in runs]
        folder.write_json(
            "study.json",
            {
                "schema": SCHEMA,
                "version": VERSION,
                "study": study,
                **told,
                "runs": listed,
                "left_out": [{"name": one.name, "why": one.why} for one in left_out],
                "started": begun.get("started"),
            },
        )
        return folder

    def study(self) -> JSON:
        """The content of study.json. Raises RunError if there is none that can be read."""
        try:
            found: JSON = json.loads(self.study_path.read_text("utf-8"))
        except OSError as error:
            raise RunError(f"{self.path} is no study: {error.strerror}: study.json") from error
        except ValueError as error:
            raise RunError(f"{self.study_path}: not JSON ({error}); take it from a copy, or start anew") from error
        return found

    def runs(self) -> dict[str, RunFolder]:
        """The study's runs by name, whether they have begun or not."""
        return {run["name"]: RunFolder(self.path / run["folder"]) for run in self.study()["runs"]}

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Replace a file of the folder."""
        self.write_text(name, json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Replace a file of the folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        replace_file(self.path / name, text.encode("utf-8", "replace"))


def folder_names(names: Mapping[str, Any] | Sequence[str]) -> dict[str, str]:
    """A folder name for each run name: letters, digits, dots, dashes; names that would meet are numbered."""
    chosen: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = re.sub(r"[^\w.+=-]+", "-", name, flags=re.ASCII).strip("-.") or "run"
        folder, number = plain, 2
        while folder.lower() in taken:  # some file systems do not tell cases apart
            folder, number = f"{plain}-{number}", number + 1
        taken.add(folder.lower())
        chosen[name] = folder
    return chosen

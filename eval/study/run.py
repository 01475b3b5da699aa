"""Runs a study in a folder: its runs one after the other, each resumable, then the comparison.

study.json       the study's kind, its runs, and the runs that were left out
runs/NAME/       a folder for each run (see ras_agent.eval.run.folder), which can be resumed
replies.sqlite   model replies, shared: if two runs make the same call, the model is called once
index/           the index of a study that makes its own (graph-pays)
tables.md        the comparison; tables.json holds the same figures, *.svg the pictures
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Self

from ras_agent.contracts.errors import MissingExtra, RunError
from ras_agent.contracts.records import JSON
from ras_agent.eval.run.begin import Run, begin_run
from ras_agent.eval.run.folder import (
    RunFolder,
    as_json,
    check_content,
    read_description,
    sole_writer,
)
from ras_agent.eval.run.result import Result
from ras_agent.eval.study.design import Design, LeftOut, Shown
from ras_agent.tools.store.durable import replace_file

SCHEMA = "ras-agent/study"
VERSION = 1

Watch = Callable[
    [str, int, Run], AbstractContextManager[Callable[[Result], None] | None]
]
"""A function that takes a run when it begins, with its name and number, and returns a context manager. The
function that the context manager yields is called with each new result."""


class StudyFolder:
    """Reads and writes the folder of a study: its design, the cached replies of models, and a folder for each
    run.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.study_path = self.path / "study.json"
        self.replies_path = self.path / "replies.sqlite"
        """The cache of model replies."""
        self.lock_path = self.path / "study.lock"
        """The file that the writing process locks."""
        self.index_path = self.path / "index"
        """The folder of the index that a study builds for its runs, if it builds one."""
        self.built_path = self.path / "built.json"
        """The file in which a study notes what its index took to build."""

    @classmethod
    def begin(
        cls,
        path: str | Path,
        study: str,
        runs: Mapping[str, Mapping[str, Any]],
        left_out: Sequence[LeftOut] = (),
        **description: Any,
    ) -> Self:
        """Return the folder of a new study, or of a study of the same kind that was begun there. study.json is
        written again.

        Whether a run can be resumed depends on the run's own manifest.

        Args:
            path: The folder.
            study: The kind of study.
            runs: Each run's name with its changes.
            left_out: The runs that are left out.
            description: Further entries of study.json, such as benchmark and data.

        Raises:
            RunError: If the folder holds another study, or something else.
        """
        folder = cls(path)
        if folder.study_path.exists():
            earlier = folder.study()
            if earlier.get("study") != study:
                raise RunError(
                    f"{folder.path} holds the study {earlier.get('study')!r}, not {study!r}; name another folder"
                )
        else:
            folder.check_content()
            earlier = {"started": datetime.now(UTC).isoformat(timespec="seconds")}
        places = folder_names(runs)
        listed = []
        for name, variant in runs.items():
            place = f"runs/{places[name]}"
            listed.append({"name": name, "folder": place, "variant": dict(variant)})
        folder.write_json(
            "study.json",
            {
                "schema": SCHEMA,
                "version": VERSION,
                "study": study,
                **description,
                "runs": listed,
                "left_out": list(map(asdict, left_out)),
                "started": earlier.get("started"),
            },
        )
        return folder

    def check_content(self) -> None:
        """Raise RunError if the folder exists and holds something other than a study."""
        own = {self.lock_path, self.index_path, self.built_path}
        check_content("study", self.study_path, own)

    def study(self) -> JSON:
        """Return the content of study.json.

        Raises:
            RunError: the file is missing or cannot be read.
        """
        return read_description("study", self.study_path, "name another folder")

    def runs(self) -> dict[str, RunFolder]:
        """Return the folder of each of the study's runs, by name, also of runs that have not begun."""
        folders = {}
        for run in self.study()["runs"]:
            place = self.path / run["folder"]
            folders[run["name"]] = RunFolder(place)
        return folders

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write `value` as JSON to the file `name` of the folder, in place of an older one."""
        self.path.mkdir(parents=True, exist_ok=True)
        replace_file(self.path / name, as_json(value, indent=2) + b"\n")

    def write_text(self, name: str, text: str) -> None:
        """Write the text to the file `name` of the folder, in place of an older one."""
        self.path.mkdir(parents=True, exist_ok=True)
        content = text.encode("utf-8", "replace")
        replace_file(self.path / name, content)


def folder_names(names: Mapping[str, Any] | Sequence[str]) -> dict[str, str]:
    """Return a folder's name for each run, made of letters, digits, dots and dashes. Equal folder names get a
    number.
    """
    names_of: dict[str, str] = {}
    used: set[str] = set()
    for name in names:
        plain = re.sub(r"[^\w.+=-]+", "-", name, flags=re.ASCII).strip("-.") or "run"
        folder = plain
        number = 2
        while folder.lower() in used:  # some file systems ignore case
            folder = f"{plain}-{number}"
            number += 1
        used.add(folder.lower())
        names_of[name] = folder
    return names_of


@dataclass(frozen=True, slots=True)
class Finished:
    """Holds the outcome of a study."""

    folder: StudyFolder
    tables: Shown
    errors: int
    """The number of questions that ended in an error, in all runs."""
    missing: str = ""
    """Why there are no pictures; "" if there are pictures."""


def run_study(
    design: Design,
    out: Path,
    *,
    concurrency: int = 32,
    retry_errors: bool = False,
    watch: Watch | None = None,
) -> Finished:
    """Ask the questions that have no result yet in the runs in `out`, then write tables and pictures there.

    The runs share cached model replies in the study's folder, unless the settings name a cache.

    Raises:
        RunError: if another process writes there, and as for `begin_run`.
    """
    names = [agent.name for _, agent in design.runs]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise RunError(
            f"several runs would be called {twice[0]!r}, as their roles have the same name: put them into separate studies"
        )
    StudyFolder(out).check_content()
    out.mkdir(parents=True, exist_ok=True)
    with sole_writer(StudyFolder(out).lock_path):
        return _run_study(design, out, concurrency, retry_errors, watch)


def _run_study(
    design: Design, out: Path, concurrency: int, retry_errors: bool, watch: Watch | None
) -> Finished:
    folder = StudyFolder.begin(
        out,
        design.study,
        {agent.name: agent.variant for _, agent in design.runs},
        design.left_out,
        benchmark=list(dict.fromkeys(task.benchmark.name for task, _ in design.runs)),
        data=list(dict.fromkeys(str(task.data) for task, _ in design.runs)),
        headline=design.headline,
        base=design.base,
    )
    results: dict[str, list[Result]] = {}
    places = folder.runs()
    for number, (task, agent) in enumerate(design.runs, start=1):
        settings = agent.settings
        if settings.cache is None:
            settings = settings.model_copy(update={"cache": folder.replies_path})
        ready = begin_run(
            task,
            replace(agent, settings=settings),
            places[agent.name].path,
            retry_errors=retry_errors,
            concurrency=concurrency,
        )
        with watch(agent.name, number, ready) if watch else nullcontext() as on_end:
            ready.finish(on_end)
        # a study holds many runs: their traces stay on disk
        results[agent.name] = [
            replace(result, trace=None) for result in ready.folder.results()
        ]
    tables = design.show(results)
    notes = dict.fromkeys(task.evidence_note for task, _ in design.runs)
    for note in filter(None, notes):
        tables = replace(
            tables, markdown=f"{tables.markdown.rstrip()}\n\nNote: {note}.\n"
        )
    folder.write_text("tables.md", tables.markdown)
    folder.write_json("tables.json", tables.figures)
    missing = ""
    for name, draw in tables.pictures.items():
        try:
            folder.write_text(name, draw())
        except MissingExtra as error:
            missing = str(error)
    every = chain.from_iterable(results.values())
    errors = sum(result.error is not None for result in every)
    return Finished(folder, tables, errors, missing)

"""Runs a study's runs one after the other, each resumable, and writes what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from ras_agent.errors import MissingExtra, RunError
from ras_agent.eval.run.evaluation import Evaluation, prepare_run
from ras_agent.eval.run.result import Result
from ras_agent.eval.study.design import Design, Shown
from ras_agent.eval.study.folder import StudyFolder

__all__ = ["Finished", "run_study"]

Watch = Callable[[str, int, Evaluation], AbstractContextManager[Callable[[Result], None] | None]]
"""Told each run that begins, by name and number; what it yields is told each new result."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a study came to. errors: questions that ended in one, in all runs. missing: why there are no pictures."""

    folder: StudyFolder
    shown: Shown
    errors: int
    missing: str = ""


def run_study(
    design: Design,
    out: Path,
    *,
    concurrency: int = 32,
    retry_errors: bool = False,
    watch: Watch | None = None,
) -> Finished:
    """Ask what the runs under `out` do not hold yet, then write tables and pictures there.

    Model replies are kept in the study's folder and shared by its runs, unless the settings name a cache.
    Raises RasError children as `prepare_run` does.
    """
    names = [run.name for _, run in design.runs]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise RunError(
            f"several runs would be called {twice[0]!r}: their roles have one printable name; try them apart"
        )
    folder = StudyFolder.begin(
        out,
        design.study,
        {run.name: run.variant for _, run in design.runs},
        design.left_out,
        benchmark=list(dict.fromkeys(material.asked.name for material, _ in design.runs)),
        data=list(dict.fromkeys(str(material.data) for material, _ in design.runs)),
        headline=design.headline,
        base=design.base,
    )
    results: dict[str, list[Result]] = {}
    places = folder.runs()
    for number, (material, run) in enumerate(design.runs, start=1):
        settings = run.settings
        if settings.cache is None:
            settings = settings.model_copy(update={"cache": folder.replies_path})
        ready = prepare_run(
            material,
            places[run.name].path,
            replace(run, settings=settings),
            retry_errors=retry_errors,
            concurrency=concurrency,
        )
        with watch(run.name, number, ready) if watch else nullcontext() as on_end:
            ready.finish(on_end)
        # a study holds many runs: their traces stay on disk
        results[run.name] = [replace(one, trace=None) for one in ready.folder.results()]
    shown = design.show(results)
    folder.write_text("tables.md", shown.markdown)
    folder.write_json("tables.json", shown.figures)
    missing = ""
    for name, draw in shown.pictures.items():
        try:
            folder.write_text(name, draw())
        except MissingExtra as error:
            missing = str(error)
    errors = sum(one.error is not None for each in results.values() for one in each)
    return Finished(folder, shown, errors, missing)

"""Implements `ras-agent arena`, which measures retrievers on a public question set, next to published results."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.evaluate import RunOptions
from ras_agent.app.cli.options import PricesFile, data_option, run_option, varied_option
from ras_agent.app.cli.study import make_index, run_and_show

if TYPE_CHECKING:
    from ras_agent.config.settings import Settings
    from ras_agent.contracts.records import JSON
    from ras_agent.eval.study.arena import PublicSet, SetFiles
    from ras_agent.eval.study.run import StudyFolder


def arena(
    *,
    name: Annotated[
        str,
        typer.Argument(
            help="2wiki, hotpotqa or musique, HippoRAG's samples; or a benchmark, such as jsonl or multihop-rag."
        ),
    ],
    data: Annotated[
        Path,
        data_option(help="The folder of its files, or a question file of your own."),
    ],
    out: Annotated[
        Path,
        run_option(
            "--out",
            "-o",
            help="The folder of the results, with a folder for each set; the same command resumes.",
        ),
    ] = Path("arena"),
    retriever: Annotated[
        list[str] | None,
        varied_option(
            help="A retriever; if not set, dense, bm25, ppr, gfm, ppr+dense, kg-mix. May be repeated."
        ),
    ] = None,
    answers: Annotated[
        bool,
        varied_option(
            "--answers", help="Let the agent answer with each retriever, too."
        ),
    ] = False,
    prices: PricesFile = None,
    options: RunOptions,
) -> None:
    """Measure retrievers on a public question set, and compare them with published results.

    Files are checked by their digests, and the index, its vectors and its
    graph are made from them. The table has paired intervals, the scores
    that no search can exceed, costs and versions; tables.json has the same.
    """
    from ras_agent.eval.run.prices import load_prices
    from ras_agent.eval.study.arena import arena_design, find_set, set_files
    from ras_agent.eval.study.run import StudyFolder

    settings = options.run_settings()
    public = find_set(name, data)
    files = set_files(public, data, options.corpus)
    folder = StudyFolder(out / public.name)
    built = None
    if settings.index is None:
        built = _built(public, files, folder, settings, options)
        settings = settings.model_copy(update={"index": folder.index_path})
    task = options.task(public.benchmark, files.questions, settings)
    design = arena_design(
        task,
        settings,
        public,
        files,
        retrievers=retriever or (),
        answers=answers,
        prices=load_prices(prices),
        built=built,
    )
    run_and_show(design, replace(options, out=folder.path))


def _built(
    public: PublicSet,
    files: SetFiles,
    folder: StudyFolder,
    settings: Settings,
    options: RunOptions,
) -> JSON:
    """Make the index and its graph, unless they exist already, and return how many seconds that took."""
    from ras_agent.eval.study.arena import set_passages

    if folder.built_path.exists():
        earlier: JSON = json.loads(folder.built_path.read_text("utf-8"))
        return earlier
    took = make_index(folder, set_passages(public, files), settings, options)
    folder.write_json(folder.built_path.name, asdict(took))
    return asdict(took)

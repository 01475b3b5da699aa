"""Implements `ras-agent study`, which makes evaluation runs that show how much a role, a part or a setting
contributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.evaluate import (
    Benchmark,
    QuestionFile,
    RunOptions,
    print_errors,
    progress,
)
from ras_agent.app.cli.options import INCOMPLETE, PricesFile, data_option, varied_option
from ras_agent.app.cli.terminal import inert, inert_lines, print_line, screen

if TYPE_CHECKING:
    from rich.console import Console

    from ras_agent.config.settings import Settings
    from ras_agent.contracts.records import Passage
    from ras_agent.eval.run.begin import Run
    from ras_agent.eval.run.result import Result
    from ras_agent.eval.study import Design
    from ras_agent.eval.study.graph_pays import Built
    from ras_agent.eval.study.run import StudyFolder, Watch


# ---- one function for each study


def ablations(
    *,
    benchmark: Benchmark,
    data: QuestionFile,
    options: RunOptions,
) -> None:
    """Take one part away at a time: planning, text-to-triples, retrieval, graph encoding."""
    from ras_agent.eval.study import ablations_design

    run_and_show(
        ablations_design(options.task(benchmark, data), options.run_settings()),
        options,
    )


class Evidence(StrEnum):
    """Names the evidence that an answerer is shown in addition to the remaining triples."""

    kept = "kept"
    facts = "facts"
    all = "all"


def abundance(
    *,
    share: Annotated[
        list[float] | None,
        varied_option(
            help="A share of the triples; if not set, 0.1, 0.2, ... 1. May be repeated."
        ),
    ] = None,
    shuffles: Annotated[
        int,
        varied_option(min=1, help="Random orders of leaving triples out."),
    ] = 5,
    order: Annotated[
        list[str] | None,
        varied_option(
            help="Order in which the best triples stay, in place of shuffles: use, likeness or aligner:FOLDER. May be "
            "repeated."
        ),
    ] = None,
    evidence: Annotated[
        Evidence,
        varied_option(
            help="What the answerer sees in addition to the triples: nothing (facts), the sentences that state them "
            "(kept), or all passages (all)."
        ),
    ] = Evidence.facts,
    benchmark: Benchmark,
    data: QuestionFile,
    options: RunOptions,
) -> None:
    """Answer each question from 10 to 100 % of its triples, to measure how scores depend on their number."""
    from ras_agent.eval.study import abundance_design

    design = abundance_design(
        options.task(benchmark, data),
        options.run_settings(),
        options.out,
        shares=share or (),
        shuffles=shuffles,
        orders=order or (),
        evidence=evidence.value,
        seed=options.seed,
    )
    run_and_show(design, options)


def extractors(
    *,
    benchmark: Annotated[
        str,
        typer.Argument(
            help="Benchmark of questions to ask as well: hotpotqa, musique, ... or jsonl."
        ),
    ] = "",
    data: Annotated[
        Path | None,
        data_option(help="The question file of the benchmark."),
    ] = None,
    gold: Annotated[
        list[Path] | None,
        data_option(
            help="Texts with gold triples, JSON Lines of text, triples. May be repeated."
        ),
    ] = None,
    gold_limit: Annotated[
        int | None,
        data_option(
            min=1, help="Number of texts that are read from each file. If not set, all."
        ),
    ] = None,
    extractor: Annotated[
        list[str] | None,
        varied_option(help="An extractor. May be repeated."),
    ] = None,
    options: RunOptions,
) -> None:
    """Compare extractors: triples against gold ones, tokens per second, the loop's scores."""
    from ras_agent.eval.study import extractors_design

    if bool(benchmark) != bool(data):
        raise typer.BadParameter(
            "a benchmark needs its file: give the benchmark and --data together"
        )
    design = extractors_design(
        options.task(benchmark, data) if data else None,
        options.run_settings(),
        extractors=extractor or (),
        gold=gold or (),
        gold_limit=gold_limit,
        concurrency=options.concurrency,
    )
    run_and_show(design, options)


def graph_pays(
    *,
    benchmark: Annotated[
        str,
        typer.Argument(
            help="hotpotqa, musique, ...; jsonl, for your own questions, if not given."
        ),
    ] = "jsonl",
    data: Annotated[
        Path,
        data_option("--questions", "--data", help="The question file."),
    ],
    retriever: Annotated[
        list[str] | None,
        varied_option(
            help="A retriever; if not set, dense, bm25, hybrid, ppr, gfm, kg-mix. May be repeated."
        ),
    ] = None,
    prices: PricesFile = None,
    options: RunOptions,
) -> None:
    """Does the graph pay? Compare one agent over retrievers with and without it.

    Without --index, an index of --corpus, or of the questions' own
    passages, is made in the folder of the study, with vectors and a
    knowledge graph, which the extractor reads (offline without one).
    """
    from ras_agent.eval.benchmarks import benchmark as find_benchmark
    from ras_agent.eval.run.prices import load_prices
    from ras_agent.eval.study.graph_pays import graph_pays_design
    from ras_agent.eval.study.run import StudyFolder

    settings = options.run_settings()
    table = load_prices(prices)
    folder = StudyFolder(options.out)
    if settings.index is None:
        source = find_benchmark(benchmark)
        passages = source.corpus(options.corpus or source.load(data))
        make_index(folder, passages, settings, options)
        settings = settings.model_copy(update={"index": folder.index_path})
    task = options.task(benchmark, data, settings)
    run_and_show(
        graph_pays_design(task, settings, retrievers=retriever or (), prices=table),
        options,
    )


def oracles(
    *,
    benchmark: Benchmark,
    data: QuestionFile,
    options: RunOptions,
) -> None:
    """Give roles the gold annotation, to show which part loses points."""
    from ras_agent.eval.study import oracles_design

    run_and_show(
        oracles_design(options.task(benchmark, data), options.run_settings()),
        options,
    )


def roles(
    *,
    planner: Annotated[
        list[str] | None,
        varied_option(help="A planner. May be repeated."),
    ] = None,
    answerer: Annotated[
        list[str] | None,
        varied_option(help="An answerer. May be repeated."),
    ] = None,
    benchmark: Benchmark,
    data: QuestionFile,
    options: RunOptions,
) -> None:
    """Cross every planner with every answerer: a matrix and a heat map."""
    from ras_agent.eval.study import roles_design

    design = roles_design(
        options.task(benchmark, data),
        options.run_settings(),
        planners=planner or (),
        answerers=answerer or (),
    )
    run_and_show(design, options)


def sweep(
    *,
    max_hops: Annotated[
        list[int] | None,
        varied_option(
            min=1, help="A hop limit; if not set, 1, 2, 3, 5. May be repeated."
        ),
    ] = None,
    k: Annotated[
        list[int] | None,
        varied_option(
            min=1, help="Passages per hop; if not set, 3, 5, 10. May be repeated."
        ),
    ] = None,
    benchmark: Benchmark,
    data: QuestionFile,
    options: RunOptions,
) -> None:
    """Combine hop limits with passages per hop."""
    from ras_agent.eval.study import sweep_design

    design = sweep_design(
        options.task(benchmark, data),
        options.run_settings(),
        hops=max_hops or (),
        ks=k or (),
    )
    run_and_show(design, options)


# ---- steps that all studies share


def make_index(
    folder: StudyFolder,
    passages: Iterable[Passage],
    settings: Settings,
    options: RunOptions,
) -> Built:
    """Make the index of a study and its graph, and return how long that took."""
    from ras_agent.eval.study.graph_pays import index_with_graph

    folder.check_content()
    console = screen(quiet=options.quiet, stderr=True)
    console.print("making the index and its graph", style="dim")
    embedder = options.embedder or "minilm"
    took = index_with_graph(folder.index_path, passages, embedder, settings)
    console.print(str(took), style="dim")
    return took


def run_and_show(design: Design, options: RunOptions) -> None:
    """Ask the questions of a study that have no results yet, and print its tables.

    Exits with code 3 if a question ended in an error.
    """
    from ras_agent.eval.study import run_study

    console = screen(quiet=options.quiet, stderr=True)
    outcome = run_study(
        design,
        options.out,
        concurrency=options.concurrency,
        retry_errors=options.retry_errors,
        watch=_watch(console, len(design.runs)),
    )
    typer.echo(inert_lines(outcome.tables.markdown).rstrip("\n"))
    if outcome.missing:
        print_line(console, f"no pictures: {outcome.missing}", "yellow")
    print_line(console, f"{outcome.folder.path} written", "dim")
    print_errors(console, outcome.errors)
    if outcome.errors:
        raise typer.Exit(INCOMPLETE)


def _watch(console: Console, total: int) -> Watch:
    @contextmanager
    def watched(name: str, number: int, run: Run) -> Iterator[Callable[[Result], None]]:
        print_line(console, f"{number} of {total}  {inert(name)}", "dim")
        with progress(console, run) as on_end:
            yield on_end

    return watched

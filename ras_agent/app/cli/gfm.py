"""`ras-agent kg examples` and `kg train`: fine-tune the graph network on questions of your own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ras_agent.app.cli.command import Options
from ras_agent.app.cli.options import INCOMPLETE, Quiet
from ras_agent.app.cli.terminal import inert, screen


@dataclass(frozen=True, kw_only=True)
class ExamplesOptions(Options):
    """Options of `ras-agent kg examples`."""

    index: Annotated[Path, typer.Argument(help="An index with a knowledge graph.", show_default=False)]
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the set.", show_default=False)]
    questions: Annotated[
        Path | None,
        typer.Argument(help="Questions that name the passages which support them.", show_default=False),
    ] = None
    benchmark: Annotated[str, typer.Option(help="The form of the file: jsonl, gfm-rag or a benchmark's name.")] = (
        "jsonl"
    )
    pseudo: Annotated[int, typer.Option(min=0, help="Most pseudo questions, made from the passages.")] = 0
    quiet: Quiet = False


def examples(options: ExamplesOptions) -> None:
    """Write a set to train the graph network on: a graph, and its questions.

    Without questions it is for `kg train --completion` alone. Questions
    whose passages the graph does not know are listed and make the exit
    code 3.
    """
    from ras_agent.eval.benchmarks import benchmark as find_benchmark
    from ras_agent.tools.index.store import PassageIndex
    from ras_agent.train.gfm.examples import report_lines, write_set_of

    questions = find_benchmark(options.benchmark).load(options.questions) if options.questions else None
    report = write_set_of(PassageIndex.open(options.index), questions, options.out, pseudo=options.pseudo)
    line, *left_out = report_lines(report, options.out)
    for reason in left_out:
        typer.echo(inert(reason), err=True)
    screen(quiet=options.quiet).print(inert(line), highlight=False, markup=False)
    if left_out:
        raise typer.Exit(INCOMPLETE)


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Options):
    """Options of `ras-agent kg train`."""

    sets: Annotated[list[Path], typer.Argument(help="Folders that `kg examples` wrote.", show_default=False)]
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the weights.", show_default=False)]
    start_from: Annotated[
        str | None,
        typer.Option(help="Weights to begin with: packaged, a folder, or an id on the Hugging Face hub; if not, none."),
    ] = None
    steps: Annotated[int, typer.Option(min=0, help="Steps of retrieval.")] = 700
    completion: Annotated[int, typer.Option(min=0, help="Steps of completing facts, before the others.")] = 0
    batch: Annotated[int, typer.Option(min=1, help="Questions per step.")] = 8
    documents: Annotated[
        int, typer.Option(min=0, help="Documents whose facts are a step's graph; 0 for the whole graph.")
    ] = 300
    rate: Annotated[float, typer.Option(min=0, help="The learning rate.")] = 5e-4
    minutes: Annotated[float, typer.Option(min=0, help="Stop and save after so long; 0 for no limit.")] = 0
    seed: Annotated[int, typer.Option(min=0, help="Draws the questions.")] = 0
    quiet: Quiet = False


def train(options: TrainOptions) -> None:
    """Train the graph network on sets, or go on with a training.

    `python -m ras_agent.train.gfm.train --help` lists all options. The
    weights are used by `--retriever gfm --weights OUT`.
    """
    from ras_agent.errors import MissingExtra

    try:
        from ras_agent.train.gfm.train import GFMTrainingConfig
        from ras_agent.train.gfm.train import train as run

        config = GFMTrainingConfig(
            sets=tuple(options.sets), out=options.out,
            start_from=Path(options.start_from) if options.start_from else None,
            steps=options.steps, completion=options.completion, batch=options.batch, documents=options.documents,
            rate=options.rate, minutes=options.minutes, seed=options.seed, warmup=min(200, options.steps // 10),
        )  # fmt: skip
        result = run(config)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise MissingExtra("training", "gnn") from error
    line = f"{options.out} {result.steps:,} steps · {result.seconds:.0f} s"
    screen(quiet=options.quiet).print(inert(line), highlight=False, markup=False)

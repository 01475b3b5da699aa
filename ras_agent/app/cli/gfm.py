"""`ras-agent kg examples` and `kg train`: fine-tune the graph network on questions of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ras_agent.app.cli.options import INCOMPLETE, Quiet
from ras_agent.app.cli.terminal import inert, screen


def examples(
    index: Annotated[Path, typer.Argument(help="An index with a knowledge graph.", show_default=False)],
    questions: Annotated[
        Path, typer.Argument(help="Questions that name the passages which support them.", show_default=False)
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the set.", show_default=False)],
    benchmark: Annotated[
        str, typer.Option(help="The form of the file: jsonl, gfm-rag or a benchmark's name.")
    ] = "jsonl",
    pseudo: Annotated[int, typer.Option(min=0, help="Most pseudo questions, made from the passages.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Write a set to train the graph network on: a graph, and its questions.

    Questions whose passages the graph does not know are listed and make
    the exit code 3.
    """
    from ras_agent.eval.benchmarks import benchmark as find_benchmark
    from ras_agent.tools.index.store import PassageIndex
    from ras_agent.train.gfm.examples import described, write_set_of

    asked = find_benchmark(benchmark).load(questions)
    made = write_set_of(PassageIndex.open(index), asked, out, pseudo=pseudo)
    line, *left_out = described(made, out).splitlines()
    for one in left_out:
        typer.echo(inert(one), err=True)
    screen(quiet=quiet).print(inert(line), highlight=False, markup=False)
    if left_out:
        raise typer.Exit(INCOMPLETE)


def train(
    sets: Annotated[list[Path], typer.Argument(help="Folders that `kg examples` wrote.", show_default=False)],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the weights.", show_default=False)],
    start_from: Annotated[
        str | None,
        typer.Option(help="Weights to begin with: packaged, a folder, or an id on the Hugging Face hub; if not, none."),
    ] = None,
    steps: Annotated[int, typer.Option(min=0, help="Steps of retrieval.")] = 700,
    completion: Annotated[int, typer.Option(min=0, help="Steps of completing facts, before the others.")] = 0,
    batch: Annotated[int, typer.Option(min=1, help="Questions per step.")] = 8,
    documents: Annotated[int, typer.Option(min=1, help="Documents whose facts are a step's graph.")] = 300,
    rate: Annotated[float, typer.Option(min=0, help="The learning rate.")] = 5e-4,
    minutes: Annotated[float, typer.Option(min=0, help="Stop and save after so long; 0 for no limit.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Draws the questions.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Train the graph network on sets, or go on with a training.

    `python -m ras_agent.train.gfm.train --help` lists all options. The
    weights are used by `--retriever gfm --weights OUT`.
    """
    from ras_agent.errors import MissingExtra

    try:
        from ras_agent.train.gfm.train import GFMTrainingConfig
        from ras_agent.train.gfm.train import train as run

        config = GFMTrainingConfig(
            sets=tuple(sets), out=out, start_from=Path(start_from) if start_from else None, steps=steps,
            completion=completion, batch=batch, documents=documents, rate=rate, minutes=minutes, seed=seed,
            warmup=min(200, steps // 10),
        )  # fmt: skip
        result = run(config)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise MissingExtra("training", "gnn") from error
    line = f"{out} {result.steps:,} steps · {result.seconds:.0f} s"
    screen(quiet=quiet).print(inert(line), highlight=False, markup=False)

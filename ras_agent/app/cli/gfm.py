"""Implements `ras-agent kg examples` and `kg train`, which fine-tune the graph network on the user's own questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ras_agent.app.cli.options import INCOMPLETE, Quiet
from ras_agent.app.cli.terminal import inert, screen
from ras_agent.contracts.errors import SettingsError, UnknownName

if TYPE_CHECKING:
    from ras_agent.train.loop import FitResult


def examples(
    *,
    index: Annotated[
        Path,
        typer.Argument(help="An index with a knowledge graph."),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The folder of the set."),
    ],
    questions: Annotated[
        Path | None,
        typer.Argument(help="Questions that name the passages which support them."),
    ] = None,
    benchmark: Annotated[
        str,
        typer.Option(
            help="The form of the file: jsonl, gfm-rag or a benchmark's name."
        ),
    ] = "jsonl",
    pseudo: Annotated[
        int,
        typer.Option(
            min=0,
            help="Largest number of pseudo questions, which are made from the passages.",
        ),
    ] = 0,
    network: Annotated[
        str, typer.Option(help="The network to train: gfm or greasoner.")
    ] = "gfm",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="With greasoner, the embedder of the nodes' texts; by default that of the graph."
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="With greasoner, the weights that the training will start from, if any."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a set to train the graph network on: a graph, and its questions.

    Without questions it is only for `kg train --completion`. Questions
    with passages that the graph does not know are listed and make the exit
    code 3.
    """
    from ras_agent.eval.benchmarks import benchmark as find_benchmark
    from ras_agent.tools.index.store import PassageIndex
    from ras_agent.train.gfm.examples import report_lines, write_set_of

    if network not in ("gfm", "greasoner"):
        raise UnknownName("network", network, ("gfm", "greasoner"))
    asked = find_benchmark(benchmark).load(questions) if questions else None
    if network == "greasoner":
        from ras_agent.train.gfm.reasoner_sets import write_reasoner_set

        if not asked:
            raise SettingsError(
                "a set for G-reasoner needs questions to train on: give a file of questions after the index"
            )
        count, skipped = write_reasoner_set(
            PassageIndex.open(index),
            asked,
            out,
            encoder=encoder,
            weights=weights,
        )
        _report(
            f"{out} {count} questions",
            [f"left out  {reason}" for reason in skipped],
            quiet,
        )
        return
    report = write_set_of(PassageIndex.open(index), asked, out, pseudo=pseudo)
    line, *left_out = report_lines(report, out)
    _report(line, left_out, quiet)


def _report(line: str, left_out: Sequence[str], quiet: bool) -> None:
    for reason in left_out:
        typer.echo(inert(reason), err=True)
    screen(quiet=quiet).print(inert(line))
    if left_out:
        raise typer.Exit(INCOMPLETE)


def train(
    *,
    sets: Annotated[
        list[Path],
        typer.Argument(help="Folders that `kg examples` wrote."),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The folder of the weights."),
    ],
    start_from: Annotated[
        str | None,
        typer.Option(
            help="Weights to begin with: packaged, a folder, or an id on the Hugging Face hub. If not set, random "
            "weights."
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option(min=0, help="Number of steps that train retrieval.")
    ] = 700,
    completion: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of steps before these that train the completion of facts.",
        ),
    ] = 0,
    batch: Annotated[int, typer.Option(min=1, help="Questions per step.")] = 8,
    documents: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of documents whose facts make the graph of a step; 0 for the whole graph.",
        ),
    ] = 300,
    rate: Annotated[float, typer.Option(min=0, help="The learning rate.")] = 5e-4,
    minutes: Annotated[
        float,
        typer.Option(
            min=0,
            help="Minutes after which the training saves and stops; 0 for no limit.",
        ),
    ] = 0,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed by which questions are drawn.")
    ] = 0,
    quiet: Quiet = False,
) -> None:
    """Train the graph network on sets, or continue a training.

    `python -m ras_agent.train.gfm.train --help`, and for sets of G-reasoner
    `python -m ras_agent.train.gfm.reasoner --help`, list all options. The
    weights are used by `--retriever gfm --weights OUT`, or `greasoner`.
    """
    from ras_agent.contracts.errors import MissingExtra

    common: dict[str, Any] = {
        "sets": tuple(sets),
        "out": out,
        "start_from": Path(start_from) if start_from else None,
        "steps": steps,
        "batch": batch,
        "documents": documents,
        "rate": rate,
        "minutes": minutes,
        "seed": seed,
    }
    try:
        result = _trained(common, completion)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise MissingExtra("training", "gnn") from error
    line = f"{out} {result.steps:,} steps · {result.seconds:.0f} s"
    screen(quiet=quiet).print(inert(line))


def _trained(common: dict[str, Any], completion: int) -> FitResult:
    from ras_agent.train.gfm.reasoner_sets import is_reasoner_set

    if all(map(is_reasoner_set, common["sets"])):
        from ras_agent.train.gfm import reasoner

        if completion:
            raise SettingsError(
                "--completion works only for GFM-RAG's network, but these sets are for G-reasoner: leave --completion out"
            )
        return reasoner.train(reasoner.ReasonerTrainingConfig(**common))
    from ras_agent.train.gfm import train as gfm

    warmup = min(200, common["steps"] // 10)
    return gfm.train(
        gfm.GFMTrainingConfig(**common, completion=completion, warmup=warmup)
    )

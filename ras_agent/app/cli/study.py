"""`ras-agent study`: a set of evaluation runs that shows what a role, a part or a setting contributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.evaluate import Concurrency, Corpus, Embedder, First, Limit, Metric, RetryErrors, progress
from ras_agent.app.cli.options import INCOMPLETE, AnswerSettings, GivenFlags
from ras_agent.app.cli.terminal import counted, inert, inert_lines, screen

if TYPE_CHECKING:
    from rich.console import Console

    from ras_agent.eval.run.evaluation import Evaluation
    from ras_agent.eval.run.result import Result
    from ras_agent.eval.study.run import Watch

_DATA, _RUN, _VARIED = "Questions and corpus", "The study", "Varied by some studies (repeat an option for each value)"


class AbundanceEvidence(StrEnum):
    """Says what an answerer sees besides the triples that are left."""

    kept = "kept"
    facts = "facts"
    all = "all"


def study(
    name: Annotated[
        str,
        typer.Argument(
            help="ablations, abundance, extractors, oracles, retrieval, roles or sweep.", show_default=False
        ),
    ],
    benchmark: Annotated[
        str, typer.Argument(help="hotpotqa, musique, ..., or jsonl for your own questions.", show_default=False)
    ] = "",
    *,
    data: Annotated[Path | None, typer.Option("--data", help="The question file.", rich_help_panel=_DATA)] = None,
    corpus: Corpus = None,
    embedder: Embedder = None,
    first: First = 1,
    limit: Limit = None,
    gold: Annotated[
        list[Path] | None,
        typer.Option(help="extractors: texts with gold triples, JSON Lines of text, triples.", rich_help_panel=_DATA),
    ] = None,
    gold_limit: Annotated[
        int | None, typer.Option(min=1, help="extractors: how many texts of each file.", rich_help_panel=_DATA)
    ] = None,
    planner: Annotated[list[str] | None, typer.Option(help="roles: the planners.", rich_help_panel=_VARIED)] = None,
    answerer: Annotated[list[str] | None, typer.Option(help="roles: the answerers.", rich_help_panel=_VARIED)] = None,
    extractor: Annotated[
        list[str] | None, typer.Option(help="extractors: the extractors.", rich_help_panel=_VARIED)
    ] = None,
    retriever: Annotated[
        list[str] | None, typer.Option(help="retrieval: the retrievers.", rich_help_panel=_VARIED)
    ] = None,
    max_hops: Annotated[
        list[int] | None, typer.Option(min=1, help="sweep: hop limits (1, 2, 3, 5).", rich_help_panel=_VARIED)
    ] = None,
    k: Annotated[
        list[int] | None,
        typer.Option(
            min=1, help="sweep: passages per hop (3, 5, 10); retrieval: the depth (20).", rich_help_panel=_VARIED
        ),
    ] = None,
    share: Annotated[
        list[float] | None,
        typer.Option(help="abundance: shares of the triples (0.1, 0.2, ... 1).", rich_help_panel=_VARIED),
    ] = None,
    shuffles: Annotated[
        int,
        typer.Option(min=1, help="abundance: random orders of leaving triples out.", rich_help_panel=_VARIED),
    ] = 5,
    order: Annotated[
        list[str] | None,
        typer.Option(
            help="abundance: in place of shuffles, use, likeness or aligner:FOLDER: the best triples stay.",
            rich_help_panel=_VARIED,
        ),
    ] = None,
    evidence: Annotated[
        AbundanceEvidence,
        typer.Option(
            help="abundance: besides the triples, the answerer sees nothing (facts), the sentences they were read in "
            "(kept), or all passages (all).",
            rich_help_panel=_VARIED,
        ),
    ] = AbundanceEvidence.facts,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The study's folder; the same command resumes it.", rich_help_panel=_RUN)
    ],
    concurrency: Concurrency = 32,
    retry_errors: RetryErrors = False,
    metric: Metric = None,
    seed: Annotated[int, typer.Option(help="Seed of shuffles and intervals.", rich_help_panel=_RUN)] = 0,
    settings: AnswerSettings,
    given: GivenFlags,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the tables only.")] = False,
) -> None:
    """Run a set of evaluations that differ in one thing, and compare them.

    roles       every planner with every answerer: a matrix and a heat map
    ablations   without planning, text-to-triples, retrieval, graph encoding
    oracles     roles that know the gold annotation: which part loses points?
    abundance   answers from 10 to 100 % of each question's triples
    extractors  triples against gold ones, tokens per second, the loop's scores
    sweep       hop limits combined with passages per hop
    retrieval   retrievers without a loop, with recall curves

    Each run is a folder under OUT/runs, as `ras-agent eval` makes it: the
    same command resumes it, and `ras-agent report OUT/runs/*` shows it.
    Replies are shared: runs that send a model the same prompt send it once.
    """
    from ras_agent.eval.run.material import load_material
    from ras_agent.eval.study import Choices, designed, run_study

    if corpus and "index" in given:
        raise typer.BadParameter("give --corpus or --index, not both")
    settings = settings.model_copy(update={"review": None})  # of a file that serves `ask` too: nobody waits here
    if bool(benchmark) != bool(data):
        raise typer.BadParameter("a benchmark and its --data go together")
    choices = Choices(
        planners=tuple(planner or ()),
        extractors=tuple(extractor or ()),
        answerers=tuple(answerer or ()),
        retrievers=tuple(retriever or ()),
        hops=tuple(max_hops or ()),
        ks=tuple(k or ()),
        gold=tuple(gold or ()),
        gold_limit=gold_limit,
        shares=tuple(share or ()),
        shuffles=shuffles,
        orders=tuple(order or ()),
        evidence=evidence.value,
    )
    console = screen(quiet=quiet, stderr=True)
    material = None
    if data:
        material = load_material(
            benchmark, data, settings, corpus=corpus, embedder=embedder, first=first, limit=limit, metrics=metric or ()
        )
    design = designed(name, material, settings, choices, out=out, concurrency=concurrency, seed=seed)
    done = run_study(
        design, out, concurrency=concurrency, retry_errors=retry_errors, watch=_watch(console, len(design.runs))
    )
    typer.echo(inert_lines(done.shown.markdown).rstrip("\n"))
    if done.missing:
        console.print(f"no pictures: {done.missing}", style="yellow", soft_wrap=True)
    console.print(f"{done.folder.path} written", style="dim", soft_wrap=True)
    if done.errors:
        note = f"{counted(done.errors, 'question')} ended in an error; --retry-errors asks again"
        console.print(note, style="red", soft_wrap=True)
        raise typer.Exit(INCOMPLETE)


def _watch(console: Console, total: int) -> Watch:
    @contextmanager
    def watched(name: str, number: int, run: Evaluation) -> Iterator[Callable[[Result], None]]:
        console.print(f"{number} of {total}  {inert(name)}", style="dim", soft_wrap=True)
        with progress(console, run) as on_end:
            yield on_end

    return watched

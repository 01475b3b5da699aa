"""`ras-agent study`: sets of evaluation runs that show what a role, a part or a setting is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli import agent_options
from ras_agent.app.cli.exits import INCOMPLETE
from ras_agent.app.cli.options import Config, Debug, settings_from

if TYPE_CHECKING:
    from rich.console import Console

    from ras_agent.eval.run.evaluation import Evaluation
    from ras_agent.eval.run.result import Result
    from ras_agent.eval.study.run import Watch

__all__ = ["study"]

DATA, RUN, VARIED = "Questions and corpus", "The study", "Varied by some studies (give an option several times)"


class Evidence(StrEnum):
    """What an answerer sees beside the kept triples."""

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
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The study's folder; the same command resumes it.", rich_help_panel=RUN)
    ],
    benchmark: Annotated[
        str, typer.Argument(help="hotpotqa, musique, ..., or jsonl for your own questions.", show_default=False)
    ] = "",
    data: Annotated[Path | None, typer.Option("--data", help="The question file.", rich_help_panel=DATA)] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(
            help="Passages to search, JSON Lines of id, text, title; else those of the questions.", rich_help_panel=DATA
        ),
    ] = None,
    index: Annotated[
        Path | None, typer.Option("--index", "-i", help="An index to search instead.", rich_help_panel=DATA)
    ] = None,
    first: Annotated[int, typer.Option(min=1, help="The first question asked, from 1.", rich_help_panel=DATA)] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="How many are asked (all).", rich_help_panel=DATA)] = None,
    gold: Annotated[
        list[Path] | None,
        typer.Option(help="extractors: texts with gold triples, JSON Lines of text, triples.", rich_help_panel=DATA),
    ] = None,
    gold_limit: Annotated[
        int | None, typer.Option(min=1, help="extractors: how many texts of each file.", rich_help_panel=DATA)
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Measure this instead, e.g. recall@10.", rich_help_panel=RUN)
    ] = None,
    planner: Annotated[list[str] | None, typer.Option(help="roles: each of them.", rich_help_panel=VARIED)] = None,
    answerer: Annotated[list[str] | None, typer.Option(help="roles: each of them.", rich_help_panel=VARIED)] = None,
    extractor: Annotated[
        list[str] | None, typer.Option(help="extractors: each of them.", rich_help_panel=VARIED)
    ] = None,
    retriever: Annotated[
        list[str] | None, typer.Option(help="retrieval: each of them.", rich_help_panel=VARIED)
    ] = None,
    max_hops: Annotated[
        list[int] | None, typer.Option(min=1, help="sweep: each of them (1, 2, 3, 5).", rich_help_panel=VARIED)
    ] = None,
    k: Annotated[
        list[int] | None,
        typer.Option(min=1, help="sweep: each of them (3, 5, 10); retrieval: the depth (20).", rich_help_panel=VARIED),
    ] = None,
    share: Annotated[
        list[float] | None,
        typer.Option(help="abundance: of the triples, each of them (0.1, 0.2, ... 1).", rich_help_panel=VARIED),
    ] = None,
    shuffles: Annotated[
        int, typer.Option(min=1, help="abundance: orders in which triples are kept.", rich_help_panel=VARIED)
    ] = 5,
    evidence: Annotated[
        Evidence,
        typer.Option(
            help="abundance: beside the kept triples the answerer sees the sentences they were read in (kept), "
            "nothing (facts), or all passages (all).",
            rich_help_panel=VARIED,
        ),
    ] = Evidence.kept,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions under way at once.", rich_help_panel=RUN)] = 32,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Ask again what ended in an error.", rich_help_panel=RUN)
    ] = False,
    seed: Annotated[int, typer.Option(help="Of shuffles and intervals.", rich_help_panel=RUN)] = 0,
    graph: agent_options.Graph = None,
    preset: agent_options.Preset = None,
    llm: agent_options.Llm = None,
    max_facts: agent_options.MaxFacts = None,
    max_llm_calls: agent_options.MaxLlmCalls = None,
    max_tokens: agent_options.MaxTokens = None,
    max_seconds: agent_options.MaxSeconds = None,
    style: agent_options.Style = None,
    few_shot: agent_options.FewShot = None,
    prompts: agent_options.Prompts = None,
    cache: agent_options.Cache = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the tables alone.")] = False,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Run a set of evaluations that differ in one thing, and compare them.

    roles       every planner with every answerer: a matrix and a heat map
    ablations   without planning, text-to-triples, retrieval, graph encoding
    oracles     roles that know the gold annotation: which loses the points?
    abundance   answers from 10 to 100 % of each question's triples
    extractors  triples against gold ones, tokens a second, the loop's scores
    sweep       hop limits with passages a hop
    retrieval   retrievers alone, with recall curves

    Each run is a folder under OUT/runs, as `ras-agent eval` makes it: the
    same command resumes it, and `ras-agent report OUT/runs/*` shows it.
    Replies are shared: what two runs ask a model alike is asked once.
    """
    from ras_agent.app.cli.inert import inert_lines
    from ras_agent.app.cli.screen import screen
    from ras_agent.eval.run.evaluation import load_material
    from ras_agent.eval.study import Choices, designed, run_study

    if corpus and index:
        raise typer.BadParameter("give --corpus or --index, not both")
    if bool(benchmark) != bool(data):
        raise typer.BadParameter("a benchmark and its --data go together")
    settings = settings_from(
        config, index=index, graph=graph, preset=preset, llm=llm, max_facts=max_facts, max_llm_calls=max_llm_calls,
        max_tokens=max_tokens, max_seconds=max_seconds, style=style, few_shot=few_shot, prompts=prompts, cache=cache,
    )  # fmt: skip
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
        evidence=evidence.value,
    )
    console = screen(quiet=quiet, stderr=True)
    material = None
    if data:
        material = load_material(
            benchmark, data, settings, corpus=corpus, first=first, limit=limit, metrics=metric or ()
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
        told = f"{done.errors} questions ended in an error; --retry-errors asks again"
        console.print(told, style="red", soft_wrap=True)
        raise typer.Exit(INCOMPLETE)


def _watch(console: Console, total: int) -> Watch:
    from ras_agent.app.cli.eval_screen import progress
    from ras_agent.app.cli.inert import inert

    @contextmanager
    def watched(name: str, number: int, run: Evaluation) -> Iterator[Callable[[Result], None]]:
        console.print(f"{number} of {total}  {inert(name)}", style="dim", soft_wrap=True)
        with progress(console, run) as on_end:
            yield on_end

    return watched

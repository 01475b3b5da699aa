"""`ras-agent eval`: an agent against a question set, with every result on disk as it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ras_agent.app.cli import agent_options
from ras_agent.app.cli.exits import INCOMPLETE
from ras_agent.app.cli.options import Config, Debug, settings_from

__all__ = ["evaluate"]

DATA, RUN = "Questions and corpus", "The run"


def evaluate(
    benchmark: Annotated[str, typer.Argument(help="hotpotqa, musique, ..., or jsonl for your own questions.")],
    data: Annotated[Path, typer.Option("--data", help="The question file.", rich_help_panel=DATA)],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The run's folder; the same command resumes it.", rich_help_panel=RUN)
    ],
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
    concurrency: Annotated[int, typer.Option(min=1, help="Questions under way at once.", rich_help_panel=RUN)] = 32,
    engine: agent_options.Engine = "here",
    workers: agent_options.Workers = None,
    ray_address: agent_options.RayAddress = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Measure this instead, e.g. recall@10.", rich_help_panel=RUN)
    ] = None,
    retrieval_only: Annotated[
        bool, typer.Option("--retrieval-only", help="Search for the question, answer nothing.", rich_help_panel=RUN)
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(help="Answer yes, no, or top-title (of one search) instead of asking.", rich_help_panel=RUN),
    ] = None,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Ask again what ended in an error.", rich_help_panel=RUN)
    ] = False,
    traces: Annotated[
        bool, typer.Option("--traces/--no-traces", help="Keep each question's trace.", rich_help_panel=RUN)
    ] = True,
    prices: Annotated[
        Path | None,
        typer.Option(help='Prices per million tokens: {"model": {"input": 1, "output": 2}}.', rich_help_panel=RUN),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The run's name in reports.", rich_help_panel=RUN)] = None,
    seed: Annotated[int, typer.Option(help="Of the intervals' bootstrap.", rich_help_panel=RUN)] = 0,
    graph: agent_options.Graph = None,
    preset: agent_options.Preset = None,
    retriever: agent_options.Retriever = None,
    llm: agent_options.Llm = None,
    planner: agent_options.Planner = None,
    extractor: agent_options.Extractor = None,
    answerer: agent_options.Answerer = None,
    k: agent_options.K = None,
    max_hops: agent_options.MaxHops = None,
    max_facts: agent_options.MaxFacts = None,
    max_llm_calls: agent_options.MaxLlmCalls = None,
    max_tokens: agent_options.MaxTokens = None,
    max_seconds: agent_options.MaxSeconds = None,
    style: agent_options.Style = None,
    few_shot: agent_options.FewShot = None,
    prompts: agent_options.Prompts = None,
    cache: agent_options.Cache = None,
    triple_cache: agent_options.TripleCache = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors alone.")] = False,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Ask an agent a question set and score what it says.

    Each result is on disk as it ends. The same command resumes a run that
    was interrupted or killed, asking no question and no model twice; model
    replies are kept in the run's folder, or in --cache.
    A question that fails is recorded, counts as wrong, and makes the exit
    code 3.
    """
    from ras_agent.app.cli.eval_screen import progress, show
    from ras_agent.app.cli.screen import screen
    from ras_agent.eval.run.evaluation import prepare
    from ras_agent.eval.run.prices import load_prices
    from ras_agent.eval.run.spread import Spread

    if corpus and index:
        raise typer.BadParameter("give --corpus or --index, not both")
    settings = settings_from(
        config, index=index, graph=graph, preset=preset, retriever=retriever, llm=llm, planner=planner,
        extractor=extractor, answerer=answerer, k=k, max_hops=max_hops, max_facts=max_facts,
        max_llm_calls=max_llm_calls, max_tokens=max_tokens, max_seconds=max_seconds, style=style, few_shot=few_shot,
        prompts=prompts, cache=cache, triple_cache=triple_cache,
    )  # fmt: skip
    table = load_prices(prices)
    console = screen(quiet=quiet)
    run = prepare(
        benchmark, data, out, settings, corpus=corpus, first=first, limit=limit, metrics=metric or (),
        baseline=baseline, retrieval_only=retrieval_only, retry_errors=retry_errors, traces=traces, label=name,
        seed=seed, concurrency=concurrency, spread=Spread(engine, workers, ray_address),
    )  # fmt: skip
    with progress(console, run, table) as on_end:
        summary = run.finish(on_end, table)
    show(console, summary, run)
    if summary["errors"]:
        raise typer.Exit(INCOMPLETE)

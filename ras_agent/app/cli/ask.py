"""`ras-agent ask`: one question, answered on screen step by step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ras_agent.app.cli import agent_options
from ras_agent.app.cli.exits import INCOMPLETE, UNANSWERED
from ras_agent.app.cli.options import Config, Debug, settings_from
from ras_agent.calling import raise_if_cancelled

if TYPE_CHECKING:
    from rich.console import Console

    from ras_agent.app.cli.draw import Drawing
    from ras_agent.graphs.assembly import Agent
    from ras_agent.records import Passage
    from ras_agent.settings import Settings
    from ras_agent.tools.index.store import PassageIndex
    from ras_agent.trace import Trace

__all__ = ["ask"]

AGENT, OUTPUT = "Agent", "Output"
REASONS = 3


def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.", show_default=False)],
    index: Annotated[
        Path | None, typer.Option("--index", "-i", help="The index to search.", rich_help_panel=AGENT)
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Search the bundled sample instead of an index.", rich_help_panel=AGENT)
    ] = False,
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
    save: Annotated[
        list[Path] | None,
        typer.Option(help="Save the run: .html, .json, .graphml or .mmd. May be repeated.", rich_help_panel=OUTPUT),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the trace as JSON; all else goes to stderr.", rich_help_panel=OUTPUT)
    ] = False,
    reasons: Annotated[
        int,
        typer.Option(
            min=0,
            help="Chains of facts that --save and --json tell for each hit of gfm and its mixtures; 0 saves the time.",
            rich_help_panel=OUTPUT,
        ),
    ] = REASONS,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the answer alone.", rich_help_panel=OUTPUT)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print all facts and whole quotes.", rich_help_panel=OUTPUT)
    ] = False,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Answer a question from an index, step by step.

    Without any model it runs in offline mode.

    Most options can also be set in a file, ras-agent.toml (max_hops = 3),
    or in the environment (RAS_AGENT_MAX_HOPS=3); flags win over both.
    """
    from ras_agent.app.cli.inert import inert_json, inert_lines
    from ras_agent.app.cli.save import check_target, save_trace
    from ras_agent.app.cli.screen import screen
    from ras_agent.app.cli.summary import summary

    if not question.strip():
        raise typer.BadParameter("the question is blank")
    if sample and index:
        raise typer.BadParameter("give --index or --sample, not both")
    settings = settings_from(
        config, index=index, graph=graph, preset=preset, retriever=retriever, llm=llm, planner=planner,
        extractor=extractor, answerer=answerer, k=k, max_hops=max_hops, max_facts=max_facts,
        max_llm_calls=max_llm_calls, max_tokens=max_tokens, max_seconds=max_seconds, style=style, few_shot=few_shot,
        prompts=prompts, cache=cache, triple_cache=triple_cache,
    )  # fmt: skip
    if not sample and settings.index is None:
        raise typer.BadParameter("no index: give --index PATH, or --sample to try the bundled one")
    targets = [check_target(path) for path in save or ()]

    console = screen(stderr=as_json, quiet=quiet)
    # a trace is read at leisure: there, retrievers that can tell say why they found what they found
    trace = _run(question, settings, sample, console, verbose, reasons if targets or as_json else 0)
    # the answer first: a disk that is full must not take it along
    if as_json:
        typer.echo(inert_json(trace.to_json()))
    elif quiet:
        typer.echo(inert_lines(trace.answer))
    save_trace(trace, targets)
    console.print(summary(trace, targets), style="dim", soft_wrap=True)
    if trace.outcome != "answered":
        raise typer.Exit(UNANSWERED if trace.outcome == "failed" else INCOMPLETE)


def _run(question: str, settings: Settings, sample: bool, console: Console, verbose: bool, reasons: int) -> Trace:
    """Ask, drawing what happens."""
    from ras_agent.app.cli.draw import Drawing
    from ras_agent.app.cli.screen import busy

    with busy(console) as doing:
        doing("loading")
        from ras_agent.graphs.from_settings import agent_from_settings, role_specs
        from ras_agent.tools.roles import role_name
        from ras_agent.trace import Trace

        specs = role_specs(settings)
        agent = agent_from_settings(settings, _corpus(settings, sample), reasons=reasons)
        if note := _offline_note(specs):
            console.print(note, style="yellow")
        drawing = Drawing(console, verbose=verbose, doing=doing)
        doing("planning")
        try:
            out = asyncio.run(_drawn(agent, question, drawing))
        finally:
            drawing.end()
    roles = {role: role_name(spec) for role, spec in specs.items()}
    return Trace.from_state(out, agent.name, {**roles, "retriever": settings.retriever})


async def _drawn(agent: Agent, question: str, drawing: Drawing) -> dict[str, Any]:
    """Asynchronous, so that Ctrl-C ends a model call that is under way instead of waiting for it."""
    out: dict[str, Any] = {}
    stream: AsyncIterator[Any] = agent.astream({"question": question}, stream_mode=["custom", "values"])
    async for kind, payload in stream:
        if kind == "custom":
            drawing.draw(payload)
        else:
            out = payload
    raise_if_cancelled()
    return out


def _corpus(settings: Settings, sample: bool) -> PassageIndex | list[Passage]:
    if sample or settings.index is None:
        from ras_agent.app.sample import sample_passages

        return sample_passages()
    from ras_agent.tools.index.store import PassageIndex

    return PassageIndex.open(settings.index)


def _offline_note(specs: dict[str, str]) -> str:
    offline = [role for role, spec in specs.items() if spec.partition(":")[0] == "offline"]
    if len(offline) == len(specs):
        return "offline mode: no LLM configured (ras-agent doctor shows how to add one)"
    return f"offline {' and '.join(offline)}: no LLM configured (--{offline[0]} or --llm adds one)" if offline else ""

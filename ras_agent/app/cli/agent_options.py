"""Options that choose an agent and bound its runs, for all commands that run one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Answerer",
    "Cache",
    "Engine",
    "Extractor",
    "FewShot",
    "Graph",
    "K",
    "Llm",
    "MaxFacts",
    "MaxHops",
    "MaxLlmCalls",
    "MaxSeconds",
    "MaxTokens",
    "Planner",
    "Preset",
    "Prompts",
    "RayAddress",
    "Retriever",
    "Style",
    "TripleCache",
    "Workers",
]

AGENT, LIMITS, MODELS, WORK = "Agent", "Limits", "Models", "The run"

Graph = Annotated[str | None, typer.Option(help="ras (default), ircot or single-shot.", rich_help_panel=AGENT)]
Preset = Annotated[str | None, typer.Option(help="paper: exactly the published loop.", rich_help_panel=AGENT)]
Retriever = Annotated[
    str | None,
    typer.Option(
        help="bm25 (default), dense, hybrid; with a knowledge graph: graph, gfm, ppr, paths, pcst, gfm+dense ...",
        rich_help_panel=AGENT,
    ),
]
Llm = Annotated[
    str | None,
    typer.Option(help="Model for every role not set itself, e.g. openai:gpt-4o-mini.", rich_help_panel=AGENT),
]
Planner = Annotated[str | None, typer.Option(help="offline (default) or provider:model.", rich_help_panel=AGENT)]
Extractor = Annotated[
    str | None, typer.Option(help="offline or provider:model; unless set, as the planner.", rich_help_panel=AGENT)
]
Answerer = Annotated[str | None, typer.Option(help="offline (default) or provider:model.", rich_help_panel=AGENT)]

K = Annotated[int | None, typer.Option(help="Passages a hop (5).", rich_help_panel=LIMITS)]
MaxHops = Annotated[int | None, typer.Option(help="Most hops (5).", rich_help_panel=LIMITS)]
MaxFacts = Annotated[int | None, typer.Option(help="Most facts in the graph (400).", rich_help_panel=LIMITS)]
MaxLlmCalls = Annotated[int | None, typer.Option(help="Most model calls (no limit).", rich_help_panel=LIMITS)]
MaxTokens = Annotated[int | None, typer.Option(help="Most tokens, in and out (no limit).", rich_help_panel=LIMITS)]
MaxSeconds = Annotated[float | None, typer.Option(help="Most seconds (no limit).", rich_help_panel=LIMITS)]

Style = Annotated[
    str | None,
    typer.Option(help="Form of the answer: short (default), choice, boolean, long, reader.", rich_help_panel=MODELS),
]
FewShot = Annotated[
    bool | None, typer.Option("--few-shot/--zero-shot", help="Worked examples in prompts.", rich_help_panel=MODELS)
]
Prompts = Annotated[Path | None, typer.Option(help="Folder of your own prompts.", rich_help_panel=MODELS)]
Cache = Annotated[
    Path | None, typer.Option(help="File of kept replies: a run can be replayed.", rich_help_panel=MODELS)
]
TripleCache = Annotated[
    Path | None, typer.Option(help="File of facts by passage, read once for all runs.", rich_help_panel=MODELS)
]

Engine = Annotated[str, typer.Option(help="Where the work is done: here, processes, or ray.", rich_help_panel=WORK)]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Workers of --engine (one a processor core).", rich_help_panel=WORK)
]
RayAddress = Annotated[
    str | None, typer.Option(help="A Ray cluster (RAY_ADDRESS, or one started here).", rich_help_panel=WORK)
]

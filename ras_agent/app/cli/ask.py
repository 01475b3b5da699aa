"""Implements `ras-agent ask`, which answers a question step by step, and `ras-agent show`, which shows a saved
run again.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ras_agent.app.cli.options import (
    INCOMPLETE,
    UNANSWERED,
    Sample,
    check_index,
    offline_note,
)
from ras_agent.app.cli.terminal import (
    busy,
    inert,
    inert_json,
    inert_lines,
    print_line,
    screen,
)
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import SettingsError, TraceError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from rich.console import Console

    from ras_agent.app.cli.draw import Drawing
    from ras_agent.contracts.records import Passage
    from ras_agent.graphs.agent import Agent
    from ras_agent.running.trace import Trace
    from ras_agent.tools.index.store import PassageIndex


_output_option = partial(typer.Option, rich_help_panel="Output")


def ask(
    *,
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    sample: Sample = False,
    settings: Settings,
    flags: frozenset[str],
    as_of: Annotated[
        str | None,
        typer.Option(
            rich_help_panel="Retrieval",
            metavar="DATE",
            help="Answer as of this date, e.g. 2016-05-01, without later documents and facts that held at other times.",
            hidden=True,
        ),
    ] = None,
    thread: Annotated[
        str,
        typer.Option(
            rich_help_panel="Loop",
            help="Continue the conversation of this name, which is stored in --checkpoint.",
            hidden=True,
        ),
    ] = "",
    save: Annotated[
        list[Path] | None,
        _output_option(
            help="Save the run as .html, .json, .graphml or .mmd. May be repeated."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        _output_option(
            "--json",
            help="Print the trace as JSON; everything else goes to standard error.",
        ),
    ] = False,
    reasons: Annotated[
        int,
        _output_option(
            min=0,
            help="For --save and --json: largest number of chains of facts that explain a hit of gfm, paths or pcst; 0 "
            "saves time.",
            hidden=True,
        ),
    ] = 3,
    quiet: Annotated[
        bool,
        _output_option(
            "--quiet",
            "-q",
            help="Print only the answer.",
            hidden=True,
        ),
    ] = False,
    verbose: Annotated[
        bool,
        _output_option("--verbose", "-v", help="Print all facts and whole quotes."),
    ] = False,
) -> None:
    """Answer a question from an index, step by step.

    Without a model it runs in offline mode.

    Most options can also be set in a file, ras-agent.toml (max_hops = 3),
    or in the environment (RAS_AGENT_MAX_HOPS=3); flags override both.
    """
    from ras_agent.app.cli.draw import summary

    if not question.strip():
        raise typer.BadParameter("the question is blank: write a question")
    if sample and "index" in flags:
        raise typer.BadParameter(
            "--index and --sample exclude each other: give one of them"
        )
    check_index(sample, settings)
    targets = [_checked_target(path) for path in save or ()]
    if settings.review:
        from ras_agent.app.cli.reviewing import needs_a_person

        needs_a_person()
    if thread and settings.checkpoint.partition(":")[0] == "memory":
        raise typer.BadParameter(
            "--thread needs a place to store the conversation: add --checkpoint sqlite:FILE"
        )
    if "checkpoint" in flags and not thread:
        raise typer.BadParameter(
            "--checkpoint stores a conversation, which needs a name: add --thread NAME"
        )

    inputs = {"question": question}
    if as_of is not None:
        inputs["as_of"] = as_of
    console = screen(stderr=as_json, quiet=quiet)
    # hits are explained only if the trace is saved or printed, where the reasons can be read
    trace = _run(
        inputs,
        settings,
        console,
        sample=sample,
        thread=thread,
        verbose=verbose,
        reasons=reasons if targets or as_json else 0,
    )
    # printed before anything is saved, so that a full disk does not lose the answer
    if as_json:
        typer.echo(inert_json(trace.to_json()))
    elif quiet:
        typer.echo(inert_lines(trace.answer))
    # with --quiet, nothing else has shown the reason
    if quiet and trace.outcome == "failed" and trace.failures:
        typer.echo(f"ras-agent: {inert(trace.failures[-1].message)}", err=True)
    _save_trace(trace, targets)
    print_line(console, summary(trace, targets), "dim")
    if trace.outcome != "answered":
        raise typer.Exit(UNANSWERED if trace.outcome == "failed" else INCOMPLETE)


def _run(
    inputs: dict[str, str],
    settings: Settings,
    console: Console,
    *,
    sample: bool,
    thread: str,
    verbose: bool,
    reasons: int,
) -> Trace:
    """Ask the question, draw each event, and return the trace. `reasons` is how many explanations are shown for
    each hit.
    """
    import asyncio
    from contextlib import AsyncExitStack

    from ras_agent.app.cli.draw import Drawing

    with busy(console) as doing:
        doing("loading")
        from langgraph.types import Command

        from ras_agent.app.cli.reviewing import decide
        from ras_agent.graphs.resolve import assemble_agent, resolve_parts
        from ras_agent.running.checkpoints import aopen_checkpointer
        from ras_agent.running.review import Review
        from ras_agent.running.trace import Trace
        from ras_agent.tools.retrieve.search import Search

        parts = resolve_parts(
            settings.loop, settings=settings, index=_corpus(settings, sample)
        )
        if reasons:
            search = Search(parts.retriever, reasons=reasons)
            parts = replace(parts, retriever=search)
        if note := offline_note(parts.role_names):
            console.print(note, style="yellow")
        drawing = Drawing(console, verbose=verbose, doing=doing)
        doing("planning")
        try:
            with asyncio.Runner() as runner:
                stack = AsyncExitStack()
                checkpointer = _memory_saver() if parts.review else None
                if thread:
                    checkpointer = runner.run(
                        stack.enter_async_context(
                            aopen_checkpointer(settings.checkpoint)
                        )
                    )
                agent = assemble_agent(parts, checkpointer)
                thread = thread or "ask"
                try:
                    out = runner.run(_stream_events(agent, inputs, thread, drawing))
                    while interrupts := out.get("__interrupt__"):
                        # outside the event loop, so that Ctrl-C ends the wait too
                        doing("")
                        drawing.end()
                        review = Review.from_dict(interrupts[0].value)
                        decision = decide(
                            review, screen(stderr=console.stderr or console.quiet)
                        )
                        out = runner.run(
                            _stream_events(
                                agent, Command(resume=decision), thread, drawing
                            )
                        )
                finally:
                    runner.run(stack.aclose())
        finally:
            drawing.end()
    return Trace.from_state(
        out, agent.name, {**parts.role_names, "retriever": settings.retriever}
    )


def _memory_saver() -> BaseCheckpointSaver[Any]:
    """Return a checkpointer in memory, for a run that waits for a decision."""
    from langgraph.checkpoint.memory import InMemorySaver

    return InMemorySaver()


async def _stream_events(
    agent: Agent, inputs: Any, thread: str, drawing: Drawing
) -> dict[str, Any]:
    """Run the agent and return its last state. It is asynchronous so that Ctrl-C cancels the running model
    call.

    `inputs` is the question, or the decision that the run waits for.
    """
    from ras_agent.running.calling import raise_if_cancelled

    out: dict[str, Any] = {}
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    stream: AsyncIterator[Any] = agent.astream(
        inputs, config, stream_mode=["custom", "values"]
    )
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


def show(
    *,
    trace: Annotated[
        Path,
        typer.Argument(
            help="A trace that `ask --save run.json` or `ask --json` wrote."
        ),
    ],
    save: Annotated[
        list[Path] | None,
        typer.Option(
            "--save",
            "--html",
            help="Save it as .html, .graphml, .mmd or .json. May be repeated.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print all facts and whole quotes.")
    ] = False,
) -> None:
    """Show a saved run in the same form as a live one."""
    from ras_agent.app.cli.draw import Drawing, replayed, summary
    from ras_agent.running.trace import Trace

    targets = [_checked_target(path) for path in save or ()]
    try:
        saved = trace.read_bytes()
    except OSError as error:
        remedy = "`ras-agent ask QUESTION --save run.json` writes a trace"
        raise TraceError(f"{trace}: {error.strerror}; {remedy}") from error
    run = Trace.from_json(saved, str(trace))
    console = screen()
    drawing = Drawing(console, verbose=verbose)
    for event in replayed(run):
        drawing.draw(event)
    _save_trace(run, targets)
    print_line(console, summary(run, targets), "dim")


# ---- saving a trace in the format of the file's suffix


def _html(trace: Trace, path: Path) -> str:
    from ras_agent.page import trace_html

    return trace_html(trace, path.parent)


def _graphml(trace: Trace, _: Path) -> str:
    from ras_agent.question_graph import to_graphml

    return to_graphml(trace.graph)


def _mermaid(trace: Trace, _: Path) -> str:
    from ras_agent.question_graph import to_mermaid

    return to_mermaid(trace.graph)


_FORMS: dict[str, Callable[[Trace, Path], str]] = {
    ".html": _html,
    ".json": lambda trace, _: trace.to_json(indent=2) + "\n",
    ".graphml": _graphml,
    ".mmd": _mermaid,
}


def _checked_target(path: Path) -> Path:
    """Return `path` if a trace can be saved there. It is checked before the run, so that no run is lost.

    Raises:
        SettingsError: if a trace cannot be saved there.
    """
    if path.suffix.lower() not in _FORMS:
        raise SettingsError(
            f"cannot save to {path}: its name must end in one of {', '.join(_FORMS)}"
        )
    if not path.parent.is_dir():
        raise SettingsError(
            f"cannot save to {path}: the folder {path.parent} does not exist; create it first"
        )
    if path.is_dir():
        raise SettingsError(f"cannot save to {path}: it is a folder; name a file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SettingsError(
            f"cannot save to {path}: you have no permission to write there; name another file"
        )
    return path


def _save_trace(trace: Trace, paths: Sequence[Path]) -> None:
    """Write the trace to each of `paths`, or only its graph to a .graphml or .mmd file.

    An OSError is raised only after all paths have been tried.
    """
    errors: list[OSError] = []
    for path in paths:
        try:
            path.write_text(_FORMS[path.suffix.lower()](trace, path), encoding="utf-8")
        except OSError as error:
            errors.append(error)
    if errors:
        raise errors[0]

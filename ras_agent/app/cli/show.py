"""`ras-agent show`: a saved run, drawn once more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ras_agent.app.cli.options import Debug

__all__ = ["show"]


def show(
    trace: Annotated[Path, typer.Argument(help="A trace that `ask --save run.json` or `ask --json` wrote.")],
    save: Annotated[
        list[Path] | None,
        typer.Option("--save", "--html", help="Write it as .html, .graphml, .mmd or .json. May be repeated."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print all facts and whole quotes.")] = False,
    debug: Debug = False,
) -> None:
    """Draw a saved run as it was drawn live."""
    from ras_agent.app.cli.draw import Drawing
    from ras_agent.app.cli.replay import replayed
    from ras_agent.app.cli.save import check_target, save_trace
    from ras_agent.app.cli.screen import screen
    from ras_agent.app.cli.summary import summary
    from ras_agent.errors import TraceError
    from ras_agent.trace import Trace

    targets = [check_target(path) for path in save or ()]
    try:
        saved = trace.read_bytes()
    except OSError as error:
        told = f"{trace}: {error.strerror}; `ras-agent ask QUESTION --save run.json` writes a trace"
        raise TraceError(told) from error
    run = Trace.from_json(saved, str(trace))
    console = screen()
    drawing = Drawing(console, verbose=verbose)
    for event in replayed(run):
        drawing.draw(event)
    save_trace(run, targets)
    console.print(summary(run, targets), style="dim", soft_wrap=True)

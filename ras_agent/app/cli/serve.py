"""`ras-agent serve`: the agent behind HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from ras_agent.app.cli.options import ServeSettings
from ras_agent.errors import MissingExtra


def serve(
    *,
    sample: Annotated[
        bool, typer.Option("--sample", help="Search the bundled sample instead of an index.", rich_help_panel="Agent")
    ] = False,
    settings: ServeSettings,
) -> None:
    """Answer questions over HTTP: a page, REST with live events, OpenAI's protocol.

    It listens on this machine alone unless --host says otherwise. Ctrl-C
    lets the questions under way end, and a second one stops at once.
    """
    import asyncio

    if not sample and settings.needs_index:
        raise typer.BadParameter("no index: give --index PATH, or --sample to try the bundled one")
    try:
        from ras_agent.app.serve.server import run_server
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "ras_agent":
            raise
        raise MissingExtra("the server", "serve") from error
    asyncio.run(run_server(settings, sample=sample, announce=lambda url: typer.echo(f"ras-agent serves {url}")))

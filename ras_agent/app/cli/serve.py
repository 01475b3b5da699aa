"""`ras-agent serve` and `ras-agent mcp`: the agent behind HTTP, and as tools of another one."""

from __future__ import annotations

from typing import Annotated

import typer

from ras_agent.app.cli.options import AnswerSettings, ServeSettings
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


def mcp(
    *,
    sample: Annotated[
        bool, typer.Option("--sample", help="Search the bundled sample instead of an index.", rich_help_panel="Agent")
    ] = False,
    settings: AnswerSettings,
) -> None:
    """Offer the tools ask, retrieve and get_graph to an MCP client, over standard input and output.

    The client starts this command itself: name it in the client's settings.
    Over HTTP, `ras-agent serve` offers the same tools at /mcp.
    """
    import asyncio

    if not sample and settings.needs_index:
        raise typer.BadParameter("no index: give --index PATH, or --sample to try the bundled one")
    try:
        from ras_agent.app.serve.service import open_service
        from ras_agent.app.serve.tools import tools_over
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "ras_agent":
            raise
        raise MissingExtra("the Model Context Protocol", "mcp") from error

    async def run() -> None:
        async with open_service(settings, sample=sample) as service:
            await tools_over(service).run_stdio_async()

    asyncio.run(run())

"""`ras-agent serve` and `ras-agent mcp`: the agent behind HTTP, and as tools of another one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from ras_agent.app.cli.options import AnswerSettings, ServeSettings
from ras_agent.errors import MissingExtra
from ras_agent.settings import Settings

_Sample = Annotated[
    bool, typer.Option("--sample", help="Search the bundled sample instead of an index.", rich_help_panel="Agent")
]


def serve(
    *,
    sample: _Sample = False,
    settings: ServeSettings,
) -> None:
    """Answer questions over HTTP: a page, REST with live events, OpenAI's protocol.

    It listens on this machine alone unless --host says otherwise. Ctrl-C
    lets the questions under way end, and a second one stops at once.
    """
    import asyncio

    _check_index(sample, settings)
    with _extra("the server", "serve"):
        from ras_agent.app.serve.server import run_server
    asyncio.run(run_server(settings, sample=sample, announce=lambda url: typer.echo(f"ras-agent serves {url}")))


def mcp(
    *,
    sample: _Sample = False,
    settings: AnswerSettings,
) -> None:
    """Offer the tools ask, retrieve and get_graph to an MCP client, over standard input and output.

    The client starts this command itself: name it in the client's settings.
    Over HTTP, `ras-agent serve` offers the same tools at /mcp.
    """
    import asyncio

    _check_index(sample, settings)
    with _extra("the Model Context Protocol", "mcp"):
        from ras_agent.app.serve.service import open_service
        from ras_agent.app.serve.tools import tools_over

    async def run() -> None:
        async with open_service(settings, sample=sample) as service:
            await tools_over(service).run_stdio_async()

    asyncio.run(run())


def _check_index(sample: bool, settings: Settings) -> None:
    if not sample and settings.needs_index:
        raise typer.BadParameter("no index: give --index PATH, or --sample to try the bundled one")


@contextmanager
def _extra(feature: str, extra: str) -> Iterator[None]:
    """Name the extra where an import inside the block fails, unless it is one of our own modules that is not there."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "ras_agent":
            raise
        raise MissingExtra(feature, extra) from error

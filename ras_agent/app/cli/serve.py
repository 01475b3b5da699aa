"""Implements `ras-agent serve`, the agent over HTTP, and `ras-agent mcp`, the agent as tools of another agent."""

from __future__ import annotations

import typer

from ras_agent.app.cli.options import Sample, check_index, offline_note
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import needs_extra


def serve(
    *,
    sample: Sample = False,
    settings: Settings,
) -> None:
    """Answer questions over HTTP: a page, REST with live events, OpenAI's protocol.

    It listens only on this machine unless --host says otherwise. Ctrl-C
    lets running questions end; a second Ctrl-C stops at once.
    """
    import asyncio

    check_index(sample, settings)
    with needs_extra("the server", "serve"):
        from ras_agent.app.serve.server import run_server

    def announce(url: str) -> None:
        typer.echo(f"ras-agent serves {url}\n{_models(settings)}")

    asyncio.run(run_server(settings, sample=sample, announce=announce))


def mcp(
    *,
    sample: Sample = False,
    settings: Settings,
) -> None:
    """Offer the tools ask, retrieve and get_graph to an MCP client, over standard input and output.

    The client starts this command itself: name it in the client's settings.
    Over HTTP, `ras-agent serve` offers the same tools at /mcp.
    """
    import asyncio

    check_index(sample, settings)
    with needs_extra("the Model Context Protocol", "mcp"):
        from ras_agent.app.serve.service import open_service
        from ras_agent.app.serve.tools import tools_over

    async def run() -> None:
        async with open_service(settings, sample=sample) as service:
            typer.echo(_models(settings), err=True)
            await tools_over(service).run_stdio_async()

    asyncio.run(run())


def _models(settings: Settings) -> str:
    """Return a line that names the model of each role, or says that there is no model."""
    from ras_agent.graphs.resolve import role_specs
    from ras_agent.tools.roles import role_name

    role_names = {role: role_name(spec) for role, spec in role_specs(settings).items()}
    roles: dict[str, list[str]] = {}
    for role, name in role_names.items():
        roles.setdefault(name, []).append(role)
    models = [
        f"{', '.join(by_it)}: {name}"
        for name, by_it in roles.items()
        if name != "offline"
    ]
    return " · ".join(filter(None, (*models, offline_note(role_names))))

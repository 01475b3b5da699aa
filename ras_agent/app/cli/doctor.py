"""`ras-agent doctor`: what is installed, what is missing and how to get it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.exits import ERROR
from ras_agent.app.cli.options import Config, Debug

if TYPE_CHECKING:
    from ras_agent.app.doctor import Check

__all__ = ["doctor"]

INDENT = 20


def doctor(
    index: Annotated[Path | None, typer.Option("--index", "-i", help="An index to look into.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Show what is installed and set up, what is missing, and how to add an LLM."""
    import json
    from dataclasses import asdict

    from ras_agent.app.doctor import examine

    checks = examine(index, config)
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        _draw(checks)
    if any(check.ok is False for check in checks):
        raise typer.Exit(ERROR)


def _draw(checks: Sequence[Check]) -> None:
    from rich.text import Text

    from ras_agent import __version__
    from ras_agent.app.cli.inert import inert
    from ras_agent.app.cli.layout import hang
    from ras_agent.app.cli.screen import screen
    from ras_agent.app.doctor import ADD_A_MODEL

    console = screen()
    console.print(f"ras-agent {__version__}", style="bold")
    marks = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("–", "dim")}
    section = ""
    for check in checks:
        if check.section != section:
            section = check.section
            console.print(f"\n{section}", style="bold")
        label = Text("  ").append(*marks[check.ok]).append(f" {inert(check.name)} ")
        body = Text(inert(check.detail))
        if check.remedy and not check.ok:
            body.append(f" · {check.remedy}" if check.detail else check.remedy, "cyan")
        hang(console, label, body, INDENT)
    console.print("\nto add an LLM", style="bold")
    for name, install, variable, flag in ADD_A_MODEL:
        steps = [install, *([f"export {variable}=..."] if variable else []), f'ras-agent ask "..." {flag}']
        hang(console, Text(f"    {name} "), Text("\n".join(steps), "cyan"), INDENT)

"""The program `ras-agent`: its commands, its exit codes, and how errors reach the terminal."""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ras_agent import __version__
from ras_agent.app.cli import gfm, kg, kg_edit
from ras_agent.app.cli.ask import ask, show
from ras_agent.app.cli.doctor import doctor
from ras_agent.app.cli.eval_cost import eval_cost
from ras_agent.app.cli.evaluate import evaluate
from ras_agent.app.cli.index import index
from ras_agent.app.cli.options import ERROR, EXIT_CODES, INTERRUPTED, USAGE, help_of, with_options, work_of
from ras_agent.app.cli.report import report
from ras_agent.app.cli.serve import mcp, serve
from ras_agent.app.cli.structure import structure
from ras_agent.app.cli.study import study
from ras_agent.app.cli.terminal import inert
from ras_agent.errors import FlagError, RasError
from ras_agent.settings import Settings, describe

_QUESTIONS, _TEXTS, _EVALUATION, _SETUP = "Ask", "Your texts", "Evaluate", "Set up"

COMMANDS: dict[str, tuple[str, Callable[..., None]]] = {
    "ask": (_QUESTIONS, ask),
    "show": (_QUESTIONS, show),
    "serve": (_QUESTIONS, serve),
    "mcp": (_QUESTIONS, mcp),
    "index": (_TEXTS, index),
    "structure": (_TEXTS, structure),
    "kg build": (_TEXTS, kg.build),
    "kg add": (_TEXTS, kg.add),
    "kg delete": (_TEXTS, kg.delete),
    "kg edit": (_TEXTS, kg_edit.edit),
    "kg stats": (_TEXTS, kg.stats),
    "kg export": (_TEXTS, kg.export),
    "kg examples": (_TEXTS, gfm.examples),
    "kg train": (_TEXTS, gfm.train),
    "eval": (_EVALUATION, evaluate),
    "report": (_EVALUATION, report),
    "study": (_EVALUATION, study),
    "eval-cost": (_EVALUATION, eval_cost),
    "doctor": (_SETUP, doctor),
}
"""Command -> (its panel in `ras-agent --help`, its function)."""


def build_program(model: type[Settings] = Settings) -> typer.Typer:
    """Return the command line over a settings class: its fields are the options of the commands."""
    look: dict[str, Any] = {**_LOOK, "add_completion": True}
    app = typer.Typer(
        cls=_Reporting,
        name="ras-agent",
        help="Answers questions that need several hops over your own text, step by step, with citations.",
        epilog=EXIT_CODES,
        **look,
    )
    app.callback()(_program_options)
    graphs = typer.Typer(name="kg", help="Make, change, look at and export the knowledge graph of an index.", **_LOOK)
    app.add_typer(graphs, rich_help_panel=_TEXTS)
    for name, (panel, command) in COMMANDS.items():
        taking = with_options(command, model)
        if name.startswith("kg "):
            graphs.command(name.removeprefix("kg "))(taking)
        else:
            app.command(name, rich_help_panel=panel)(taking)
    return app


_LOOK: dict[str, Any] = {
    "no_args_is_help": True,
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class _Reporting(TyperGroup):
    """Prints an error that a user can act on in one line, and leaves all others to Python."""

    def invoke(self, ctx: Any) -> Any:
        ctx.obj = {"debug": False}
        try:
            return super().invoke(ctx)
        except (RasError, OSError) as error:
            if ctx.obj["debug"] or isinstance(error, BrokenPipeError):
                raise
            typer.echo(f"ras-agent: {inert(str(error))}", err=True)
            raise typer.Exit(USAGE if isinstance(error, FlagError) else ERROR) from error
        except (KeyboardInterrupt, typer.Abort) as error:
            typer.echo("ras-agent: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from error


def settings_table(model: type[Settings] = Settings) -> str:
    """Return a Markdown table of all settings: name, default, meaning, and the commands that have a flag for it."""
    works = {name: work_of(command) for name, (_, command) in COMMANDS.items()}
    lines = ["| setting | default | meaning | flag of |", "|---|---|---|---|"]
    for setting in describe(model).values():
        default = "" if setting.default is None else f"`{json.dumps(setting.default)}`"
        takers = ", ".join(f"`{name}`" for name, work in works.items() if work in setting.work)
        lines.append(f"| `{setting.name}` | {default} | {help_of(setting)} | {takers} |")
    return "\n".join(lines) + "\n"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ras-agent {__version__}")
        raise typer.Exit()


def _program_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options of the program itself."""


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # titles and answers are in any script, whatever the terminal's locale can encode
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    warnings.showwarning = show_warning
    try:
        build_program()()
    except KeyboardInterrupt:  # before a command is running, or after it
        sys.exit(INTERRUPTED)


def show_warning(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
    """Print a warning in one line, as an error is printed; where in the code it came from says nothing to a user."""
    typer.echo(f"ras-agent: {inert(str(message))}", err=True)

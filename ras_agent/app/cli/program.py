"""The program `ras-agent`: its commands, its exit codes, and how errors reach the terminal."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ras_agent import __version__
from ras_agent.app.cli import ask, doctor, eval_cost, evaluate, index, kg, report, show, structure, study
from ras_agent.app.cli.exits import EPILOG, ERROR, INTERRUPTED
from ras_agent.app.cli.inert import inert
from ras_agent.errors import RasError

__all__ = ["app", "main"]


class Reporting(TyperGroup):
    """Tells errors that a user can act on in one line, and leaves the rest to Python."""

    def invoke(self, ctx: Any) -> Any:
        ctx.obj = {"debug": False}
        try:
            return super().invoke(ctx)
        except (RasError, OSError) as error:
            if ctx.obj["debug"] or isinstance(error, BrokenPipeError):
                raise
            typer.echo(f"ras-agent: {inert(str(error))}", err=True)
            raise typer.Exit(ERROR) from error
        except (KeyboardInterrupt, typer.Abort) as error:
            typer.echo("ras-agent: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from error


app = typer.Typer(
    cls=Reporting,
    name="ras-agent",
    help="Answers questions that need several hops over your own text, step by step, with citations.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("index")(index.index)
app.command("ask")(ask.ask)
app.command("show")(show.show)
app.add_typer(kg.kg)
app.command("eval")(evaluate.evaluate)
app.command("report")(report.report)
app.command("study")(study.study)
app.command("eval-cost")(eval_cost.eval_cost)
app.command("structure")(structure.structure)
app.command("doctor")(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ras-agent {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of the program itself."""


def main() -> None:
    """Run the command line."""
    # titles and answers are in any script, whatever the terminal's locale claims
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app()

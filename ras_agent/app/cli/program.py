"""Builds the program `ras-agent`: its commands, its exit codes, and how errors are printed."""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from ras_agent import __version__
from ras_agent.app.cli import (
    arena,
    ask,
    calibrate,
    corpus,
    doctor,
    eval_cost,
    evaluate,
    export,
    gfm,
    index,
    judge,
    kg,
    kg_edit,
    replay,
    report,
    rollout,
    serve,
    structure,
    study,
    threads,
)
from ras_agent.app.cli.command import (
    DEBUG,
    LOOK,
    Command,
    Commands,
    Group,
    LazyGroup,
    each_command,
    help_of,
)
from ras_agent.app.cli.options import ERROR, EXIT_CODES, INTERRUPTED, USAGE
from ras_agent.app.cli.terminal import inert
from ras_agent.config.registry import run_plugin_file
from ras_agent.config.settings import Settings, describe
from ras_agent.contracts.errors import FlagError, RasError

_QUESTIONS = "Ask"
_TEXTS = "Your texts"
_EVALUATION = "Evaluate"
_SETUP = "Set up"

COMMANDS: Commands = {
    "ask": Command(ask.ask, ask.AskOptions, _QUESTIONS),
    "show": Command(ask.show, ask.ShowOptions, _QUESTIONS),
    "serve": Command(serve.serve, serve.ServeOptions, _QUESTIONS),
    "mcp": Command(serve.mcp, serve.McpOptions, _QUESTIONS),
    "threads": Group(
        "List and forget stored conversations, and export what was said of their answers.",
        {
            "list": Command(threads.list_stored, threads.ListOptions),
            "forget": Command(threads.forget, threads.ForgetOptions),
            "export": Command(threads.export, threads.ExportOptions),
        },
        _QUESTIONS,
    ),
    "index": Command(index.index, index.IndexOptions, _TEXTS),
    "structure": Command(structure.structure, structure.StructureOptions, _TEXTS),
    "kg": Group(
        "Make, change, look at and export the knowledge graph of an index.",
        {
            "build": Command(kg.build, kg.BuildOptions),
            "add": Command(kg.add, kg.AddOptions),
            "delete": Command(kg.delete, kg.DeleteOptions),
            "edit": Command(kg_edit.edit, kg_edit.EditOptions),
            "stats": Command(kg.stats, kg.StatsOptions),
            "schema": Command(kg.schema, kg.SchemaOptions),
            "export": Command(kg.export, kg.ExportOptions),
            "examples": Command(gfm.examples, gfm.ExamplesOptions),
            "train": Command(gfm.train, gfm.TrainOptions),
        },
        _TEXTS,
    ),
    "eval": Command(evaluate.evaluate, evaluate.EvalOptions, _EVALUATION),
    "report": Command(report.report, report.ReportOptions, _EVALUATION),
    "replay": Command(replay.replay, replay.ReplayOptions, _EVALUATION),
    "diff": Command(report.diff, report.DiffOptions, _EVALUATION),
    "corpus": Command(corpus.corpus, corpus.CorpusOptions, _EVALUATION),
    "judge": Command(judge.judge, judge.JudgeOptions, _EVALUATION),
    "calibrate": Command(calibrate.calibrate, calibrate.CalibrateOptions, _EVALUATION),
    "export": Command(export.export, export.ExportOptions, _EVALUATION),
    "rollout": Command(rollout.rollout, rollout.RolloutOptions, _EVALUATION),
    "arena": Command(arena.arena, arena.ArenaOptions, _EVALUATION),
    "study": Group(study.ABOUT, study.STUDIES, _EVALUATION),
    "eval-cost": Command(eval_cost.eval_cost, eval_cost.CostOptions, _EVALUATION),
    "doctor": Command(doctor.doctor, doctor.DoctorOptions, _SETUP),
}


def build_program(model: type[Settings] = Settings) -> typer.Typer:
    """Return the command line as a typer application. The fields of the settings class `model` are options of its
    commands.
    """
    app = typer.Typer(
        cls=_Reporting.over(COMMANDS, model),
        name="ras-agent",
        help="Answers questions that need several hops over your own text, step by step, with citations.",
        epilog=EXIT_CODES,
        **{**LOOK, "add_completion": True},
    )
    app.callback()(_program_options)
    for name, group in COMMANDS.items():
        if isinstance(group, Group):
            inner = typer.Typer(
                name=name,
                help=group.help,
                cls=LazyGroup.over(group.commands, model),
                **LOOK,
            )
            app.add_typer(inner, rich_help_panel=group.panel)
    return app


class _Reporting(LazyGroup):
    """Group that prints an error that a user can act on in one line, and leaves all other errors to Python."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (RasError, OSError) as error:
            if ctx.meta.get(DEBUG) or isinstance(error, BrokenPipeError):
                raise
            typer.echo(f"ras-agent: {inert(str(error))}", err=True)
            raise typer.Exit(
                USAGE if isinstance(error, FlagError) else ERROR
            ) from error
        except (KeyboardInterrupt, typer.Abort) as error:
            typer.echo("ras-agent: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from error


def settings_table(model: type[Settings] = Settings) -> str:
    """Return a Markdown table of all settings: name, default, meaning, and the commands that have a flag for it."""
    lines = ["| setting | default | meaning | flag of |", "|---|---|---|---|"]
    for setting in describe(model).values():
        default = "" if setting.default is None else f"`{json.dumps(setting.default)}`"
        takers = dict.fromkeys(
            "study" if name.startswith("study ") else name
            for name, command in each_command(COMMANDS)
            if command.options.work in setting.work
        )
        commands = ", ".join(f"`{name}`" for name in takers)
        lines.append(
            f"| `{setting.name}` | {default} | {help_of(setting)} | {commands} |"
        )
    return "\n".join(lines) + "\n"


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ras-agent {__version__}")
        raise typer.Exit()


def _program_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            "--plugin",
            metavar="FILE",
            help="A Python file that registers plug-ins, before the command: --plugin my.py ask ... More than once for more.",
        ),
    ] = None,
) -> None:
    """Take the options of the program itself."""
    for file in plugin or ():
        run_plugin_file(file)


def main() -> None:
    """Run the command line with the arguments of the process, and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        # titles and answers may be in scripts that the terminal's locale cannot encode
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    warnings.showwarning = show_warning
    try:
        build_program()()
    except KeyboardInterrupt:  # before or after a command
        sys.exit(INTERRUPTED)


def show_warning(
    message: Warning | str, category: type[Warning], *place: Any, **options: Any
) -> None:
    """Print a warning in one line, like an error, without its place in the code."""
    typer.echo(f"ras-agent: {inert(str(message))}", err=True)

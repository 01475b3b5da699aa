"""Builds the program `ras-agent` from its commands, and prints errors."""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from ras_agent import __version__
from ras_agent.app.cli.command import (
    DEBUG,
    LOOK,
    Command,
    Commands,
    Group,
    each_command,
)
from ras_agent.app.cli.options import ERROR, EXIT_CODES, INTERRUPTED, USAGE
from ras_agent.app.cli.terminal import inert
from ras_agent.config.registry import run_plugin_file
from ras_agent.contracts.errors import FlagError, RasError

if TYPE_CHECKING:
    from ras_agent.config.settings import Settings

_QUESTIONS = "Ask"
_TEXTS = "Your texts"
_EVALUATION = "Evaluate"
_SETUP = "Set up"

_STUDY = """Run a set of evaluations that differ in one thing, and compare them.

Each run is a folder under OUT/runs, as `ras-agent eval` makes it: the
same command resumes it, and `ras-agent report OUT/runs/*` shows it.
Replies are shared: runs that send a model the same prompt send it once.
"""

COMMANDS: Commands = {
    "ask": Command(
        ".ask:ask",
        "Answer a question from an index, step by step.",
        _QUESTIONS,
        work="ask",
    ),
    "show": Command(
        ".ask:show", "Show a saved run in the same form as a live one.", _QUESTIONS
    ),
    "serve": Command(
        ".serve:serve",
        "Answer questions over HTTP: a page, REST with live events, OpenAI's protocol.",
        _QUESTIONS,
        work="serve",
    ),
    "mcp": Command(
        ".serve:mcp",
        "Offer the tools ask, retrieve and get_graph to an MCP client, over standard input and output.",
        _QUESTIONS,
        work="answer",
    ),
    "threads": Group(
        "List and forget stored conversations, and export what was said of their answers.",
        {
            "list": Command(
                ".threads:list_stored",
                "List the stored threads, the most recent first: id, time and first question.",
            ),
            "forget": Command(
                ".threads:forget",
                "Delete a stored thread: its checkpoints, and the facts that a server's thread remembers.",
            ),
            "export": Command(
                ".threads:export",
                "Write people's verdicts on answers from the server's page as questions with their right answers.",
            ),
        },
        _QUESTIONS,
    ),
    "index": Command(
        ".index:index",
        "Make an index of files and folders, or bring one up to date.",
        _TEXTS,
        work="index",
    ),
    "structure": Command(
        ".structure:structure",
        "Read the facts of a corpus once, for all later runs.",
        _TEXTS,
        work="extract",
    ),
    "kg": Group(
        "Make, change, look at and export the knowledge graph of an index.",
        {
            "build": Command(
                ".kg:build",
                "Make the graph of an index, or bring it up to date.",
                work="extract",
            ),
            "add": Command(".kg:add", "Add an existing knowledge graph to an index."),
            "delete": Command(
                ".kg:delete",
                "Delete documents from an index, and their facts from its graph.",
            ),
            "edit": Command(
                ".kg_edit:edit",
                "Correct the graph of an index: remove, replace or add a fact, merge or split entities, list or undo edits.",
            ),
            "stats": Command(
                ".kg:stats",
                "Show the numbers of an index's graph, or one of its entities.",
            ),
            "schema": Command(
                ".kg:schema",
                "Suggest a schema for the relations that a graph has, as TOML to edit.",
            ),
            "export": Command(
                ".kg:export", "Write the graph for other programs, or as a picture."
            ),
            "examples": Command(
                ".gfm:examples",
                "Write a set to train the graph network on: a graph, and its questions.",
            ),
            "train": Command(
                ".gfm:train", "Train the graph network on sets, or continue a training."
            ),
        },
        _TEXTS,
    ),
    "eval": Command(
        ".evaluate:evaluate",
        "Ask an agent a question set and score its answers.",
        _EVALUATION,
        work="eval",
    ),
    "report": Command(
        ".report:report",
        "Show evaluation runs: scores with intervals, differences, costs, and every question.",
        _EVALUATION,
    ),
    "replay": Command(
        ".replay:replay",
        "Ask an evaluation's questions again, from its own replies.",
        _EVALUATION,
        work="eval",
    ),
    "diff": Command(
        ".report:diff",
        "Say which questions changed between two runs, and at which step first.",
        _EVALUATION,
    ),
    "corpus": Command(
        ".corpus:corpus",
        "Write the passages of a benchmark's questions, each once, for `ras-agent index`.",
        _EVALUATION,
    ),
    "judge": Command(
        ".judge:judge",
        "Ask a model whether a run's answers are right, and write judged-RULE.json into its folder.",
        _EVALUATION,
        work="judge",
    ),
    "calibrate": Command(
        ".calibrate:calibrate",
        "Learn from a run how sure answers are, and above which confidence few of them are wrong.",
        _EVALUATION,
    ),
    "export": Command(
        ".export:export",
        "Write a run's questions, passages, answers and scores in the formats of other libraries.",
        _EVALUATION,
    ),
    "rollout": Command(
        ".rollout:rollout",
        "Ask one question with the model in training as planner, and print its reward as JSON.",
        _EVALUATION,
        work="answer",
    ),
    "arena": Command(
        ".arena:arena",
        "Measure retrievers on a public question set, and compare them with published results.",
        _EVALUATION,
        work="eval",
    ),
    "study": Group(
        _STUDY,
        {
            "ablations": Command(
                ".study:ablations",
                "Take one part away at a time: planning, text-to-triples, retrieval, graph encoding.",
                work="eval",
            ),
            "abundance": Command(
                ".study:abundance",
                "Answer each question from 10 to 100 % of its triples, to measure how scores depend on their number.",
                work="eval",
            ),
            "extractors": Command(
                ".study:extractors",
                "Compare extractors: triples against gold ones, tokens per second, the loop's scores.",
                work="eval",
            ),
            "graph-pays": Command(
                ".study:graph_pays",
                "Does the graph pay? Compare one agent over retrievers with and without it.",
                work="eval",
            ),
            "oracles": Command(
                ".study:oracles",
                "Give roles the gold annotation, to show which part loses points.",
                work="eval",
            ),
            "roles": Command(
                ".study:roles",
                "Cross every planner with every answerer: a matrix and a heat map.",
                work="eval",
            ),
            "sweep": Command(
                ".study:sweep", "Combine hop limits with passages per hop.", work="eval"
            ),
        },
        _EVALUATION,
    ),
    "eval-cost": Command(
        ".eval_cost:eval_cost",
        "Compare the cost of extraction: the corpus once, or each question's passages.",
        _EVALUATION,
    ),
    "doctor": Command(
        ".doctor:doctor",
        "Show the parts that are installed, the missing ones, and how to add an LLM.",
        _SETUP,
    ),
}


def build_program(model: type[Settings] | None = None) -> typer.Typer:
    """Return the command line as a typer application.

    Its commands' settings are the fields of the settings class `model`, by default Settings.
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


class LazyGroup(TyperGroup):
    """Lists its commands. To start fast, it describes to typer only the options of the command that runs."""

    described: ClassVar[Commands] = {}
    model: ClassVar[type[Settings] | None] = None
    """the class whose fields are options; by default Settings"""

    @classmethod
    def over(
        cls, commands: Commands, model: type[Settings] | None = None
    ) -> type[LazyGroup]:
        """Return a subclass for `commands`, whose settings are the fields of the settings class `model`."""
        return type(cls.__name__, (cls,), {"described": commands, "model": model})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        groups = dict(self.commands)
        self.commands.clear()
        for name, command in self.described.items():
            self.commands[name] = groups.get(name) or _list_entry(name, command)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the command to run, the command, and the remaining words of the command line."""
        name, entry, rest = super().resolve_command(ctx, args)
        command = self.described.get(name or "")
        if isinstance(command, Command):
            from ras_agent.app.cli import flags

            entry = flags.typer_command(command, self.model, name)
        return name, entry, rest


def _list_entry(name: str, command: Command | Group) -> TyperCommand:
    """Return a command's line in the list of commands."""
    if isinstance(command, Command):
        about = command.about
    else:
        about = command.help
    return TyperCommand(
        name,
        help=about,
        rich_help_panel=command.panel,
        rich_markup_mode=LOOK["rich_markup_mode"],
    )


class _Reporting(LazyGroup):
    """Prints an error that a user can act on in one line, and leaves all other errors to Python."""

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


def settings_table(model: type[Settings] | None = None) -> str:
    """Return a Markdown table of all settings: name, default, meaning, and the commands that have a flag for it."""
    from ras_agent.app.cli.flags import help_of
    from ras_agent.config.settings import Settings, describe

    lines = ["| setting | default | meaning | flag of |", "|---|---|---|---|"]
    for setting in describe(model or Settings).values():
        default = "" if setting.default is None else f"`{json.dumps(setting.default)}`"
        takers = dict.fromkeys(
            "study" if name.startswith("study ") else name
            for name, command in each_command(COMMANDS)
            if command.work in setting.work
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
    """Print a warning in one line, as an error is printed, without its place in the code."""
    typer.echo(f"ras-agent: {inert(str(message))}", err=True)

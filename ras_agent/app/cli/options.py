"""What the commands share: options that are made from the settings, options of several commands, exit codes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from ras_agent.address import Address, place_of, refuse_address
from ras_agent.app.cli.terminal import inert
from ras_agent.app.watching import watching
from ras_agent.errors import SettingsError
from ras_agent.settings import (
    Setting,
    Settings,
    Work,
    describe,
    find_config,
    load_settings,
    refuse_code,
    refuse_keys,
    unnamed_destinations,
)

DONE, ERROR, USAGE, INCOMPLETE, UNANSWERED, INTERRUPTED = 0, 1, 2, 3, 4, 130

EXIT_CODES = (
    "Exit codes: 0 done; 1 error; 2 wrong usage; 3 done, but `ask` found no answer in the text, "
    "`index` or `structure` could not read all of its input, or a question of `eval` failed; "
    "4 `ask` has no answer because a model cannot be asked, its answerer failed or a limit refused its call; "
    "130 interrupted."
)


# ---- options made from the settings


@dataclass(frozen=True, slots=True)
class _SettingsOf:
    """Marks the parameter of a command that receives the settings of its work."""

    work: Work


AnswerSettings = Annotated[Settings, _SettingsOf("answer")]
AskSettings = Annotated[Settings, _SettingsOf("ask")]
ExtractSettings = Annotated[Settings, _SettingsOf("extract")]
ServeSettings = Annotated[Settings, _SettingsOf("serve")]
IndexSettings = Annotated[Settings, _SettingsOf("index")]
GivenFlags = Annotated[frozenset[str], "given"]
"""Receives the names of the settings that were given as flags, for a command that has to know."""

Config = Annotated[
    Path | None,
    typer.Option("--config", help="Settings file; else ./ras-agent.toml, else ~/.config/ras-agent/config.toml."),
]


def with_options(command: Callable[..., None], model: type[Settings] = Settings) -> Callable[..., None]:
    """Return `command` as typer runs it: with --debug, and with an option for each setting of its work.

    The options replace the parameter of type AnswerSettings, AskSettings and so on, which receives the settings of
    file, environment and flags. A setting is left out where the command has a parameter of the same name.
    """
    own = inspect.signature(command, eval_str=True).parameters
    work = work_of(command)
    taken = [setting for setting in describe(model, work).values() if setting.name not in own] if work else []
    receiver = next((name for name, parameter in own.items() if _work(parameter)), None)
    given = next((name for name, parameter in own.items() if parameter.annotation == GivenFlags), None)
    shown: list[inspect.Parameter] = []
    for name, parameter in own.items():
        if name == receiver:
            shown += map(_option, taken)
        elif name != given:
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    if receiver:
        shown.append(_parameter("config", Config, None))
    shown.append(_parameter("debug", _DEBUG, False))

    @wraps(command)
    def run(**values: Any) -> None:
        del values["debug"]  # its callback has seen it
        values = {name: _as_text(value) for name, value in values.items()}
        for value in values.values():
            if isinstance(value, Path):
                refuse_address(value)
        if receiver:
            flags = {setting.name: values.pop(setting.name) for setting in taken}
            flags = {name: None if value == [] else value for name, value in flags.items()}
            config = values.pop("config")
            file = find_config(config)
            values[receiver] = load_settings(file, flags=flags, model=model)
            _name_destinations(file, unnamed_destinations(file, config, flags=flags, model=model, work=work))
            if given:
                values[given] = frozenset(name for name, value in flags.items() if value is not None)
        with watching(values[receiver]) if receiver else nullcontext():
            command(**values)

    # typer reads the parameters here; a function's type has no attribute for them
    vars(run)["__signature__"] = inspect.Signature(shown)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _name_destinations(file: Path | None, destinations: Mapping[str, str]) -> None:
    """Say on screen where a file of the working directory leads. Raises SettingsError if a key would go there."""
    refuse_code(file, destinations)
    refuse_keys(file, destinations, os.environ)
    if destinations:
        from ras_agent.tools.chat.models import printable

        named = ", ".join(f"{name} = {printable(value)}" for name, value in destinations.items())
        typer.echo(f"ras-agent: settings of {file}: {inert(named)}", err=True)


def _as_text(value: Any) -> Any:
    """Return words of the command line as the UTF-8 that they are, where a locale such as C makes bytes of them.

    Paths stay as they are: files are opened by their bytes; and so do the members of an Enum, whose names are ASCII.
    """
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return os.fsencode(value).decode("utf-8", "replace") if type(value) is str else value


def work_of(command: Callable[..., None]) -> Work | None:
    """Return the work whose settings a command takes; None if it takes none."""
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if work := _work(parameter):
            return work
    return None


def _work(parameter: inspect.Parameter) -> Work | None:
    marks = getattr(parameter.annotation, "__metadata__", ())
    return next((mark.work for mark in marks if isinstance(mark, _SettingsOf)), None)


def _option(setting: Setting) -> inspect.Parameter:
    """Return the option of a setting. None stands for "not given": the file or the environment may have a value."""
    about = escape(help_of(setting))
    if setting.default not in (None, "", False):
        shown = f"{setting.default:g}" if setting.type is float else setting.default
        about += f" [dim]\\[default: {shown}][/dim]"
    reading: dict[str, Any] = {"parser": read_place, "metavar": "PLACE"} if setting.name == "index" else {}
    option = typer.Option(*setting.flags, help=about, rich_help_panel=setting.panel or None, **reading)
    kind: Any = list[str] if setting.repeated else setting.type
    return _parameter(setting.name, Annotated[kind | None, option], None)


def read_place(text: str) -> Path | Address:
    """Return the place of an index. Raises BadParameter, which does not show the text: it may hold a password."""
    try:
        return place_of(text)
    except SettingsError as error:
        raise typer.BadParameter(str(error)) from None


def help_of(setting: Setting) -> str:
    """Return what a setting is for, with the values allowed."""
    return setting.help + (f" One of {', '.join(setting.choices)}." if setting.choices else "")


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _remember_debug(ctx: typer.Context, value: bool) -> None:
    ctx.obj["debug"] = value


_DEBUG = Annotated[
    bool, typer.Option("--debug", callback=_remember_debug, is_eager=True, help="Show tracebacks of errors.")
]

# ---- options of several commands

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
PricesFile = Annotated[
    Path | None, typer.Option(help='Your prices per million tokens: {"model": {"input": 1, "output": 2}}.')
]
_WORK = "The run"
Engine = Annotated[str, typer.Option(help="Where the work is done: here, processes or ray.", rich_help_panel=_WORK)]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Workers of --engine; if not set, one per core.", rich_help_panel=_WORK)
]
RayAddress = Annotated[
    str | None, typer.Option(help="A Ray cluster; else RAY_ADDRESS, else one started here.", rich_help_panel=_WORK)
]

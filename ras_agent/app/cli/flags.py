"""Describes the options of a command to typer: the parameters of its function, and one for each setting of its work.

This is done only for the command that runs, shows its help or is completed, because importing pydantic and the
settings takes as long as everything else that the list of commands needs.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperOption

from ras_agent.app.cli.command import DEBUG, LOOK, Command
from ras_agent.app.cli.options import read_place
from ras_agent.app.cli.terminal import inert
from ras_agent.config.address import refuse_address
from ras_agent.config.registry import warn_of_old_name
from ras_agent.config.settings import (
    Setting,
    Settings,
    Work,
    describe,
    find_config,
    load_settings,
)
from ras_agent.config.settings.fields import PLACES
from ras_agent.config.settings.trust import (
    refuse_code,
    refuse_keys,
    unnamed_destinations,
)
from ras_agent.contracts.errors import SettingsError


def typer_command(
    command: Command, model: type[Settings] | None = None, name: str | None = None
) -> TyperCommand:
    """Return a command in typer's form, with the fields of the settings class `model` as options.

    `name` is the command's name, by default that of its function.
    """
    app = typer.Typer(**LOOK)
    app.command(name, cls=_TwoPages)(_function(command, model or Settings))
    only = typer.main.get_command(app)
    assert isinstance(only, TyperCommand)
    return only


# ---- from parameters to flags


def _function(command: Command, model: type[Settings]) -> Callable[..., None]:
    """Return the function that typer calls with the values of the command's options, `--config` and `--debug`."""
    function = command.run
    work = command.work
    declared = _declared(function)
    settings: list[Setting] = []
    if work:
        settings += describe(model, work).values()
    settings = [setting for setting in settings if setting.name not in declared]

    def run(
        *, debug: bool, help_all: bool, **values: Any
    ) -> None:  # `debug` and `help_all` are handled by callbacks
        values = {name: _as_text(value) for name, value in values.items()}
        for value in values.values():
            if isinstance(value, Path):
                refuse_address(value)
        if not work:
            _call(function, values)
            return
        flags: dict[str, Any] = {}
        for setting in settings:
            value = values.pop(setting.name)
            if value not in (None, []):
                flags[setting.name] = value
        values["settings"] = _read_settings(values["config"], flags, model, work)
        values["flags"] = frozenset(flags)
        with _log_and_spans(values["settings"]):
            _call(function, values)

    parameters: list[inspect.Parameter] = []
    for parameter in declared.values():
        if parameter.name == "settings":
            parameters += [_setting_option(setting, work) for setting in settings]
        elif parameter.name != "flags":
            parameters.append(parameter)
    if work:
        parameters.append(_parameter("config", Config, None))
    parameters.append(_parameter("debug", _DEBUG, False))
    parameters.append(_parameter("help_all", _HELP_ALL, False))
    run.__doc__ = inspect.getdoc(function)
    # typer reads the options from here; set through vars because the type of functions has no such attribute
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {
        parameter.name: parameter.annotation for parameter in parameters
    }
    return run


def _declared(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function by name, with the fields of a dataclass in place of the parameter that is one."""
    types = get_type_hints(function, include_extras=True)
    declared: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if is_dataclass(types[name]):
            for inner, shared in _declared(types[name]).items():
                declared.setdefault(inner, shared)
        else:
            declared[name] = _parameter(name, types[name], parameter.default)
    return declared


def _call(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call a function with the values of its parameters. A parameter that is a dataclass is made from the values."""
    types = get_type_hints(function)
    arguments: dict[str, Any] = {}
    for name in inspect.signature(function).parameters:
        if is_dataclass(types[name]):
            arguments[name] = _call(types[name], values)
        else:
            arguments[name] = values[name]
    return function(**arguments)


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def _setting_option(setting: Setting, work: Work | None) -> inspect.Parameter:
    """Return the command-line option of a setting. If the option is not given its value is None, so that a
    settings file applies.
    """
    about = escape(help_of(setting))
    if setting.default not in (None, "", False):
        default = setting.default
        if setting.type is float:
            default = f"{default:g}"
        about += f" [dim]\\[default: {default}][/dim]"
    reading: dict[str, Any] = {}
    if setting.name in PLACES:
        reading["parser"] = read_place
        reading["metavar"] = "PLACE"
    option = typer.Option(
        *setting.flags,
        help=about,
        rich_help_panel=setting.panel or None,
        hidden=work not in setting.everyday,
        show_default=False,  # the text has the default; None only means that the flag was not given
        **reading,
    )
    kind: Any = setting.type
    if setting.repeated:
        kind = list[str]
    return _parameter(setting.name, Annotated[kind | None, option], None)


def help_of(setting: Setting) -> str:
    """Return a setting's help text, followed by the allowed values."""
    if not setting.choices:
        return setting.help
    return f"{setting.help} One of {', '.join(setting.choices)}."


def _as_text(value: Any) -> Any:
    """Decode words of the command line as UTF-8 if Python could not decode them, as in the locale C.

    Paths stay unchanged, because files are opened by their bytes; so do members of an Enum, which are ASCII.
    """
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    if type(value) is not str:
        return value
    return os.fsencode(value).decode("utf-8", "replace")


def _read_settings(
    config: Path | None, flags: Mapping[str, Any], model: type[Settings], work: Work
) -> Settings:
    """Return the settings of file, environment and flags.

    A line is printed if a file in the working folder makes passages go to a server.

    Raises:
        SettingsError: if that server would also get a key.
    """
    file = find_config(config)
    settings = load_settings(file, flags=flags, model=model)
    destinations = unnamed_destinations(file, config, os.environ, flags, model, work)
    refuse_code(file, destinations)
    refuse_keys(file, destinations, os.environ)
    if destinations:
        from ras_agent.tools.chat.secrets import printable

        places = ", ".join(
            f"{name} = {printable(value)}" for name, value in destinations.items()
        )
        typer.echo(f"ras-agent: settings of {file}: {inert(places)}", err=True)
    return settings


@contextmanager
def _log_and_spans(settings: Settings) -> Iterator[None]:
    """Write the log and send the spans of everything inside the block.

    Raises:
        SettingsError: if the log cannot be written.
    """
    with ExitStack() as stack:
        if settings.log is not None:
            from ras_agent.logs import LOGGER, log_to

            place: str | Path = settings.log
            if settings.log.name == "-":
                place = "-"
            try:
                handler = log_to(place, text=settings.log_text)
            except OSError as error:
                raise SettingsError(
                    f"the log {str(place)!r} cannot be written: {error.strerror}; name another file"
                ) from error
            stack.callback(handler.close)
            stack.callback(LOGGER.removeHandler, handler)
        if settings.otel:
            from ras_agent.telemetry import export_runs

            stack.callback(export_runs())
        yield


# ---- two pages of help


_ALL_PAGES = "ras_agent.help_all"


class _TwoPages(TyperCommand):
    """Shows its everyday options on --help, and all options, in panels, on --help-all."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._rare = [
            option
            for option in self.params
            if isinstance(option, TyperOption) and option.hidden
        ]
        for option in self._rare:
            # so that these options are completed and suggested too
            option.hidden = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command line. The old name `--graph` is still accepted for `--loop`."""
        if any(param.name == "loop" for param in self.params):
            args = [_current_flag(word) for word in args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        page = copy(self)
        if not ctx.meta.get(_ALL_PAGES):
            page.params = [
                _in_one_list(param) for param in self.params if param not in self._rare
            ]
        super(_TwoPages, page).format_help(ctx, formatter)


def _current_flag(word: str) -> str:
    """Return a word of the command line, with an old name of a flag replaced by the current one. Warns about
    it.
    """
    flag, equals, value = word.partition("=")
    if flag != "--graph":
        return word
    warn_of_old_name("--graph", "--loop")
    return f"--loop{equals}{value}"


def _in_one_list(param: Any) -> Any:
    """Return a copy of an option without its panel."""
    plain = copy(param)
    if isinstance(plain, TyperOption):
        plain.rich_help_panel = None
    return plain


def _show_all(ctx: typer.Context, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL_PAGES] = True
        typer.echo(ctx.get_help(), color=ctx.color)
        raise typer.Exit()


def _remember_debug(ctx: typer.Context, value: bool) -> None:
    ctx.meta[DEBUG] = value


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Settings file; else ./ras-agent.toml, else ~/.config/ras-agent/config.toml.",
    ),
]
_DEBUG = Annotated[
    bool,
    typer.Option(
        "--debug",
        callback=_remember_debug,
        is_eager=True,
        hidden=True,
        help="Show tracebacks of errors.",
    ),
]
_HELP_ALL = Annotated[
    bool,
    typer.Option(
        "--help-all",
        callback=_show_all,
        is_eager=True,
        help="Show all options, in groups.",
    ),
]

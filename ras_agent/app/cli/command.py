"""Declares commands by the names of their modules, so that they can be listed without importing them.

A command is a function with typer's arguments and options as parameters:

    def ask(
        *,
        question: Annotated[str, typer.Argument(help="The question, in quotes.")],
        settings: Settings,
        flags: frozenset[str],
    ) -> None: ...

If the command has a `work`, the parameter `settings` stands for one option for each setting of this work, unless another
parameter has the setting's name; its value is the settings of file, environment and flags. `flags` are the names of the
settings that were given as flags. A parameter that is a dataclass stands for its fields, which several commands share.

A command's module is imported only when this command runs, shows its help or is completed; ras_agent.app.cli.flags
then describes its options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ras_agent.config.settings import Work

DEBUG = "ras_agent.debug"
"""The key in typer's context that says whether errors are shown with their tracebacks."""
LOOK: dict[str, Any] = {
    "no_args_is_help": True,
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": "rich",
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""Arguments for typer that the program and each group share."""


@dataclass(frozen=True, slots=True)
class Command:
    """Declares a command of the program."""

    place: str
    """the function that runs it, as "module:function", with a module of this package as ".module" """
    about: str
    """the first sentence of the function's docstring, for the list of commands"""
    panel: str | None = None
    """its heading in the list of commands"""
    work: Work | None = None
    """the kind of work, such as "answer", whose settings are options of the command"""

    @property
    def run(self) -> Callable[..., None]:
        """Import and return the command's function."""
        module, _, name = self.place.partition(":")
        run: Callable[..., None] = getattr(import_module(module, __package__), name)
        return run


@dataclass(frozen=True, slots=True)
class Group:
    """Declares a group of commands, such as `ras-agent kg`."""

    help: str
    commands: Mapping[str, Command]
    panel: str | None = None


Commands = Mapping[str, Command | Group]


def each_command(commands: Commands) -> Iterator[tuple[str, Command]]:
    """Yield every command with its full name, such as "kg build"."""
    for name, command in commands.items():
        if isinstance(command, Command):
            yield name, command
            continue
        for part, inner in command.commands.items():
            yield f"{name} {part}", inner

"""Makes a training's configuration from its command line, with one option for each field of a config dataclass."""

from __future__ import annotations

import argparse
import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ras_agent.config.registry import run_plugin_file

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Config = TypeVar("Config", bound="DataclassInstance")


def config_from(
    cls: type[Config], description: str | None, arguments: Sequence[str] | None = None
) -> Config:
    """Parse a command line into the config dataclass `cls`, which checks the values.

    A field `save_every: int` is the option `--save-every N`, a bool is `--name` or `--no-name`, and a tuple takes
    values separated by commas, or the option several times. Fields without a default are required. A field that is not
    an argument of the class (`init=False`) is not an option. The sentence under a field is its help text, followed by
    its default. `--plugin FILE` runs a Python file that registers plug-ins first.

    Args:
        cls: The config dataclass.
        description: The help of the command, usually the module's docstring.
        arguments: The command line; by default that of the process.
    """
    sentences = dict(_sentences(cls))
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for field in fields(cls):
        if not field.init:
            continue
        name = f"--{field.name.replace('_', '-')}"
        annotation = str(field.type)
        required = field.default is MISSING
        words = f"{sentences.get(field.name, '')} {_default_of(field)}".strip()
        words = words.replace("%", "%%")  # argparse fills % in
        # an option that is left out is not an argument of the class, which has its default
        given: dict[str, Any] = {
            "required": required,
            "default": argparse.SUPPRESS,
            "help": words,
        }
        if annotation.startswith("bool"):
            parser.add_argument(
                name,
                action=argparse.BooleanOptionalAction,
                default=argparse.SUPPRESS,
                help=words,
            )
        elif annotation.startswith("tuple["):
            kind = partial(
                _values, _kind_of(annotation.removeprefix("tuple[").partition(",")[0])
            )
            parser.add_argument(name, type=kind, action="extend", **given)
        else:
            parser.add_argument(name, type=_kind_of(annotation), **given)
    parser.add_argument(
        "--plugin",
        type=Path,
        action="append",
        default=[],
        help="A Python file that registers plug-ins; more than once for more. (not set)",
    )
    options = vars(parser.parse_args(arguments))
    for file in options.pop("plugin"):
        run_plugin_file(file)
    for name, value in options.items():
        if isinstance(value, list):
            options[name] = tuple(value)
    return cls(**options)


def _sentences(cls: type) -> Iterator[tuple[str, str]]:
    """Yield each field of a class and of its bases with the sentence under it, those of the bases first."""
    for base in reversed(cls.__mro__):
        if not is_dataclass(base):
            continue
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except OSError:  # without the source, options have no help texts
            continue
        [definition] = ast.parse(source).body
        if isinstance(definition, ast.ClassDef):
            body = definition.body
        else:
            body = []
        for field, below in pairwise(body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                    value=ast.Constant(value=str(sentence))
                ):
                    yield name, " ".join(sentence.split())


def _default_of(field: Field[Any]) -> str:
    """Return the default of an option for its help text."""
    if field.default is MISSING:
        return "(required)"
    if field.default is None or field.default in ("", ()):
        return "(not set)"
    if field.default is True:
        return "(default: on)"
    if field.default is False:
        return "(default: off)"
    if isinstance(field.default, tuple):
        values = field.default
    else:
        values = (field.default,)
    return f"(default: {','.join(map(str, values))})"


def _kind_of(annotation: str) -> type:
    return {"int": int, "float": float, "str": str}.get(
        annotation.partition(" ")[0], Path
    )


def _values(kind: type, text: str) -> tuple[object, ...]:
    return tuple(kind(value) for value in text.split(",") if value)

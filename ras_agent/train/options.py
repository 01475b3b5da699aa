"""Make a training's configuration from its command line: one option for each field of a config dataclass."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Config = TypeVar("Config", bound="DataclassInstance")


def config_from(cls: type[Config], description: str | None, arguments: Sequence[str] | None = None) -> Config:
    """Parse a command line into a configuration, which its class checks.

    A field `save_every: int` is `--save-every N`, a bool is `--name` or `--no-name`, and a tuple takes values parted by
    commas, or the option more than once. Fields without a default have to be given; one that is no argument of the
    class (`init=False`) is no option.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(cls):
        if not field.init:
            continue
        name, annotation = f"--{field.name.replace('_', '-')}", str(field.type)
        required = field.default is MISSING
        # an option that is left out is not an argument of the class, which has its default
        if annotation.startswith("bool"):
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS)
        elif annotation.startswith("tuple["):
            kind = partial(_values, _kind_of(annotation.removeprefix("tuple[").partition(",")[0]))
            parser.add_argument(name, required=required, default=argparse.SUPPRESS, type=kind, action="extend")
        else:
            parser.add_argument(name, required=required, default=argparse.SUPPRESS, type=_kind_of(annotation))
    options = vars(parser.parse_args(arguments))
    return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in options.items()})


def _kind_of(annotation: str) -> type:
    return {"int": int, "float": float, "str": str}.get(annotation.partition(" ")[0], Path)


def _values(kind: type, text: str) -> tuple[object, ...]:
    return tuple(kind(value) for value in text.split(",") if value)

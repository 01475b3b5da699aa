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
    """Return the configuration that the options say, which the class checks.

    A field `save_every: int` is `--save-every N`, a bool is `--name` or `--no-name`, and a tuple takes values parted by
    commas. Fields without a default have to be given.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(cls):
        name, kind = f"--{field.name.replace('_', '-')}", str(field.type)
        required = field.default is MISSING
        default = None if required else field.default
        if kind.startswith("bool"):
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=default)
        elif kind.startswith("tuple["):
            one = _kind_of(kind.removeprefix("tuple[").partition(",")[0])
            parser.add_argument(name, required=required, default=default, type=partial(_several, one))
        else:
            parser.add_argument(name, required=required, default=default, type=_kind_of(kind))
    return cls(**vars(parser.parse_args(arguments)))


def _kind_of(annotation: str) -> type:
    return {"int": int, "float": float, "str": str}.get(annotation.partition(" ")[0], Path)


def _several(kind: type, text: str) -> tuple[object, ...]:
    return tuple(kind(one) for one in text.split(",") if one)

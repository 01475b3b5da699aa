"""Describes the settings of a class, for flags, help texts and the table in the docs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from ras_agent.config.settings.fields import Settings, Work


@dataclass(frozen=True, slots=True)
class Setting:
    """Describes one field of a settings class."""

    name: str
    type: type
    """The type to which a value is converted: str, int, float, bool or Path."""
    choices: tuple[str, ...]
    """The allowed values, if the field is a Literal; otherwise ()."""
    default: Any
    help: str
    panel: str
    """The heading under which the help of a command lists the flag."""
    work: frozenset[Work]
    """The kinds of work, such as "answer" or "index", that use the setting; their commands have its flag."""
    flags: tuple[str, ...]
    repeated: bool
    """Whether the flag may be given several times, each time with one key=value."""
    everyday: frozenset[Work]
    """The kinds of work whose commands show the setting in the short form of their help."""


def describe(
    model: type[Settings] = Settings, work: Work | None = None
) -> dict[str, Setting]:
    """Return the settings of a class by name, in order; with `work`, only those that this kind of work uses."""
    described = {}
    for setting in _settings(model):
        if work is None or work in setting.work:
            described[setting.name] = setting
    return described


@cache
def _settings(model: type[Settings]) -> tuple[Setting, ...]:
    settings = []
    for name, info in model.model_fields.items():
        settings.append(_setting(name, info))
    return tuple(settings)


def _setting(name: str, info: FieldInfo) -> Setting:
    about: Any = info.json_schema_extra or {}
    work: set[Work] = set(about.get("work", get_args(Work)))
    if "answer" in work:
        work |= {"ask", "eval", "serve"}
    everyday = about.get("everyday", False)
    if everyday is True:
        everyday = work
    read_as = _without_none(info.annotation)
    repeated = get_origin(read_as) is dict
    choices: tuple[str, ...] = ()
    if get_origin(read_as) is Literal:
        values = get_args(read_as)
        choices = tuple(map(str, values))
    if choices or repeated:
        read_as = str
    return Setting(
        name=name,
        type=read_as,
        choices=choices,
        default=info.default,
        help=info.description or "",
        panel=about.get("panel", ""),
        work=frozenset(work),
        flags=tuple(about.get("flags", ())),
        repeated=repeated,
        everyday=frozenset(everyday or ()),
    )


def _without_none(annotation: Any) -> Any:
    """Return the type X of `X | None`, of `Annotated[X, ...]` and of `X | Y`."""
    if get_origin(annotation) not in (Annotated, Union, UnionType):
        return annotation
    for part in get_args(annotation):
        if part is not NoneType:
            return _without_none(part)
    return NoneType

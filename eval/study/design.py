"""A study before it is run: its runs, and how their results are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ras_agent.eval.run.evaluation import Configuration, Material
from ras_agent.eval.run.result import Result
from ras_agent.eval.study.folder import LeftOut
from ras_agent.records import JSON

__all__ = ["Design", "Shown", "Show", "extended"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A study's outcome: Markdown, the same figures as JSON, and SVG by file name.

    A picture is made when it is called for, so that its library need not be there for the tables.
    """

    markdown: str
    figures: JSON
    pictures: Mapping[str, Callable[[], str]] = field(default_factory=dict)


Show = Callable[[Mapping[str, Sequence[Result]]], Shown]
"""From each run's results, by its name, to what is shown."""


@dataclass(frozen=True, slots=True)
class Design:
    """The runs in their order, each over its material: an earlier one may be what a later one starts from.

    left_out: runs that do not apply here. headline: the metric that decides. base: the run that others are held
    against, if there is one.
    """

    study: str
    runs: tuple[tuple[Material, Configuration], ...]
    show: Show
    headline: str
    base: str = ""
    left_out: tuple[LeftOut, ...] = ()


def extended(metrics: Sequence[str], *more: str) -> tuple[str, ...]:
    """Names of metrics, each once."""
    return tuple(dict.fromkeys((*metrics, *more)))

"""Checks the options of a training: the ranges of numbers, and the choices of words."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ras_agent.contracts.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Range:
    """Describes a range of numbers from `low` to `high`, both included; with `above`, `low` is excluded."""

    low: float
    high: float = math.inf
    above: bool = False

    def holds(self, number: float) -> bool:
        """Tell whether a number is in the range. NaN never is."""
        return self.low <= number <= self.high and not (
            self.above and number == self.low
        )

    def __str__(self) -> str:
        text = f"at least {self.low}"
        if self.above:
            text = f"above {self.low}"
        if self.high == math.inf:
            return text
        if self.high == sys.float_info.max:
            return f"{text} and finite"
        return f"{text} and at most {self.high}"


NATURAL = Range(0)
COUNT = Range(1)
SHARE = Range(0, 1)
AMOUNT = Range(0, sys.float_info.max)
SEED = Range(0, 2**63 - 1)


def check_ranges(config: object, ranges: Mapping[str, Range]) -> None:
    """Raise SettingsError for the first field of `config` whose number is out of its range. The message names
    the option.

    `ranges` has the range of each field by name. Each number of a tuple is checked; None is ignored.
    """
    for name, range_ in ranges.items():
        value = getattr(config, name)
        if value is None:
            continue
        numbers = value if isinstance(value, tuple) else (value,)
        for number in numbers:
            if not range_.holds(number):
                raise SettingsError(
                    f"--{name.replace('_', '-')} must be {range_}, got {number}"
                )


def check_choices(config: object, choices: Mapping[str, Sequence[str]]) -> None:
    """Raise SettingsError for the first field of `config` with a value that is not among its choices.

    `choices` has the allowed values of each field by name.
    """
    for name, values in choices.items():
        value = getattr(config, name)
        if value not in values:
            raise SettingsError(
                f"--{name.replace('_', '-')} {value}: unknown; known: {', '.join(values)}"
            )

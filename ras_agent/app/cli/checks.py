"""Defines the checks that `ras-agent doctor` prints, and their short form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_MISSING = {"core": "missing", "extras": "not installed", "providers": "without a key"}
"""Sections whose checks the short form merges into two lines: available parts, and missing parts under this
name."""
_COUNTED = {"core": "packages", "extras": "installed"}
"""Sections with available parts that are counted instead of named."""
_MOST_NAMED = 4
"""The maximum number of providers without a key that are named; more are counted."""


@dataclass(frozen=True, slots=True)
class Check:
    """Records whether one part of the installation works."""

    section: str
    """the heading under which the check is listed"""
    name: str
    ok: bool | None
    """False for a failure; None for a part that is missing but not required"""
    detail: str = ""
    remedy: str = ""
    """how to get the missing part"""


def short_form(checks: Sequence[Check]) -> list[Check]:
    """Return the checks with those of some sections merged: one line for all passed, and one for all missing
    parts.

    A failed check keeps its own line.
    """
    short: list[Check] = []
    sections = dict.fromkeys(check.section for check in checks)
    for section in sections:
        of_section = [check for check in checks if check.section == section]
        if section in _MISSING:
            short += _merged(section, of_section)
        else:
            short += of_section
    return short


def _merged(section: str, checks: Iterable[Check]) -> list[Check]:
    there: list[str] = []
    missing: list[str] = []
    failed: list[Check] = []
    for check in checks:
        if check.ok:
            there.append(check.name)
        elif check.ok is None:
            missing.append(check.name)
        else:
            failed.append(check)
    merged: list[Check] = []
    if there and section in _COUNTED:
        merged.append(
            Check(section, section, True, f"{len(there)} {_COUNTED[section]}")
        )
    elif there:
        merged.append(Check(section, section, True, ", ".join(there)))
    if missing:
        is_long = section not in _COUNTED and len(missing) > _MOST_NAMED
        names = ", ".join(missing[:_MOST_NAMED] if is_long else missing)
        if is_long:
            names += f" and {len(missing) - _MOST_NAMED} more"
        merged.append(Check(section, _MISSING[section], None, names))
    return [*merged, *failed]

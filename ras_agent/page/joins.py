"""Finds pairs of entities on the page that are one thing under two names, such as "river Dorve" and "Dorve".

Two names stand for one thing if one of them is the other with a description added.
"""

from __future__ import annotations

from collections.abc import Mapping

_MOST_NAMES = 200  # a larger graph has too many pairs to compare
_BESIDE = frozenset({"at", "in", "near", "on"})  # "Quenne at Mittenau" is Quenne
# "capital of France" is not France
_OF = frozenset({"at", "by", "for", "from", "in", "near", "of", "on", "to", "with"})


def same_thing(label: str, other: str) -> bool:
    """Tell whether two labels name the same thing because the longer one is the shorter one with a description added.

    >>> same_thing("Dorve", "river Dorve"), same_thing("Quenne at Mittenau", "Quenne")
    (True, True)
    >>> same_thing("France", "capital of France"), same_thing("Bell", "Bell Telephone Company")
    (False, False)
    """
    short, long = sorted((_words(label), _words(other)), key=len)
    if short[:1] in (["the"], ["The"]):
        short = short[1:]
    if not short or len(short) >= len(long) or not short[0][0].isupper():
        return False
    for start in range(len(long) - len(short) + 1):
        end = start + len(short)
        if long[start:end] == short:
            return _describes(long[:start]) and _goes_on(long[end:])
    return False


def _words(label: str) -> list[str]:
    return label.replace(",", " ,").split()


def _describes(before: list[str]) -> bool:
    """Tell whether the words before a name only describe it, as "river" does."""
    if not before or before == ["The"]:
        return True
    return all(map(str.islower, before)) and before[-1] not in _OF


def _goes_on(after: list[str]) -> bool:
    """Tell whether the words after a name are an addition and not a part of it."""
    return not after or after[0] == "," or after[0] in _BESIDE


def joins_of(labels: Mapping[int, str]) -> list[tuple[int, int]]:
    """Return pairs of entities, by index, whose labels name the same thing (see `same_thing`).

    A label that two other labels contain is not joined.
    """
    if len(labels) > _MOST_NAMES:
        return []
    longer: dict[int, list[int]] = {}
    for entity, label in labels.items():
        for other, name in labels.items():
            if len(label) < len(name) and same_thing(label, name):
                longer.setdefault(entity, []).append(other)
    joins = []
    for entity, others in sorted(longer.items()):
        if len(others) == 1:
            joins.append((entity, others[0]))
    return joins

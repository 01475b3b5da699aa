"""Which passages a question may be answered from: a filter over their metadata, documents and ids.

    {"team": "x"}                       the passages with "team": "x" in their metadata
    {"team": ["x", "y"], "year": 2019}  of team x or y, and of 2019
    {"document_id": "handbook/*"}       of documents with an id that begins so; `id` likewise, for passages

Every retriever applies it before it chooses its best k, so that a passage outside is never found, shown or counted.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ras_agent.errors import FilterError
from ras_agent.records import Passage
from ras_agent.text.normal_form import storable, storable_number

OWN_FIELDS = ("id", "document_id", "title")
"""Keys that mean a passage's own field, whatever its metadata has under them."""
_WITH_PREFIXES = ("id", "document_id")
ASSIGNED = (*OWN_FIELDS, "file", "page", "facts")
"""Keys that nobody gives to documents from outside: what they are, where they are from, what they state"""

Scalar = str | int | float | bool


def as_text(value: object) -> str | None:
    """Return a value as JSON writes it, texts as they are; None for a value that no filter matches."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, Mapping):
        return None
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return str(value)


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition that a passage has one of some values under `key`; a list in its metadata has each of its items.

    Values compare as they are written: 2019 and "2019" are equal, 1 and true are not. `values` keep their types.
    """

    key: str
    texts: tuple[str, ...]
    values: tuple[Scalar, ...] = field(default=(), compare=False)

    def matches(self, passage: Passage) -> bool:
        """Tell whether the condition holds for `passage`."""
        return any(self.admits(text) for text in texts_of(passage, self.key))

    def admits(self, text: str) -> bool:
        """Tell whether one value of the key, as text, is among those asked for."""
        return text in self.texts or any(
            text.startswith(prefix) for prefix in self.prefixes
        )

    def __str__(self) -> str:
        return f"{self.key} = {' or '.join(self.texts)}"

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Return the allowed beginnings of ids: the values of `id` and `document_id` that end with a star."""
        if self.key not in _WITH_PREFIXES:
            return ()
        return tuple(text[:-1] for text in self.texts if text.endswith("*"))


def texts_of(passage: Passage, key: str) -> list[str]:
    """Return the values that `passage` has under `key`, as texts."""
    if key in OWN_FIELDS:
        return [getattr(passage, key)]
    return value_texts(passage.metadata.get(key))


def value_texts(value: object) -> list[str]:
    """Return a value of the metadata, or each item of a list, as texts."""
    texts = map(as_text, _items(value))
    return [text for text in texts if text is not None]


def _items(value: object) -> list[object]:
    """Return the items of a list, or a list of the one value."""
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    return [value]


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter that admits the passages for which all of its conditions hold; without conditions, all passages."""

    conditions: tuple[Condition, ...] = ()

    @classmethod
    def of(cls, source: object) -> Self:
        """Make a filter of a JSON object, of a list of objects that must all hold, of a filter, or of None.

        Raises FilterError for anything else, for a key without a value, and for a value that no text can match.
        """
        if isinstance(source, cls):
            return source
        if source is None:
            return cls()
        if isinstance(source, Mapping):
            conditions = [_condition(key, value) for key, value in source.items()]
            return cls().both(cls(tuple(conditions)))
        if isinstance(source, Sequence) and not isinstance(source, str):
            return cls().both(*map(cls.of, source))
        raise FilterError(
            f'a filter is a JSON object such as {{"team": "x"}}, got {source!r:.200}'
        )

    def both(self, *others: Filter) -> Self:
        """Return the filter that admits a passage if this filter and all `others` admit it."""
        conditions = set(self.conditions)
        for other in others:
            conditions.update(other.conditions)
        in_order = sorted(conditions, key=_order)
        return type(self)(tuple(in_order))

    def matches(self, passage: Passage) -> bool:
        """Tell whether `passage` is admitted."""
        return all(condition.matches(passage) for condition in self.conditions)

    def __bool__(self) -> bool:
        """Tell whether the filter leaves anything out at all."""
        return bool(self.conditions)

    def __str__(self) -> str:
        return ", ".join(map(str, self.conditions))


ALL = Filter()
"""Admits every passage"""


def read_filter(parts: Iterable[str]) -> dict[str, list[str]]:
    """Turn texts "key=value" of a command line into the JSON of a filter. Several values of a key are alternatives.

    Raises FilterError for a text without "=" or without a key.
    """
    by_key: dict[str, list[str]] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise FilterError(
                f"a field is written key=value, such as team=x, got {part!r}"
            )
        by_key.setdefault(key.strip(), []).append(value)
    return by_key


def read_metadata(source: object) -> dict[str, Any]:
    """Read the fields that a user gives documents: a JSON object, or texts "key=value" as the command line has them.

    A filter compares these values; None, or an empty text, removes a field. Raises FilterError.
    """
    if isinstance(source, list | tuple) and all(
        isinstance(part, str) for part in source
    ):
        source = {
            key: _one_or_all(values) for key, values in read_filter(source).items()
        }
    if not isinstance(source, Mapping):
        raise FilterError(
            f'metadata is a JSON object such as {{"team": "x"}}, got {source!r:.200}'
        )
    for key in ASSIGNED:
        if key in source:
            raise FilterError(
                f"metadata: {key!r} is what a passage itself says; choose another name"
            )
    fields: dict[str, Any] = {}
    for key, value in source.items():
        if isinstance(value, tuple | set | frozenset):
            value = list(value)
        fields[key] = None if value == "" else value
    try:
        Filter.of({key: value for key, value in fields.items() if value is not None})
        json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:  # no number, or half a character
        raise FilterError(f"metadata: {error}") from error
    return fields


def _one_or_all(values: list[str]) -> str | list[str]:
    if len(values) == 1:
        return values[0]
    return values


def takes_filter(retriever: object) -> bool:
    """Tell whether a retriever's method `retrieve` has a parameter `filter`."""
    parameters = inspect.signature(getattr(retriever, "retrieve")).parameters.values()  # noqa: B009
    return any(
        parameter.name == "filter" or parameter.kind is parameter.VAR_KEYWORD
        for parameter in parameters
    )


def _condition(key: object, value: object) -> Condition:
    if not isinstance(key, str) or not key:
        raise FilterError(f"a filter's keys are texts, got {key!r:.200}")
    if storable(key) != key:
        raise FilterError(
            f"filter key {key!r:.200} holds what no database keeps: a NUL, or half a character"
        )
    listed = _items(value)
    if not listed:
        raise FilterError(
            f"filter key {key!r} has no value: leave the key away, or name what it may be"
        )
    texts: dict[str, Scalar] = {}
    for item in listed:
        if not isinstance(item, str | bool | int | float):
            raise FilterError(
                f"filter key {key!r} is compared with a text, a number, true or false, or a list of them, "
                f"got {item!r:.200}"
            )
        if isinstance(item, int) and not storable_number(item):
            raise FilterError(f"filter key {key!r}: a whole number has at most 64 bits")
        texts.setdefault(as_text(item) or "", item)
    ordered = dict(sorted(texts.items()))
    return Condition(key, tuple(ordered), tuple(ordered.values()))


def _order(condition: Condition) -> tuple[str, tuple[str, ...]]:
    return condition.key, condition.texts

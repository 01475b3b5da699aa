"""Defines filters, which restrict the passages that a question may be answered from, by metadata, documents and
ids.

    {"team": "x"}                       passages with "team": "x" in their metadata
    {"team": ["x", "y"], "year": 2019}  passages of team x or y, and of 2019
    {"document_id": "handbook/*"}       passages of documents whose id begins with "handbook/"; `id` likewise
    {"date": {"before": "2024-01-01"}}  an earlier date or a smaller number; `after` likewise; both may be combined
    {"team": {"not": ["x", "y"]}}       neither of these teams; `in` is the opposite
    {"date": {"exists": true}}          passages that have the field; false for those without it
    {"date": {"until": "2024-05"}}      no later date than that month; also passages without the field

Every retriever applies the filter before it chooses its best k passages, so that a passage outside the filter
is never found, shown or counted.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, Literal, NamedTuple, Self, get_args

from ras_agent.contracts.errors import FilterError
from ras_agent.contracts.records import Passage, without_none
from ras_agent.text.normal_form import storable, storable_number

OWN_FIELDS = ("id", "document_id", "title")
"""Keys that stand for a field of the passage itself, even if the metadata has the same key."""
_WITH_PREFIXES = ("id", "document_id")
ASSIGNED = (*OWN_FIELDS, "file", "page", "facts")
"""Metadata keys that users cannot set. They record which passage it is, where it comes from and which facts it
states."""

Scalar = str | int | float | bool
_YEAR = len("2024")
_MONTH = len("2024-01")
_DAY = len("2024-01-31")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_text(value: object) -> str | None:
    """Return a value of the metadata as the text that filters compare: a text unchanged, any other value as
    JSON.

    Return None for null and for an object, because no filter matches them.
    """
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, Mapping):
        return None
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return str(value)


Test = Literal["in", "not", "before", "after", "until", "exists"]
"""The ways to compare a field with the values of a condition."""
_TESTS = frozenset(get_args(Test))
_SHOWN = {"in": "=", "not": "is not"}
_FORMS = (
    'before, after, until, in, not and exists, as in {"date": {"before": "2024-01-01"}}, {"year": {"after": 2019}}, '
    '{"team": {"not": ["x", "y"]}} and {"date": {"exists": true}}'
)


class Order(NamedTuple):
    """Holds a value in the two forms in which `before`, `after` and `until` compare it."""

    number: float | None
    """the value as a number; None if it is not a number"""
    time: float | None
    """the value as seconds since 1970; None if it is not a date"""

    def is_before(self, other: Order) -> bool:
        """Tell whether both values are numbers, or both are times, and this one is smaller or earlier."""
        if self.number is not None and other.number is not None:
            return self.number < other.number
        if self.time is not None and other.time is not None:
            return self.time < other.time
        return False


def order_of(text: str) -> Order:
    """Return a text as a number or a date. A date is YYYY, YYYY-MM, YYYY-MM-DD, or a date and time in ISO 8601.

    A year or a month stands for its first day; a time without a zone is taken as UTC.
    """
    number = _number_in(text)
    date = text
    if len(text) == _YEAR and text.isdecimal():
        date = f"{text}-01-01"
    elif len(text) == _MONTH:
        date = f"{text}-01"
    elif number is not None:
        return Order(number, None)
    try:
        moment = datetime.fromisoformat(date)
    except ValueError:
        return Order(number, None)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return Order(number, since.total_seconds())


def _end_of(text: str) -> float | None:
    """Return the end of the year, month or day that a text names, in seconds since 1970; for a time, the time
    itself.
    """
    time = order_of(text).time
    if time is None or len(text) > _DAY:
        return time
    begin = _EPOCH + timedelta(seconds=time)
    if len(text) == _YEAR:
        end = begin.replace(year=begin.year + 1)
    elif len(text) == _MONTH:
        end = (begin + timedelta(days=31)).replace(day=1)
    else:
        end = begin + timedelta(days=1)
    return (end - _EPOCH).total_seconds() - 1


def as_of_filter(date: object) -> dict[str, Any]:
    """Return the filter that leaves out passages dated after `date`: YYYY, YYYY-MM or YYYY-MM-DD.

    Raises FilterError for anything else.
    """
    if not isinstance(date, str) or order_of(date).time is None or len(date) > _DAY:
        raise FilterError(
            f"as_of must be a date such as '2016', '2016-05' or '2016-05-01', got {date!r:.80}"
        )
    return {"date": {"until": date}}


def _number_in(text: str) -> float | None:
    """Return the text as a number if it is a finite number in JSON, else None."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Condition:
    """Tests the values that a passage has under `key`. A list in the metadata counts as several values.

    Values are compared as texts: 2019 and "2019" are equal, 1 and true are not. `values` holds the same values
    in their original types.
    """

    key: str
    texts: tuple[str, ...]
    values: tuple[Scalar, ...] = field(default=(), compare=False)
    test: Test = "in"
    """"in": one of the passage's values is among `texts`; "not": none of them is; "before", "after": one of them is
    smaller or greater than the text; "until": none of them is greater than the text, or later than the day, month or year
    that it names; "exists": whether there is a value, "true" or "false"."""

    def matches(self, passage: Passage) -> bool:
        """Tell whether the condition holds for `passage`."""
        return self.holds(texts_of(passage, self.key))

    def holds(self, texts: Sequence[str]) -> bool:
        """Tell whether the condition holds for a passage with these values under the key."""
        if self.is_ordered:
            return self.holds_for(list(map(order_of, texts)))
        return any(map(self.admits, texts)) == (self.test == "in")

    @property
    def is_ordered(self) -> bool:
        """Tell whether the condition compares by order ("before", "after", "until") or existence, not by
        equality.
        """
        return self.test in ("before", "after", "until", "exists")

    def holds_for(self, orders: Sequence[Order]) -> bool:
        """Tell whether a condition on order or existence holds for a passage whose values have these orders."""
        if self.test == "exists":
            return bool(orders) == (self.texts == ("true",))
        bound = order_of(self.texts[0])
        if self.test == "before":
            return any(order.is_before(bound) for order in orders)
        if self.test == "until":
            last = Order(bound.number, _end_of(self.texts[0]))
            return not any(last.is_before(order) for order in orders)
        return any(bound.is_before(order) for order in orders)

    def admits(self, text: str) -> bool:
        """Tell whether `text`, one of a passage's values, equals a value of the condition or begins with one of
        its prefixes.
        """
        return text in self.texts or any(
            text.startswith(prefix) for prefix in self.prefixes
        )

    def __str__(self) -> str:
        return (
            f"{self.key} {_SHOWN.get(self.test, self.test)} {' or '.join(self.texts)}"
        )

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Return the prefixes of ids that match: each value of `id` or `document_id` that ends with a star,
        without the star.
        """
        if self.key not in _WITH_PREFIXES:
            return ()
        return tuple(text[:-1] for text in self.texts if text.endswith("*"))


def texts_of(passage: Passage, key: str) -> list[str]:
    """Return the values that `passage` has under `key`, as texts (see `as_text`)."""
    if key in OWN_FIELDS:
        return [getattr(passage, key)]
    return value_texts(passage.metadata.get(key))


def value_texts(value: object) -> list[str]:
    """Return a value of the metadata, or each item of a list, as texts; values that no filter matches are left out."""
    texts = map(as_text, _items(value))
    return [text for text in texts if text is not None]


def _items(value: object) -> list[object]:
    """Return the items of a list, or a list with only this value."""
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    return [value]


@dataclass(frozen=True, slots=True)
class Filter:
    """Admits the passages for which all of its conditions hold. A filter without conditions admits every passage."""

    conditions: tuple[Condition, ...] = ()

    @classmethod
    def of(cls, source: object) -> Self:
        """Make a filter from its JSON object, a list of objects that must all hold, a Filter, or None for no
        filter.

        Raises:
            FilterError: for anything else, for a key without a value, and for a value that no text can match.
        """
        if isinstance(source, cls):
            return source
        if source is None:
            return cls()
        if isinstance(source, Mapping):
            conditions: list[Condition] = []
            for key, value in source.items():
                conditions += _conditions(key, value)
            return cls().both(cls(tuple(conditions)))
        if isinstance(source, Sequence) and not isinstance(source, str):
            return cls().both(*map(cls.of, source))
        raise FilterError(
            f'a filter must be a JSON object such as {{"team": "x"}}, got {source!r:.200}'
        )

    def both(self, *others: Filter) -> Self:
        """Return the filter that admits the passages which this filter and all of `others` admit."""
        conditions = set(self.conditions)
        for other in others:
            conditions.update(other.conditions)
        in_order = sorted(conditions, key=_order)
        return type(self)(tuple(in_order))

    def matches(self, passage: Passage) -> bool:
        """Tell whether the filter admits `passage`."""
        return all(condition.matches(passage) for condition in self.conditions)

    @property
    def as_of(self) -> str:
        """Return the date of {"date": {"until": ...}}, after which the run may use nothing; "" without such a
        condition.
        """
        dates = []
        for condition in self.conditions:
            if condition.key == "date" and condition.test == "until":
                dates.append(condition.texts[0])
        return min(dates, default="")

    def __bool__(self) -> bool:
        """Tell whether the filter has conditions."""
        return bool(self.conditions)

    def __str__(self) -> str:
        return ", ".join(map(str, self.conditions))


ALL = Filter()
"""The filter that admits every passage."""


def read_filter(parts: Iterable[str]) -> dict[str, Any]:
    """Return the JSON of a filter that is written on the command line; several values of a key are
    alternatives.

    A part is "key=value", "key.before=value" for a test other than equality, or the JSON object itself.

    Raises:
        FilterError: for any other text, and for one without a key.
    """
    by_key: dict[str, Any] = {}
    plain: list[str] = []
    for part in parts:
        if part.lstrip().startswith("{"):
            by_key |= _object_in(part)
            continue
        place, _, value = part.partition("=")
        key, dot, test = place.strip().rpartition(".")
        if dot and key and "=" in part and test in _TESTS:
            _add_test(by_key, key, test, value)
        else:
            plain.append(part)
    for key, values in _pairs(plain).items():
        if key in by_key:
            _add_test(by_key, key, "in", values)
        else:
            by_key[key] = values
    return by_key


def _object_in(text: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FilterError(
            f"the filter {text!r:.200} is not JSON ({error}): write key=value, or correct the JSON"
        ) from error
    return dict(read)


def _add_test(by_key: dict[str, Any], key: str, test: str, value: object) -> None:
    """Add a test to the tests of a key. `not` may be repeated and then excludes all its values.

    Raises:
        FilterError: for a second value of any other test.
    """
    tests = by_key.setdefault(key, {})
    if not isinstance(tests, dict):
        tests = by_key[key] = {"in": tests}
    if test in tests and test == "not":
        tests[test] = [*_items(tests[test]), value]
    elif test in tests:
        raise FilterError(f"filter key {key!r} has two values for {test!r}: give one")
    else:
        tests[test] = value


def _pairs(parts: Iterable[str]) -> dict[str, list[str]]:
    """Read texts "key=value" into lists of values by key. Raises FilterError for a text without "=" or without a
    key."""
    by_key: dict[str, list[str]] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise FilterError(f"expected key=value, such as team=x, got {part!r}")
        by_key.setdefault(key.strip(), []).append(value)
    return by_key


def read_metadata(source: object) -> dict[str, Any]:
    """Return the metadata that a user gives to documents, read from a JSON object or from texts "key=value".

    Filters compare these values. None or an empty text removes a field.

    Raises:
        FilterError: for anything else.
    """
    if isinstance(source, list | tuple) and all(
        isinstance(part, str) for part in source
    ):
        source = {key: _one_or_all(values) for key, values in _pairs(source).items()}
    if not isinstance(source, Mapping):
        raise FilterError(
            f'metadata must be a JSON object such as {{"team": "x"}}, got {source!r:.200}'
        )
    for key in ASSIGNED:
        if key in source:
            raise FilterError(
                f"metadata: {key!r} is a field of the passage itself: choose another name"
            )
    fields: dict[str, Any] = {}
    for key, value in source.items():
        if isinstance(value, Mapping):
            raise FilterError(
                f"metadata: {key!r} must be a text, a number, true or false, or a list of them, got {value!r:.200}"
            )
        if isinstance(value, tuple | set | frozenset):
            value = list(value)
        fields[key] = None if value == "" else value
    try:
        Filter.of(without_none(fields))
        json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:  # NaN or infinity, or half of a surrogate pair
        raise FilterError(f"metadata: {error}") from error
    return fields


def _one_or_all(values: list[str]) -> str | list[str]:
    if len(values) == 1:
        return values[0]
    return values


def takes_filter(retriever: object) -> bool:
    """Tell whether the `retrieve` method of a retriever has a parameter named `filter`."""
    parameters = inspect.signature(getattr(retriever, "retrieve")).parameters.values()  # noqa: B009
    return any(
        parameter.name == "filter" or parameter.kind is parameter.VAR_KEYWORD
        for parameter in parameters
    )


def _conditions(key: object, value: object) -> list[Condition]:
    """Return the conditions for a key of a filter: one for a value or a list, one for each test of a mapping."""
    if not isinstance(key, str) or not key:
        raise FilterError(f"a filter's keys have to be texts, got {key!r:.200}")
    if storable(key) != key:
        raise FilterError(
            f"filter key {key!r:.200} has a character that databases cannot store (NUL or a lone surrogate): remove it"
        )
    if not isinstance(value, Mapping):
        return [_condition(key, value)]
    if not value:
        raise FilterError(
            f"filter key {key!r} has an empty object instead of a comparison; known: {_FORMS}"
        )
    conditions = []
    for test, bound in value.items():
        if test not in _TESTS:
            raise FilterError(
                f"filter key {key!r}: unknown comparison {test!r:.80}; known: {_FORMS}"
            )
        conditions.append(_condition(key, bound, test))
    return conditions


def _condition(key: str, value: object, test: Test = "in") -> Condition:
    listed = _items(value)
    if not listed:
        raise FilterError(
            f"filter key {key!r} has no value: give it one, or leave the key out"
        )
    texts: dict[str, Scalar] = {}
    for item in listed:
        if not isinstance(item, str | bool | int | float):
            raise FilterError(
                f"filter key {key!r} must be compared with a text, a number, true or false, or a list of them, "
                f"got {item!r:.200}"
            )
        if isinstance(item, int) and not storable_number(item):
            raise FilterError(
                f"filter key {key!r}: the number {item} is too large: give one of at most 64 bits"
            )
        texts.setdefault(as_text(item) or "", item)
    ordered = dict(sorted(texts.items()))
    condition = Condition(key, tuple(ordered), tuple(ordered.values()), test)
    _check_ordered(condition)
    return condition


def _check_ordered(condition: Condition) -> None:
    """Raise FilterError if a bound is neither a number nor a date, or if a field of the passage itself is
    tested for order or existence.
    """
    if not condition.is_ordered:
        return
    key = condition.key
    test = condition.test
    if key in OWN_FIELDS:
        raise FilterError(
            f"filter key {key!r}: {test!r} works only for fields of the metadata; compare {key} by 'in' or 'not'"
        )
    if test == "exists":
        if condition.texts not in (("true",), ("false",)):
            raise FilterError(
                f"filter key {key!r}: 'exists' must be true or false, got {' and '.join(condition.texts)!r:.200}"
            )
        return
    bound = order_of(condition.texts[0])
    if len(condition.texts) > 1 or bound == Order(None, None):
        raise FilterError(
            f"filter key {key!r}: {test!r} takes a number or a date such as 2024-01-31, "
            f"got {' and '.join(condition.texts)!r:.200}"
        )


def _order(condition: Condition) -> tuple[str, str, tuple[str, ...]]:
    return condition.key, condition.test, condition.texts

"""Converts records to and from JSON, and describes that JSON by a schema, all from one list of keys.

The keys are the record's fields in their order, unless its class lists other keys in `json_keys`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    NamedTuple,
    NotRequired,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

# pydantic accepts typing's own TypedDict only from Python 3.12
from typing_extensions import TypedDict

_Record = TypeVar("_Record")
_Convert = Callable[[Any], Any]


class Record:
    """Gives a dataclass `to_dict` and `from_dict`, its form as JSON. The keys are the fields, or `json_keys`.

    Records have no slots, because copying their `__dict__` is the fastest way to their JSON.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    json_keys: ClassVar[tuple[str, ...]] = ()
    """Names of fields and properties. A key "by?" is left out if it has its default; "plan.*" stands for all keys of
    the field `plan`, and "*" or "*?" for all fields that are not listed, also for those that a subclass adds."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON, the form in which state and traces hold it."""
        data: dict[str, Any] = _writers[type(self)](self)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the record whose JSON is `data`; a missing field gets its default. Raises TypeError for an
        unknown key.
        """
        return read_record(cls, data)


def read_record(record: type[_Record], data: Mapping[str, Any]) -> _Record:
    """Return the record of class `record` whose JSON is `data`. Nested records in it may be JSON or records."""
    read: _Record = _readers[record](data)
    return read


def json_shape(name: str, record: type, **kinds: Any) -> Any:
    """Return a TypedDict named `name` that describes the JSON of a record class, for a JSON Schema.

    `kinds` maps a key to its type: for keys that are not fields of the record, or whose type differs from the
    field's.
    """
    keys = {key.name: kinds.pop(key.name, key.kind) for key in _keys(record)}
    optional = {
        key.name: NotRequired[keys[key.name]] for key in _keys(record) if key.optional
    }
    return TypedDict(name, {**keys, **optional, **kinds})  # type: ignore[operator]


def field_types(record: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields, by name."""
    kinds = get_type_hints(record)
    return {field.name: kinds[field.name] for field in fields(record)}


# ---- keys


class _Key(NamedTuple):
    """Describes a key of a record's JSON by the path of the attribute that it holds. An `optional` key is left
    out if it has its default.
    """

    name: str
    path: str
    kind: Any
    optional: bool = False
    default: Any = None


@cache
def _keys(record: Any) -> tuple[_Key, ...]:
    return tuple(_list_keys(record))


def _list_keys(record: Any) -> Iterator[_Key]:
    kinds = get_type_hints(record)
    own_fields = {field.name: field for field in fields(record)}
    entries: list[str] = []
    for entry in record.json_keys or ("*",):
        listed = [entry]
        if entry in ("*", "*?"):
            listed = [
                f"{name}{entry[1:]}"
                for name in own_fields
                if {name, f"{name}?"}.isdisjoint(record.json_keys)
            ]
        entries += listed
    for entry in entries:
        name = entry.removesuffix("?")
        if name.endswith(".*"):
            inner = name.removesuffix(".*")
            yield from (
                key._replace(path=f"{inner}.{key.path}") for key in _keys(kinds[inner])
            )
        elif entry != name:
            field = own_fields[name]
            default = (
                field.default
                if field.default_factory is MISSING
                else field.default_factory()
            )
            yield _Key(name, name, _without_none(kinds[name]), True, default)
        elif name in kinds:
            kind = kinds[name]
            yield _Key(
                name, name, get_args(kind)[0] if get_origin(kind) is ClassVar else kind
            )
        else:
            yield _Key(name, name, get_type_hints(getattr(record, name).fget)["return"])


# ---- types


def _without_none(kind: Any) -> Any:
    """Return a type without None."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    return Union[tuple(one for one in get_args(kind) if one is not NoneType)]  # noqa: UP007, made at run time


def _type_of_items(kind: Any) -> Any:
    """Return the type of the items of a tuple, or of the values of a mapping; None for any other type."""
    origin = get_origin(kind)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return get_args(kind)[1]
    return get_args(kind)[0] if origin is tuple else None


# ---- writing


def _writer(record: Any) -> _Convert:
    """Return the function that turns records of a class into JSON."""
    keys = _keys(record)
    if not record.json_keys:
        changed = [
            (key.name, write) for key in keys if (write := _value_writer(key.kind))
        ]
        if not changed:
            return lambda value: value.__dict__.copy()

        def write_fields(value: Any) -> dict[str, Any]:
            data: dict[str, Any] = value.__dict__.copy()
            for name, write in changed:
                data[name] = write(data[name])
            return data

        return write_fields
    parts = [
        (
            key.name,
            attrgetter(key.path),
            _value_writer(key.kind),
            key.optional,
            key.default,
        )
        for key in keys
    ]

    def write_keys(value: Any) -> dict[str, Any]:
        data = {}
        for name, get, write, optional, default in parts:
            part = get(value)
            if not optional or part != default:
                data[name] = write(part) if write else part
        return data

    return write_keys


def _value_writer(kind: Any) -> _Convert | None:
    """Return the function that turns a value into JSON; None if the value already is JSON.

    The function copies a mapping, but not the JSON values in it.
    """
    kind = _without_none(kind)
    if hasattr(kind, "json_keys"):
        return _writers[kind]
    if hasattr(kind, "to_dict"):
        to_dict: _Convert = kind.to_dict
        return to_dict
    if (items := _type_of_items(kind)) is None:
        return None
    write = _value_writer(items)
    if get_origin(kind) is tuple:
        return list if write is None else lambda values: list(map(write, values))
    return (
        dict
        if write is None
        else lambda values: {name: write(value) for name, value in values.items()}
    )


# ---- reading


def _reader(record: Any) -> _Convert:
    """Return the function that makes records of a class from JSON."""
    kinds = field_types(record)
    keys = _keys(record)
    changed = {
        name: load for name, kind in kinds.items() if (load := _value_reader(kind))
    }
    if not changed and [key.path for key in keys] == list(kinds):
        return lambda data: record(**data)
    inner: dict[str, list[str]] = {}
    for key in keys:
        if key.path != key.name:
            inner.setdefault(key.path.partition(".")[0], []).append(key.name)
    parts = [(name, names, changed.pop(name)) for name, names in inner.items()]
    computed = [
        key.name for key in keys if key.path == key.name and key.name not in kinds
    ]

    def read(data: Mapping[str, Any]) -> Any:
        values = dict(data)
        for name, names, load in parts:
            values[name] = load(
                {key: values.pop(key) for key in names if key in values}
            )
        for name in computed:
            values.pop(name, None)
        for name, load in changed.items():
            if name in values:
                values[name] = load(values[name])
        return record(**values)

    return read


def _value_reader(kind: Any) -> _Convert | None:
    """Return the function that makes a value from its JSON; None if the value stays JSON."""
    kind = _without_none(kind)
    if hasattr(kind, "to_dict"):
        read: _Convert = getattr(kind, "from_dict", None) or partial(read_record, kind)
        return lambda value: value if isinstance(value, kind) else read(value)
    if (items := _type_of_items(kind)) is None:
        return None
    load = _value_reader(items)
    if get_origin(kind) is tuple:
        return tuple if load is None else lambda values: tuple(map(load, values))
    return (
        None
        if load is None
        else lambda values: {name: load(value) for name, value in values.items()}
    )


class _Compiled(dict[Any, _Convert]):
    """Holds the functions that write or read the records of each class. Each function is made when first
    needed.
    """

    def __init__(self, make: Callable[[Any], _Convert]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, record: Any) -> _Convert:
        self[record] = convert = self._make(record)
        return convert


_writers = _Compiled(_writer)
_readers = _Compiled(_reader)

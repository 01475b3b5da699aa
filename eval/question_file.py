"""Reads the records of a question file: JSON Lines, JSON, TSV or CSV, also gzipped, and Parquet.

Each record knows its place in the file, so that error messages can name it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from math import isnan
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

from ras_agent.contracts.errors import IngestError, needs_extra
from ras_agent.tools.index.text_files import parse_line

KEY = "_key"
_COLUMNS = frozenset({"question", "input", "inputs", "text"})
_PYTHON_LIST = re.compile(
    # a list, tuple, set or array, recognised by its first text and the character after it
    r"""(?: \w+\( )? (?: \[ | \{ | \((?=[^)]*,) ) [\s\[(]* (?: '[^']*' | "[^"]*" ) \s* [,\])}'"]"""
    # a list that holds only numbers, None, True, False and nan
    r"""| (?: \w+\( )? \[ (?: \s* (?: None | True | False | nan | -?\d[\d.]* ) \s* (?: ,|\s|(?=\]) ) )+ \]""",
    re.VERBOSE,
)
_TEXTS_OF_VALUES = (date, time, Decimal)
"""Types of values in a table's column, for example in Parquet, that are converted to text."""
# names of types of pandas, which is not imported for this
_GAPS = frozenset({"NAType", "NaTType"})
_GAP_CELLS = frozenset({"", "nan", "NaN", "<NA>", "NaT"})  # as pandas prints them
_FORMATS = (".json", ".jsonl", ".ndjson", ".tsv", ".csv", ".txt", ".parquet")


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """Holds one object of a question file. Its methods read values; for a wrong value they raise IngestError
    with the place.
    """

    data: Mapping[str, Any]
    where: str
    """The file and the line or record, for errors."""
    number: int = 1
    """The number of the record in its file, from 1."""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "data", {key: plain_value(value) for key, value in self.data.items()}
        )

    def __contains__(self, key: str) -> bool:
        """Tell whether `key` has a value other than None."""
        return self.data.get(key) is not None

    @property
    def identity(self) -> str:
        """Return the record's id, or its number if it has no id."""
        return self.identity_under("id", "_id")

    def identity_under(self, *keys: str) -> str:
        """Return the text under the first of `keys` that has a value, or else the record's number."""
        return self.text(*keys, default="") or str(self.number or "")

    def text(self, *keys: str, default: str | None = None) -> str:
        """Return the text, or a number as a text, under the first of `keys` that has a value, else `default`.

        Without a default, a missing value raises an error.
        """
        value = self._first(keys, default)
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _number(value)
        raise self.error(f"{keys[0]!r} should be text, found {value!r:.80}")

    def texts(
        self, *keys: str, default: Sequence[str] | None = None
    ) -> tuple[str, ...]:
        """Return the texts under the first of `keys` that has a value. A single text becomes a list of one.

        Numbers become texts; true and false become yes and no. A JSON list inside a text, as in a table's cell,
        is read as a list. A Python list inside a text raises an error, because its commas are ambiguous. If no
        key has a value, return `default`, or raise an error without one.
        """
        value = self._first(keys, default)
        if isinstance(value, str):
            value = self._listed(value, keys[0])
        if isinstance(value, str | int | float):
            items = [value]
        else:
            items = value
        if not isinstance(items, list | tuple) or not all(
            isinstance(item, str | int | float) for item in items
        ):
            raise self.error(
                f"{keys[0]!r} should be a list of texts, found {value!r:.80}"
            )
        return tuple(item if isinstance(item, str) else _number(item) for item in items)

    def first_key(self, *keys: str) -> str:
        """Return the first of `keys` that has a value; "" if none has."""
        return next((key for key in keys if key in self), "")

    def answers(self, *keys: str) -> tuple[str, ...]:
        """Return the gold answers under the first of `keys` that has a value, without blank ones."""
        answers = []
        for answer in self.texts(*keys):
            if answer.strip():
                answers.append(answer)
        return tuple(answers)

    def _listed(self, text: str, key: str) -> str | list[Any]:
        """Return the list if the text is a JSON list, else the text.

        Raises:
            IngestError: the text is a list in Python's notation.
        """
        value = unpacked(text)
        if isinstance(value, list):
            return value
        stripped = text.strip()
        is_closed = stripped.endswith(("]", ")", "}"))
        if value is text and is_closed and _PYTHON_LIST.match(stripped):
            raise self.error(
                f"{key!r} is a list in Python's notation, {text!r:.80}: write it as JSON, with json.dumps(...)"
            )
        return text

    def whole(self, key: str) -> int:
        """Return the whole number under `key`, given as a number or as a text such as "2" or "2.0"."""
        text = self.text(key).strip()
        digits = text.removesuffix(".0")
        if not digits.isdecimal():
            raise self.error(
                f"{key!r} should be a whole number, 0 or more, found {self.data[key]!r:.80}"
            )
        return int(digits)

    def items(self, *keys: str, default: Sequence[Any] | None = None) -> list[Any]:
        """Return the list under the first of `keys` that has a value, else `default`.

        The list may be given as JSON text. Without a default, a missing value raises an error.
        """
        value = unpacked(self._first(keys, default))
        if not isinstance(value, list | tuple):
            raise self.error(f"{keys[0]!r} should be a list, found {value!r:.80}")
        return list(value)

    def triples(self, key: str) -> list[list[str]]:
        """Return the [subject, predicate, object] lists under `key`."""
        items = self.items(key)
        for item in items:
            if not isinstance(item, list | tuple) or len(item) != 3:
                raise self.error(
                    f"{key!r} should hold [subject, predicate, object], found {item!r:.80}"
                )
        return [list(map(str, item)) for item in items]

    def objects(
        self, *keys: str, default: Sequence[Any] | None = None
    ) -> list[QuestionRecord]:
        """Return the objects in the list under the first of `keys` that has a value, else in `default`, as records."""
        records = []
        for number, item in enumerate(self.items(*keys, default=default), 1):
            records.append(self.inside(item, f"{keys[0]} {number}", number))
        return records

    def inside(self, value: Any, place: str, number: int = 1) -> QuestionRecord:
        """Return an object inside this record as a record. The object may be given as JSON text.

        Args:
            value: The object.
            place: Where it is in this record, for error messages.
            number: Its number among the objects there.
        """
        value = unpacked(value)
        if not isinstance(value, Mapping):
            raise self.error(f"{place} should be an object, found {value!r:.80}")
        return QuestionRecord(value, f"{self.where}, {place}", number)

    def error(self, message: str) -> IngestError:
        """Return an IngestError whose message begins with the record's place."""
        return IngestError(f"{self.where}: {message}")

    def _first(self, keys: tuple[str, ...], default: Any = None) -> Any:
        if key := self.first_key(*keys):
            return self.data[key]
        if default is not None:
            return default
        wanted = " or ".join(map(repr, keys))
        raise self.error(f"no key {wanted}; found {self.listed_keys}")

    @property
    def listed_keys(self) -> str:
        """Return the record's keys as text for a message; keys without a value are marked."""
        keys = []
        for key in self.data:
            keys.append(str(key) if key in self else f"{key} (empty)")
        return ", ".join(keys)


def unpacked(value: Any) -> Any:
    """Return the list or object in a JSON text, as a table's cell may hold it; return any other value
    unchanged.
    """
    if not isinstance(value, str):
        return value
    try:
        inside = json.loads(value)
    except (ValueError, RecursionError):
        return value
    if isinstance(inside, list | dict):
        return inside
    return value


def plain_value(value: Any) -> Any:
    """Return a value of a row as plain JSON.

    Arrays, series and sets become lists; NumPy's numbers become numbers; dates and UUIDs become texts; an
    enumeration's member becomes its value; NaN and NA become None.
    """
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float | Decimal) and isnan(value):
        return None
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if isinstance(value, Set):
        return sorted(map(plain_value, value), key=str)
    if isinstance(value, Mapping):
        return {key: plain_value(item) for key, item in value.items()}
    if type(value).__name__ in _GAPS:
        return None
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, _TEXTS_OF_VALUES):
        return _dated(value)
    # of an array, a series, and a number with NumPy's own type
    convert = getattr(value, "tolist", None)
    if callable(convert):
        return plain_value(convert())
    return value


def _dated(value: date | time | Decimal) -> str:
    """Return a date, a time or a decimal number as text. The time 00:00 of a column of dates is left out."""
    if isinstance(value, datetime) and value.time() == time.min:
        value = value.date()
    if isinstance(value, Decimal):
        return str(value)
    return value.isoformat()


def _number(value: float) -> str:
    """Return a number as people write it: 35 for 35.0, yes and no for true and false."""
    if isinstance(value, bool):
        if value:
            return "yes"
        return "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


OnBad = Callable[[IngestError], None]
"""A function that is called with the error of a record that cannot be read; the record is then skipped."""


def read_records(
    path: str | Path,
    under: str = "",
    columns: Sequence[str] = (),
    on_bad: OnBad | None = None,
) -> Iterator[QuestionRecord]:
    """Yield the objects of a file as records, in order.

    The ending of the file's name gives the format; `.gz` after it means that the file is compressed.

        .jsonl, .ndjson   one object per line
        .json             an array, an object of objects (each gets its key under `KEY`), or JSON Lines
        .tsv, .csv        a table with a header
        .txt              columns separated by tabs, without a header
        .parquet          a table

    A table row with a wrong number of cells becomes a record without fields, which raises an error when it is
    used.

    Args:
        path: The file.
        under: The key of the array in a JSON object with several keys.
        columns: The names of the columns of a .txt file.
        on_bad: Is called with the error of a value that is not an object; without it the error is raised.

    Raises:
        IngestError: If the file cannot be read; the message names the line, or the number of the record in an
            array.
    """
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    ending = ""
    if len(suffixes) > packed:
        ending = suffixes[-2 if packed else -1]
    if not path.is_file():
        raise IngestError(
            f"{path}: {'a folder' if path.is_dir() else 'no such file'}; give a question file"
        )
    if ending not in _FORMATS:
        raise IngestError(
            f"{path}: unknown format {ending!r}; known: {', '.join(_FORMATS)}, each also with .gz"
        )
    if ending == ".parquet":
        yield from _parquet(path)
        return
    with _open(path, packed) as stream:
        try:
            if ending in {".tsv", ".csv"}:
                yield from _table(stream, path, "\t" if ending == ".tsv" else ",")
            elif ending == ".txt":
                yield from _columns(stream, path, columns)
            elif ending == ".json":
                yield from _array(stream.read(), path, under, on_bad)
            else:
                yield from _lines(stream, path, on_bad)
        except UnicodeDecodeError as error:
            raise IngestError(
                f"{path}: not UTF-8 ({error}); convert it first"
            ) from error
        except (OSError, EOFError) as error:
            raise IngestError(
                f"{path}: cannot be read to its end ({error}); get the file again"
            ) from error


def _open(path: Path, packed: bool) -> TextIO:
    if packed:
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig", newline="")


def _lines(
    stream: TextIO, path: Path, on_bad: OnBad | None
) -> Iterator[QuestionRecord]:
    for number, line in enumerate(stream, 1):
        if line.strip():
            where = f"{path} line {number}"
            try:
                record = _record(_parse(line, where), where, number)
            except IngestError as error:
                if on_bad is None:
                    raise
                on_bad(error)
            else:
                yield record


def _array(
    text: str, path: Path, under: str, on_bad: OnBad | None
) -> Iterator[QuestionRecord]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        # "Extra data" behind a first object: JSON Lines under another name
        if not text.lstrip().startswith("{") or "Extra data" not in str(error):
            raise IngestError(
                f"{path}: not JSON ({error}); correct the file"
            ) from error
        yield from _lines(io.StringIO(text), path, on_bad)
        return
    if isinstance(data, dict) and under in data:
        data = data[under]
    elif isinstance(data, dict) and not under:
        data = _rows_of(data)
    if not isinstance(data, list):
        expectation = "an array of objects"
        if under:
            expectation = f"an array, or an object with one under {under!r}"
        raise IngestError(
            f"{path}: expected {expectation}, found {type(data).__name__}"
        )
    for number, item in enumerate(data, 1):
        where = f"{path} record {number}"
        try:
            record = _record(item, where, number)
        except IngestError as error:
            if on_bad is None:
                raise
            on_bad(error)
        else:
            yield record


def _rows_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows in an object: its values, if it holds objects by key; its rows, if it holds columns by
    name (as `DataFrame.to_json` writes); else the object itself as the only row.
    """
    nested = all(isinstance(value, dict) for value in data.values())
    if not data or not nested:
        return [data]
    if _COLUMNS & data.keys():
        return _transposed(data)
    rows = []
    for key, value in data.items():
        row = {KEY: key, **value}
        rows.append(row)
    return rows


def _transposed(columns: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for name, column in columns.items():
        for place, value in column.items():
            row = rows.setdefault(place, {})
            row[name] = value
    return list(rows.values())


def _table(stream: TextIO, path: Path, delimiter: str) -> Iterator[QuestionRecord]:
    rows = csv.reader(stream, delimiter=delimiter)
    try:
        header = next(rows, None)
        for row in rows:
            if row:
                yield _row(row, header or (), path, rows.line_num)
    except csv.Error as error:
        raise IngestError(
            f"{path} line {rows.line_num}: not a table ({error}); correct the line"
        ) from error


def _columns(
    stream: TextIO, path: Path, columns: Sequence[str]
) -> Iterator[QuestionRecord]:
    if not columns:
        raise IngestError(
            f"{path}: this benchmark has no .txt files; give one of the formats {', '.join(_FORMATS)}"
        )
    for number, line in enumerate(stream, 1):
        if line.strip():
            yield _row(line.rstrip("\r\n").split("\t"), columns, path, number)


def _row(
    row: Sequence[str], header: Sequence[str], path: Path, number: int
) -> QuestionRecord:
    where = f"{path} line {number}"
    if len(row) != len(header):
        return QuestionRecord(
            {},
            f"{where}: expected {len(header)} fields ({', '.join(header)}), found {len(row)}",
            number,
        )
    cells: dict[str, str | None] = {}
    for name, cell in zip(header, row, strict=True):
        if cell in _GAP_CELLS:
            cells[name] = None
        else:
            cells[name] = cell.replace("\r\n", "\n")
    return QuestionRecord(cells, where, number)


def _parquet(path: Path) -> Iterator[QuestionRecord]:
    with needs_extra("reading Parquet", "datasets"):
        from pyarrow import ArrowException, parquet
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield QuestionRecord(row, f"{path} row {number}", number)
    except ArrowException as error:
        raise IngestError(
            f"{path}: not a Parquet file that can be read ({error}); get it again"
        ) from error


def _parse(text: str, where: str) -> Any:
    try:
        return parse_line(text)
    except ValueError as error:
        raise IngestError(f"{where}: {error}") from error


def _record(value: Any, where: str, number: int) -> QuestionRecord:
    if not isinstance(value, dict):
        raise IngestError(
            f"{where}: expected a JSON object, found {type(value).__name__}"
        )
    return QuestionRecord(value, where, number)

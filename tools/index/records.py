"""Records to documents: JSON, JSON Lines, tables with a header, sheets of workbooks."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from itertools import chain, groupby
from typing import Any

from ras_agent.text.titles import file_title
from ras_agent.tools.index.documents import Document, Skipped, dated
from ras_agent.tools.index.fields import USUAL_FIELDS, Fields
from ras_agent.tools.index.plain_kinds import flat
from ras_agent.tools.index.stated_facts import STATED, read_facts
from ras_agent.tools.index.tables import Rows
from ras_agent.tools.index.text_files import (
    FileContent,
    OnRead,
    SheetRow,
    not_unicode,
    parse_line,
    read_lines,
    read_text,
)
from ras_agent.tools.index.text_tables import TABLE, key_of, record_of
from ras_agent.tools.index.whole_tables import WholeTable

_OBJECT_END = re.compile(r"(?<=^\})[ \t]*\r?\n\s*(?=^\{)", re.MULTILINE)
_LISTS = ("features", "items", "results", "records", "rows", "data", "entries")
"""The usual names of the list in an answer of a web service, and of a file of maps."""
_PART = re.compile(" sheet | line | record ")
"""Begins the part of a place behind its file."""


def of_sheets(
    rows: Sequence[SheetRow], fields: Fields, label: str
) -> Iterator[Document | Skipped]:
    """Yield a document for each row of a workbook; the first row of a sheet that has several cells is its header."""
    for sheet, rows_of_sheet in groupby(rows, lambda row: row.sheet):
        yield from _of_sheet(sheet, rows_of_sheet, fields, label)


def _tables_of(rows: Sequence[SheetRow]) -> Iterator[Sequence[SheetRow]]:
    """Yield the tables of a sheet, which stand one below another, with an empty row between."""
    first = 0
    last = 0
    for place, row in enumerate(rows):
        is_apart = row.number > last + 1
        last = row.number
        if place and is_apart and _begins_table(rows[place : place + 3]):
            yield rows[first:place]
            first = place
    yield rows[first:]


def _begins_table(rows: Sequence[SheetRow]) -> bool:
    """Return whether rows begin with the header of a table, perhaps below a title of one cell."""
    head, *others = rows
    filled = list(filter(None, head.cells))
    if not others or any(map(_is_number, filled)):
        return False
    if len(filled) == 1:
        return _begins_table(others)
    below = zip(head.cells, others[0].cells, strict=False)
    return any(name and _is_number(cell) for name, cell in below)


def _is_number(cell: str) -> bool:
    digits = sum(map(str.isdigit, cell))
    return digits > 0 and 2 * digits >= len(cell)


def _of_sheet(
    sheet: str, rows: Iterable[SheetRow], fields: Fields, label: str
) -> Iterator[Document | Skipped]:
    tables = _tables_of(list(rows))
    for number, part in enumerate(tables, start=1):
        name = f"{label}:{sheet}"
        if number > 1:
            name = f"{name}:table {number}"
        yield from _of_table(sheet, part, fields, label, name)


def _of_table(
    sheet: str, rows: Iterable[SheetRow], fields: Fields, label: str, table_id: str
) -> Iterator[Document | Skipped]:
    columns: list[str] = []
    table = WholeTable("", "", ())
    for row in rows:
        place = f"{label} sheet {row.sheet} row {row.number}"
        cells = list(row.cells)
        filled = list(filter(None, cells))
        if columns:
            name = f"{label}:{sheet}:{row.number}"
            item = _from_row(cells, columns, fields, name, place)
            table.add(cells, item)
            yield item
        elif len(filled) > 1 or len(cells) == 1:
            columns = _usual_names(_distinct(cells), fields)
            if problem := _header_problem(columns, fields, label):
                yield Skipped(place, f"the header {problem}")
                return
            title = f"{file_title(label)}, {sheet}"
            table = WholeTable(table_id, title, columns)
        else:
            reason = f"stands above the header, and is left out: {filled[0]!r:.80}"
            yield Skipped(place, reason, error=False)
    yield from table.documents()


def _distinct(columns: list[str]) -> list[str]:
    """Return the names of columns, those that come again with the number of theirs."""
    names: list[str] = []
    for number, column in enumerate(columns, start=1):
        name = column or "column"
        if not column or name in names:
            name = f"{name} ({number})"
        names.append(name)
    return names


def load_json(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    """Yield a document for each record: of a list, or of what an object holds, else for the object."""
    text = read_text(path, on_read)
    try:
        value = parse_line(text)
    except ValueError as error:
        yield Skipped(label, str(error))
        return
    if isinstance(value, dict):
        value = _records_in(value, fields)
    if not isinstance(value, list):
        yield Skipped(
            label, f"expected a list of objects or an object, got {value!r:.60}"
        )
        return
    for number, record in enumerate(value, start=1):
        place = f"{label} record {number}"
        if isinstance(record, dict) and fields.text not in record:
            values = flat(record)
            said = any(map(str.strip, values.values()))
            if fields.text != USUAL_FIELDS.text or not said:
                remedy = _remedy(label, "text")
                yield Skipped(
                    place, f"no key {fields.text!r}, and no value to read; {remedy}"
                )
                continue
            record = _with_all_columns(values, fields, place)
        yield from _from_value(record, fields, label, number, place)


def _records_in(value: dict[str, Any], fields: Fields) -> list[Any]:
    """Return the records that an object holds: its only list, the list of an answer, objects by their names, or itself.

    >>> _records_in({"HX9": {"maker": "Ada"}, "HX10": {"maker": "Ben"}}, USUAL_FIELDS)
    [{'title': 'HX9', 'maker': 'Ada'}, {'title': 'HX10', 'maker': 'Ben'}]
    """
    inner = list(value.values())
    if len(inner) == 1 and isinstance(inner[0], list):
        return inner[0]
    if fields.text in value:
        return [value]
    if len(inner) > 1 and all(isinstance(item, dict) for item in inner):
        if set.intersection(*map(set, inner)):
            name = fields.title or USUAL_FIELDS.title
            return [{name: key, **item} for key, item in value.items()]
        return [value]
    for name in _LISTS:
        listed = value.get(name)
        if isinstance(listed, list) and all(isinstance(item, dict) for item in listed):
            about = {key: item for key, item in value.items() if key != name}
            return [*listed, about] if flat(about) else listed
    return [value]


def load_jsonl(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    """Yield a document for each line that is not blank; of a bad line, only that line is skipped.

    A line may hold a list of records; a file that is one list over several lines is read as a whole.
    """
    lines = read_lines(path, on_read)
    first = next(lines, "")
    if _begins_list(first):
        yield from _from_array(first + "".join(lines), fields, label)
        return
    if first.strip() == "{":
        text = first + "".join(lines)
        yield from _from_objects(text, fields, label)
        return
    for number, line in enumerate(chain([first], lines), start=1):
        if line.strip():
            yield from _from_line(line.strip(), fields, label, number)


def _from_objects(
    text: str, fields: Fields, label: str
) -> Iterator[Document | Skipped]:
    """Yield the documents of objects that take several lines each, one behind another."""
    parts = _OBJECT_END.split(text)
    for number, part in enumerate(parts, start=1):
        place = f"{label} record {number}"
        try:
            record = parse_line(part)
        except ValueError as error:
            yield Skipped(place, str(error))
            continue
        yield from _from_value(record, fields, label, number, place)


def _begins_list(line: str) -> bool:
    """Return whether a line begins a list that other lines end."""
    begun = line.strip()
    return begun == "[" or (begun.startswith("[") and begun.endswith(","))


def _from_array(text: str, fields: Fields, label: str) -> Iterator[Document | Skipped]:
    if reason := not_unicode(text):
        yield Skipped(label, reason)
        return
    try:
        records = parse_line(text)
    except ValueError as error:
        yield Skipped(label, str(error))
        return
    for number, record in enumerate(records, start=1):
        yield from _from_value(
            record, fields, label, number, f"{label} record {number}"
        )


def _from_line(
    line: str, fields: Fields, label: str, number: int
) -> Iterator[Document | Skipped]:
    place = f"{label} line {number}"
    if reason := not_unicode(line):
        yield Skipped(place, reason)
        return
    try:
        value = parse_line(line.removesuffix(","))
    except ValueError as error:
        yield Skipped(place, str(error))
        return
    if (
        isinstance(value, list)
        and value
        and all(isinstance(item, dict) for item in value)
    ):
        for item_number, item in enumerate(value, start=1):
            yield from _from_value(
                item,
                fields,
                label,
                f"{number}.{item_number}",
                f"{place} record {item_number}",
            )
        return
    yield from _from_value(value, fields, label, number, place)


def _from_value(
    record: object, fields: Fields, label: str, number: int | str, place: str
) -> Iterator[Document | Skipped]:
    if not isinstance(record, dict):
        yield Skipped(
            place, f'expected an object such as {{"text": "..."}}, got {record!r:.60}'
        )
        return
    # an escape such as \ud800 is JSON, but no character
    if reason := not_unicode(json.dumps(record, ensure_ascii=False)):
        yield Skipped(place, reason)
        return
    if fields.text not in record:
        names = _usual_names(list(record), fields)
        record = dict(zip(names, record.values(), strict=True))
    yield from _from_record(record, fields, f"{label}:{number}", place)


def load_csv(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    """Yield a document for each row; of a bad row, only that row is skipped."""
    is_tsv = path.suffix.lower() == ".tsv"
    rows = iter(Rows(_with_line_ends(read_lines(path, on_read)), is_tsv=is_tsv))
    line, head = next(rows, (1, []))
    if (title := _title_above(head)) and (below := next(rows, None)):
        reason = f"stands above the header, and is left out: {title!r:.80}"
        yield Skipped(f"{label} line {line}", reason, error=False)
        line, head = below
    columns = head if isinstance(head, list) else []
    if isinstance(head, csv.Error):
        yield Skipped(f"{label} line {line}", f"the header is not CSV: {head}")
        return
    if reason := not_unicode("\n".join(columns)):
        yield Skipped(f"{label} line {line}", reason)
        return
    columns = _usual_names(columns, fields)
    if problem := _header_problem(columns, fields, label):
        yield Skipped(f"{label} line {line}", f"the header {problem}")
        return
    if len(set(columns)) < len(columns):
        columns = _distinct(columns)
    table = WholeTable(label, file_title(label), columns)
    for line, row in rows:
        place = f"{label} line {line}"
        if isinstance(row, csv.Error):
            yield Skipped(place, f"not CSV: {row}")
        elif row:
            item = _from_row(row, columns, fields, f"{label}:{line}", place)
            table.add(row, item)
            yield item
    yield from table.documents()


def _with_line_ends(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines one by one, also those of an old Macintosh, which end in a carriage return without a line feed."""
    first = next(lines, "")
    if first.endswith("\n"):
        yield first
    else:
        yield from StringIO(first, newline=None)
    yield from lines


def _title_above(row: Sequence[str] | csv.Error) -> str:
    """Return the title of a table that stands above its header, with the cells behind it empty; "" for a header."""
    if isinstance(row, csv.Error) or len(row) < 2:
        return ""
    title, *others = row
    return "" if any(map(str.strip, others)) else title


def _usual_names(columns: list[str], fields: Fields) -> list[str]:
    """Return the columns, where one such as "Text " gets the name of the wanted field if no column has that exactly."""
    wanted = {
        name.casefold(): name
        for name in (fields.text, fields.title, fields.id)
        if name and name not in columns
    }
    return [wanted.pop(column.strip().casefold(), column) for column in columns]


def _header_problem(columns: list[str], fields: Fields, label: str) -> str:
    there = ", ".join(map(repr, columns)) or "nothing"
    if fields.text not in columns and fields.text != USUAL_FIELDS.text:
        return f"has no column {fields.text!r}, but {there}; {_remedy(label, 'text')}"
    if not any(map(str.strip, columns)):
        return (
            f"names no column, but {there}; give each column a name in the first line"
        )
    read = (fields.text, fields.title, fields.id)
    own = [column for column in columns if column in read]
    if len(set(own)) < len(own):
        return f"repeats a column: {there}; rename one"
    return ""


def _from_row(
    row: list[str], columns: list[str], fields: Fields, name: str, place: str
) -> Document | Skipped:
    """Return the document of a table's row. name: its id, if no column has one."""
    if reason := not_unicode("\n".join(row)):
        return Skipped(place, reason)
    if len(row) != len(columns):
        reason = f"expected {len(columns)} columns, got {len(row)}: {row!r:.80}"
        return Skipped(place, reason)
    record = dict(zip(columns, row, strict=True))
    if fields.text not in record:
        record = _with_all_columns(record, fields, place)
    return _document_of(record, fields, name, place, "column")


def _with_all_columns(
    row: dict[str, str], fields: Fields, place: str
) -> dict[str, Any]:
    """Return a row of a table without a column of text, with one that says them all, and with the facts that it states.

    Its title is that of the title column, or else the value of the first column that neither counts the rows nor holds
    their ids.
    """
    columns = [column.strip() for column in row]
    cells = [value.strip() for value in row.values()]
    said = []
    for column, cell in zip(columns, cells, strict=True):
        if cell:
            said.append(f"{column}: {cell}")
    record: dict[str, Any] = dict(row)
    record[fields.text] = "; ".join(said)
    key = _key_column(columns, fields)
    about = record_of(columns, cells, [key])
    if about is None:
        return record
    record.setdefault(fields.title, about.key)
    facts = about.facts(place)
    if facts:
        file = re.split(" line | record | row ", place)[0]
        record[STATED] = facts
        record[TABLE] = {"place": file, "key": about.key_column}
    return record


def _key_column(columns: list[str], fields: Fields) -> int:
    """Return the number of the column that names the subject of a row."""
    if fields.title in columns:
        return columns.index(fields.title)
    for number, column in enumerate(columns):
        if column.endswith(".name"):
            return number
    named = [column for column in columns if column != fields.id]
    if not named:
        return 0
    first = key_of(named, [])[0]
    return columns.index(named[first])


def _from_record(
    record: Mapping[str, Any], fields: Fields, name: str, place: str
) -> Iterator[Document | Skipped]:
    """Yield a record's document, and a Skipped for each invalid fact; name: the id of a record without one."""
    document = _document_of(record, fields, name, place, "key")
    if isinstance(document, Skipped) or STATED not in document.metadata:
        yield document
        return
    facts, problems = read_facts(document.metadata[STATED], place)
    others = {key: value for key, value in document.metadata.items() if key != STATED}
    yield replace(document, metadata={**others, STATED: facts} if facts else others)
    for problem in problems:
        yield Skipped(place, problem)


def _document_of(
    record: Mapping[str, Any], fields: Fields, given_name: str, place: str, what: str
) -> Document | Skipped:
    """Return a record's document. given_name: its id if it lacks one. what: "key" or "column", for messages."""
    label = _PART.split(place)[0]
    for role, name, usual in (
        ("text", fields.text, None),
        ("title", fields.title, USUAL_FIELDS.title),
        ("id", fields.id, USUAL_FIELDS.id),
    ):
        if name is not None and name != usual and name not in record:
            there = ", ".join(map(repr, record)) or "nothing"
            return Skipped(
                place, f"no {what} {name!r}, it has {there}; {_remedy(label, role)}"
            )

    text = record[fields.text]
    title = record.get(fields.title)
    own = record.get(fields.id) if fields.id else None
    # as pandas writes the ids of a column with gaps
    if isinstance(own, float) and own.is_integer():
        own = int(own)
    if not isinstance(text, str):
        return Skipped(
            place,
            f"{what} {fields.text!r} must hold a text, got {_kind(text)}: {text!r:.60}",
        )
    if not text.strip():
        return Skipped(place, f"{what} {fields.text!r} is empty", error=False)
    if title is not None and not isinstance(title, str | int | float):
        return Skipped(
            place,
            f"{what} {fields.title!r} must hold a text, got {_kind(title)}: {title!r:.60}",
        )
    if own is not None and (
        isinstance(own, bool) or not isinstance(own, str | int) or not str(own).strip()
    ):
        return Skipped(
            place,
            f"{what} {fields.id!r} must hold a name or a whole number, got {own!r:.60}",
        )
    own_fields = (fields.text, fields.title, fields.id)
    return Document(
        id=given_name if own is None else str(own),
        text=text,
        title="" if title is None else str(title),
        metadata=dated(
            {key: value for key, value in record.items() if key not in own_fields}
        ),
        place=place,
        record=own is not None,
    )


def _remedy(label: str, role: str) -> str:
    suffix = label.rpartition("/")[2].rpartition(".")[2]
    return f"name the right one with --fields {role}=NAME, or with --fields '*.{suffix}:{role}=NAME' for such files alone"


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"

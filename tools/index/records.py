"""Turns records into documents: JSON, JSON Lines, tables with a header, and the sheets of workbooks."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from itertools import chain, groupby
from typing import Any

from ras_agent.text.titles import file_title
from ras_agent.tools.index.documents import Document, Skipped, dated
from ras_agent.tools.index.fields import USUAL_FIELDS, Fields
from ras_agent.tools.index.line_ends import in_one_line
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
from ras_agent.tools.index.text_tables import TABLE, Record, key_of, record_of
from ras_agent.tools.index.whole_tables import WholeTable

_OBJECT_END = re.compile(r"(?<=^\})[ \t]*\r?\n\s*(?=^\{)", re.MULTILINE)
_LISTS = ("features", "items", "results", "records", "rows", "data", "entries")
"""The usual keys of the list of records, in the response of a web service or in a file of map data."""
_OF_PART = re.compile(r"(.+?)\.(\d+)\.(.+)")
"""The path of a value inside an object that is one of several in a list, such as "authors.1.name"."""
_PART = re.compile(" sheet | line | record ")
"""Separates the file from the part of the file in a place, such as "films.csv line 3"."""


def of_sheets(
    rows: Sequence[SheetRow], fields: Fields, label: str
) -> Iterator[Document | Skipped]:
    """Yield a document for each row of a workbook. The header of a sheet is its first row with more than one cell.

    Args:
        label: the file's name in ids and messages.
    """
    for sheet, rows_of_sheet in groupby(rows, lambda row: row.sheet):
        yield from _of_sheet(sheet, rows_of_sheet, fields, label)


def _tables_of(rows: Sequence[SheetRow]) -> Iterator[Sequence[SheetRow]]:
    """Yield the tables of a sheet that stand one below another, with an empty row between them."""
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
    """Return whether rows begin with the header of a table, or with a title of one cell above a header."""
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
    blocks = chain.from_iterable(map(_side_by_side, _tables_of(list(rows))))
    for number, (column, part) in enumerate(blocks, start=1):
        table = f"{label}:{sheet}"
        if number > 1:
            table = f"{table}:table {number}"
        begin = f"{label}:{sheet}"
        if column:
            begin = f"{begin}:column {column + 1}"
        yield from _of_table(begin, part, fields, label, table)


def _side_by_side(
    rows: Sequence[SheetRow],
) -> Iterator[tuple[int, Sequence[SheetRow]]]:
    """Yield the tables that stand side by side, with an empty column between them, each with the number of its first
    column.

    The number is 0 for the leftmost table, wherever it begins.
    """
    heads = [row.cells for row in rows if sum(map(bool, row.cells)) > 1]
    if not heads:
        yield 0, rows
        return
    width = max(len(row.cells) for row in rows)
    filled: set[int] = set()
    for row in rows:
        filled.update(at for at, cell in enumerate(row.cells) if cell)
    blocks: list[tuple[int, int]] = []
    for is_filled, columns in groupby(range(width), filled.__contains__):
        if is_filled:
            within = list(columns)
            blocks.append((within[0], within[-1] + 1))
    for begin, end in blocks:
        names = heads[0][begin:end]
        if len(names) < 2 or not all(names):
            blocks = [(blocks[0][0], blocks[-1][1])]
            break
    for number, (begin, end) in enumerate(blocks):
        cut = [replace(row, cells=row.cells[begin:end]) for row in rows]
        yield begin if number else 0, [row for row in cut if any(row.cells)]


def _of_table(
    begin: str, rows: Iterable[SheetRow], fields: Fields, label: str, table_id: str
) -> Iterator[Document | Skipped]:
    """Yield the documents of a table in a sheet.

    Args:
        begin: the beginning of its rows' ids.
        table_id: the id of the whole table.
    """
    columns: list[str] = []
    table = WholeTable("", "", ())
    for row in rows:
        place = f"{label} sheet {row.sheet} row {row.number}"
        cells = list(row.cells)
        filled = list(filter(None, cells))
        if columns:
            name = f"{begin}:{row.number}"
            yield from _from_row(cells, columns, fields, name, place, table)
        elif len(filled) > 1 or len(cells) == 1:
            columns = _usual_names(_distinct(cells), fields)
            if problem := _header_problem(columns, fields, label):
                yield Skipped(place, f"the header {problem}")
                return
            title = f"{file_title(label)}, {row.sheet}"
            table = WholeTable(table_id, title, columns)
        else:
            reason = f"stands above the header, and is left out: {filled[0]!r:.80}"
            yield Skipped(place, reason, error=False)
    yield from table.documents()


def _distinct(columns: list[str]) -> list[str]:
    """Return distinct names of columns: a name that is empty or repeated gets the number of its column added."""
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
    """Yield a document for each record: of a list, or of the list in an object; otherwise one for the object."""
    text = read_text(path, on_read)
    try:
        value = _value_of(text)
    except ValueError as error:
        yield Skipped(label, str(error))
        return
    if isinstance(value, dict):
        value = _records_in(value, fields)
    if isinstance(value, list):
        value = _as_objects(value, fields)
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
        yield from _from_value(record, fields, f"{label}:{number}", place)


def _value_of(text: str) -> Any:
    """Return the value of a JSON file, or the list of values if each line is an object. Raises ValueError with the
    reason."""
    try:
        return parse_line(text, as_written=True)
    except ValueError:
        lines = list(filter(None, map(str.strip, text.splitlines())))
        if len(lines) < 2 or not lines[0].startswith("{") or not lines[0].endswith("}"):
            raise
        return [parse_line(line, as_written=True) for line in lines]


def _as_objects(values: list[Any], fields: Fields) -> list[Any]:
    """Return the records in a list as objects; its items may be texts, rows below a header, or objects.

    >>> _as_objects([["name", "born"], ["Ada", 1901]], USUAL_FIELDS)
    [{'name': 'Ada', 'born': 1901}]
    """
    if values and all(isinstance(value, str) for value in values):
        return [{fields.text: value} for value in values]
    if len(values) < 2 or not all(isinstance(value, list) for value in values):
        return values
    head, *rows = values
    if not all(isinstance(name, str) for name in head):
        return values
    if any(len(row) != len(head) for row in rows):
        return values
    return [dict(zip(head, row, strict=True)) for row in rows]


def _of_columns(value: dict[str, Any]) -> list[Any] | None:
    """Return the header and rows of a table that pandas wrote, or None for other objects.

    The table is either columns and data, or the values of each column by row number.

    >>> _of_columns({"name": {"0": "Ada", "1": "Ben"}, "born": {"0": 1901, "1": 1902}})
    [['name', 'born'], ['Ada', 1901], ['Ben', 1902]]
    """
    names = value.get("columns")
    if isinstance(names, list):
        for key in ("data", "rows", "values"):
            rows = value.get(key)
            if isinstance(rows, list) and all(isinstance(row, list) for row in rows):
                return [names, *rows]
    columns = list(value.values())
    if not columns or not all(isinstance(column, dict) for column in columns):
        return None
    numbers = list(columns[0])
    is_numbered = numbers == list(map(str, range(len(numbers))))
    if not is_numbered or any(list(column) != numbers for column in columns):
        return None
    rows = [[column[number] for column in columns] for number in numbers]
    return [list(value), *rows] if rows else None


def _records_in(value: dict[str, Any], fields: Fields) -> list[Any]:
    """Return the records in an object: its only list, the list of a web service's response, named objects, or the
    object itself.

    >>> _records_in({"HX9": {"maker": "Ada"}, "HX10": {"maker": "Ben"}}, USUAL_FIELDS)
    [{'title': 'HX9', 'maker': 'Ada'}, {'title': 'HX10', 'maker': 'Ben'}]
    """
    rows = _of_columns(value)
    if rows is not None:
        return rows
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
    """Yield a document for each line that is not blank; a bad line is skipped without affecting the others.

    A line may hold a list of records. A file that is a single list or objects over several lines is read as a whole.
    """
    lines = read_lines(path, on_read)
    first = next(lines, "")
    if _begins_list(first):
        records = _parsed(first + "".join(lines), label)
        if isinstance(records, Skipped):
            yield records
        else:
            yield from _from_list(records, fields, f"{label}:", label)
        return
    if first.strip() == "{":
        parts = _OBJECT_END.split(first + "".join(lines))
        objects = (
            _parsed(part, f"{label} record {number}")
            for number, part in enumerate(parts, start=1)
        )
        yield from _from_list(objects, fields, f"{label}:", label)
        return
    for number, line in enumerate(chain([first], lines), start=1):
        if not line.strip():
            continue
        place = f"{label} line {number}"
        value = _parsed(line.strip().removesuffix(","), place)
        is_list = isinstance(value, list) and value != []
        if is_list and all(isinstance(item, dict) for item in value):
            yield from _from_list(value, fields, f"{label}:{number}.", place)
        else:
            yield from _from_value(value, fields, f"{label}:{number}", place)


def _begins_list(line: str) -> bool:
    """Return whether a line begins a list that ends on a later line."""
    begun = line.strip()
    return begun == "[" or (begun.startswith("[") and begun.endswith(","))


def _parsed(text: str, place: str) -> Any:
    """Return the value of a text in JSON, or a Skipped if it has none."""
    if reason := not_unicode(text):
        return Skipped(place, reason)
    try:
        return parse_line(text)
    except ValueError as error:
        return Skipped(place, str(error))


def _from_list(
    records: Iterable[object], fields: Fields, begin: str, place: str
) -> Iterator[Document | Skipped]:
    """Yield the documents of listed records.

    Args:
        begin: the beginning of their ids.
        place: the place of the list.
    """
    for number, record in enumerate(records, start=1):
        yield from _from_value(
            record, fields, f"{begin}{number}", f"{place} record {number}"
        )


def _from_value(
    record: object, fields: Fields, name: str, place: str
) -> Iterator[Document | Skipped]:
    """Yield the document of a value that should be a record; a Skipped is yielded unchanged.

    Args:
        name: the document's id, if the record has none.
    """
    if isinstance(record, Skipped):
        yield record
        return
    if not isinstance(record, dict):
        yield Skipped(
            place, f'expected an object such as {{"text": "..."}}, got {record!r:.60}'
        )
        return
    # an escape such as \ud800 is valid JSON, but not a character
    if reason := not_unicode(json.dumps(record, ensure_ascii=False)):
        yield Skipped(place, reason)
        return
    if fields.text not in record:
        names = _usual_names(list(record), fields)
        record = dict(zip(names, record.values(), strict=True))
    yield from _from_record(record, fields, name, place)


def load_csv(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    """Yield a document for each row; a bad row is skipped without affecting the others."""
    is_tsv = path.suffix.lower() == ".tsv"
    rows = Rows(_with_line_ends(read_lines(path, on_read)), is_tsv=is_tsv)
    numbered = iter(rows)
    line, head = next(numbered, (1, []))
    while title := _title_above(head, rows.has_titles):
        if title.strip():
            reason = f"stands above the header, and is left out: {title!r:.80}"
            yield Skipped(f"{label} line {line}", reason, error=False)
        line, head = next(numbered, (line, []))
    if isinstance(head, csv.Error):
        yield Skipped(f"{label} line {line}", f"the header is not CSV: {head}")
        return
    if reason := not_unicode("\n".join(head)):
        yield Skipped(f"{label} line {line}", reason)
        return
    columns = _usual_names(list(map(in_one_line, head)), fields)
    if problem := _header_problem(columns, fields, label):
        yield Skipped(f"{label} line {line}", f"the header {problem}")
        return
    if len(set(columns)) < len(columns):
        columns = _distinct(columns)
    table = WholeTable(label, file_title(label), columns)
    for line, row in numbered:
        place = f"{label} line {line}"
        if isinstance(row, csv.Error):
            yield Skipped(place, f"not CSV: {row}")
        elif row:
            cells, others = _of_width(row, len(columns))
            if others:
                yield Skipped(place, others, error=False)
            yield from _from_row(
                cells, columns, fields, f"{label}:{line}", place, table
            )
    yield from table.documents()


def _of_width(row: list[str], width: int) -> tuple[list[str], str]:
    """Return a row fitted to `width` cells, and a remark about it, or "".

    Empty cells beyond the last column are removed, and missing cells are added as empty. Spreadsheet programs leave out
    the separators after the last filled cell.
    """
    cells = list(row)
    while len(cells) > width and not cells[-1].strip():
        cells.pop()
    missing = width - len(cells)
    if missing <= 0 or len(cells) < 2:
        return cells, ""
    said = f"has {len(cells)} of {width} columns; the others are read as empty: {row!r:.80}"
    return [*cells, *[""] * missing], said


def _with_line_ends(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines one by one, even in a file of an old Macintosh, whose lines end in a carriage return without a line
    feed."""
    first = next(lines, "")
    if first.endswith("\n"):
        yield first
    else:
        yield from StringIO(first, newline=None)
    yield from lines


def _title_above(row: Sequence[str] | csv.Error, has_titles: bool) -> str:
    """Return a title above the header of a table, a cell followed only by empty ones, or "" if the row is the header.

    Args:
        has_titles: whether lines without separators, or lines that begin with "# ", may stand above the header.
    """
    if isinstance(row, csv.Error):
        return ""
    title, *others = row or [" "]
    if any(map(str.strip, others)):
        return ",".join(row) if has_titles and title.startswith("# ") else ""
    return title if others or has_titles else ""


def _usual_names(columns: list[str], fields: Fields) -> list[str]:
    """Return the columns; one such as "Text " is renamed to the wanted field, if no column has exactly that name."""
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
    row: list[str],
    columns: list[str],
    fields: Fields,
    name: str,
    place: str,
    table: WholeTable,
) -> Iterator[Document | Skipped]:
    """Yield the document of a table's row, and add the row to `table`.

    Args:
        name: the document's id, if no column has one.
    """
    whole = "\n".join(row)
    if "\0" in whole:
        yield Skipped(place, "holds a NUL character, as no text has")
        return
    if reason := not_unicode(whole):
        yield Skipped(place, reason)
        return
    if len(row) != len(columns):
        reason = f"expected {len(columns)} columns, got {len(row)}: {row!r:.80}"
        yield Skipped(place, reason)
        return
    record: dict[str, Any] = dict(zip(columns, row, strict=True))
    if fields.id and not record.get(fields.id, "").strip():
        record.pop(fields.id, None)
    if fields.text not in record:
        record = _with_all_columns(record, fields, place)
    elif str(record.get(STATED, "")).lstrip().startswith("["):
        with suppress(ValueError):
            record[STATED] = parse_line(record[STATED])
        yield from _from_record(record, fields, name, place)
        return
    item = _document_of(record, fields, name, place, "column")
    table.add(row, item)
    yield item


def _with_all_columns(
    row: dict[str, str], fields: Fields, place: str
) -> dict[str, Any]:
    """Return a table's row that has no text column as a record, with a text that states all its columns, and with its
    facts.

    The title is that of the title column, or otherwise the value of the first column that neither numbers the rows nor
    holds their ids.
    """
    columns = [column.strip() for column in row]
    cells = [value.strip() for value in row.values()]
    said = []
    own: dict[str, str] = {}
    for column, cell in zip(columns, cells, strict=True):
        if _OF_PART.fullmatch(column) is None:
            own[column] = cell
        if cell:
            said.append(f"{column}: {cell}" if column else cell)
    record: dict[str, Any] = {name: cell for name, cell in row.items() if name.strip()}
    record[fields.text] = "; ".join(said)
    about = _record_about(own, fields)
    names = list(own)
    key = own[names[_key_column(names, fields)]] if own else ""
    facts = about.facts(place) if about else []
    facts += _facts_of_parts(key, dict(zip(columns, cells, strict=True)), fields, place)
    if facts and key:
        record.setdefault(fields.title, key)
    if about and facts:
        file = re.split(" line | record | row ", place)[0]
        record[TABLE] = {"place": file, "key": about.key_column}
    if facts:
        record[STATED] = facts
    return record


def _record_about(row: dict[str, str], fields: Fields) -> Record | None:
    if not row:
        return None
    key = _key_column(list(row), fields)
    return record_of(list(row), list(row.values()), [key])


def _facts_of_parts(
    key: str, row: dict[str, str], fields: Fields, place: str
) -> list[list[str]]:
    """Return the facts of objects that are listed in a record: facts about each object, and one that the record has
    it.

    Args:
        key: the subject of the record.
    """
    parts: dict[tuple[str, str], dict[str, str]] = {}
    for column, cell in row.items():
        match = _OF_PART.fullmatch(column)
        if match:
            parts.setdefault((match[1], match[2]), {})[match[3]] = cell
    facts: list[list[str]] = []
    for (name, _), values in parts.items():
        about = _record_about(values, fields)
        if about is None:
            continue
        if key:
            facts.append([key, name, about.key, f"{place} column {name}"])
        facts += about.facts(place)
    return facts


def _key_column(columns: list[str], fields: Fields) -> int:
    """Return the number of the column that names the subject of a row."""
    if fields.title in columns:
        return columns.index(fields.title)
    for number, column in enumerate(columns):
        if column == "name" or column.endswith(".name"):
            return number
    named = [name for name in columns if name != fields.id and name[:1] != "@"]
    if not named:
        return 0
    first = key_of(named, [])[0]
    return columns.index(named[first])


def _from_record(
    record: Mapping[str, Any], fields: Fields, name: str, place: str
) -> Iterator[Document | Skipped]:
    """Yield a record's document, and a Skipped for each invalid fact.

    Args:
        name: the document's id, if the record has none.
    """
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
    """Return a record's document, or a Skipped with the reason.

    Args:
        given_name: its id, if the record has none.
        what: "key" or "column", for messages.
    """
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
    # pandas writes the ids of a column with gaps as floats
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

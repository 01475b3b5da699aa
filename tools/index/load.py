"""From a file to documents: plain text, Markdown, JSON Lines, tables with a header, PDF, web pages, Office files."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

from ras_agent.errors import MissingExtra
from ras_agent.text.titles import file_title, is_title
from ras_agent.tools.index.conversions import CONVERTERS, convert
from ras_agent.tools.index.fields import TEXT, USUAL_FIELDS, Fields
from ras_agent.tools.index.mail import read_mail
from ras_agent.tools.index.markdown import first_heading, front_matter
from ras_agent.tools.index.plain_kinds import PLAIN_KINDS, flat
from ras_agent.tools.index.stated_facts import STATED, read_facts
from ras_agent.tools.index.tables import Rows
from ras_agent.tools.index.tags import without_tags
from ras_agent.tools.index.text_files import (
    Converted,
    FileContent,
    HeldFile,
    NotText,
    OnRead,
    name_of,
    not_unicode,
    parse_line,
    read_lines,
    read_text,
)
from ras_agent.tools.index.text_tables import TABLE, key_of, record_of
from ras_agent.tools.index.vision import PICTURES

_MUCH = 20_000  # characters; what is less does no harm
_ASCII_WORD = re.compile(r"[!-~]+")
_LONGEST_WORD = 1000


@dataclass(frozen=True, slots=True)
class Document:
    """Holds a text exactly as its file does.

    id: its own, unique in its file. place: where it was read, for messages ("notes/a.jsonl line 3"). pages: for paged
    files, the offset in `text` where each page begins. record: whether it is a record that came with its id, and so
    perhaps one passage of a corpus that was cut already.
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    pages: tuple[int, ...] = ()
    record: bool = False
    is_markdown: bool = field(default=False, compare=False)
    """Whether lines of its text that look like headings are headings."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Reports a file or record that was not loaded.

    error: whether it should have been; False for what is empty or no kind of file that is loaded here.
    hides: the path of a file or folder that could not be looked at, so that nobody knows whether it still exists.
    """

    place: str
    reason: str
    error: bool = True
    hides: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


_Loader = Callable[[FileContent, str, Fields, OnRead], Iterator[Document | Skipped]]
Convert = Callable[[FileContent, OnRead], Converted]
"""Returns the text of a file whose suffix is a key of CONVERTERS; see `convert`"""


def load(
    path: FileContent,
    label: str = "",
    fields: Fields = USUAL_FIELDS,
    on_read: OnRead = lambda _: None,
    convert: Convert = convert,
) -> Iterator[Document | Skipped]:
    """Yield the documents of a file, and a Skipped for each part that is none, in order.

    Never raises for what a file holds. path: what a file is read from whose suffix is among SUFFIXES. label: the file's
    name in ids and messages, by default the name it has. convert: by default in this process, see `apart` for another.
    """
    label, suffix = label or name_of(path.name), path.suffix.lower()
    try:
        if fields.kind == TEXT:
            items = _load_text(path, label, fields, on_read)
        elif suffix in CONVERTERS or suffix in PICTURES:
            found = convert(path, on_read)
            items = _of_converted(found, suffix, label, fields)
        elif suffix == _MAIL:
            items = _load_mail(path, label, on_read, convert)
        else:
            items = _LOADERS[suffix](path, label, fields, on_read)
        for item in items:
            if isinstance(item, Document):
                yield from _checked(item)
            else:
                yield item
    except NotText as error:
        yield Skipped(
            f"{label} line {error.line}" if error.line else label,
            str(error),
            error=not error.empty,
        )
    except MissingExtra as error:
        yield Skipped(label, str(error))
    except OSError as error:
        yield Skipped(label, f"cannot be read: {error.strerror}")


def _checked(document: Document) -> Iterator[Document | Skipped]:
    """Yield a document without hidden characters, and a report of these; in its place one if it holds no text."""
    problem = _encoded_data(document.text)
    if problem:
        yield Skipped(document.place, problem, error=False)
        return
    seen = without_tags(document.text, document.pages)
    if seen.hidden:
        parts = "1 part" if seen.hidden == 1 else f"{seen.hidden:,} parts"
        reason = f"text that no reader sees is left out: {parts} of tag characters"
        yield Skipped(document.place, reason, error=False)
        document = replace(document, text=seen.text, pages=seen.pages)
    yield document


def _encoded_data(text: str) -> str:
    """Return why a text is none to search, since most of it is words that nobody writes; "" for a text.

    Such are hexadecimal numbers, base64 and minified code, all of them ASCII: no script without spaces is.
    """
    if len(text) < _MUCH:
        return ""
    lengths = (word.end() - word.start() for word in _ASCII_WORD.finditer(text))
    within = sum(length for length in lengths if length > _LONGEST_WORD)
    if 2 * within <= len(text):
        return ""
    return f"no text: {within:,} of its {len(text):,} characters are words of over 1,000 letters, as of encoded data"


def _load_text(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    yield Document(label, read_text(path, on_read), file_title(label), place=label)


def _load_markdown(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    """Yield one document, titled by its front matter, else by its first heading, else after its file."""
    metadata, body = front_matter(read_text(path, on_read))
    named = metadata.get("title")
    title = ""
    if isinstance(named, str) and is_title(named):
        title = named.strip()
    if title:
        del metadata["title"]
    title = title or first_heading(body) or file_title(label)
    if body.strip():
        yield Document(
            id=label,
            text=body,
            title=title,
            metadata=_dated(metadata),
            place=label,
            is_markdown=True,
        )
    else:
        yield Skipped(label, "holds no text below its front matter", error=False)


def _of_converted(
    found: Converted, suffix: str, label: str, fields: Fields
) -> Iterator[Document | Skipped]:
    """Yield one document, as Markdown, or one a row; a Skipped for each page without text and kind of text left out."""
    if found.rows:
        yield from _of_rows(found, fields, label)
        return
    is_pdf = suffix == ".pdf"
    yield from _left_out(found, label)
    if is_pdf:
        for number, (start, end) in enumerate(
            pairwise((*found.pages, len(found.text))), start=1
        ):
            if start == end:
                yield Skipped(
                    f"{label} page {number}", "no text on this page", error=False
                )
    title = (
        found.title
        or ("" if is_pdf else first_heading(found.text))
        or file_title(label)
    )
    yield Document(
        id=label,
        text=found.text,
        title=title,
        metadata=_dated(found.metadata),
        place=label,
        pages=found.pages,
        is_markdown=not is_pdf,
    )


def _left_out(found: Converted, label: str) -> Iterator[Skipped]:
    for reason, count in sorted(found.left_out.items()):
        if count:
            parts = "1 part" if count == 1 else f"{count:,} parts"
            yield Skipped(
                label,
                f"text that no reader sees is left out: {parts} {reason}",
                error=False,
            )


def _dated(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with a `date`, where it has one under another usual name."""
    about = dict(metadata)
    for name in ("published_at", "published", "pubdate", "publication_date"):
        if name in about:
            about.setdefault("date", about[name])
    return about


def _of_rows(
    found: Converted, fields: Fields, label: str
) -> Iterator[Document | Skipped]:
    """Yield a document for each row of a workbook; the first row of a sheet that has several cells is its header."""
    yield from _left_out(found, label)
    columns: list[str] = []
    sheet = ""
    for row in found.rows:
        place = f"{label} sheet {row.sheet} row {row.number}"
        if row.sheet != sheet:
            sheet = row.sheet
            columns = []
        cells = list(row.cells)
        filled = list(filter(None, cells))
        if columns:
            name = f"{label}:{sheet}:{row.number}"
            yield from _from_row(cells, columns, fields, name, place)
        elif len(filled) > 1 or len(cells) == 1:
            columns = _usual_names(_distinct(cells), fields)
            if problem := _header_problem(columns, fields, label):
                yield Skipped(place, f"the header {problem}")
                return
        else:
            reason = f"stands above the header, and is left out: {filled[0]!r:.80}"
            yield Skipped(place, reason, error=False)


def _distinct(columns: list[str]) -> list[str]:
    """Return the names of columns, those that come again with the number of theirs."""
    names: list[str] = []
    for number, column in enumerate(columns, start=1):
        name = column or "column"
        if not column or name in names:
            name = f"{name} ({number})"
        names.append(name)
    return names


def _load_plain(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    """Yield a text of another form as Markdown."""
    written = read_text(path, on_read)
    text, metadata = PLAIN_KINDS[path.suffix.lower()](written)
    yield Document(
        id=label,
        text=text,
        title=first_heading(text) or file_title(label),
        metadata=_dated(metadata),
        place=label,
        is_markdown=True,
    )


def _load_mail(
    path: FileContent, label: str, on_read: OnRead, convert: Convert
) -> Iterator[Document | Skipped]:
    """Yield an e-mail's own words, and what it quotes as another document; its attachments are reported."""
    data = path.read_bytes()
    on_read(len(data))

    def from_html(page: bytes) -> str:
        file = HeldFile("mail.html", page)
        return convert(file, _read_already).text

    mail = read_mail(data, from_html)
    title = mail.subject or file_title(label)
    if mail.own:
        yield Document(
            id=label, text=mail.own, title=title, metadata=mail.about, place=label
        )
    if mail.quoted:
        yield Document(
            id=f"{label}:quoted",
            text=mail.quoted,
            title=title,
            metadata={**mail.about, "quoted": True},
            place=f"{label} quoted",
        )
    if not mail.own and not mail.quoted:
        yield Skipped(label, "holds no text", error=False)
    for name in mail.attachments:
        yield Skipped(
            f"{label} attachment {name}",
            "attachments are not read; save it as a file",
            error=False,
        )


def _read_already(count: int) -> None:
    """Take no notice of bytes that were counted with the mail."""


def _load_json(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    """Yield a document for each object of a list, also of the only list that an object holds, else for the object."""
    text = read_text(path, on_read)
    try:
        value = parse_line(text)
    except ValueError as error:
        yield Skipped(label, str(error))
        return
    if isinstance(value, dict):
        inner = list(value.values())
        holds_list = len(inner) == 1 and isinstance(inner[0], list)
        value = inner[0] if holds_list else [value]
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


def _load_jsonl(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    """Yield a document for each line that is not blank; a bad line is skipped alone.

    A line may hold a list of records; a file that is one list over several lines is read as a whole.
    """
    lines = read_lines(path, on_read)
    first = next(lines, "")
    if first.strip() == "[":
        yield from _from_array(first + "".join(lines), fields, label)
        return
    for number, line in enumerate(chain([first], lines), start=1):
        if line.strip():
            yield from _from_line(line.strip(), fields, label, number)


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
        value = parse_line(line)
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
    yield from _from_record(record, fields, f"{label}:{number}", place, "key")


def _load_csv(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    """Yield a document for each row; a bad row is skipped alone."""
    rows = iter(Rows(read_lines(path, on_read), is_tsv=path.suffix.lower() == ".tsv"))
    line, head = next(rows, (1, []))
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
    for line, row in rows:
        if isinstance(row, csv.Error):
            yield Skipped(f"{label} line {line}", f"not CSV: {row}")
        elif row:
            yield from _from_row(
                row, columns, fields, f"{label}:{line}", f"{label} line {line}"
            )


def _usual_names(columns: list[str], fields: Fields) -> list[str]:
    """Return the columns, in which one called "Text " has the name that is looked for where none has it exactly."""
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
    return (
        f"repeats a column: {there}; rename one"
        if len(set(columns)) < len(columns)
        else ""
    )


def _from_row(
    row: list[str], columns: list[str], fields: Fields, name: str, place: str
) -> Iterator[Document | Skipped]:
    """Yield the document of a table's row. name: its id, if no column has one."""
    if reason := not_unicode("\n".join(row)):
        yield Skipped(place, reason)
    elif len(row) != len(columns):
        yield Skipped(
            place, f"expected {len(columns)} columns, got {len(row)}: {row!r:.80}"
        )
    else:
        record = dict(zip(columns, row, strict=True))
        if fields.text not in record:
            record = _with_all_columns(record, fields, place)
        yield from _from_record(record, fields, name, place, "column")


def _with_all_columns(
    row: dict[str, str], fields: Fields, place: str
) -> dict[str, Any]:
    """Return a row of a table without a column of text, with one that says them all, and with the facts that it states.

    What it is about is its title; without one, what its first column says that neither counts the rows nor names them.
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
    """Return the number of the column that says what a row is about."""
    if fields.title in columns:
        return columns.index(fields.title)
    named = [column for column in columns if column != fields.id]
    if not named:
        return 0
    first = key_of(named, [])[0]
    return columns.index(named[first])


def _from_record(
    record: Mapping[str, Any], fields: Fields, name: str, place: str, what: str
) -> Iterator[Document | Skipped]:
    """Yield a record's document, and a Skipped for each of its facts that is none.

    name: the id of a record without one. what: "key" or "column", for messages.
    """
    document = _document_of(record, fields, name, place, what)
    if (
        isinstance(document, Skipped)
        or STATED not in document.metadata
        or what == "column"
    ):
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
    label = place.partition(" line ")[0].partition(" record ")[0]
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
    if (
        isinstance(own, float) and own.is_integer()
    ):  # as pandas writes the ids of a column with gaps
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
        metadata=_dated(
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


_LOADERS: Mapping[str, _Loader] = {
    ".txt": _load_text,
    ".text": _load_text,
    ".md": _load_markdown,
    ".markdown": _load_markdown,
    **dict.fromkeys(PLAIN_KINDS, _load_plain),
    ".json": _load_json,
    ".jsonl": _load_jsonl,
    ".ndjson": _load_jsonl,
    ".csv": _load_csv,
    ".tsv": _load_csv,
}
"""Suffix of a file of text -> what loads it, with the first four arguments of `load`."""

_MAIL = ".eml"
SUFFIXES = (*_LOADERS, _MAIL, *CONVERTERS)
"""Suffixes of the files that can be loaded."""

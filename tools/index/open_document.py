"""Converts OpenDocument files to Markdown (`.odt`: headings, paragraphs, lists and tables) and to rows (workbooks)."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from typing import Any

from ras_agent.tools.index.archives import parsed_xml
from ras_agent.tools.index.line_ends import in_one_line
from ras_agent.tools.index.looks import DEEPEST, Look, count_left_out
from ras_agent.tools.index.scripts import END, LOWERED, RAISED, written_out
from ras_agent.tools.index.text_files import Converted, SheetRow
from ras_agent.tools.index.text_tables import written_table

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_FORM = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_UNREAD = {
    f"{_TEXT}tracked-changes",
    f"{_TEXT}sequence-decls",
    f"{_OFFICE}annotation",
}
_NOTE = f"{_TEXT}note"
_STYLED = (f"{_TEXT}span", f"{_TEXT}p", f"{_TEXT}h", f"{_TEXT}section")
_MOST_REPEATS = 100
_MOST_ROWS = 1 << 20
_ABOUT = ("title", "date", "creator", "language")


def read_open_document(data: bytes) -> Converted:
    """Return the text of a document, with its properties; comments and deleted words are left out.

    Notes are at the end, each after its mark.
    """
    about: dict[str, str] = {}
    with zipfile.ZipFile(BytesIO(data)) as archive:
        content = parsed_xml(archive.read("content.xml"))
        styles = None
        if "styles.xml" in archive.namelist():
            styles = parsed_xml(archive.read("styles.xml"))
        if "meta.xml" in archive.namelist():
            about = _about(parsed_xml(archive.read("meta.xml")))
    left_out = _prepare(content, styles)
    rows = tuple(_rows_of_sheets(content, left_out))
    body = content.find(f"{{*}}body/{_OFFICE}text")
    blocks: list[str] = []
    if body is not None:
        blocks += _blocks(body)
        blocks += map(_note, body.iter(_NOTE))
    title = about.pop("title", "")
    blocks += ["\t".join(row.cells) for row in rows]
    return Converted(
        text=written_out("\n\n".join(blocks)),
        title=title,
        metadata=about,
        left_out=left_out,
        rows=rows,
    )


def _rows_of_sheets(content: Any, left_out: Counter[str]) -> Iterator[SheetRow]:
    """Yield the rows of a workbook's sheets that are not blank; hidden rows and sheets are left out."""
    styles = _styles([content])
    for sheet in content.iterfind(f"{{*}}body/{_OFFICE}spreadsheet/{_TABLE}table"):
        look = styles.get(sheet.get(f"{_TABLE}style-name", ""))
        about = None if look is None else look.find(f"{_STYLE}table-properties")
        if about is not None and about.get(f"{_TABLE}display") == "false":
            left_out["hidden"] += 1
            continue
        yield from _rows_of_sheet(sheet, left_out)


def _rows_of_sheet(sheet: Any, left_out: Counter[str]) -> list[SheetRow]:
    """Return the rows of a sheet, all as wide as its last column that is not blank."""
    name = sheet.get(f"{_TABLE}name", "")
    rows: dict[int, list[str]] = {}
    reaching: dict[int, tuple[int, str]] = {}
    number = 1
    width = 0
    for row in sheet.iter(f"{_TABLE}table-row"):
        cells = [written_out(cell) for cell in _cells(row, reaching)]
        times = _number(row, "number-rows-repeated", _MOST_ROWS)
        is_hidden = row.get(f"{_TABLE}visibility", "visible") != "visible"
        if is_hidden and any(cells):
            left_out["hidden"] += 1
        elif any(cells):
            filled = [place for place, cell in enumerate(cells, start=1) if cell]
            width = max(width, *filled)
            for place in range(number, number + min(times, _MOST_REPEATS)):
                rows[place] = cells
        number += times
    blank = [""] * width
    return [
        SheetRow(sheet=name, number=number, cells=tuple([*cells, *blank][:width]))
        for number, cells in rows.items()
    ]


def _mark_of_note(note: Any) -> str:
    written = note.findtext(f"{_TEXT}note-citation", "").strip()
    return f"[{written}]"


def _note(note: Any) -> str:
    """Return the text of a note, after its mark."""
    said = " ".join(_blocks(note))
    return f"{_mark_of_note(note)} {said}"


def _about(meta: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _ABOUT:
        written = meta.findtext(f".//{{*}}{name}", "").strip()
        if written:
            found[name] = written
    return found


def _prepare(content: Any, styles: Any = None) -> Counter[str]:
    """Mark raised text and remove unseen text in the tree of an OpenDocument text; return how many parts are left out.

    Args:
        styles: the tree of the file's own styles, if it has one.
    """
    left_out: Counter[str] = Counter()
    trees = [content]
    if styles is not None:
        trees.insert(0, styles)
    elements = _styles(trees)
    for element in list(content.iter(*_STYLED)):
        name = element.get(f"{_TEXT}style-name", "")
        look = _look_of_style(name, elements, DEEPEST)
        is_white = look.white and not _is_in_cell(element)
        if is_white or element.get(f"{_TEXT}display") == "none":
            look = replace(look, hidden=True)
        if look.reason:
            _empty(element, look.reason, left_out)
        elif look.level and element.tag == f"{_TEXT}span":
            _mark(element, look.level)
    return left_out


def _is_in_cell(element: Any) -> bool:
    return next(element.iterancestors(f"{_TABLE}table-cell"), None) is not None


def _styles(trees: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for tree in trees:
        for style in tree.iter(f"{_STYLE}style"):
            name = style.get(f"{_STYLE}name", "")
            found[name] = style
    return found


def _look_of_style(name: str, elements: Mapping[str, Any], levels: int) -> Look:
    """Return how a style looks, including the style that it is based on."""
    style = elements.get(name)
    if style is None or not levels:
        return Look()
    base = style.get(f"{_STYLE}parent-style-name", "")
    look = _look_of_style(base, elements, levels - 1)
    about = style.find(f"{_STYLE}text-properties")
    if about is None:
        return look
    struck = about.get(f"{_STYLE}text-line-through-style")
    if struck is not None:
        look = replace(look, struck=struck != "none")
    shown = about.get(f"{_TEXT}display")
    if shown is not None:
        look = replace(look, hidden=shown == "none")
    look = replace(look, white=look.white or _is_white_on_none(about))
    place = about.get(f"{_STYLE}text-position")
    if place is not None:
        look = replace(look, level=_level_at(place))
    return look


def _is_white_on_none(about: Any) -> bool:
    colour: str = about.get(f"{_FORM}color", "")
    ground: str = about.get(f"{_FORM}background-color", "transparent")
    return colour.lower() == "#ffffff" and ground == "transparent"


def _level_at(place: str) -> str:
    """Return the mark of text at a position such as "super 58%" or "-33% 58%"."""
    first = place.split()[0] if place.split() else ""
    if first == "super":
        return RAISED
    if first == "sub" or first.startswith("-"):
        return LOWERED
    is_raised = first.endswith("%") and first.strip("0.%") != ""
    return RAISED if is_raised else ""


def _empty(element: Any, reason: str, left_out: Counter[str]) -> None:
    """Empty an element, but keep its place and the text after it."""
    count_left_out(left_out, reason, "".join(element.itertext()))
    for inner in list(element):
        element.remove(inner)
    element.text = ""


def _mark(element: Any, level: str) -> None:
    element.text = f"{level}{element.text or ''}"
    inner = list(element)
    if inner:
        inner[-1].tail = f"{inner[-1].tail or ''}{END}"
    else:
        element.text += END


def _blocks(parent: Any) -> Iterator[str]:
    for element in parent:
        if not isinstance(element.tag, str) or element.tag in _UNREAD:
            continue
        if element.tag == f"{_TEXT}h":
            level = element.get(f"{_TEXT}outline-level", "1")
            marks = "#" * min(int(level), 6)
            block = f"{marks} {_words(element)}"
        elif element.tag == f"{_TEXT}p":
            block = _words(element)
        elif element.tag == f"{_TEXT}list":
            items = [" ".join(_blocks(item)) for item in element]
            block = "\n".join(f"- {item}" for item in items if item)
        elif element.tag == f"{_TABLE}table" and not _is_in_cell(element):
            block = _table(element)
        else:
            yield from _blocks(element)
            continue
        if block.strip("# "):
            yield block


def _words(element: Any) -> str:
    """Return the text of a paragraph, in one line."""
    text = "".join(_runs(element))
    return in_one_line(text)


def _runs(element: Any) -> Iterator[str]:
    yield element.text or ""
    for inner in element:
        if inner.tag in (f"{_TEXT}s", f"{_TEXT}tab", f"{_TEXT}line-break"):
            yield " "
        elif inner.tag == _NOTE:
            yield f" {_mark_of_note(inner)}"
        elif isinstance(inner.tag, str) and inner.tag not in _UNREAD:
            yield from _runs(inner)
        yield inner.tail or ""


def _table(table: Any) -> str:
    """Return a table as Markdown, with its first row as the header; the text of a cell that spans others is in all of
    them."""
    reaching: dict[int, tuple[int, str]] = {}
    rows: list[list[str]] = []
    for row in table.iter(f"{_TABLE}table-row"):
        own_table = next(row.iterancestors(f"{_TABLE}table"))
        if own_table is not table:
            continue
        cells = _cells(row, reaching)
        if any(cells):
            rows.append(cells)
    return written_table(rows)


def _cells(row: Any, reaching: dict[int, tuple[int, str]]) -> list[str]:
    """Return the cells of a row.

    Args:
        reaching: for each column, the number of further rows that a cell above spans, and its text.
    """
    cells: list[str] = []
    for cell in row:
        times = _number(cell, "number-columns-repeated")
        if cell.tag == f"{_TABLE}covered-table-cell":
            for _ in range(times):
                cells.append(_spanning(cells, reaching))
        elif cell.tag == f"{_TABLE}table-cell":
            day = cell.get(f"{_OFFICE}date-value", "")
            said = day.replace("T", " ") or " ".join(_blocks(cell))
            rows_below = _number(cell, "number-rows-spanned") - 1
            if rows_below > 0:
                reaching[len(cells)] = (rows_below, said)
            cells.extend([said] * times)
    return cells


def _number(cell: Any, name: str, most: int = _MOST_REPEATS) -> int:
    written = cell.get(f"{_TABLE}{name}", "1")
    if not written.isdecimal() or len(written) > 7:
        return 1
    return min(int(written), most)


def _spanning(cells: list[str], reaching: dict[int, tuple[int, str]]) -> str:
    """Return the text of the cell that covers a place: the cell above that spans rows, otherwise the cell to the
    left."""
    column = len(cells)
    rows_left, said = reaching.pop(column, (0, ""))
    if rows_left > 1:
        reaching[column] = (rows_left - 1, said)
    if rows_left:
        return said
    return cells[-1] if cells else ""

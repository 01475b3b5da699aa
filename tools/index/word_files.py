"""Prepares Word files for their converter, and adds the cells that rows leave out.

Hidden and struck text is removed, raised text is marked, and large tables are converted here.

Parts that are left out are counted by their reason, "hidden" or "struck out".
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from secrets import token_hex
from typing import Any, NamedTuple

from ras_agent.tools.index.archives import parsed_xml, with_parts
from ras_agent.tools.index.looks import DEEPEST, OFF, Look, take_out
from ras_agent.tools.index.scripts import END, LOWERED, RAISED
from ras_agent.tools.index.text_tables import written_table

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_BODY = "word/document.xml"
_PARTS = (_BODY, "word/footnotes.xml", "word/endnotes.xml")
_STYLES = "word/styles.xml"
_SMALLEST = 3  # the largest invisible letter, in half points
_RAISED_BY = 4  # how far text must be raised or lowered, in half points
_MOST_COLUMNS = 63  # the maximum number of columns in a Word table
_LEVELS = {"superscript": RAISED, "subscript": LOWERED}


class PreparedWord(NamedTuple):
    """Holds a Word file as its converter should read it."""

    data: bytes
    left_out: Counter[str]
    """The number of parts that are left out, by reason."""
    tables: dict[str, str]
    """The large tables as Markdown, by the marks in their places."""


def prepare_word(data: bytes, large: int) -> PreparedWord:
    """Return a Word file as its converter should read it.

    A mark stands in place of each large table: the library takes a quarter of a millisecond for each cell, which is
    nearly all of the time for such a table.

    Args:
        large: the number of cells from which a table is large.
    """
    left_out: Counter[str] = Counter()
    tables: dict[str, str] = {}
    parts: dict[str, bytes] = {}
    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = set(archive.namelist())
        styles: dict[str, Look] = {}
        if _STYLES in names:
            styles = _styles(archive.read(_STYLES))
        for name in _PARTS:
            if name not in names:
                continue
            root = parsed_xml(archive.read(name))
            _prepare_part(root, styles, left_out)
            cells = sum(1 for _ in root.iter("{*}tc"))
            if name == _BODY and cells >= large:
                parts[name] = _with_marks(root, tables, large)
            else:
                parts[name] = _written(root)
    return PreparedWord(with_parts(data, parts), left_out, tables)


def _written(root: Any) -> bytes:
    import lxml.etree as etree

    written: bytes = etree.tostring(
        root, encoding="UTF-8", xml_declaration=True, standalone=True
    )
    return written


def _prepare_part(
    root: Any, styles: Mapping[str, Look], left_out: Counter[str]
) -> None:
    has_ground = root.find(f"{_WORD}background") is not None
    for moved in list(root.iter(f"{_WORD}moveTo")):
        moved.tag = f"{_WORD}ins"
    for line_end in list(root.iter(f"{_WORD}cr")):
        line_end.tag = f"{_WORD}br"
    for shown in list(root.iter(f"{_WORD}fldSimple")):
        # its runs are read, whatever they were computed from
        shown.tag = f"{_WORD}smartTag"
    for row in list(root.iter(f"{_WORD}tr")):
        _complete_row(row, left_out)
    last = _LastMarked()
    for run in list(root.iter(f"{_WORD}r")):
        look = _look_of_run(run, styles)
        if look.white and not has_ground and not _has_shade(run):
            look = replace(look, hidden=True)
        if look.reason:
            take_out(run, look.reason, left_out)
        elif look.level:
            last.mark(run, look.level)


def _complete_row(row: Any, left_out: Counter[str]) -> None:
    """Add the cells that a table's row leaves out at its beginning and end, or remove a hidden row."""
    about = row.find(f"{_WORD}trPr")
    if about is None:
        return
    if _is_on(about.find(f"{_WORD}hidden")):
        take_out(row, "hidden", left_out)
        return
    cells = row.findall(f"{_WORD}tc")
    if not cells:
        return
    for _ in range(_columns(about.find(f"{_WORD}gridBefore"))):
        cells[0].addprevious(_empty_cell(row))
    for _ in range(_columns(about.find(f"{_WORD}gridAfter"))):
        row.append(_empty_cell(row))


def _empty_cell(row: Any) -> Any:
    cell = row.makeelement(f"{_WORD}tc")
    cell.append(row.makeelement(f"{_WORD}p"))
    return cell


def _columns(element: Any) -> int:
    """Return the number of columns in an element of Word, or 0 without an element."""
    columns = _number(element)
    if columns is None:
        return 0
    return min(abs(columns), _MOST_COLUMNS)


def _number(element: Any) -> int | None:
    """Return an element's value as a whole number, or None if it has none."""
    value = "" if element is None else element.get(f"{_WORD}val", "")
    unsigned = value.removeprefix("-")
    if not unsigned.isdecimal() or len(unsigned) > 6:
        return None
    return int(value)


def _is_on(element: Any) -> bool:
    if element is None:
        return False
    return element.get(f"{_WORD}val", "1") not in OFF


def _styles(content: bytes) -> dict[str, Look]:
    """Return how the styles of a file look, by style id, including the styles that they are based on."""
    elements: dict[str, Any] = {}
    for style in parsed_xml(content).iter(f"{_WORD}style"):
        name = style.get(f"{_WORD}styleId", "")
        elements[name] = style
    return {name: _look_of_style(name, elements, DEEPEST) for name in elements}


def _look_of_style(name: str, elements: Mapping[str, Any], levels: int) -> Look:
    style = elements.get(name)
    if style is None or not levels:
        return Look()
    look = Look()
    base = style.find(f"{_WORD}basedOn")
    if base is not None:
        look = _look_of_style(base.get(f"{_WORD}val", ""), elements, levels - 1)
    return _changed(look, style.find(f"{_WORD}rPr"))


def _look_of_run(run: Any, styles: Mapping[str, Look]) -> Look:
    look = Look()
    paragraph = next(run.iterancestors(f"{_WORD}p"), None)
    named = None if paragraph is None else paragraph.find(f"{_WORD}pPr/{_WORD}pStyle")
    if named is not None:
        look = styles.get(named.get(f"{_WORD}val", ""), look)
    own = run.find(f"{_WORD}rPr")
    if own is None:
        return look
    named = own.find(f"{_WORD}rStyle")
    if named is not None:
        of_style = styles.get(named.get(f"{_WORD}val", ""), Look())
        look = Look(
            hidden=look.hidden or of_style.hidden,
            struck=look.struck or of_style.struck,
            level=of_style.level or look.level,
            white=look.white or of_style.white,
        )
    return _changed(look, own)


def _changed(look: Look, properties: Any) -> Look:
    """Return a look after the properties of a run or style are applied."""
    if properties is None:
        return look
    for element in properties:
        if not isinstance(element.tag, str):
            continue
        look = _with_property(look, element.tag.removeprefix(_WORD), element)
    return look


def _with_property(look: Look, name: str, element: Any) -> Look:
    if name == "vanish":
        return replace(look, hidden=_is_on(element))
    if name == "sz":
        size = _number(element)
        if size is None or size > _SMALLEST:
            return look
        return replace(look, hidden=True)
    if name in ("strike", "dstrike"):
        return replace(look, struck=_is_on(element))
    if name == "color":
        return replace(look, white=_is_white(element))
    if name == "vertAlign":
        name = element.get(f"{_WORD}val", "")
        return replace(look, level=_LEVELS.get(name, ""))
    if name == "position":
        return replace(look, level=_level_of(_number(element) or 0))
    return look


def _level_of(half_points: int) -> str:
    if half_points >= _RAISED_BY:
        return RAISED
    if half_points <= -_RAISED_BY:
        return LOWERED
    return ""


def _is_white(element: Any) -> bool:
    value = str(element.get(f"{_WORD}val", ""))
    of_theme = str(element.get(f"{_WORD}themeColor", ""))
    return value.upper() == "FFFFFF" or of_theme == "background1"


def _has_shade(run: Any) -> bool:
    """Return whether the background behind a run may be coloured: by itself, its paragraph, its table or a shape."""
    for name in ("shd", "highlight"):
        if run.find(f"{_WORD}rPr/{_WORD}{name}") is not None:
            return True
    for parent in run.iterancestors():
        if parent.tag in (f"{_WORD}tbl", f"{_WORD}txbxContent"):
            return True
        if (
            parent.tag == f"{_WORD}p"
            and parent.find(f"{_WORD}pPr/{_WORD}shd") is not None
        ):
            return True
    return False


class _LastMarked:
    """Marks runs of raised or lowered text; a run directly after one of the same kind is added to it."""

    def __init__(self) -> None:
        self._run: Any = None
        self._text: Any = None
        self._level = ""

    def mark(self, run: Any, level: str) -> None:
        """Put the marks around a run's text, and remove its vertical alignment."""
        texts = [part for part in run.iter(f"{_WORD}t") if part.text]
        if not texts:
            return
        follows = self._run is not None and run.getprevious() is self._run
        if follows and level == self._level:
            self._text.text = self._text.text.removesuffix(END)
        else:
            texts[0].text = f"{level}{texts[0].text}"
        texts[-1].text = f"{texts[-1].text}{END}"
        for aligned in run.findall(f"{_WORD}rPr/{_WORD}vertAlign"):
            aligned.getparent().remove(aligned)
        self._run = run
        self._text = texts[-1]
        self._level = level


def _with_marks(document: Any, tables: dict[str, str], least: int) -> bytes:
    """Return the body of a Word file with marks in place of its large tables, which are added to `tables`."""
    import lxml.etree as etree

    seed = token_hex(8)
    parts: list[bytes] = []
    for part in document.find("{*}body"):
        rows = _rows(part)
        cells = sum(map(len, rows))
        if cells >= least:
            mark = f"{seed}x{len(tables)}x"
            tables[mark] = written_table(rows)
            part = _paragraph(part, mark)
        parts.append(etree.tostring(part, with_tail=False))
    # the parts are written separately: removing a large element from a tree is as slow as converting it
    shell = etree.Element(document.tag, document.attrib, document.nsmap)
    body = etree.SubElement(shell, document.find("{*}body").tag)
    body.text = seed
    written: bytes = etree.tostring(shell)
    return written.replace(seed.encode(), b"".join(parts))


def _paragraph(table: Any, text: str) -> Any:
    """Return a paragraph with a text, for the file that a table is in."""
    import lxml.etree as etree

    space = etree.QName(table).namespace
    paragraph = etree.Element(f"{{{space}}}p")
    run = etree.SubElement(paragraph, f"{{{space}}}r")
    words = etree.SubElement(run, f"{{{space}}}t")
    words.text = text
    return paragraph


def _rows(table: Any) -> list[list[str]]:
    """Return the cells of a Word table by row. A cell that spans columns is followed by empty cells; one that spans
    rows is repeated."""
    rows: list[list[str]] = []
    for row in table.iterchildren("{*}tr"):
        above = rows[-1] if rows else []
        texts: list[str] = []
        for cell in row.iterchildren("{*}tc"):
            merged = cell.find("{*}tcPr/{*}vMerge")
            goes_on = merged is not None and "restart" not in merged.attrib.values()
            is_repeated = goes_on and len(texts) < len(above)
            text = above[len(texts)] if is_repeated else _cell_text(cell)
            texts.append(text)
            columns = _columns(cell.find("{*}tcPr/{*}gridSpan"))
            texts += [""] * (columns - 1)
        rows.append(texts)
    return rows


def _cell_text(cell: Any) -> str:
    """Return the text of a cell in a Word table."""
    parts = cell.iter("{*}t", "{*}tab", "{*}br", "{*}p")
    texts = [part.text or " " for part in parts]
    return "".join(texts)

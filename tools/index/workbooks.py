"""Reads Excel workbooks: the visible rows of each sheet, with their cells as they are shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta
from functools import lru_cache
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from ras_agent.tools.index.line_ends import in_one_line
from ras_agent.tools.index.looks import count_left_out
from ras_agent.tools.index.scripts import lowered, raised, written_out
from ras_agent.tools.index.text_files import Converted, NotText, SheetRow

_MOST_CELLS = 1 << 22
_LARGEST_SPAN = 10_000
# the maximum size of a sheet that is searched for formulas without a value, in bytes
_LARGEST_SHEET = 1 << 26
_WITHOUT_VALUE = re.compile(rb"(?:</f>|<f[^<>]*/>)\s*(?:<v\s*/>|<v>\s*</v>|</c>)")
UNSAVED = "unsaved"
"""The key for the number of formulas without a saved value, among what was left out."""
# parts of a number format: literal text, a currency, marks that are not shown, digits
_LONGEST_FORM = 255
"""The maximum number of characters that are read of a format; Excel writes no longer ones."""
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|[_*].')
_DIGITS = re.compile(r"[#0?](?:[#0?,./Ee+ -]*[#0?])?")
_WHITE = ("FFFFFFFF", "00FFFFFF")
_NO_FORM = ";;;"
"""The format of a number that is not shown."""
_ONLY_ZEROS = re.compile("0{2,}")


def read_workbook(data: bytes) -> Converted:
    """Return the rows of a workbook that are not blank; hidden sheets, rows and columns are left out.

    A formula has the value that was saved with it. A cell that spans others is in all of them. Raises NotText for a
    workbook with too many cells.
    """
    from openpyxl import load_workbook

    book = load_workbook(
        BytesIO(data), data_only=True, keep_links=False, rich_text=True
    )
    left_out: Counter[str] = Counter()
    rows: list[SheetRow] = []
    cells = 0
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            left_out["hidden"] += 1
            continue
        cells += sheet.max_row * sheet.max_column
        if cells > _MOST_CELLS:
            raise NotText(
                f"has more than {_MOST_CELLS:,} cells; divide it, or save it as CSV"
            )
        rows.extend(_rows_of(sheet, left_out))
    left_out[UNSAVED] = _formulas_without_value(data)
    text = "\n".join("\t".join(row.cells) for row in rows)
    return Converted(
        text=text,
        title=str(book.properties.title or "").strip(),
        left_out=dict(left_out),
        rows=tuple(rows),
    )


def _formulas_without_value(data: bytes) -> int:
    """Return the number of formulas without a saved value, for example because a library wrote them."""
    count = 0
    with ZipFile(BytesIO(data)) as parts:
        for part in parts.infolist():
            is_sheet = part.filename.startswith("xl/worksheets/")
            if is_sheet and part.file_size <= _LARGEST_SHEET:
                found = _WITHOUT_VALUE.finditer(parts.read(part))
                count += sum(1 for _ in found)
    return count


def _rows_of(sheet: Any, left_out: Counter[str]) -> Iterator[SheetRow]:
    spanned = _spanned(sheet)
    hidden: set[int] = set()
    for columns in sheet.column_dimensions.values():
        if columns.hidden:
            hidden.update(range(columns.min, columns.max + 1))
            left_out["hidden"] += 1
    upper: tuple[str, ...] = ()
    for number, row in enumerate(sheet.iter_rows(), start=1):
        if sheet.row_dimensions[number].hidden:
            left_out["hidden"] += 1
            continue
        held = []
        for cell in row:
            if cell.column not in hidden:
                held.append(spanned.get(cell.coordinate, cell))
        shown = [_seen(cell, left_out) for cell in held]
        if _is_title(held):
            first = next(filter(None, shown))
            shown = [""] * len(shown)
            shown[0] = first
        if upper:
            shown = list(map(_below, upper, shown))
            upper = ()
        elif _is_above_another(sheet, number):
            upper = tuple(shown)
            continue
        if any(shown):
            yield SheetRow(sheet=sheet.title, number=number, cells=tuple(shown))


def _is_title(cells: Sequence[Any]) -> bool:
    """Return whether a row has only one cell, which may span several columns."""
    filled = [cell for cell in cells if cell.value is not None]
    return len(set(map(id, filled))) == 1


def _below(upper: str, lower: str) -> str:
    """Return the name of a column from the two rows of a header."""
    if upper == lower:
        return upper
    return f"{upper} {lower}".strip()


def _is_above_another(sheet: Any, number: int) -> bool:
    """Return whether a row has names that span several columns each, and the row below has the names of single
    columns."""
    wide: set[int] = set()
    deep: set[int] = set()
    groups = 0
    for span in sheet.merged_cells.ranges:
        if span.min_row != number:
            continue
        columns = range(span.min_col, span.max_col + 1)
        if span.max_row == number:
            wide.update(columns)
            groups += 1
        elif span.max_row == number + 1:
            deep.update(columns)
    filled = {cell.column for cell in sheet[number] if cell.value is not None}
    if not wide or not filled <= wide | deep:
        return False
    if deep:
        return True
    below = [cell.value for cell in sheet[number + 1]]
    return groups > 1 and all(isinstance(name, str) for name in below)


def _spanned(sheet: Any) -> dict[str, Any]:
    """Return for the place of each cell in a merged range the first cell of the range."""
    found: dict[str, Any] = {}
    for span in sheet.merged_cells.ranges:
        if span.size["rows"] * span.size["columns"] > _LARGEST_SPAN:
            continue
        first = sheet.cell(span.min_row, span.min_col)
        for row, column in span.cells:
            place = sheet.cell(row, column).coordinate
            found[place] = first
    return found


def _seen(cell: Any, left_out: Counter[str]) -> str:
    """Return a cell as it is shown, or "" for one that is hidden or struck out, which is counted."""
    if cell.value is None or cell.data_type == "e":
        return ""
    reason = _reason_to_leave_out(cell) if cell.has_style else ""
    if reason:
        left_out[reason] += 1
        return ""
    if not isinstance(cell.value, list):
        return _shown(cell)
    runs = [_run(part, left_out) for part in cell.value]
    return in_one_line(written_out("".join(runs)))


def _reason_to_leave_out(cell: Any) -> str:
    font = cell.font
    if font.strike:
        return "struck out"
    has_ground = cell.fill.fill_type is not None
    is_white = font.color is not None and font.color.rgb in _WHITE and not has_ground
    return "hidden" if is_white or cell.number_format == _NO_FORM else ""


def _run(part: Any, left_out: Counter[str]) -> str:
    """Return a part of a cell with a separate font, with the marks of raised or lowered text."""
    font = getattr(part, "font", None)
    text = str(part)
    if font is None:
        return text
    if font.strike:
        count_left_out(left_out, "struck out", text)
        return ""
    if font.vertAlign == "superscript":
        return raised(text)
    return lowered(text) if font.vertAlign == "subscript" else text


def _shown(cell: Any) -> str:
    """Return a cell as it is shown, where that matters: dates, percentages, whole numbers."""
    value = cell.value
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        is_day = value.time() == time()
        return value.date().isoformat() if is_day else value.isoformat(" ", "minutes")
    if isinstance(value, time):
        return value.isoformat("seconds" if value.second else "minutes")
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}"
    if isinstance(value, int | float):
        return shown_number(value, str(cell.number_format))
    return in_one_line(str(value))


def shown_number(number: float, form: str) -> str:
    """Return a number with the unit or currency that its format shows, and with all of its digits.

    >>> shown_number(12.5, '#,##0.00 "€"'), shown_number(7, "00000"), shown_number(0.19, "0%")
    ('12.5 €', '00007', '19%')
    """
    form = form[:_LONGEST_FORM]
    if _ONLY_ZEROS.fullmatch(form):
        return f"{number:.0f}".zfill(len(form))
    if "%" in form:
        return f"{number * 100:.10g}%"
    before, behind = _around_digits(form)
    digits = f"{number:.15g}" if isinstance(number, float) else str(number)
    return f"{before}{digits}{behind}".strip()


@lru_cache(maxsize=1000)
def _around_digits(form: str) -> tuple[str, str]:
    """Return the texts that a number format shows before and after the digits."""
    positive = form.partition(";")[0]
    texts: list[str] = []

    def hold(match: re.Match[str]) -> str:
        texts.append(next(filter(None, match.groups()), ""))
        return "\0"

    parts = _DIGITS.split(_LITERAL.sub(hold, positive), maxsplit=1)
    if len(parts) < 2:
        return "", ""
    given = iter(texts)
    before, behind = (re.sub("\0", lambda _: next(given), part) for part in parts)
    return before, behind

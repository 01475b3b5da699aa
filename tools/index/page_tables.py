"""Prepares the tables of a web page: one header row, and each cell in its column, even if cells span rows or columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

_LONGEST_REPEATED = 200  # the maximum length of a cell that is repeated in each row that it spans, in characters
_MOST_SPANNED = 1000
# the maximum length of a table inside a cell of another, in characters
_LONGEST_INNER = 500
_BAR = re.compile(r"(?<!\\)\|")
_MOST_HEAD_ROWS = 4
_FEWEST_TITLED = 3  # the minimum number of rows in a table whose first row is a title
_WIDEST_HEAD = 100  # the maximum number of columns that a header cell spans
_LONGEST_SPAN = 4  # in digits

_Carried = dict[int, tuple[int, str]]
"""For each column, the number of further rows that a cell spans, and its text."""


def write_in_cell(table: Any) -> None:
    """Replace a small table inside a cell of another by its words, since a row of a Markdown table cannot contain a
    table.
    """
    if len(table.get_text()) > _LONGEST_INNER:
        return
    lines = []
    for row in own_rows(table):
        words = row.get_text(" ").split()
        lines.append(" ".join(words))
    table.replace_with(f" {'; '.join(lines)} ")


def straighten(table: Any, soup: Any) -> None:
    """Give each row of a table all of its cells, even if cells span rows or columns.

    A cell that spans rows is repeated; one that spans columns is followed by empty cells. No row becomes longer
    than the longest one as written, whatever the cells claim.
    """
    for part in list(table.children):
        if part.name == "caption":
            _set_above(table, part)
        elif part.name in ("colgroup", "col"):
            part.decompose()
    if _is_list_of_values(table):
        _write_as_lines(table)
        return
    _set_titles_above(table)
    _join_header(table, soup)
    _join_bodies(table)
    lines = list(own_rows(table))
    rows = [_cells(line) for line in lines]
    _escape_bars(table)
    cells = chain.from_iterable(rows)
    if not any(map(_has_span, cells)):
        return
    width = _width(rows)
    carried: _Carried = {}
    for number, line in enumerate(lines):
        rows_left = len(rows) - number
        carried |= _fill(line, rows[number], carried, width, rows_left, soup)


def _set_titles_above(table: Any) -> None:
    """Move a title out of the table: the first row, if it is a single cell over all columns."""
    title, *others = islice(own_rows(table), _FEWEST_TITLED) or [table]
    cells = _cells(title)
    if len(others) + 1 < _FEWEST_TITLED or len(cells) != 1:
        return
    width = max(len(_cells(row)) for row in others)
    if 1 < width <= _span(cells[0], "colspan", width):
        _set_above(table, title)


def _join_header(table: Any, soup: Any) -> None:
    """Merge the rows of a header: "Fare" above "Adult" and "Child" becomes "Fare Adult" and "Fare Child"."""
    head = _rows_of_header(table)
    while len(head) > 1:
        if len(_cells(head[0])) > 1:
            break
        _set_above(table, head.pop(0))
    if len(head) < 2:
        return
    named = _names_of_columns(head)
    joined = soup.new_tag("tr")
    for column in range(max(named) + 1):
        cell = soup.new_tag("th")
        names = dict.fromkeys(named.get(column, ()))
        cell.string = " ".join(names)
        joined.append(cell)
    head[0].insert_before(joined)
    for line in head:
        line.decompose()


def _join_bodies(table: Any) -> None:
    """Merge the bodies, with the foot at the end wherever it is written; otherwise a body's first row would look like a
    header."""
    feet = table.find_all("tfoot", recursive=False)
    for foot in feet:
        table.append(foot.extract())
    for part in table.find_all(("tbody", "tfoot"), recursive=False):
        part.unwrap()


def _rows_of_header(table: Any) -> list[Any]:
    """Return the first rows of a table that form its header, if there are several; [] if all rows would be header."""
    head: list[Any] = []
    rows = own_rows(table)
    lines = list(islice(rows, _MOST_HEAD_ROWS + 1))
    has_head = table.select_one(":scope > thead > tr") is not None
    has_names = False
    for line in lines:
        cells = len(_cells(line))
        begins_group = has_names and cells == 1
        if begins_group or not _is_of_header(line, has_head=has_head):
            break
        has_names = has_names or cells > 1
        head.append(line)
    if len(head) < 2 < len(lines) and _is_above_another(lines[0]):
        head = lines[:2]
    if len(head) in (len(lines), _MOST_HEAD_ROWS + 1):
        return []
    return head


def _is_of_header(line: Any, *, has_head: bool) -> bool:
    """Return whether a row belongs to the header: it is in the `thead` or, in a table without one, it has only `th`
    cells."""
    if has_head:
        return bool(line.parent.name == "thead")
    cells = _cells(line)
    return bool(cells) and all(cell.name == "th" for cell in cells)


def _is_above_another(line: Any) -> bool:
    """Return whether a first row has names that each span several columns, and other cells that reach into the next
    row."""
    wide = 0
    deep = 0
    for cell in _cells(line):
        across = _span(cell, "colspan", 1)
        down = _span(cell, "rowspan", 1)
        if across > 1 and down == 1:
            wide += 1
        elif across == 1 and down == 2:
            deep += 1
        else:
            return False
    return wide > 0 and deep > 0


def _is_list_of_values(table: Any) -> bool:
    """Return whether each row of a table is a name and its value, as in the info box of an article."""
    pairs = 0
    for line in own_rows(table):
        cells = _cells(line)
        if len(cells) < 2:
            continue
        names = [cell.name for cell in cells]
        if names != ["th", "td"] or any(map(_has_span, cells)):
            return False
        pairs += 1
    return pairs > 1


def _write_as_lines(table: Any) -> None:
    """Replace a table of names and values by one line each."""
    for line in list(own_rows(table)):
        for cell in _cells(line):
            if cell.find_next_sibling("td") is not None:
                cell.append(": ")
            cell.name = "span"
        line.name = "div"
    table.name = "div"


def _escape_bars(table: Any) -> None:
    """Put a backslash before each bar in a cell, which would otherwise separate cells in Markdown."""
    for text in table.find_all(string=_BAR):
        text.replace_with(_BAR.sub(r"\\|", text))


def _set_above(table: Any, part: Any) -> None:
    """Turn the caption of a table, or a row of one cell above its header, into a paragraph before the table."""
    words = part.get_text(" ").split()
    part.name = "p"
    part.string = " ".join(words)
    table.insert_before(part.extract())


def _names_of_columns(head: list[Any]) -> dict[int, list[str]]:
    """Return the texts above each column, the highest first; a cell is above all columns that it spans."""
    named: dict[int, list[str]] = {}
    free = Counter[int]()  # column -> the first row without a cell from above
    for number, line in enumerate(head):
        column = 0
        for cell in _cells(line):
            while free[column] > number:
                column += 1
            words = cell.get_text(" ").split()
            down = _span(cell, "rowspan", len(head))
            across = _span(cell, "colspan", 1)
            end = column + min(across, _WIDEST_HEAD)
            for place in range(column, end):
                names = named.setdefault(place, [])
                if words:
                    names.append(" ".join(words))
                free[place] = number + down
            column = end
    return named


def _fill(
    line: Any,
    cells: list[Any],
    carried: _Carried,
    width: int,
    rows_left: int,
    soup: Any,
) -> _Carried:
    """Add to a row the cells of earlier rows that reach into it; return the row's own cells that reach into later
    rows."""
    begun: _Carried = {}
    spare = max(0, width - len(cells) - len(carried))
    column = 0
    for cell in cells:
        while column in carried:
            cell.insert_before(_repeated(soup, carried, column))
            column += 1
        more = min(_span(cell, "colspan", 1) - 1, spare)
        spare -= more
        down = min(_span(cell, "rowspan", rows_left), rows_left) - 1
        _follow(cell, more, soup)
        _carry(begun, column, down, more, cell)
        column += 1 + more
    for place in sorted(place for place in carried if place >= column):
        line.append(_repeated(soup, carried, place))
    return begun


def _has_span(cell: Any) -> bool:
    return "rowspan" in cell.attrs or "colspan" in cell.attrs


def _cells(line: Any) -> list[Any]:
    return list(line.find_all(("td", "th"), recursive=False))


def own_rows(table: Any) -> Iterator[Any]:
    """Yield the rows of a table, without those of tables inside its cells."""
    for part in table.children:
        if part.name == "tr":
            yield part
        elif part.name in ("thead", "tbody", "tfoot"):
            yield from part.find_all("tr", recursive=False)


def _span(cell: Any, name: str, all_of_them: int) -> int:
    """Return how many rows or columns a cell spans; a span of 0 means `all_of_them`."""
    value = cell.attrs.get(name, "1")
    written = str(value).strip()
    if not written.isdecimal() or len(written) > _LONGEST_SPAN:
        return 1
    number = int(written)
    if number == 0:
        number = all_of_them
    return min(number, _MOST_SPANNED)


def _width(rows: list[list[Any]]) -> int:
    """Return the number of cells in the longest row, including cells of earlier rows that reach into it."""
    width = 0
    ends: Counter[int] = Counter()
    reaching = 0
    for number, cells in enumerate(rows):
        reaching -= ends[number]
        width = max(width, len(cells) + reaching)
        for cell in cells:
            down = _span(cell, "rowspan", len(rows))
            if down > 1:
                reaching += 1
                ends[number + down] += 1
    return width


def _follow(cell: Any, more: int, soup: Any) -> None:
    """Insert `more` empty cells after a cell that spans columns."""
    for _ in range(more):
        cell.insert_after(soup.new_tag(cell.name))
    cell.attrs.pop("colspan", None)
    cell.attrs.pop("rowspan", None)


def _carry(carried: _Carried, column: int, down: int, more: int, cell: Any) -> None:
    """Record that a cell reaches into the next `down` rows."""
    if down < 1:
        return
    text = " ".join(cell.get_text(" ").split())
    if len(text) > _LONGEST_REPEATED:
        text = ""
    carried[column] = (down, text)
    for place in range(column + 1, column + 1 + more):
        carried[place] = (down, "")


def _repeated(soup: Any, carried: _Carried, column: int) -> Any:
    """Return a cell with the text of the cell above that reaches into this row."""
    left, text = carried.pop(column)
    if left > 1:
        carried[column] = (left - 1, text)
    cell = soup.new_tag("td")
    cell.string = text
    return cell

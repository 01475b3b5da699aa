"""Prepares the tree of a web page for its converter, so that its Markdown says what a reader of the page reads.

Hidden and struck text is taken out and counted, raised text is marked, formulas become one line, blocks stay apart, and
cells that span rows or columns leave the others in theirs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from ras_agent.text.words import word_set
from ras_agent.tools.index import scripts
from ras_agent.tools.index.formulas import formula_text
from ras_agent.tools.index.looks import count_left_out
from ras_agent.tools.index.page_styles import (
    StyleSheet,
    declarations,
    is_invisible,
    is_struck,
    is_white,
)

# what a reader of the page does not read as its text
_UNREAD = word_set(
    "script style noscript template nav iframe object svg canvas head dialog button select textarea input"
)
_STRUCK = word_set("s strike del")
# those that the converter takes for words within a line
_BLOCKS = word_set(
    "summary details legend fieldset header footer aside form address main hgroup center figure figcaption search menu "
    "dir marquee audio video noframes frameset"
)
_WIDGETS = word_set("input select textarea button iframe object svg canvas")
_BLOCK_DISPLAY = word_set("block flex grid table list-item flow-root")
_NOTE_WORDS = ("noteref", "footnote", "endnote", "reference", "fn-ref", "fnref")
_LOOKED_AT = 8  # elements within a raised text
_MOST_PARENTS = 100
_LONGEST_REPEATED = (
    200  # characters of a cell that is repeated in each row that it spans
)
_MOST_SPANNED = 1000
_DEEPEST = 250
_LONGEST_INNER = 500  # characters of a table that is in a cell of another
_LONGEST_SPAN = 4  # digits

_Carried = dict[int, tuple[int, str]]
"""Column -> how many more rows a cell reaches into, and its text."""


def prepare(soup: Any) -> Counter[str]:
    """Change a page's tree so that a converter of elements reads what a reader sees; return what was taken out.

    The counts are of the parts that were "hidden" and "struck out" and have words.
    """
    left_out: Counter[str] = Counter()
    named: defaultdict[str, list[Any]] = defaultdict(list)
    for tag in _seen_elements(soup, left_out):
        named[tag.name].append(tag)
    for ruby in named["ruby"]:
        _write_out_reading(ruby)
    for formula in named["math"]:
        formula.replace_with(formula_text(formula))
    for link in named["a"]:
        if _is_note(link) and link.find_parent("sup") is None:
            link.replace_with(scripts.note(link.get_text()))
    for raised in named["sup"]:
        _mark(raised, scripts.NOTE if _holds_note(raised) else scripts.RAISED)
    for lowered in named["sub"]:
        _mark(lowered, scripts.LOWERED)
    for table in named["table"]:
        straighten(table, soup)
    for table in reversed(named["table"]):
        if table.find_parent(["td", "th"]) is not None:
            _write_in_cell(table)
    for name in _BLOCKS:
        for block in named[name]:
            block.name = "div"
    return left_out


def _seen_elements(soup: Any, left_out: Counter[str]) -> list[Any]:
    """Take out of a page what is not seen, count it, and return the elements that stay.

    Those that are deeper than a page's author nests them are not among them: each would be looked for through all others.
    """
    sheet = StyleSheet.of_page(soup)
    seen: list[Any] = []
    depths = {id(soup): 0}
    for tag in soup.find_all(True):
        # decomposed with one that it is in; the property of that name searches all that an element holds
        if "_decomposed" in vars(tag):
            continue
        reason = _reason_to_leave_out(tag, sheet)
        if reason is None:
            depth = depths[id(tag.parent)] + 1
            depths[id(tag)] = depth
            if depth <= _DEEPEST:
                _show_as_block(tag)
                seen.append(tag)
            continue
        if reason:
            count_left_out(left_out, reason, tag.get_text())
        if tag.name in _WIDGETS:
            tag.insert_before(" ")
        tag.decompose()
    return seen


def _reason_to_leave_out(tag: Any, sheet: StyleSheet) -> str | None:
    """Return why an element is no text: "hidden", "struck out", or "" for what is none by its kind; None for text."""
    if tag.name in _UNREAD:
        return ""
    if tag.name in _STRUCK:
        return "struck out"
    about = tag.attrs
    # some pages hide all of themselves until they are complete
    if not about or tag.name in ("html", "body"):
        return None
    style = str(about.get("style", ""))
    if is_struck(style):
        return "struck out"
    hidden = "hidden" in about and about["hidden"] != "until-found"
    if hidden or about.get("aria-hidden") == "true":
        return "hidden"
    if is_invisible(style) or sheet.hides(tag):
        return "hidden"
    if sheet.has_own_colours:
        return None
    colour = tag.get("color", "") or style
    if is_white(colour) and _is_on_white(tag):
        return "hidden"
    return None


def _is_on_white(tag: Any) -> bool:
    """Return whether nothing says that the ground behind an element has a colour."""
    for node in (tag, *islice(tag.parents, _MOST_PARENTS)):
        about = node.attrs or {}
        if "bgcolor" in about or "background" in about:
            return False
        if "background" in str(about.get("style", "")):
            return False
    return True


def _show_as_block(tag: Any) -> None:
    """Make an element a block which its own style shows as one."""
    style = str(tag.attrs.get("style", ""))
    if tag.name != "span" or "display" not in style:
        return
    if declarations(style).get("display") in _BLOCK_DISPLAY:
        tag.name = "div"


def _write_out_reading(ruby: Any) -> None:
    """Put the reading of characters in parentheses, which a page shows above them."""
    if ruby.find("rp") is not None:
        return
    for reading in ruby.find_all("rt"):
        reading.insert(0, "(")
        reading.append(")")


def _is_note(tag: Any) -> bool:
    """Return whether a link says that it leads to a note."""
    role = _role(tag)
    if "noteref" in role:
        return True
    if "back" in role:
        return False
    address = str(tag.get("href", ""))
    has_number = len(tag.get_text()) <= len("[999]")
    if not has_number or not address.startswith("#"):
        return False
    classes = tag.get("class") or ()
    named = " ".join(classes).lower()
    return any(word in named for word in _NOTE_WORDS)


def _role(tag: Any) -> str:
    """Return what a book or a page says that an element is for."""
    in_book = tag.get("epub:type", "")
    in_page = tag.get("role", "")
    return f"{in_book} {in_page}".lower()


def _mark(tag: Any, begin: str) -> None:
    """Put marks around what stands above or below the line."""
    tag.insert(0, begin)
    tag.append(scripts.END)
    tag.unwrap()


def _holds_note(raised: Any) -> bool:
    for node in islice(raised.descendants, _LOOKED_AT):
        if getattr(node, "name", None) == "a":
            return True
    if "noteref" in _role(raised):
        return True
    return raised.find_parent("a") is not None


def _write_in_cell(table: Any) -> None:
    """Write a small table that is in a cell of another as its words: a line of Markdown's tables holds no other table."""
    if len(table.get_text()) > _LONGEST_INNER:
        return
    lines = []
    for row in own_rows(table):
        words = row.get_text(" ").split()
        lines.append(" ".join(words))
    table.replace_with(f" {'; '.join(lines)} ")


def straighten(table: Any, soup: Any) -> None:
    """Give each row of a table all of its cells: one that spans rows is repeated, one that spans columns is followed.

    No row becomes longer than the longest with its cells as they are written, whatever a cell says that it spans.
    """
    for part in list(table.children):
        if part.name == "caption":
            part.name = "p"
            words = part.get_text(" ").split()
            part.string = " ".join(words)
            table.insert_before(part.extract())
        elif part.name in ("colgroup", "col"):
            part.decompose()
    lines = list(own_rows(table))
    rows = [_named_children(line, ("td", "th")) for line in lines]
    cells = chain.from_iterable(rows)
    if not any(map(_has_span, cells)):
        return
    width = _width(rows)
    carried: _Carried = {}
    for number, line in enumerate(lines):
        rows_left = len(rows) - number
        carried |= _fill(line, rows[number], carried, width, rows_left, soup)


def _fill(
    line: Any,
    cells: list[Any],
    carried: _Carried,
    width: int,
    rows_left: int,
    soup: Any,
) -> _Carried:
    """Give a row the cells of earlier rows that reach into it; return its own that reach into the next ones."""
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


def _named_children(tag: Any, names: tuple[str, ...]) -> list[Any]:
    return [child for child in tag.children if child.name in names]


def own_rows(table: Any) -> Iterator[Any]:
    """Yield the rows of a table, and none of a table in one of its cells."""
    sections = _named_children(table, ("thead", "tbody", "tfoot"))
    for part in [table, *sections]:
        yield from _named_children(part, ("tr",))


def _span(cell: Any, name: str, all_of_them: int) -> int:
    """Return how many rows or columns a cell spans; 0 means all of them."""
    value = cell.attrs.get(name, "1")
    written = str(value).strip()
    if not written.isdecimal() or len(written) > _LONGEST_SPAN:
        return 1
    number = int(written)
    if number == 0:
        number = all_of_them
    return min(number, _MOST_SPANNED)


def _width(rows: list[list[Any]]) -> int:
    """Return how many cells the longest row has, with those of earlier rows that reach into it."""
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
    """Put empty cells behind one that spans columns."""
    for _ in range(more):
        cell.insert_after(soup.new_tag(cell.name))
    cell.attrs.pop("colspan", None)
    cell.attrs.pop("rowspan", None)


def _carry(carried: _Carried, column: int, down: int, more: int, cell: Any) -> None:
    """Note that a cell reaches into the next rows."""
    if down < 1:
        return
    text = " ".join(cell.get_text(" ").split())
    if len(text) > _LONGEST_REPEATED:
        text = ""
    carried[column] = (down, text)
    for place in range(column + 1, column + 1 + more):
        carried[place] = (down, "")


def _repeated(soup: Any, carried: _Carried, column: int) -> Any:
    """Return a cell with the text of the one above that reaches into its row."""
    left, text = carried.pop(column)
    if left > 1:
        carried[column] = (left - 1, text)
    cell = soup.new_tag("td")
    cell.string = text
    return cell

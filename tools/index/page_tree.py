"""Prepares the tree of a web page for its converter, so that its Markdown is the text that a reader sees.

Hidden and struck text is removed and counted, raised text is marked, formulas are written in one line, and blocks are
kept apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from typing import Any

from ras_agent.text.words import word_set
from ras_agent.tools.index import scripts
from ras_agent.tools.index.formulas import formula_text
from ras_agent.tools.index.looks import count_left_out
from ras_agent.tools.index.page_styles import (
    Declarations,
    StyleSheet,
    hides,
    is_struck,
    level_of,
)
from ras_agent.tools.index.page_tables import straighten, write_in_cell

# elements that are not part of the page's text
_UNREAD = word_set(
    "script style noscript template nav iframe object svg canvas head dialog button select textarea input"
)
_STRUCK = word_set("s strike del")
# blocks that the converter would treat as words within a line
_BLOCKS = word_set(
    "summary details legend fieldset header footer aside form address main hgroup center figure figcaption search menu "
    "dir marquee audio video noframes frameset"
)
_WIDGETS = word_set("input select textarea button iframe object svg canvas")
_INLINE = word_set("span font small a b i em strong")
_BLOCK_DISPLAY = word_set("block flex grid table list-item flow-root")
_PLAIN = word_set("div span b strong ul li p section")
_PARTS_OF_TABLES = {
    "table": "table",
    "grid": "table",
    "rowgroup": "tbody",
    "row": "tr",
    "columnheader": "th",
    "rowheader": "th",
    "cell": "td",
    "gridcell": "td",
}
"""The kind of element that readers see, by role."""
_NOTE_WORDS = ("noteref", "footnote", "endnote", "reference", "fn-ref", "fnref")
_ARROWS = frozenset("↑↩⤴\N{VARIATION SELECTOR-15}\N{VARIATION SELECTOR-16}")
_LOOKED_AT = 8  # how many elements inside a raised text are examined
_DEEPEST = 250


def prepare(soup: Any) -> Counter[str]:
    """Change a page's tree so that a converter of elements finds only the text that a reader sees.

    Returns how many parts with words were removed, by the reasons "hidden" and "struck out".
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
        if _leads_back(link):
            link.decompose()
        elif _is_note(link) and link.find_parent("sup") is None:
            link.replace_with(scripts.note(link.get_text()))
    for raised in named["sup"]:
        _mark(raised, scripts.NOTE if _holds_note(raised) else scripts.RAISED)
    for lowered in named["sub"]:
        _mark(lowered, scripts.LOWERED)
    for table in named["table"]:
        straighten(table, soup)
    for table in reversed(named["table"]):
        if table.find_parent(["td", "th"]) is not None:
            write_in_cell(table)
    for name in _BLOCKS:
        for block in named[name]:
            block.name = "div"
    return left_out


def _seen_elements(soup: Any, left_out: Counter[str]) -> list[Any]:
    """Remove the unseen elements from a page, count them, and return the elements that remain.

    Elements nested deeper than any author would nest them are not returned, since handling each of them would be slow.
    """
    sheet = StyleSheet.of_page(soup)
    seen: list[tuple[Any, Declarations]] = []
    unseen: list[Any] = []
    depths = {id(soup): 0}
    for tag in soup.find_all(True):
        depth = depths.get(id(tag.parent))
        if depth is None:  # inside an unseen element
            continue
        style = sheet.style_of(tag)
        reason = _reason_to_leave_out(tag, style, sheet)
        if reason is None:
            depths[id(tag)] = depth + 1
            if depth < _DEEPEST:
                seen.append((tag, style))
            continue
        unseen.append(tag)
        if reason:
            count_left_out(left_out, reason, tag.get_text())
    # only now, since rules of styles may refer to the elements before or around another
    for tag in unseen:
        if tag.name in _WIDGETS:
            tag.insert_before(" ")
        tag.decompose()
    for tag, style in seen:
        _rename_by_style(tag, style)
    return [tag for tag, _ in seen]


def _reason_to_leave_out(
    tag: Any, style: Declarations, sheet: StyleSheet
) -> str | None:
    """Return None if an element is kept. Otherwise return why it is left out: "hidden", "struck out", or "" for kinds
    that are never read, such as script."""
    if tag.name in _UNREAD:
        return ""
    if tag.name in _STRUCK:
        return "struck out"
    # some pages are hidden completely until they are loaded
    if tag.name in ("html", "body"):
        return None
    if is_struck(style):
        return "struck out"
    about = tag.attrs
    hidden = "hidden" in about and about["hidden"] != "until-found"
    if hidden or about.get("aria-hidden") == "true":
        return "hidden"
    if hides(style) or sheet.is_in_colour_of_ground(tag, style):
        return "hidden"
    return None


def _rename_by_style(tag: Any, style: Declarations) -> None:
    """Rename an element by its role or style, to a part of a table, a block, or raised or lowered text."""
    role = str((tag.attrs or {}).get("role", ""))
    if tag.name in _PLAIN and role in _PARTS_OF_TABLES:
        tag.name = _PARTS_OF_TABLES[role]
    elif tag.name == "span" and style.get("display") in _BLOCK_DISPLAY:
        tag.name = "div"
    elif style.get("display") == "table-cell":
        tag.insert_after(" ")
    elif tag.name in _INLINE:
        level = level_of(style)
        if level:
            tag.name = "sup" if level > 0 else "sub"


def _write_out_reading(ruby: Any) -> None:
    """Put the reading of characters, which a page shows above them, in parentheses."""
    if ruby.find("rp") is not None:
        return
    for reading in ruby.find_all("rt"):
        reading.insert(0, "(")
        reading.append(")")


def _is_note(tag: Any) -> bool:
    """Return whether a link leads to a note, judging by its role, address and classes."""
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


def _leads_back(tag: Any) -> bool:
    """Return whether a link is only an arrow from a note to its mark, as Word files and pandoc's pages have it."""
    words = tag.get_text().strip()
    address = str(tag.get("href", ""))
    return words != "" and _ARROWS.issuperset(words) and address.startswith("#")


def _role(tag: Any) -> str:
    """Return the role that a book or a page gives to an element."""
    in_book = tag.get("epub:type", "")
    in_page = tag.get("role", "")
    return f"{in_book} {in_page}".lower()


def _mark(tag: Any, begin: str) -> None:
    """Put marks around an element above or below the line."""
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

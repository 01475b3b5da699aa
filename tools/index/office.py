"""Prepares texts of Word, and slides, for their converters.

Hidden and struck text is taken out, raised text is marked, cells keep their columns.

What is left out is counted by its reason, "hidden" or "struck out".
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

from ras_agent.text.words import word_set
from ras_agent.tools.index.scripts import END, LOWERED, RAISED

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
_STYLES = "word/styles.xml"
_OFF = word_set("0 false off none")
_SMALLEST = 3  # half points of a letter
_RAISED_BY = 4  # half points
_MOST_COLUMNS = 63  # of a table of Word
_LEVELS = {"superscript": RAISED, "subscript": LOWERED}
DEEPEST = 20  # styles based on styles
_SMALLEST_ON_SLIDE = 200  # hundredths of a point


@dataclass(frozen=True, slots=True)
class Look:
    """Says how a run of text looks, as far as it decides whether and where it is read."""

    hidden: bool = False
    struck: bool = False
    level: str = ""
    """The mark of raised or lowered text, "" for what stands on the line."""
    white: bool = False

    @property
    def reason(self) -> str:
        """Why the run is left out, "" if it is not."""
        if self.hidden:
            return "hidden"
        if self.struck:
            return "struck out"
        return ""


def prepare_word(data: bytes) -> tuple[bytes, Counter[str]]:
    """Return a Word file as its converter should read it, and how many parts of it are left out."""
    left_out: Counter[str] = Counter()
    after = BytesIO()
    archive = zipfile.ZipFile(BytesIO(data))
    with archive, zipfile.ZipFile(after, "w") as prepared:
        names = dict.fromkeys(archive.namelist())
        styles = _styles(archive.read(_STYLES)) if _STYLES in names else {}
        for name in names:
            content = archive.read(name)
            if name in _PARTS:
                content = _prepared_part(content, styles, left_out)
            prepared.writestr(name, content)
    return after.getvalue(), left_out


def parsed_xml(content: bytes) -> Any:
    """Return the tree of a part of an archive, whose entities are not read."""
    import lxml.etree as etree

    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        huge_tree=True,
    )
    return etree.fromstring(content, parser)


def _prepared_part(content: bytes, styles: Mapping[str, Look], left_out: Counter[str]) -> bytes:
    import lxml.etree as etree

    root = parsed_xml(content)
    has_ground = root.find(f"{_WORD}background") is not None
    for moved in list(root.iter(f"{_WORD}moveTo")):
        moved.tag = f"{_WORD}ins"
    for row in list(root.iter(f"{_WORD}tr")):
        _complete_row(row, left_out)
    last = _LastMarked()
    for run in list(root.iter(f"{_WORD}r")):
        look = _look_of_run(run, styles)
        if look.white and not has_ground and not _has_shade(run):
            look = replace(look, hidden=True)
        if look.reason:
            _take_out(run, look.reason, left_out)
        elif look.level:
            last.mark(run, look.level)
    written = etree.tostring(
        root,
        encoding="UTF-8",
        xml_declaration=True,
        standalone=True,
    )
    return bytes(written)


def _take_out(element: Any, reason: str, left_out: Counter[str]) -> None:
    """Remove an element from its tree, and count it if it has words."""
    parts = element.iter(f"{_WORD}t", f"{_DRAWING}t")
    text = "".join(part.text or "" for part in parts)
    if any(map(str.isalnum, text)):
        left_out[reason] += 1
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _complete_row(row: Any, left_out: Counter[str]) -> None:
    """Add the cells that a table's row leaves out at its ends, and remove a hidden row."""
    about = row.find(f"{_WORD}trPr")
    if about is None:
        return
    if _is_on(about.find(f"{_WORD}hidden")):
        _take_out(row, "hidden", left_out)
        return
    cells = row.findall(f"{_WORD}tc")
    if not cells:
        return
    for _ in range(word_columns(about.find(f"{_WORD}gridBefore"))):
        cells[0].addprevious(_empty_cell(row))
    for _ in range(word_columns(about.find(f"{_WORD}gridAfter"))):
        row.append(_empty_cell(row))


def _empty_cell(row: Any) -> Any:
    cell = row.makeelement(f"{_WORD}tc")
    cell.append(row.makeelement(f"{_WORD}p"))
    return cell


def word_columns(element: Any) -> int:
    """Return how many columns an element of Word says, 0 without one."""
    return min(abs(_number(element) or 0), _MOST_COLUMNS)


def _number(element: Any) -> int | None:
    """Return an element's value as a whole number, None without one."""
    value = "" if element is None else element.get(f"{_WORD}val", "")
    unsigned = value.removeprefix("-")
    if not unsigned.isdecimal() or len(unsigned) > 6:
        return None
    return int(value)


def _is_on(element: Any) -> bool:
    return element is not None and element.get(f"{_WORD}val", "1") not in _OFF


def _styles(content: bytes) -> dict[str, Look]:
    """Return how the styles of a file look, by their ids, with the styles that they are based on."""
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
    """Return a look with what the properties of a run or style say."""
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
    """Return whether the ground behind a run may have a colour: its own, its paragraph's, its cell's, a shape's."""
    for name in ("shd", "highlight"):
        if run.find(f"{_WORD}rPr/{_WORD}{name}") is not None:
            return True
    for parent in run.iterancestors():
        if parent.tag in (f"{_WORD}tbl", f"{_WORD}txbxContent"):
            return True
        if parent.tag == f"{_WORD}p" and parent.find(f"{_WORD}pPr/{_WORD}shd") is not None:
            return True
    return False


class _LastMarked:
    """Marks runs of raised or lowered text; one that follows another of its kind belongs to it."""

    def __init__(self) -> None:
        self._run: Any = None
        self._text: Any = None
        self._level = ""

    def mark(self, run: Any, level: str) -> None:
        """Put the marks around a run's text, and make it stand on the line."""
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


def prepare_slides(data: bytes) -> tuple[bytes, Counter[str]]:
    """Return slides as their converter should read them, and how many parts of them are left out.

    A hidden slide becomes an empty one, so that the others keep their numbers.
    """
    from pptx import Presentation

    left_out: Counter[str] = Counter()
    presentation: Any = Presentation(BytesIO(data))
    for slide in presentation.slides:
        if slide._element.get("show") in _OFF:
            left_out["hidden"] += 1
            _empty(slide)
            continue
        for shape in list(slide.shapes):
            if _is_unseen(shape, presentation):
                _take_out(shape._element, "hidden", left_out)
        trees = [slide._element]
        if slide.has_notes_slide:
            trees.append(slide.notes_slide._element)
        for tree in trees:
            _prepare_runs(tree, left_out)
    after = BytesIO()
    presentation.save(after)
    return after.getvalue(), left_out


def _empty(slide: Any) -> None:
    """Take the shapes and the notes from a slide."""
    for shape in list(slide.shapes):
        shape._element.getparent().remove(shape._element)
    if slide.has_notes_slide:
        for text in slide.notes_slide._element.iter(f"{_DRAWING}t"):
            text.text = ""


def _is_unseen(shape: Any, presentation: Any) -> bool:
    """Return whether a shape is hidden, or lies beyond the edges of its slide."""
    about = shape._element.xpath(".//p:cNvPr")
    if about and about[0].get("hidden", "0") not in _OFF:
        return True
    sides = (shape.left, shape.top, shape.width, shape.height)
    if None in sides:
        return False
    left, top, width, height = sides
    beside = left + width <= 0 or left >= presentation.slide_width
    return bool(beside or top + height <= 0 or top >= presentation.slide_height)


def _prepare_runs(tree: Any, left_out: Counter[str]) -> None:
    _repeat_in_rows(tree)
    for run in list(tree.iter(f"{_DRAWING}r")):
        about = run.find(f"{_DRAWING}rPr")
        if about is None:
            continue
        if about.get("strike", "noStrike") != "noStrike":
            _take_out(run, "struck out", left_out)
        elif _is_invisible(about):
            _take_out(run, "hidden", left_out)
        else:
            _mark_on_slide(run, about.get("baseline", "0"))


def _repeat_in_rows(tree: Any) -> None:
    """Repeat the text of a table's cell in the rows below that it spans."""
    for table in tree.iter(f"{_DRAWING}tbl"):
        above: list[Any] = []
        for row in table.iterchildren(f"{_DRAWING}tr"):
            cells = list(row.iterchildren(f"{_DRAWING}tc"))
            for place, cell in enumerate(cells):
                if cell.get("vMerge", "0") not in _OFF and place < len(above):
                    _take_text(cell, above[place])
            above = cells


def _take_text(cell: Any, other: Any) -> None:
    body = cell.find(f"{_DRAWING}txBody")
    text = other.find(f"{_DRAWING}txBody")
    if body is not None and text is not None:
        cell.replace(body, deepcopy(text))


def _is_invisible(about: Any) -> bool:
    """Return whether the text of a run on a slide has no colour, or no size."""
    size = about.get("sz", "")
    if size.isdecimal() and int(size) <= _SMALLEST_ON_SLIDE:
        return True
    unfilled = about.find(f"{_DRAWING}noFill") is not None
    if unfilled and about.find(f"{_DRAWING}ln") is None:
        return True
    alphas = about.iterfind(f"{_DRAWING}solidFill/*/{_DRAWING}alpha")
    return any(alpha.get("val") in ("0", "0%") for alpha in alphas)


def _mark_on_slide(run: Any, baseline: str) -> None:
    text = run.find(f"{_DRAWING}t")
    height = baseline.removesuffix("%")
    if text is None or not text.text or height.strip("-0.") == "":
        return
    begin = LOWERED if height.startswith("-") else RAISED
    text.text = f"{begin}{text.text}{END}"

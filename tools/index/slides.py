"""Prepares slides for their converter: hidden and struck text is removed, raised text is marked."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from io import BytesIO
from typing import Any

from ras_agent.tools.index.looks import OFF, take_out
from ras_agent.tools.index.scripts import END, LOWERED, RAISED

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SMALLEST = 200  # the largest invisible text, in hundredths of a point


def prepare_slides(data: bytes) -> tuple[bytes, Counter[str]]:
    """Return slides as their converter should read them, and the number of parts that are left out, by reason.

    A hidden slide becomes an empty one, so that the others keep their numbers.
    """
    from pptx import Presentation

    left_out: Counter[str] = Counter()
    presentation: Any = Presentation(BytesIO(data))
    for slide in presentation.slides:
        if slide._element.get("show") in OFF:
            left_out["hidden"] += 1
            _empty(slide)
            continue
        for shape in list(slide.shapes):
            if _is_unseen(shape, presentation):
                take_out(shape._element, "hidden", left_out)
        trees = [slide._element]
        if slide.has_notes_slide:
            trees.append(slide.notes_slide._element)
        for tree in trees:
            _prepare_runs(tree, left_out)
    after = BytesIO()
    presentation.save(after)
    return after.getvalue(), left_out


def _empty(slide: Any) -> None:
    """Remove the shapes of a slide and the text of its notes."""
    for shape in list(slide.shapes):
        shape._element.getparent().remove(shape._element)
    if slide.has_notes_slide:
        for text in slide.notes_slide._element.iter(f"{_DRAWING}t"):
            text.text = ""


def _is_unseen(shape: Any, presentation: Any) -> bool:
    """Return whether a shape is hidden, or lies outside its slide."""
    about = shape._element.xpath(".//p:cNvPr")
    if about and about[0].get("hidden", "0") not in OFF:
        return True
    if None in (shape.left, shape.top, shape.width, shape.height):
        return False
    right = shape.left + shape.width
    if right <= 0 or shape.left >= presentation.slide_width:
        return True
    bottom = shape.top + shape.height
    return bool(bottom <= 0 or shape.top >= presentation.slide_height)


def _prepare_runs(tree: Any, left_out: Counter[str]) -> None:
    _repeat_in_rows(tree)
    for run in list(tree.iter(f"{_DRAWING}r")):
        about = run.find(f"{_DRAWING}rPr")
        if about is None:
            continue
        if about.get("strike", "noStrike") != "noStrike":
            take_out(run, "struck out", left_out)
        elif _is_invisible(about):
            take_out(run, "hidden", left_out)
        else:
            _mark_on_slide(run, about.get("baseline", "0"))


def _repeat_in_rows(tree: Any) -> None:
    """Repeat the text of a table cell in the rows below that it spans."""
    for table in tree.iter(f"{_DRAWING}tbl"):
        above: list[Any] = []
        for row in table.iterchildren(f"{_DRAWING}tr"):
            cells = list(row.iterchildren(f"{_DRAWING}tc"))
            for place, cell in enumerate(cells):
                if cell.get("vMerge", "0") not in OFF and place < len(above):
                    _take_text(cell, above[place])
            above = cells


def _take_text(cell: Any, other: Any) -> None:
    body = cell.find(f"{_DRAWING}txBody")
    text = other.find(f"{_DRAWING}txBody")
    if body is not None and text is not None:
        cell.replace(body, deepcopy(text))


def _is_invisible(about: Any) -> bool:
    """Return whether the text of a run on a slide has no colour, or is too small."""
    size = about.get("sz", "")
    if size.isdecimal() and int(size) <= _SMALLEST:
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

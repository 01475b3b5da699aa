"""Reads the pages of a PDF as they are seen: raised text is marked, and invisible text is left out.

Text drawn without ink over a picture is the OCR text of a scan, and is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ras_agent.tools.index.pdf_columns import (
    ACROSS,
    Shown,
    is_prose,
    parts_of_page,
)
from ras_agent.tools.index.pdf_drawing import (
    BEGIN_MARK,
    INVISIBLE,
    Canvas,
    Ink,
    Stream,
    entry_of,
)
from ras_agent.tools.index.pdf_plane import box_of
from ras_agent.tools.index.scripts import END, written_out

_LIGATURES = str.maketrans(
    {
        "\ufb00": "ff",
        "\ufb01": "fi",
        "\ufb02": "fl",
        "\ufb03": "ffi",
        "\ufb04": "ffl",
        "\ufb05": "st",
        "\ufb06": "st",
    }
)
"""Ligatures, and the letters that they stand for."""
_PLACING = (b"BT", b"ET", b"Tm", b"Td", b"T*")


@dataclass(frozen=True, slots=True)
class PageText:
    """Holds the text of a page."""

    text: str = ""
    without_ink: str = ""
    """The text that is drawn without ink, such as the OCR text of a scan."""
    hidden: int = 0
    """How many parts were left out."""
    has_picture: bool = False
    """Whether the page shows a picture."""


def texts_of_pages(pages: Sequence[PageText]) -> tuple[list[str], Counter[str]]:
    """Return the texts of pages, and how many of their parts are invisible.

    Text without ink counts as OCR text if it is over a picture, or if the PDF has no other text; otherwise it is
    hidden.
    """
    is_scan = not any(page.text.strip() for page in pages)
    left_out: Counter[str] = Counter()
    texts: list[str] = []
    for page in pages:
        text = page.text
        if page.hidden:
            left_out["hidden"] += page.hidden
        if page.without_ink.strip():
            is_by_ocr = not text.strip() and (page.has_picture or is_scan)
            if is_by_ocr:
                text = page.without_ink
            else:
                left_out["hidden"] += 1
        shown = written_out(text).translate(_LIGATURES)
        texts.append(shown.strip())
    return texts, left_out


def hidden_layers(reader: Any) -> frozenset[int]:
    """Return the object numbers of the layers that a PDF switches off."""
    properties = entry_of(reader.root_object, "/OCProperties")
    shown_first = entry_of(properties, "/D")
    off = entry_of(shown_first, "/OFF")
    if not isinstance(off, list):
        return frozenset()
    return frozenset(layer.idnum for layer in off if hasattr(layer, "idnum"))


def read_page(page: Any, layers: frozenset[int] = frozenset()) -> PageText:
    """Return the text of a page.

    Args:
        layers: the object numbers of the layers that are switched off.
    """
    from pypdf.generic import ContentStream

    content = entry_of(page, "/Contents")
    if content is None:
        return PageText()
    canvas = Canvas(page.pdf, box_of(page), layers)
    stream = Stream(page, canvas, Ink())
    prepared = stream.looked_through(ContentStream(content, page.pdf, "bytes"))
    canvas.replace(page, "/Contents", prepared)
    try:
        columns = _read_by_columns(page, canvas, prepared, stream.shown)
        return columns or _put_together(page, canvas)
    finally:
        canvas.restore()


def _read_by_columns(
    page: Any, canvas: Canvas, content: Any, shown: Mapping[int, Shown]
) -> PageText | None:
    """Return a page's text column by column, or None unless its lines are drawn across columns of prose."""
    parts = parts_of_page(list(shown.values()))
    if parts is None:
        return None
    part_of = dict(zip(shown, parts.of_texts, strict=True))
    whole = list(content.operations)
    texts: list[PageText] = []
    columns: dict[int, list[str]] = {}
    for part, column in enumerate(parts.columns):
        content.operations = _operations_of_part(whole, part_of, part)
        read = _put_together(page, canvas)
        texts.append(read)
        columns.setdefault(column, []).append(read.text + read.without_ink)
    content.operations = whole
    columns.pop(ACROSS, None)
    if not all(is_prose("\n".join(lines)) for lines in columns.values()):
        return None
    return replace(
        texts[0],
        text=_one_below_another(text.text for text in texts),
        without_ink=_one_below_another(text.without_ink for text in texts),
    )


def _one_below_another(texts: Iterable[str]) -> str:
    """Return the lines of texts, without the empty lines whose text is in another part."""
    lines: list[str] = []
    for text in texts:
        stripped = map(str.strip, text.splitlines())
        lines += filter(None, stripped)
    return "\n".join(lines)


def _operations_of_part(
    operations: Sequence[tuple[Any, bytes]], part_of: Mapping[int, int], part: int
) -> list[tuple[Any, bytes]]:
    """Return the operations that draw a page without the texts of its other parts; forms belong to the first part.

    The positions of text objects that belong to other parts are removed, too, since the library separates lines by
    every position, whether text is shown there or not.
    """
    kept: list[tuple[Any, bytes]] = []
    begun = 0
    parts: set[int] = set()
    for number, operation in enumerate(operations):
        operator = operation[1]
        if number in part_of:
            parts.add(part_of[number])
        is_of_part = part_of.get(number, part) == part
        if operator == b"Do":
            is_of_part = part == 0
        if is_of_part:
            kept.append(operation)
        elif operator in (b"'", b'"'):
            kept.append(([], b"T*"))
        if operator == b"BT":
            begun = len(kept) - 1
            parts.clear()
        elif operator == b"ET" and parts and part not in parts:
            kept[begun:] = [one for one in kept[begun:] if one[1] not in _PLACING]
    return kept


def _put_together(page: Any, canvas: Canvas) -> PageText:
    parts: list[tuple[str, str]] = []
    kind = ""

    def before(operator: bytes, operands: Any, *_: Any) -> None:
        nonlocal kind
        if operator == BEGIN_MARK:
            kind = operands[0]

    def add(text: str, *_: Any) -> None:
        if text:
            parts.append((kind, text))

    page.extract_text(visitor_operand_before=before, visitor_text=add)
    return PageText(
        text=_joined(parts, without_ink=False),
        without_ink=_joined(parts, without_ink=True),
        hidden=canvas.hidden,
        has_picture=canvas.pictures > 0,
    )


def _joined(parts: Iterable[tuple[str, str]], *, without_ink: bool) -> str:
    """Return the parts drawn with ink, or those drawn without, with marks around raised and lowered text."""
    pieces: list[str] = []
    for kind, part in parts:
        if not part.strip():
            pieces.append(part)
            continue
        is_invisible = kind.startswith(INVISIBLE)
        if is_invisible != without_ink:
            continue
        mark = kind.removeprefix(INVISIBLE)
        if not mark:
            pieces.append(part)
            continue
        while pieces and pieces[-1] == "\n":  # raised text never begins a line
            pieces.pop()
        if pieces:
            pieces[-1] = pieces[-1].removesuffix("\n")
        tail = part[len(part.rstrip()) :]
        pieces.append(f"{mark}{part.strip()}{END}{tail}")
    return "".join(pieces)

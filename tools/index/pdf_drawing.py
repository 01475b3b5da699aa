"""Follows how a page of a PDF is drawn, and which of its texts are visible there.

The operations that draw the page are looked through before the library puts its text together. Text that is white on
white, too small, without ink or outside the page is removed, and raised text is marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import hypot
from typing import Any

from ras_agent.tools.index.pdf_columns import Shown
from ras_agent.tools.index.pdf_plane import (
    SAME,
    Box,
    Matrix,
    holds,
    matrix_of,
    numbers,
    place_of,
    times,
)
from ras_agent.tools.index.scripts import LOWERED, RAISED

_SHOWS = (b"Tj", b"TJ", b"'", b'"')
_COMPONENTS = {
    "/DeviceGray": 1,
    "/CalGray": 1,
    "/DeviceRGB": 3,
    "/CalRGB": 3,
    "/DeviceCMYK": 4,
}
_CORNERS = ((0, 0), (1, 0), (0, 1), (1, 1))
BEGIN_MARK = b"RasBegin"
_WITHOUT_INK = (3, 7)
_SMALLEST = 1.0  # the smallest visible letter, in points
_LIGHTEST = 0.97  # the share of white from which ink is invisible on white
_LEAST_SCRIPT, _LARGEST_SCRIPT = (
    0.4,
    0.87,
)  # the size of raised text, as a share of the size of its line
_LEAST_RISE, _LARGEST_RISE = (
    0.1,
    0.75,
)  # how far text is raised, as a share of the size of its line
_WIDEST = 0.8  # the width of a character, as a share of its height
_MOST_BOXES = 2_000
_DEEPEST = 8  # the maximum number of forms nested in one another
INVISIBLE = "invisible"


@dataclass(slots=True)
class Ink:
    """Holds the state of drawing that is saved and restored with the graphics."""

    matrix: Matrix = SAME
    white: bool = False
    components: int = 0
    mode: int = 0
    rise: float = 0.0
    size: float = 0.0
    leading: float = 0.0
    clear: bool = False


@dataclass(slots=True)
class Canvas:
    """Holds a page, with the places where ink and pictures are."""

    file: Any
    box: Box
    hidden_layers: frozenset[int]
    grounds: list[Box] = field(default_factory=list)
    hidden: int = 0
    """How many texts were removed."""
    pictures: int = 0
    """How many pictures are drawn."""
    replaced: list[tuple[Any, Any, Any]] = field(default_factory=list)
    """The original contents."""

    def replace(self, owner: Any, name: str, content: Any) -> None:
        """Replace the content of a page or form by prepared content."""
        from pypdf.generic import NameObject

        key = NameObject(name)
        before = owner.raw_get(key)
        self.replaced.append((owner, key, before))
        owner[key] = content

    def restore(self) -> None:
        """Put back the original contents, so that prepared content does not stay in memory."""
        for owner, key, content in reversed(self.replaced):
            owner[key] = content

    def has_ground(self, x: float, y: float) -> bool:
        """Return whether something that is not white was drawn at this point."""
        return any(holds(ground, x, y) for ground in self.grounds)

    def add_ground(self, places: Sequence[tuple[float, float]]) -> None:
        """Record that something was drawn in the box around the given points."""
        if len(self.grounds) >= _MOST_BOXES or not places:
            return
        across = [x for x, _ in places]
        up = [y for _, y in places]
        ground = (min(across), min(up), max(across), max(up))
        self.grounds.append(ground)


@dataclass(slots=True)
class _Base:
    """Holds a text on its line, with which the next text is compared to find out whether that is raised."""

    x: float
    y: float
    height: float
    characters: int = 0

    def is_next(self, x: float, height: float) -> bool:
        """Return whether a smaller text at this position may belong to this one: whether it begins where this one may
        end."""
        share = height / self.height
        if not _LEAST_SCRIPT <= share <= _LARGEST_SCRIPT:
            return False
        widths = self.characters * _WIDEST + 1
        return self.x < x <= self.x + self.height * widths


def entry_of(owner: Any, name: Any) -> Any:
    """Return the entry with this name in a dictionary of a PDF; None if it has no such entry."""
    if not isinstance(owner, dict):
        return None
    found = owner.get(name)
    if found is None:
        return None
    return found.get_object()


class Stream:
    """Goes through the drawing operations of a page, or of a form on it, to find invisible and raised text."""

    def __init__(
        self, owner: Any, canvas: Canvas, ink: Ink, levels: int = _DEEPEST
    ) -> None:
        """Take the page or form, the page on which it is drawn, and the state of drawing.

        Args:
            levels: how deep forms inside forms are examined.
        """
        self._owner = owner
        self._canvas = canvas
        self._ink = ink
        self._levels = levels
        self._saved: list[Ink] = []
        self._text = SAME
        self._line = SAME
        self._path: list[tuple[float, float]] = []
        self._layers: list[bool] = []
        self._base: _Base | None = None
        self._kind = ""
        self.shown: dict[int, Shown] = {}
        """Where the operations of the prepared content show text, by the number of the operation."""
        self._made: list[tuple[Any, bytes]] = []

    def looked_through(self, content: Any) -> Any:
        """Return the content without invisible text, and with marks at raised text."""
        for operands, operator in content.operations:
            if operator in _SHOWS:
                self._show(operands, operator)
                continue
            self._follow(operands, operator)
            if operator == b"ET":
                self._drop_last_line_end()
            self._made.append((operands, operator))
        self._mark("")
        content.operations = self._made
        return content

    def _drop_last_line_end(self) -> None:
        """Remove a step to a next line that has no text; otherwise each cell of a row would be a separate line."""
        if self._made and self._made[-1][1] == b"T*":
            self._made.pop()

    def _show(self, operands: Any, operator: bytes) -> None:
        if operator in (b"'", b'"'):
            self._next_line(0.0, -self._ink.leading)
        length = _length(operands)
        if self._is_unseen(length):
            self._canvas.hidden += length > 0
            if operator in (b"'", b'"'):
                self._add(b"T*")
            return
        self._mark(self._kind_of_text())
        if self._base is not None:
            self._base.characters += length
        self._note_place(length)
        self._made.append((operands, operator))

    def _note_place(self, length: int) -> None:
        """Record where the text of the next operation is shown."""
        whole = times(self._text, self._ink.matrix)
        x, y = place_of(whole, 0.0, 0.0)
        self.shown[len(self._made)] = Shown(x, y, length)

    def _mark(self, kind: str) -> None:
        """Mark the following text if it is of another kind than the text before it."""
        if kind != self._kind:
            self._kind = kind
            # changes nothing except that it ends a piece of text
            self._add(b"cm", *SAME)
            self._add(BEGIN_MARK, kind)

    def _add(self, operator: bytes, *operands: Any) -> None:
        added = (list(operands), operator)
        self._made.append(added)

    def _is_unseen(self, length: int) -> bool:
        """Return whether a text of `length` characters drawn here would be invisible."""
        ink = self._ink
        if ink.clear or any(self._layers):
            return True
        whole = times(self._text, ink.matrix)
        middle = ink.rise + ink.size * 0.3
        x, y = place_of(whole, 0.0, middle)
        height = self._height(whole)
        width = height * (length + 1)
        if height < _SMALLEST or self._is_off_page(x, y, height, width):
            return True
        return ink.white and not self._canvas.has_ground(x, y)

    def _height(self, whole: Matrix) -> float:
        _, _, c, d, _, _ = whole
        return abs(self._ink.size) * hypot(c, d)

    def _is_off_page(self, x: float, y: float, height: float, width: float) -> bool:
        """Return whether a text of this size is outside the page. The end of a wide text that begins left of the page
        may be on it."""
        left, low, right, high = self._canvas.box
        if y > high + height or y < low - height:
            return True
        return x > right or x < left - width

    def _kind_of_text(self) -> str:
        without_ink = self._ink.mode in _WITHOUT_INK
        level = self._level()
        return f"{INVISIBLE}{level}" if without_ink else level

    def _level(self) -> str:
        """Return the mark for text that is raised above or lowered below its line, or "" for text on its line."""
        ink = self._ink
        whole = times(self._text, ink.matrix)
        x, y = place_of(whole, 0.0, ink.rise)
        height = self._height(whole)
        rise = ink.rise / abs(ink.size)
        base = self._base
        if base is not None and base.is_next(x, height):
            rise = (y - base.y) / base.height
        if _LEAST_RISE <= rise <= _LARGEST_RISE:
            return RAISED
        if _LEAST_RISE <= -rise <= _LARGEST_RISE:
            return LOWERED
        self._base = _Base(x, y, height)
        return ""

    def _follow(self, operands: Any, operator: bytes) -> None:
        """Update the state of drawing after an operation."""
        ink = self._ink
        match operator:
            case b"q":
                self._saved.append(replace(ink))
            case b"Q":
                if self._saved:
                    self._ink = self._saved.pop()
            case b"cm":
                ink.matrix = times(matrix_of(operands), ink.matrix)
            case b"g" | b"rg" | b"k" | b"sc" | b"scn":
                ink.white = _is_white(operands, operator, ink.components)
            case b"cs":
                ink.components = self._components(_first(operands))
                ink.white = False
            case b"gs":
                ink.clear = self._is_clear(_first(operands))
            case b"Do":
                self._draw(_first(operands))
            case b"BDC" | b"BMC":
                self._layers.append(self._is_off(operands))
            case b"EMC":
                del self._layers[-1:]
            case b"BT":
                self._line = SAME
                self._text = SAME
            case b"Tm":
                self._line = matrix_of(operands)
                self._text = self._line
            case _:
                self._follow_numbers(numbers(operands), operator)

    def _follow_numbers(self, values: list[float], operator: bytes) -> None:
        ink = self._ink
        match operator, values:
            case b"Td", [x, y]:
                self._next_line(x, y)
            case b"TD", [x, y]:
                self._next_line(x, y)
                ink.leading = -y
            case b"T*", _:
                self._next_line(0.0, -ink.leading)
            case b"Tf", [*_, size]:
                ink.size = size
            case b"Tr", [mode]:
                ink.mode = int(mode)
            case b"Ts", [rise]:
                ink.rise = rise
            case b"TL", [leading]:
                ink.leading = leading
            case _:
                self._follow_path(values, operator)

    def _next_line(self, x: float, y: float) -> None:
        step = (1.0, 0.0, 0.0, 1.0, x, y)
        self._line = times(step, self._line)
        self._text = self._line

    def _follow_path(self, values: list[float], operator: bytes) -> None:
        match operator, values:
            case b"re", [x, y, width, height]:
                self._go_to(x, y)
                self._go_to(x + width, y + height)
            case b"m" | b"l" | b"c" | b"v" | b"y", [*_, x, y]:
                self._go_to(x, y)
            case b"n" | b"s" | b"S", _:
                self._path = []
            case b"f" | b"F" | b"f*" | b"B" | b"B*" | b"b" | b"b*", _:
                if not self._ink.white:
                    self._canvas.add_ground(self._path)
                self._path = []
            case b"sh", _:
                left, low, right, high = self._canvas.box
                self._canvas.add_ground([(left, low), (right, high)])

    def _go_to(self, x: float, y: float) -> None:
        place = place_of(self._ink.matrix, x, y)
        self._path.append(place)

    def _resource(self, kind: str, name: Any) -> Any:
        """Return the resource of this kind and name in the page or form, or None."""
        named = self._resources(kind)
        return entry_of(named, name)

    def _resources(self, kind: str) -> Any:
        """Return all resources of a kind in the page or form, by name, or None."""
        resources = entry_of(self._owner, "/Resources")
        return entry_of(resources, kind)

    def _components(self, name: Any) -> int:
        """Return the number of components of a colour in a colour space, or 0 if it is unknown which colour is white
        there."""
        if name in _COMPONENTS:
            return _COMPONENTS[name]
        space = self._resource("/ColorSpace", name)
        if not isinstance(space, list) or len(space) < 2:
            return 0
        if space[0] != "/ICCBased":
            return _COMPONENTS.get(space[0], 0)
        profile = space[1].get_object()
        return int(entry_of(profile, "/N") or 0)

    def _is_clear(self, name: Any) -> bool:
        """Return whether a graphics state makes filled shapes invisible."""
        state = self._resource("/ExtGState", name)
        opacity = entry_of(state, "/ca")
        if not isinstance(opacity, int | float):
            return self._ink.clear
        return opacity <= 0.05

    def _is_off(self, operands: Any) -> bool:
        """Return whether the content that begins here belongs to a layer that is switched off."""
        if not self._canvas.hidden_layers or len(operands) < 2:
            return False
        if operands[0] != "/OC":
            return False
        named = self._resources("/Properties")
        if named is None or operands[1] not in named:
            return False
        layer = named.raw_get(operands[1])
        return getattr(layer, "idnum", None) in self._canvas.hidden_layers

    def _draw(self, name: Any) -> None:
        """Record a picture, or look through a form."""
        drawn = self._resource("/XObject", name)
        kind = entry_of(drawn, "/Subtype")
        if kind == "/Image":
            matrix = self._ink.matrix
            corners = [place_of(matrix, x, y) for x, y in _CORNERS]
            self._canvas.add_ground(corners)
            self._canvas.pictures += 1
        elif kind == "/Form" and self._levels:
            self._look_through_form(name, drawn)

    def _look_through_form(self, name: Any, form: Any) -> None:
        from pypdf.generic import ContentStream

        if isinstance(form, ContentStream):  # it was drawn and prepared before
            return
        content = ContentStream(form, self._canvas.file, "bytes")
        for key, value in form.items():
            if key not in ("/Length", "/Filter", "/DecodeParms"):
                content[key] = value
        ink = replace(self._ink)
        placed = matrix_of(entry_of(form, "/Matrix") or ())
        ink.matrix = times(placed, ink.matrix)
        owner = form if "/Resources" in form else self._owner
        inner = Stream(owner, self._canvas, ink, self._levels - 1)
        prepared = inner.looked_through(content)
        forms = self._resources("/XObject")
        self._canvas.replace(forms, name, prepared)


def _first(operands: Any) -> Any:
    if not operands:
        return ""
    return operands[0]


def _length(operands: Any) -> int:
    """Return the maximum number of characters that an operation shows."""
    if not operands:
        return 0
    pieces = operands[-1]
    if not isinstance(pieces, list):
        pieces = [pieces]
    length = 0
    for piece in pieces:
        if isinstance(piece, bytes | str):
            length += len(piece.strip())
    return length


def _is_white(operands: Any, operator: bytes, components: int) -> bool:
    """Return whether a colour is the white of paper."""
    values = numbers(operands)
    if operator in (b"sc", b"scn") and len(values) != components:
        return False
    if len(values) in (1, 3):
        return min(values) >= _LIGHTEST
    return len(values) == 4 and max(values) <= 1 - _LIGHTEST

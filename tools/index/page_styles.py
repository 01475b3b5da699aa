"""Reads from the styles of a web page which of its text nobody sees: hidden, without size, off the page, in white."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from ras_agent.text.words import word_set

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_BRACE = re.compile(r"[{}]")
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([a-z%]*)")
_SELECTOR = re.compile(r"(?:[a-z][a-z0-9]*)?(?:[.#][a-z_-][\w-]*)+", re.IGNORECASE)
_PART = re.compile(r"[.#]?[^.#]+")
_TURNED_AWAY = re.compile(
    r"scale(?:x|y|3d)?\(\s*0|translate\w{0,2}\([^)]*-\d{4,}|translate\w{0,2}\(\s*-?1\d\dv[wh]"
)
_CLIPPED = re.compile(
    r"(?:rect|inset|circle|polygon)\(\s*(?:0|1px|50%|100%)(?:px|%)?[\s,)]"
)
_INVISIBLE_COLOUR = re.compile(
    r"transparent|(?:rgba|hsla)\([^)]*,\s*0(?:\.0+)?\s*\)|(?:rgb|hsl)\([^)]*/\s*0%?\s*\)"
)
_WHITE = re.compile(
    r"white|#fff(?:fff)?(?:f|ff)?|#f[d-f]f[d-f]f[d-f]|snow|ivory|ghostwhite|"
    r"rgba?\(\s*+25[3-5](?:\s*+,\s*+|\s++)25[3-5](?:\s*+,\s*+|\s++)25[3-5]\s*+(?:,\s*+1(?:\.0++)?\s*+)?\)"
)
_OF_A_LETTER = {
    "": 16.0,
    "px": 1.0,
    "pt": 1.3,
    "em": 16.0,
    "rem": 16.0,
    "ex": 8.0,
    "%": 0.16,
    "vw": 10.0,
    "vh": 8.0,
}
_SMALLEST = 2.0  # pixels of a letter
_FAR = -500.0  # pixels beyond the edge of a page
_DECIDE = word_set(
    "display visibility content-visibility opacity font-size position text-indent clip clip-path color transform "
    "overflow margin-left"
)
_MOST_RULES = 500
_LONGEST_SHEET = 1 << 18

Declarations = dict[str, str]


def declarations(style: str) -> Declarations:
    """Return the properties that a style sets, in lower case."""
    found: Declarations = {}
    for declaration in style.lower().split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            plain = value.replace("!important", "")
            found[name.strip()] = plain.strip()
    return found


def is_invisible(style: str) -> bool:
    """Return whether a style leaves nothing to be seen of an element.

    >>> is_invisible("Display : none"), is_invisible("position:absolute; left:-9999px"), is_invisible("color:red")
    (True, True, False)
    """
    return bool(style) and hides(declarations(style))


def hides(style: Declarations) -> bool:
    """Return whether properties leave nothing to be seen of an element."""
    if style.get("display") == "none" or style.get("content-visibility") == "hidden":
        return True
    if style.get("visibility") in ("hidden", "collapse"):
        return True
    opacity = _pixels(style.get("opacity", ""), 1.0)
    if opacity is not None and opacity <= 0.05:
        return True
    size = _pixels(style.get("font-size", ""), 16.0)
    if size is not None and size < _SMALLEST:
        return True
    return _is_off_page(style) or _is_cut_off(style) or _has_colour_of_ground(style)


def _pixels(value: str, unit: float) -> float | None:
    """Return a length in pixels, None for what is no length. unit: of a number without one."""
    match = _NUMBER.fullmatch(value)
    if match is None:
        return None
    number = float(match[1])
    if not match[2]:
        return number * unit if unit == 1.0 else number
    return number * _OF_A_LETTER.get(match[2], 1.0)


def _is_off_page(style: Declarations) -> bool:
    moved = ["text-indent", "margin-left", "margin-top", "margin"]
    if style.get("position") in ("absolute", "fixed", "relative"):
        moved += ["left", "top", "right", "bottom", "inset"]
    for name in moved:
        first = style.get(name, "").partition(" ")[0]
        distance = _pixels(first, 1.0)
        if distance is not None and distance <= _FAR:
            return True
    return _TURNED_AWAY.search(style.get("transform", "")) is not None


def _is_cut_off(style: Declarations) -> bool:
    """Return whether an element is clipped, or made as small as a point."""
    clip = f"{style.get('clip', '')} {style.get('clip-path', '')}"
    if _CLIPPED.search(clip):
        return True
    if not style.get("overflow", "").startswith(("hidden", "clip")):
        return False
    for name in ("width", "height", "max-width", "max-height"):
        size = _pixels(style.get(name, ""), 1.0)
        if size is not None and size <= 1:
            return True
    return False


def _has_colour_of_ground(style: Declarations) -> bool:
    colour = style.get("color", "")
    if not colour:
        return False
    ground = style.get("background-color") or style.get("background", "")
    return colour == ground or _INVISIBLE_COLOUR.fullmatch(colour) is not None


def is_white(style: str) -> bool:
    """Return whether a style, or the name of a colour, makes text white.

    >>> is_white("color: #FFF"), is_white("white"), is_white("background: white")
    (True, True, False)
    """
    if not style:
        return False
    colour = style.strip().lower()
    if ":" in style:
        colour = declarations(style).get("color", "")
    return _WHITE.fullmatch(colour) is not None


def is_struck(style: str) -> bool:
    """Return whether a style strikes text out."""
    if "line-through" not in style.lower():
        return False
    set_here = declarations(style)
    decoration = f"{set_here.get('text-decoration', '')} {set_here.get('text-decoration-line', '')}"
    return "line-through" in decoration


@dataclass(frozen=True, slots=True)
class StyleSheet:
    """Holds the rules of a page's own style sheets that hide or show elements by classes and ids.

    rules: the parts of a selector, all of which an element has to have, and whether the rule hides it.
    """

    rules: tuple[tuple[frozenset[str], bool], ...]
    has_own_colours: bool
    """Whether something may give the ground another colour than white."""

    @classmethod
    def of_page(cls, soup: Any) -> Self:
        """Read the style sheets in a page."""
        sheets = [sheet.get_text() for sheet in soup.find_all("style")]
        text = "\n".join(sheets)[:_LONGEST_SHEET]
        linked = soup.find("link", rel="stylesheet")
        has_own_colours = linked is not None or "background" in text
        found: list[tuple[frozenset[str], bool, bool]] = []
        for selectors, block in _top_rules(_COMMENT.sub(" ", text)):
            style = declarations(block)
            if not style.keys() & _DECIDE:
                continue
            hidden = hides(style)
            in_white = not has_own_colours and is_white(style.get("color", ""))
            for selector in selectors.split(","):
                if _SELECTOR.fullmatch(selector.strip()):
                    parts = frozenset(_PART.findall(selector.strip()))
                    found.append((parts, hidden, in_white))
        has_white = any(in_white for _, _, in_white in found)
        is_on_white = has_white and not _sets_ground(soup)
        rules = [
            (parts, hidden or (in_white and is_on_white))
            for parts, hidden, in_white in found
        ]
        if not any(hidden for _, hidden in rules):
            rules = []
        rules.sort(key=lambda rule: len(rule[0]))
        return cls(tuple(rules[:_MOST_RULES]), has_own_colours)

    def hides(self, tag: Any) -> bool:
        """Return whether the last rule for an element, the most particular, hides it."""
        if not self.rules:
            return False
        about = tag.attrs
        own = {tag.name, f"#{about.get('id', '')}"}
        own.update(f".{name}" for name in about.get("class") or ())
        hidden = False
        for parts, rule_hides in self.rules:
            if parts <= own:
                hidden = rule_hides
        return hidden


def _sets_ground(soup: Any) -> bool:
    """Return whether an element of a page has a ground of its own."""
    for name in ("bgcolor", "background"):
        if soup.find(attrs={name: True}):
            return True
    return soup.find(style=re.compile("background")) is not None


def _top_rules(text: str) -> Iterator[tuple[str, str]]:
    """Yield the selectors and the block of each rule that holds for every screen."""
    depth = 0
    last = 0
    selectors = ""
    for brace in _BRACE.finditer(text):
        piece = text[last : brace.start()].strip()
        last = brace.end()
        if brace[0] == "{":
            depth += 1
            if depth == 1:
                selectors = piece.rpartition(";")[2].strip()
            continue
        if depth == 1 and not selectors.startswith("@"):
            yield selectors, piece
        depth = max(0, depth - 1)

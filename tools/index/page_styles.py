"""Reads from the styles of a web page how its text looks: hidden, struck out, raised, or in the colour of its
background.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from ras_agent.text.words import word_set

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_BRACE = re.compile(r"[{}]")
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([a-z%]*)")
_SELECTOR = re.compile(
    r"[a-z][a-z0-9]*+(?:[.#][a-z_-][\w-]*+)*+|(?:[.#][a-z_-][\w-]*+)++", re.IGNORECASE
)
_COMBINED = re.compile(r"[\s>+~]++(?![^\[(]*+[\])])")
_CONDITION = re.compile(r"\[[^\]]*+\]|:[\w-]++(?:\([^)]*+\))?")
_PART = re.compile(r"[.#]?[^.#]+")
_ANY = "*"
_TURNED_AWAY = re.compile(
    r"scale(?:x|y|3d)?\(\s*0|translate\w{0,2}\([^)]*-\d{4,}|translate\w{0,2}\(\s*-?1\d\dv[wh]"
)
_FILTERED = re.compile(r"opacity\(\s*+([\d.]++)")
_CLIPPED = re.compile(
    r"(?:rect|inset|circle|polygon)\(\s*(?:0|1px|50%|100%)(?:px|%)?[\s,)]"
)
_INVISIBLE_COLOUR = re.compile(
    r"transparent|(?:rgba|hsla)\([^)]*,\s*0(?:\.0+)?\s*\)|(?:rgb|hsl)\([^)]*/\s*0%?\s*\)"
)
_WHITE = re.compile(
    r"white|#fff(?:fff)?(?:f|ff)?|#f[d-f]f[d-f]f[d-f]|snow|ivory|ghostwhite|hsla?\([^)]*[\s,]100%(?:\s*,\s*1)?\s*\)|"
    r"rgba?\(\s*+25[3-5](?:\s*+,\s*+|\s++)25[3-5](?:\s*+,\s*+|\s++)25[3-5]\s*+(?:,\s*+1(?:\.0++)?\s*+)?\)"
)
_OF_A_LETTER = {
    "px": 1.0,
    "pt": 1.3,
    "em": 16.0,
    "rem": 16.0,
    "ex": 8.0,
    "%": 0.16,
    "vw": 10.0,
    "vh": 8.0,
}
_SMALLEST = 2.0  # the smallest visible letter, in pixels
_FAR = -500.0  # the position from which an element is outside the page, in pixels
_DECIDE = word_set(
    "display visibility content-visibility opacity filter scale -webkit-text-fill-color font-size "
    "position text-indent clip clip-path color transform "
    "overflow margin-left text-decoration text-decoration-line vertical-align background background-color background-image"
)
_FIRST_COLOUR = re.compile(r"(?:rgb|hsl)a?\([^)]*\)|[#\w-]+")
_CHANNELS = re.compile(r"rgb\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})\s*\)")
_SHORT = re.compile(r"#[0-9a-f]{3}")
_PICTURE = re.compile(r"url\(|gradient\(")
_LEVELS = {"super": 1, "sub": -1}
_EACH = re.compile(r"(\w)")
_WHITE_GROUND = "#ffffff"
_BLACK = "#000000"
_OF_ATTRIBUTES = (
    ("color", "color"),
    ("bgcolor", "background-color"),
    ("background", "background-image"),
)
_MOST_PARENTS = 100
_MOST_RULES = 500
_LONGEST_SELECTOR = 200
_MOST_MATCHES = 100_000
"""The maximum number of times that elements are compared with selectors of several elements or conditions, per page."""
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


def hides(style: Declarations) -> bool:
    """Return whether these properties make an element invisible.

    >>> hides(declarations("Display : none")), hides(declarations("position:absolute; left:-9999px; color: red"))
    (True, True)
    """
    if style.get("display") == "none" or style.get("content-visibility") == "hidden":
        return True
    if style.get("visibility") in ("hidden", "collapse") or style.get("scale") == "0":
        return True
    filtered = _FILTERED.search(style.get("filter", ""))
    share = filtered[1] if filtered else style.get("opacity", "")
    opacity = _pixels(share)
    if opacity is not None and opacity <= 0.05:
        return True
    size = _pixels(style.get("font-size", ""))
    if size is not None and size < _SMALLEST:
        return True
    colour = style.get("-webkit-text-fill-color", style.get("color", ""))
    if _INVISIBLE_COLOUR.fullmatch(colour):
        return True
    return _is_off_page(style) or _is_cut_off(style)


def _pixels(value: str) -> float | None:
    """Return a length in pixels, or None if the value is not a length; a number without a unit is in pixels."""
    match = _NUMBER.fullmatch(value)
    if match is None:
        return None
    return float(match[1]) * _OF_A_LETTER.get(match[2], 1.0)


def _is_off_page(style: Declarations) -> bool:
    moved = ["text-indent", "margin-left", "margin-top", "margin"]
    if style.get("position") in ("absolute", "fixed", "relative"):
        moved += ["left", "top", "right", "bottom", "inset"]
    for name in moved:
        first = style.get(name, "").partition(" ")[0]
        distance = _pixels(first)
        if distance is not None and distance <= _FAR:
            return True
    return _TURNED_AWAY.search(style.get("transform", "")) is not None


def _is_cut_off(style: Declarations) -> bool:
    """Return whether an element is clipped, or reduced to the size of a point."""
    clip = f"{style.get('clip', '')} {style.get('clip-path', '')}"
    if _CLIPPED.search(clip):
        return True
    if not style.get("overflow", "").startswith(("hidden", "clip")):
        return False
    for name in ("width", "height", "max-width", "max-height"):
        size = _pixels(style.get(name, ""))
        if size is not None and size <= 1:
            return True
    return False


def is_struck(style: Declarations) -> bool:
    """Return whether a style strikes text out."""
    decoration = style.get("text-decoration", "")
    return "line-through" in style.get("text-decoration-line", decoration)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Holds a rule of a style sheet: the parts of the selector that an element must have, the style that it sets, and
    its weight."""

    parts: frozenset[str]
    style: Declarations
    weight: tuple[int, int]
    selector: Any = None
    """The compiled selector, if it consists of more than these parts."""


def _rule_of(selector: str, style: Declarations, number: int) -> _Rule | None:
    """Return the rule of a selector, or None for a selector that cannot be read or never matches, such as
    `p::before`."""
    if _SELECTOR.fullmatch(selector):
        parts = _PART.findall(selector)
        return _Rule(frozenset(parts), style, weight=(len(parts), number))
    if not selector or len(selector) > _LONGEST_SELECTOR:
        return None
    import soupsieve

    try:
        compiled = soupsieve.compile(selector)
    except (soupsieve.SelectorSyntaxError, NotImplementedError, ValueError):
        return None
    elements = _COMBINED.split(selector)
    weight = len(_PART.findall("".join(elements)))
    last = _CONDITION.sub("", elements[-1])
    parts = _PART.findall(last.replace(_ANY, "")) or [_ANY]
    return _Rule(frozenset(parts), style, (weight, number), compiled)


@dataclass(slots=True)
class StyleSheet:
    """Holds the rules of a page's own style sheets, by one part of their selectors."""

    rules: dict[str, list[_Rule]]
    is_ground_known: bool
    """Whether all rules that may change the background from white are held."""
    matches_left: int = _MOST_MATCHES
    """How many further comparisons with compiled selectors are allowed."""

    @classmethod
    def of_page(cls, soup: Any) -> Self:
        """Read the style sheets in a page."""
        sheets = [sheet.get_text() for sheet in soup.find_all("style")]
        written = "\n".join(sheets)
        text = _COMMENT.sub(" ", written[:_LONGEST_SHEET])
        grounds = text.count("background")
        rules: dict[str, list[_Rule]] = {}
        number = 0
        for selectors, block in _top_rules(text):
            style = declarations(block)
            if style.keys().isdisjoint(_DECIDE) or number >= _MOST_RULES:
                continue
            named = [selector.strip() for selector in selectors.split(",")]
            found = [_rule_of(selector, style, number) for selector in named]
            if all(found):
                grounds -= block.count("background")
            number += len(named)
            for rule in filter(None, found):
                key = min(rule.parts)
                rules.setdefault(key, []).append(rule)
        linked = soup.find("link", rel="stylesheet")
        return cls(rules, linked is None and grounds == 0)

    def style_of(self, tag: Any) -> Declarations:
        """Return the properties that the rules and an element's own attributes set."""
        about = tag.attrs or {}
        if not about and tag.name not in self.rules and _ANY not in self.rules:
            return {}
        own = {_ANY, tag.name, f"#{about.get('id', '')}"}
        own.update(f".{name}" for name in about.get("class") or ())
        found: list[_Rule] = []
        for part in own:
            for rule in self.rules.get(part, ()):
                if rule.parts <= own and self._is_met(rule, tag):
                    found.append(rule)
        found.sort(key=lambda rule: rule.weight)
        style: Declarations = {}
        for attribute, name in _OF_ATTRIBUTES:
            if attribute in about:
                value = str(about[attribute])
                style[name] = value.lower()
        for rule in found:
            style.update(rule.style)
        own_style = str(about.get("style", ""))
        style.update(declarations(own_style))
        return style

    def _is_met(self, rule: _Rule, tag: Any) -> bool:
        if rule.selector is None:
            return True
        self.matches_left -= 1
        return self.matches_left > 0 and bool(rule.selector.match(tag))

    def is_in_colour_of_ground(self, tag: Any, style: Declarations) -> bool:
        """Return whether an element's text has the colour of its background."""
        colour = _colour(style.get("color", ""))
        if not colour:
            return False
        return colour == self._ground_of(tag, style)

    def _ground_of(self, tag: Any, style: Declarations) -> str:
        """Return the colour behind an element, or "" if it is unknown."""
        if _has_ground(style):
            return _ground(style)
        if not self.is_ground_known:
            return ""
        for parent in islice(tag.parents, _MOST_PARENTS):
            of_parent = self.style_of(parent)
            if _has_ground(of_parent):
                return _ground(of_parent)
        return _WHITE_GROUND


def _has_ground(style: Declarations) -> bool:
    return any(name.startswith("background") for name in style)


def _ground(style: Declarations) -> str:
    """Return the background colour of a style, or "" for a picture."""
    ground = style.get("background", "")
    if "background-image" in style or _PICTURE.search(ground):
        return ""
    return _colour(style.get("background-color", ground))


def _colour(value: str) -> str:
    """Return the first colour in a value, in a uniform notation, or "" if there is none."""
    first = _FIRST_COLOUR.match(value)
    if first is None or first[0] == "transparent":
        return ""
    colour = first[0]
    if _WHITE.fullmatch(colour):
        return _WHITE_GROUND
    channels = _CHANNELS.fullmatch(colour)
    if channels:
        red, green, blue = map(int, channels.groups())
        return f"#{red:02x}{green:02x}{blue:02x}"
    if _SHORT.fullmatch(colour):
        return _EACH.sub(r"\1\1", colour)
    if colour == "black":
        return _BLACK
    return colour


def level_of(style: Declarations) -> int:
    """Return 1 for a style that raises text above its line, -1 for one that lowers it, and 0 otherwise.

    >>> level_of({"vertical-align": "super"}), level_of({"vertical-align": "-2pt"}), level_of({})
    (1, -1, 0)
    """
    place = style.get("vertical-align", "")
    if place in _LEVELS:
        return _LEVELS[place]
    height = _pixels(place)
    if not height:
        return 0
    return 1 if height > 0 else -1


def _top_rules(text: str) -> Iterator[tuple[str, str]]:
    """Yield the selectors and the block of each rule that applies to every screen."""
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

"""Writes the formulas of a web page, which are MathML, in one line: 1/2, 10^6, x_1, √(2)."""

from __future__ import annotations

from typing import Any

from ras_agent.text.words import word_set

_NO_TEXT = word_set("annotation annotation-xml mphantom none mprescripts")
_ABOVE = word_set("msup mover")
_BELOW = word_set("msub munder")
_BOTH = word_set("msubsup munderover")
_SCRIPTS = "mmultiscripts"
_DEEPEST = 50
_SPACED = frozenset("=<>≤≥≈≠+−±→∈")


def formula_text(formula: Any) -> str:
    """Return an element of MathML as text in one line."""
    text = _text(formula, _DEEPEST)
    return " ".join(text.split())


def _text(node: Any, levels: int) -> str:
    from bs4 import Tag
    from bs4.element import NavigableString

    if isinstance(node, NavigableString):
        return " ".join(node.split())
    if not isinstance(node, Tag) or node.name in _NO_TEXT:
        return ""
    if not levels:
        return f" {node.get_text(' ')} "
    parts: list[str] = []
    for child in node.children:
        if isinstance(child, Tag) and child.name not in _NO_TEXT:
            part = _text(child, levels - 1)
            parts.append(part)
    return _of_parts(node, parts, levels)


def _of_parts(node: Any, parts: list[str], levels: int) -> str:
    name = node.name
    if name == "mfrac" and len(parts) == 2:
        return f" {_grouped(parts[0])}/{_grouped(parts[1])} "
    if name in _ABOVE and len(parts) == 2:
        return f"{_grouped(parts[0])}^{_grouped(parts[1])}"
    if name in _BELOW and len(parts) == 2:
        return f"{parts[0]}_{_grouped(parts[1])}"
    if name in _BOTH and len(parts) == 3:
        return f"{parts[0]}_{_grouped(parts[1])}^{_grouped(parts[2])}"
    if name == _SCRIPTS:
        return _with_scripts(node)
    if name == "msqrt":
        return f"√({''.join(parts).strip()})"
    if name == "mroot" and len(parts) == 2:
        return f"{_grouped(parts[0])}^(1/{parts[1]})"
    if name == "mtr":
        return f"{', '.join(parts)}; "
    if name == "mfenced":
        return f"({', '.join(parts)})"
    if name == "mo":
        sign = node.get_text().strip()
        return f" {sign} " if sign in _SPACED else sign
    if name in ("mtext", "mspace"):
        return f" {node.get_text()} "
    return _row(node, parts, levels)


def _with_scripts(node: Any) -> str:
    """Return a symbol with the indices and exponents after and before it, as in ^14_6C."""
    base, *scripts = node.find_all(True, recursive=False) or [node]
    names = [script.name for script in scripts]
    first = names.index("mprescripts") if "mprescripts" in names else len(names)
    behind = _pairs(scripts[:first])
    before = _pairs(scripts[first + 1 :])
    return f"{before}{_text(base, 1).strip()}{behind}"


def _pairs(scripts: list[Any]) -> str:
    """Return scripts as text; they are given in pairs, lower then upper."""
    text = ""
    for lower, upper in zip(scripts[::2], scripts[1::2], strict=False):
        for sign, script in (("^", upper), ("_", lower)):
            said = _text(script, _DEEPEST)
            if said.strip():
                text += f"{sign}{_grouped(said)}"
    return text


def _row(node: Any, parts: list[str], levels: int) -> str:
    """Return the parts of a row one after another, with a space between two numbers."""
    if not parts:
        words = [_text(child, levels - 1) for child in node.children]
        return "".join(words)
    text = ""
    for part in parts:
        if text[-1:].isdigit() and part[:1].isdigit():
            text += " "
        text += part
    return text


def _grouped(part: str) -> str:
    """Return a part in parentheses if it is more than a number or a word."""
    plain = part.strip()
    unsigned = plain.lstrip("-\u2212")
    without_points = unsigned.replace(".", "").replace(",", "")
    if without_points.isalnum():
        return plain
    return f"({plain})"

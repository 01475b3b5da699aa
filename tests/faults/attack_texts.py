"""Texts that are slow to read for a pattern with a mistake: a piece of it, repeated, and no end that it would match.

They are drawn from the patterns themselves: for each repetition in one, the repeated text, by itself
and behind the text before it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

# how Python itself reads patterns; no stub tells of these modules
kinds: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")


class AttackText(NamedTuple):
    """Holds a text of any length: `before`, then `piece` again and again, then `after`."""

    before: str
    piece: str
    after: str

    def of(self, length: int) -> str:
        return self.before + self.piece * (length // len(self.piece)) + self.after


PIECES = (
    *(
        "\n",
        " ",
        ".",
        "1",
        '"',
        "“",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "|",
        ";",
        "-",
        ":",
        "*",
        "`",
        "#",
        "\\",
    ),
    *(
        "a",
        "A",
        "a ",
        "A ",
        "the ",
        "The ",
        "a, ",
        "A, ",
        "| ",
        "|| ",
        "A.",
        "'s",
        "1,111 ",
        "1,",
        ". ",
        "\t",
        "\n\n",
        "é",
    ),
    *(
        "[1] ",
        "$",
        "%",
        "&",
        "=",
        "(a",
        "((a)",
        '"a',
        "of ",
        "A of ",
        "A and ",
        "\r\n",
        "- ",
        "1. ",
        "- a\n",
        "1: 2 ",
    ),
    *(
        "Answer:",
        "[SUBQ]",
        "[`",
        "S>",
        "(S> a | P> b | O> ",
        "S> | P> | O> ",
        '["a", ',
        '{"a": "b", ',
        '{"a":',
        "Question:",
    ),
    *(
        '["a", "b", "c"]',
        "<think>",
        "</think>",
        "answer is ",
        "not ",
        "option ",
        "Nodes:",
        "(a; b; ",
        "(a, b, ",
        "who was ",
    ),
    *(
        "The A of the B ",
        "the director of the ",
        "born in 1900 ",
        "May 1, ",
        "J. ",
        "Mr. ",
        "U.S. ",
        "、",
        "。",
        "\u3000",
    ),
    *(
        "\u00a0",
        "\u200b",
        "e\u0301",
        "\u0315\u0300",
        "ß",
        "İ",
        "ﬃ",
        "👨‍👩‍👧",
        "http://",
        "?a",
        "bearer ",
        "---\n",
        "a: b\n",
    ),
    *("```\n", "# ", "&#1", "&#11111", "'", "’s ", "/", "~", "^", "_"),
)
TEXTS = tuple(
    AttackText(before, piece, after)
    for piece in PIECES
    for before, after in (("", ""), ('"a (', "\0"))
)


def texts_against(pattern: re.Pattern[str]) -> Iterator[AttackText]:
    """Yield texts that repeat the repeated part of a pattern, each once."""
    seen = set()
    for before, piece in _repeated(parser.parse(pattern.pattern, pattern.flags), ""):
        for text in (
            *(
                AttackText(start, again, "\0")
                for start in (before, "")
                for again in (piece, before + piece)
            ),
            AttackText(f"# {before}", piece, "x"),
        ):
            if piece and text not in seen:
                seen.add(text)
                yield text


def _repeated(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """Yield the texts that a pattern may repeat often, with a text that the pattern matches up to there."""
    for kind, found in tree:
        if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT):
            _, most, body = found
            if most >= 40:
                (kind_inside, inside), *others = list(body)
                if not others and kind_inside is kinds.IN:
                    yield from ((before, char) for char in _members(inside)[:6])
                elif not others and kind_inside is kinds.BRANCH:
                    yield from ((before, _example(one)) for one in inside[1])
                else:
                    yield before, _example(body)
            yield from _repeated(body, before)
        elif kind is kinds.SUBPATTERN:
            yield from _repeated(found[3], before)
        elif kind is kinds.ATOMIC_GROUP:
            yield from _repeated(found, before)
        elif kind is kinds.BRANCH:
            for one in found[1]:
                yield from _repeated(one, before)
        before += _example([(kind, found)])


def _example(tree: Any) -> str:
    """Return a text that a pattern matches, without the part that it looks ahead or back at."""
    text = ""
    for kind, found in tree:
        if kind is kinds.LITERAL:
            text += chr(found)
        elif kind in (kinds.NOT_LITERAL, kinds.ANY):
            text += "x"
        elif kind is kinds.IN:
            text += (_members(found) or "x")[0]
        elif kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT):
            least, most, body = found
            text += _example(body) * (least or min(most, 1))
        elif kind is kinds.SUBPATTERN:
            text += _example(found[3])
        elif kind is kinds.ATOMIC_GROUP:
            text += _example(found)
        elif kind is kinds.BRANCH:
            text += next(filter(None, map(_example, found[1])), "")
    return text


_SAMPLE = " a1\n.,-\"'“”’([{<|:;*A_\t#>)]}/é=\\x$%"
_CATEGORIES = {
    kinds.CATEGORY_DIGIT: r"\d",
    kinds.CATEGORY_NOT_DIGIT: r"\D",
    kinds.CATEGORY_SPACE: r"\s",
    kinds.CATEGORY_NOT_SPACE: r"\S",
    kinds.CATEGORY_WORD: r"\w",
    kinds.CATEGORY_NOT_WORD: r"\W",
}


def _members(items: Any) -> str:
    """Return usual characters of a class, or its first if it has no usual ones."""
    usual = "".join(char for char in _SAMPLE if _has(items, char))
    return usual or next(
        (
            chr(item if kind is kinds.LITERAL else item[0])
            for kind, item in items
            if item
        ),
        "",
    )


def _has(items: Any, char: str) -> bool:
    negated, found = False, False
    for kind, item in items:
        if kind is kinds.NEGATE:
            negated = True
        elif kind is kinds.LITERAL:
            found |= item == ord(char)
        elif kind is kinds.RANGE:
            found |= item[0] <= ord(char) <= item[1]
        else:
            found |= re.match(_CATEGORIES[item], char) is not None
    return found != negated

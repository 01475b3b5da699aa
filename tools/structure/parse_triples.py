r"""Triples out of a model's reply, however it was dressed.

    (S> subject | P> predicate | O> object)        the paper's form, one a line or comma separated
    ["subject", "predicate", "object"]             JSON lists, and lists or objects around them
    {"head": ..., "relation": ..., "tail": ...}    JSON objects, also subject/predicate/object and other spellings

Code fences, bullets, numbering, trailing commas and prose around them do not matter. Each triple is found on its own,
so a broken one costs no other; a last one that was cut off is left over, never guessed. In the paper's form, a
backslash takes the special meaning from `|`, `(`, `)`, `>` and itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ras_agent.records import Triple
from ras_agent.tools.chat.dialogue import without_thinking

__all__ = ["FORM", "NOTHING", "ParsedTriples", "format_triples", "parse_triples"]

FORM = "one fact a line, (S> subject | P> predicate | O> object), or [NONE] if there is none"
NOTHING = "[NONE]"

_STRING = r'"(?:[^"\\\n]|\\.)*+"'
_SCALAR = rf"(?:{_STRING}|-?\d[\d.eE+-]*+|true|false|null)"
_VALUE = rf"(?:{_SCALAR}|\[\s*+(?:{_SCALAR}\s*+,?\s*+)*+\])"
_FIELD = r"((?:[^|\\s]++|\\.|\|(?!\s*+[spo]>)|\bs(?!>)|\Bs)*+)"  # up to a marker, never into the next triple
_START = re.compile(
    rf"(?P<marked>(?<!\\)(?P<open>\(\s*+)?\bs>{_FIELD}\|\s*+p>{_FIELD}\|\s*+o>)"
    rf"|(?P<list>\[\s*+{_STRING}\s*+,\s*+{_STRING}\s*+,\s*+{_SCALAR}\s*+,?\s*+\])"
    rf"|(?P<object>\{{\s*+(?:{_STRING}\s*+:\s*+{_VALUE}\s*+,?\s*+)++\}})",
    re.IGNORECASE,
)
_STOP = re.compile(r"\\.|\(\s*+s>|[()]|\n(?!\s*+\))|\|\s*+[spo]>|\bs>", re.IGNORECASE)
_PAIR = re.compile(rf"({_STRING})\s*+:\s*+({_VALUE})", re.IGNORECASE)
_SCALARS = re.compile(_SCALAR, re.IGNORECASE)
_ESCAPED = re.compile(r"\\([\\|()>])")
_SPECIAL = re.compile(r"[\\|]|(?<=[SsPpOo])>")
_PARENTHESIS = re.compile(r"[()]")
_SCAFFOLD = re.compile(r"""```.*|[\[{\s]*"\w+"\s*:[\[\]{}\s,]*|\W*+(?:\d++|none)?+\W*+""", re.IGNORECASE)
_MARKS = re.compile(r'[spo]>|\|.*\||^[\s,]*[\[{(]*\s*"', re.IGNORECASE)
_KEYS = {
    **dict.fromkeys(("subject", "subj", "s", "head", "h", "source", "entity1"), 0),
    **dict.fromkeys(("predicate", "pred", "p", "relation", "rel", "r", "relationship"), 1),
    **dict.fromkeys(("object", "obj", "o", "tail", "t", "target", "entity2"), 2),
}


@dataclass(frozen=True, slots=True)
class ParsedTriples:
    """What a reply states, in order, and the lines of it that state nothing readable."""

    triples: tuple[Triple, ...] = ()
    leftovers: tuple[str, ...] = ()

    @property
    def broken(self) -> tuple[str, ...]:
        """Leftovers that bear the marks of a triple; the others are prose."""
        return tuple(line for line in self.leftovers if _MARKS.search(line))


def parse_triples(reply: str) -> ParsedTriples:
    """All triples of a reply. Never raises."""
    text = without_thinking(reply)
    triples: list[Triple] = []
    leftovers: list[str] = []
    position = read_up_to = 0
    while match := _START.search(text, position):
        fields, position = _read(text, match)
        if fields is None:
            continue
        leftovers += _lines(text[read_up_to : match.start()])
        triples.append(Triple(*fields))
        read_up_to = position
    leftovers += _lines(text[read_up_to:])
    return ParsedTriples(tuple(triples), tuple(leftovers))


def format_triples(triples: Iterable[Triple]) -> str:
    """The paper's form, one triple a line, white space in fields reduced to one space; parse_triples reads it back."""
    return "\n".join(
        f"(S> {_escape(triple.subject)} | P> {_escape(triple.predicate)} | O> {_escape(triple.object)})"
        for triple in triples
    )


def _read(text: str, match: re.Match[str]) -> tuple[tuple[str, str, str] | None, int]:
    """The fields of a match, or None, and where to read on."""
    if match["list"]:
        subject, predicate, object_ = (_decode(value) for value in _SCALARS.findall(match["list"]))
        end = match.end()
    elif match["object"]:
        values = ["", "", ""]
        for name, value in _PAIR.findall(match["object"]):
            slot = _KEYS.get(name[1:-1].casefold())
            if slot is not None and value[0] != "[":
                values[slot] = _decode(value)
        subject, predicate, object_ = values
        end = match.end()
    else:
        subject, predicate = _unescape(match[3]), _unescape(match[4])
        raw, end = _last_field(text, match.end(), opened=match["open"] is not None)
        object_ = _unescape(raw)
    fields = (subject, predicate, object_)
    return (fields if all(fields) else None), end


def _last_field(text: str, start: int, *, opened: bool) -> tuple[str, int]:
    """The object, which ends at the parenthesis that no other opened, and where the triple ends. Blank if cut off."""
    depth = 0
    for stop in _STOP.finditer(text, start):
        if stop[0] == "(":
            depth += 1
        elif stop[0] == ")" and depth:
            depth -= 1
        elif stop[0] == ")":
            return text[start : stop.start()], stop.end()
        elif stop[0][0] != "\\":  # the line or the next triple began: the closing parenthesis was forgotten
            return text[start : stop.start()].rstrip(" ,;"), stop.start()
    rest = text[start:].rstrip()
    return "" if opened and not rest.endswith(")") else rest, len(text)


def _lines(gap: str) -> list[str]:
    """The lines between two triples that hold more than fences, bullets, numbers, brackets and commas."""
    return [line.strip() for line in gap.splitlines() if not _SCAFFOLD.fullmatch(line.strip())]


def _decode(value: str) -> str:
    """A JSON scalar as text on one line; blank for null."""
    if value[0] != '"':
        return "" if value.casefold() == "null" else value
    try:
        decoded = json.loads(value)
    except json.JSONDecodeError:  # an escape that JSON does not know, as in LaTeX
        decoded = value[1:-1]
    return " ".join(decoded.split())


def _escape(field: str) -> str:
    escaped = _SPECIAL.sub(r"\\\g<0>", " ".join(field.split()))
    return escaped if _balanced(field) else _PARENTHESIS.sub(r"\\\g<0>", escaped)


def _balanced(field: str) -> bool:
    depth = 0
    for mark in _PARENTHESIS.findall(field):
        depth += 1 if mark == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def _unescape(field: str) -> str:
    plain = _ESCAPED.sub(r"\1", field) if "\\" in field else field  # few fields hold one, and the look is cheap
    return " ".join(plain.split())

"""Reads triples in forms that models invent: with bars, arrows, quotes, commas, or a label for each field.

    a | b | c       (a | b | c)       <triple>a | b | c</triple>       | a | b | c |
    a -> b -> c     ("a", "b", "c")   (a, b, c)                        <S> a <P> b <O> c
    Subject: a, Predicate: b, Object: c                                one of these labels a line

ras_agent.contracts.marks has a row for each form, so that such marks are made inert in passages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from ras_agent.contracts.marks import FLAGS, TUPLE

LONGEST_FIELD = 1000
"""The maximum number of characters of a field. A longer one is prose in which a mark was forgotten."""

_META = re.compile(
    r"(?:(?:the|this) (?:passage|text|document|article)s?|note|here|see)\b",
    re.IGNORECASE,
)
_NO_VERB = re.compile(r"(?:the|an?|and|or)\b|[^a-z]")
# a line with such a mark is a fact in the form with marks, or a broken one
_MARKED = re.compile(r"(?<!<)\b[SPO]>", re.IGNORECASE)
_LEAD = re.compile(
    r"(?:\s|[*_#>`•+-]|\d{1,4}[.)](?=\s)|\[\d{1,4}\]|</?triples?>)*+", re.IGNORECASE
)
_TAIL = " \t\r.,;*`"
_BAR = re.compile(r"(?<!\\)\|")
_ARROW = re.compile(r"--?+>|→")
_QUOTED = re.compile(
    r"""\(\s*+(["'])([^"'\n]++)\1\s*+,\s*+(["'])([^"'\n]++)\3\s*+,\s*+(["'])([^"'\n]++)\5\s*+\)"""
)
_IN_PARENTHESES = re.compile(r"\(([^()|\\\n]++)\|([^()|\\\n]++)\|([^()|\\\n]++)\)")
_COMMAS = re.compile(TUPLE.live, FLAGS)
_TAGS = re.compile(r"<S>([^<\n]++)<P>([^<\n]++)<O>([^<\n]++)", re.IGNORECASE)
_SLOTS = ("subject|subj|s|head", "predicate|pred|p|relation", "object|obj|o|tail")
_LABELS = tuple(
    re.compile(rf"[\s*_`•-]*+(?:{names})[*_`]*+[:>][*_`]*+\s*+", re.IGNORECASE)
    for names in _SLOTS
)
_NEXT_LABEL = re.compile(
    rf"[,;|][\s*_]*+(?=(?:{_SLOTS[1]}|{_SLOTS[2]})[*_`]*+:)", re.IGNORECASE
)
_NAMES = frozenset(
    "|".join((*_SLOTS, "entity1", "relationship", "entity2", "fact")).split("|")
)
_PAIRED = re.compile(r"(\*{1,3}|_{1,3}|`|[\"“])(.*)(?:\1|”)", re.DOTALL)
_EMPHASIS = re.compile(r"[*_`]+")
_RULE = re.compile(r"[\s|:=-]*")

Fields = tuple[str, str, str]


@dataclass(slots=True)
class LineTriples:
    """Holds the triples that some lines state, and the lines that state no triple."""

    triples: list[Fields] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def read_lines(text: str, *, cut_off: bool = False) -> LineTriples:
    """Return the triples that the lines of a text state, and the other lines.

    Args:
        cut_off: whether the text ends too early, so that its last line states no fact.
    """
    result = LineTriples()
    labelled: list[str] = []
    waiting: list[str] = []
    lines = text.split("\n")
    for place, line in enumerate(lines):
        below = "".join(lines[place + 1 : place + 2])
        if "|" in line and _is_rule(below):
            continue  # the header of a table
        is_cut = cut_off and place == len(lines) - 1
        part = "" if is_cut else _labelled(line, len(labelled))
        if part:
            labelled.append(part)
            waiting.append(line)
            if len(labelled) == len(_LABELS):
                subject, predicate, object_ = labelled
                result.triples.append((subject, predicate, object_))
                labelled = []
                waiting = []
            continue
        if line.strip():
            result.others += waiting
            labelled = []
            waiting = []
        triples = [] if is_cut else _in_line(line)
        result.triples += triples
        if not triples and not _RULE.fullmatch(line) and not _is_header(line):
            result.others.append(line)
    result.others += waiting
    return result


def _is_rule(line: str) -> bool:
    """Return whether a line is the rule between a table's header and its rows."""
    bare = line.replace(" ", "").replace(":", "")
    if "|-" not in bare:
        return False
    return _RULE.fullmatch(line) is not None


def _labelled(line: str, count: int) -> str:
    """Return the field on a line that begins with the label for field number `count` and has no other, or ""."""
    label = _LABELS[count].match(line)
    if label is None or _NEXT_LABEL.search(line) or len(_MARKED.findall(line)) > 1:
        return ""
    field = unmarked(line[label.end() :])
    return field if len(field) <= LONGEST_FIELD else ""


def unmarked(text: str) -> str:
    """Return a field as one line, without bold, italics, code marks or quotes around the whole."""
    bare = " ".join(text.split())
    while True:
        paired = _PAIRED.fullmatch(bare)
        if paired is None or paired[1] in paired[2]:
            return bare
        bare = paired[2].strip()


def _in_line(line: str) -> list[Fields]:
    if _MARKED.search(line):
        return _in_marks(line)
    enclosed = (
        _IN_PARENTHESES.findall(line)
        or [groups[1::2] for groups in _QUOTED.findall(line)]
        or _TAGS.findall(line)
    )
    if enclosed:
        return list(chain.from_iterable(map(_three, enclosed)))
    bare = _LEAD.sub("", line, count=1).rstrip(_TAIL)
    bare = bare.removesuffix("</triple>").rstrip(_TAIL)
    opened = bare.startswith("(")
    if opened and not bare.endswith(")"):
        return []  # it was cut off
    if _COMMAS.match(line):
        triples = _three(bare[1:-1].split(","))
        # without a verb they may be only a list of names
        return [fields for fields in triples if not _NO_VERB.match(fields[1])]
    if opened and _BAR.search(bare):
        bare = bare[1:-1]
    parts = _BAR.split(bare.strip("|"))
    if len(parts) == len(_LABELS) + 1 and re.fullmatch(r"\s*\d*\s*", parts[0]):
        del parts[0]  # a table's row number
    if len(parts) == 1:
        parts = _ARROW.split(bare)
    if len(parts) > 1:
        return _three(parts)
    parts = _NEXT_LABEL.split(bare)
    for label, part in zip(_LABELS, parts, strict=False):
        if not label.match(part):
            return []
    return _three(parts)


def _in_marks(line: str) -> list[Fields]:
    """Return the triple of a line such as "S> a P> b O> c", which has the marks but no bars."""
    marks = "".join(_MARKED.findall(line))
    before, *parts = _MARKED.split(line)
    if "|" in line or marks.casefold() != "s>p>o>" or before.strip(" \t-*("):
        return []
    subject, predicate, object_ = (part.strip(" \t,;") for part in parts)
    return _three([subject, predicate, object_.removesuffix(")")])


def _three(parts: Sequence[str]) -> list[Fields]:
    if len(parts) != len(_LABELS):
        return []
    fields = []
    for part, label in zip(parts, _LABELS, strict=True):
        plain = _plain(label.sub("", part, count=1) if label.match(part) else part)
        fields.append(plain.replace("\\|", "|"))
    for text in fields:
        if len(text) > LONGEST_FIELD or not any(map(str.isalnum, text)):
            return []
    subject, predicate, object_ = fields
    if _META.match(subject) or _NAMES.issuperset(map(str.casefold, fields)):
        return []  # it describes the text, or repeats the form
    return [(subject, predicate, object_)]


def _plain(field: str) -> str:
    """Return a field without marks around it, also if only the first or the last of the two marks is left."""
    bare = unmarked(field)
    if len(_EMPHASIS.findall(bare)) == 1:
        return bare.strip("*_` ")
    return bare


def _is_header(line: str) -> bool:
    if "|" not in line or "(" in line:
        return False
    return _NAMES.issuperset(re.findall(r"\w+", line.casefold()))

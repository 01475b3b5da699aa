r"""Triples in the forms that models make up: no marks, but bars, arrows, quotes, commas, or a label for each field.

    a | b | c       (a | b | c)       <triple>a | b | c</triple>       | a | b | c |
    a -> b -> c     ("a", "b", "c")   (a, b, c)                        <S> a <P> b <O> c
    Subject: a, Predicate: b, Object: c                                one of these labels a line

ras_agent.marks has a row for each, so none of them is live in a passage.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ras_agent.marks import FLAGS, TUPLE

LONGEST_FIELD = 1000
"""Characters of a subject, predicate or object. What is longer is no field but text in which a mark was forgotten."""

_META = re.compile(r"(?:(?:the|this) (?:passage|text|document|article)s?|note|here|see)\b", re.IGNORECASE)
_NO_VERB = re.compile(r"(?:the|an?|and|or)\b|[^a-z]")
_MARKED = re.compile(r"(?<!<)\b[SPO]>", re.IGNORECASE)  # a line with such a mark is a fact in that form, or broken
_LEAD = re.compile(r"(?:\s|[*_#>`•+-]|\d{1,4}[.)](?=\s)|\[\d{1,4}\]|</?triples?>)*+", re.IGNORECASE)
_TAIL = " \t\r.,;*`"
_BAR = re.compile(r"(?<!\\)\|")
_ARROW = re.compile(r"--?+>|→")
_QUOTED = re.compile(r"""\(\s*+(["'])([^"'\n]++)\1\s*+,\s*+(["'])([^"'\n]++)\3\s*+,\s*+(["'])([^"'\n]++)\5\s*+\)""")
_IN_PARENTHESES = re.compile(r"\(([^()|\\\n]++)\|([^()|\\\n]++)\|([^()|\\\n]++)\)")
_COMMAS = re.compile(TUPLE.live, FLAGS)
_TAGS = re.compile(r"<S>([^<\n]++)<P>([^<\n]++)<O>([^<\n]++)", re.IGNORECASE)
_SLOTS = ("subject|subj|s|head", "predicate|pred|p|relation", "object|obj|o|tail")
_LABELS = tuple(re.compile(rf"[\s*_`•-]*+(?:{names})[*_`]*+[:>][*_`]*+\s*+", re.IGNORECASE) for names in _SLOTS)
_NEXT_LABEL = re.compile(rf"[,;|][\s*_]*+(?=(?:{_SLOTS[1]}|{_SLOTS[2]})[*_`]*+:)", re.IGNORECASE)
_NAMES = frozenset("|".join((*_SLOTS, "entity1", "relationship", "entity2", "fact")).split("|"))
_PAIRED = re.compile(r"(\*{1,3}|_{1,3}|`|[\"“])(.*)(?:\1|”)", re.DOTALL)
_EMPHASIS = re.compile(r"[*_`]+")
_RULE = re.compile(r"[\s|:=-]*")

Fields = tuple[str, str, str]


@dataclass(slots=True)
class LineTriples:
    """Triples that some lines state, and the lines that state none of them."""

    triples: list[Fields] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def read_lines(text: str, *, cut_off: bool = False) -> LineTriples:
    """Return the triples of the lines of a text. cut_off: the text ends too early, so its last line states none."""
    result = LineTriples()
    labelled: list[str] = []
    waiting: list[str] = []
    lines = text.split("\n")
    for place, line in enumerate(lines):
        below = lines[place + 1] if place + 1 < len(lines) else ""
        if "|" in line and "|-" in below.replace(" ", "").replace(":", "") and _RULE.fullmatch(below):
            continue  # the head of a table
        last = cut_off and place == len(lines) - 1
        part = "" if last or (label := _LABELS[len(labelled)].match(line)) is None else unmarked(line[label.end() :])
        alone = not _NEXT_LABEL.search(line) and len(_MARKED.findall(line)) < 2
        if part and len(part) <= LONGEST_FIELD and alone:
            labelled.append(part)
            waiting.append(line)
            if len(labelled) == len(_LABELS):
                result.triples.append((labelled[0], labelled[1], labelled[2]))
                labelled, waiting = [], []
            continue
        if line.strip():
            result.others += waiting
            labelled, waiting = [], []
        triples = [] if last else _in_line(line)
        result.triples += triples
        if not triples and not (_RULE.fullmatch(line) or _is_header(line)):
            result.others.append(line)
    result.others += waiting
    return result


def unmarked(text: str) -> str:
    """Return a field on one line, without bold, italics, code or quotes around all of it."""
    bare = " ".join(text.split())
    while (paired := _PAIRED.fullmatch(bare)) and paired[1] not in paired[2]:
        bare = paired[2].strip()
    return bare


def _in_line(line: str) -> list[Fields]:
    if marks := _MARKED.findall(line):
        parts = _MARKED.split(line)
        plain = "|" not in line and "".join(marks).casefold() == "s>p>o>"
        fields = [part.strip(" \t,;") for part in parts[1:]]
        return _three([*fields[:2], fields[2].removesuffix(")")]) if plain and parts[0].strip(" \t-*(") == "" else []
    if enclosed := _IN_PARENTHESES.findall(line):
        return [fields for groups in enclosed for fields in _three(groups)]
    if quoted := _QUOTED.findall(line):
        return [fields for groups in quoted for fields in _three(groups[1::2])]
    if tagged := _TAGS.findall(line):
        return [fields for groups in tagged for fields in _three(groups)]
    bare = line[_LEAD.match(line).end() :].rstrip(_TAIL)  # type: ignore[union-attr]
    bare = bare.removesuffix("</triple>").rstrip(_TAIL)
    opened = bare.startswith("(")
    if opened != bare.endswith(")") and opened:
        return []  # it was cut off
    if _COMMAS.match(line):
        return [fields for fields in _three(bare[1:-1].split(",")) if not _NO_VERB.match(fields[1])]  # or names alone
    if opened and _BAR.search(bare):
        bare = bare[1:-1]
    bars, arrows = _BAR.split(bare.strip("|")), _ARROW.split(bare)
    if len(bars) == len(_LABELS) + 1 and re.fullmatch(r"\s*\d*\s*", bars[0]):
        del bars[0]  # the number of a table's row
    if len(bars) == 1 and len(arrows) == 1:
        bars = _NEXT_LABEL.split(bare)
        return _three(bars) if all(label.match(part) for label, part in zip(_LABELS, bars, strict=False)) else []
    return _three(bars if len(bars) > 1 else arrows)


def _three(parts: Sequence[str]) -> list[Fields]:
    if len(parts) != len(_LABELS):
        return []
    subject, predicate, object_ = (
        _plain(part[label.end() :] if (label := pattern.match(part)) else part).replace("\\|", "|")
        for part, pattern in zip(parts, _LABELS, strict=True)
    )
    fields = (subject, predicate, object_)
    readable = all(len(text) <= LONGEST_FIELD and any(map(str.isalnum, text)) for text in fields)
    about_itself = _META.match(subject) or _NAMES.issuperset(map(str.casefold, fields))  # about the text, or its form
    return [fields] if readable and not about_itself else []


def _plain(field: str) -> str:
    """Return a field without marks around it, also where the line's start or end has taken one of the two."""
    bare = unmarked(field)
    return bare.strip("*_` ") if len(_EMPHASIS.findall(bare)) == 1 else bare


def _is_header(line: str) -> bool:
    return _NAMES.issuperset(re.findall(r"\w+", line.casefold())) and "|" in line and "(" not in line

"""Parses triples out of a model's reply, whatever surrounds them.

    (S> subject | P> predicate | O> object)        the paper's form, one a line or comma separated
    ["subject", "predicate", "object"]             JSON lists, and lists or objects around them
    {"head": ..., "relation": ..., "tail": ...}    JSON objects, also subject/predicate/object and other spellings

Code fences, bullets, numbering, trailing commas and prose around triples are ignored; triple_lines reads triples
without marks. Each triple is read separately, so a broken one does not affect the others; a last triple that was cut
off becomes a leftover and is never guessed. In the paper's form, a backslash takes the special meaning from `|`, `(`,
`)`, `>`, `*` and itself (ras_agent.contracts.marks.fact_text writes it).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ras_agent.contracts.marks import FIELDS, NONE, PLACEHOLDERS, fact_text
from ras_agent.contracts.records import Triple
from ras_agent.text.lines import lines_of
from ras_agent.tools.chat.form import ReplyForm
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.tools.structure.triple_lines import LONGEST_FIELD, read_lines

EXAMPLE = fact_text("Jørn Utzon", "was born in", "Copenhagen")
FORM = f"one fact a line, {PLACEHOLDERS['FACT']}, or {NONE} if there is none"

_FACT = r"\(S> [^\n|()]{1,100} \| P> [^\n|()]{1,80} \| O> [^\n|]{1,160}\)"
_FIELDS = ("subject", "predicate", "object")
_FACT_SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "string", "minLength": 1} for name in _FIELDS},
    "required": list(_FIELDS),
    "additionalProperties": False,
}
_SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": _FACT_SCHEMA}},
    "required": ["facts"],
    "additionalProperties": False,
}
REPLY_FORM = ReplyForm(rf"{_FACT}(?:\n{_FACT})*|\[NONE\]", _SCHEMA)
"""The form that a server enforces on the facts of a passage.

It has no counts inside counts, which llama.cpp rejects as too many.
"""

_STRING = r'"(?:[^"\\\n]|\\.)*+"'
_SCALAR = rf"(?:{_STRING}|-?\d[\d.eE+-]*+|true|false|null)"
_VALUE = rf"(?:{_SCALAR}|\[\s*+(?:{_SCALAR}\s*+,?\s*+)*+\])"
_S, _P, _O = (re.escape(str(mark)) for mark in FIELDS)
_MARK = f"(?:{_S}|{_P}|{_O})"
_FIELD = rf"((?:[^|\\{_S[0]}]++|\\.|\|(?!\s*+{_MARK})|(?!\b{_S}){_S[0]})*+)"  # ends at a mark, before the next triple
_START = re.compile(
    rf"(?P<marked>(?<!\\)(?P<open>\(\s*+)?\b{_S}{_FIELD}\|\s*+{_P}{_FIELD}\|\s*+{_O})"
    rf"|(?P<list>\[\s*+{_STRING}\s*+,\s*+{_STRING}\s*+,\s*+{_SCALAR}\s*+,?\s*+\])"
    rf"|(?P<object>\{{\s*+(?:{_STRING}\s*+:\s*+{_VALUE}\s*+,?\s*+)++\}})",
    re.IGNORECASE,
)
_STOP = re.compile(
    rf"\\.|\(\s*+{_S}|[()]|(?<!\s)\s++\)|\n|\|\s*+{_MARK}|\b{_S}", re.IGNORECASE
)
_PAIR = re.compile(rf"({_STRING})\s*+:\s*+({_VALUE})", re.IGNORECASE)
_SCALARS = re.compile(_SCALAR, re.IGNORECASE)
_ESCAPED = re.compile(r"\\([\\|()>*])")
_BOLD = re.compile(r"(\*{1,3})([^*]+)\1")
_FULL_WIDTH = {"（": "(", "）": ")", "｜": "|", "＞": ">"}
_FULL_WIDTH_MARK = re.compile(
    r"^[^\S\n]*+（|（(?=S[>＞])|）(?=[^\S\n]*+[.,;]?+$)|｜|(?<=\b[SPO])＞",
    re.IGNORECASE | re.MULTILINE,
)
_PLACE_HOLDERS = _FIELDS  # the placeholders in the prompt's form
_NOTHING = str(NONE).strip("[]")
_SCAFFOLD = re.compile(
    rf"""```.*|[\[{{\s]*"\w+"\s*:[\[\]{{}}\s,]*|\W*+(?:\d++|{_NOTHING})?+\W*+""",
    re.IGNORECASE,
)
_TRACES = re.compile(rf'{_MARK}|\|.*\||^[\s,]*+[\[{{(]*+\s*+"', re.IGNORECASE)
_BEFORE_A_FACT = " \t\r-*_`•>,;.0123456789)"
_AFTER_A_FACT = " \t\r.,;*_`"
_CLOSINGS = {"(": ")", "[": "]", "{": "}", "|": "|"}
_KEYS = {
    **dict.fromkeys(("subject", "subj", "s", "head", "h", "source", "entity1"), 0),
    **dict.fromkeys(
        ("predicate", "pred", "p", "relation", "rel", "r", "relationship"), 1
    ),
    **dict.fromkeys(("object", "obj", "o", "tail", "t", "target", "entity2"), 2),
}


@dataclass(frozen=True, slots=True)
class ParsedTriples:
    """Holds the triples in a reply, in order, and the lines that state no readable triple."""

    triples: tuple[Triple, ...] = ()
    leftovers: tuple[str, ...] = ()
    cut: str = ""
    """The last leftover, if the reply ends in the middle of it, or ""."""

    @property
    def broken(self) -> tuple[str, ...]:
        """Return the leftovers that look like parts of a triple; all others are prose."""
        lines = []
        for line in self.leftovers:
            unended = line == self.cut and _lacks_its_end(line)
            if unended or _TRACES.search(line):
                lines.append(line)
        return tuple(lines)


def parse_triples(reply: str, *, cut_off: bool = False) -> ParsedTriples:
    """Return all triples of a reply, and the lines that state no fact. Unreadable replies raise no error.

    Args:
        cut_off: whether the model stopped at its token limit, so that the last line may be incomplete.
    """
    text = _FULL_WIDTH_MARK.sub(
        lambda mark: _FULL_WIDTH[mark[0][-1]], without_thinking(reply)
    )
    triples: list[Triple] = []
    leftovers: list[str] = []
    position = read_up_to = 0
    while match := _START.search(text, position):
        fields, position = _read(text, match, cut_off=cut_off)
        if fields is None:
            continue
        more, unread = _between(text[read_up_to : match.start()])
        triples += (*more, Triple(*fields))
        leftovers += unread
        read_up_to = position
    more, unread = _between(text[read_up_to:], cut_off=cut_off)
    triples += more
    leftovers += unread
    last = leftovers[-1] if leftovers else ""
    ends_the_text = text.rstrip().endswith(last)
    if not ends_the_text or not (cut_off or _lacks_its_end(last)):
        last = ""
    return ParsedTriples(triples=tuple(triples), leftovers=tuple(leftovers), cut=last)


def _lacks_its_end(line: str) -> bool:
    """Return whether a line opens a fact without closing it."""
    bare = line.lstrip(_BEFORE_A_FACT)
    bare = bare.rstrip(_AFTER_A_FACT)
    if bare.startswith("<triple>"):
        return "</triple>" not in bare
    opening = bare[:1]
    closing = _CLOSINGS.get(opening)
    if closing is None:
        return False
    if bare.endswith(closing):
        return False
    if closing == opening:
        return True
    return bare.count(opening) > bare.count(closing)


def _read(
    text: str, match: re.Match[str], *, cut_off: bool
) -> tuple[tuple[str, str, str] | None, int]:
    """Return the fields of a match, or None if they are invalid, and the offset to continue from."""
    end = match.end()
    values = ["", "", ""]
    if match["list"]:
        values = list(map(_decode, _SCALARS.findall(match["list"])))
    elif match["object"]:
        for name, value in _PAIR.findall(match["object"]):
            slot = _KEYS.get(name[1:-1].casefold())
            if slot is not None and value[0] != "[":
                values[slot] = _decode(value)
    else:
        closes = cut_off or match["open"] is not None
        object_, end = _last_field(text, end, closes=closes)
        values = list(map(_unescape, (match[3], match[4], object_)))
    subject, predicate, object_ = values
    fields = (subject, predicate, object_)
    lengths = list(map(len, fields))
    if (
        fields == _PLACE_HOLDERS
        or not 0 < min(lengths) <= max(lengths) <= LONGEST_FIELD
    ):
        return None, end
    return fields, end


def _last_field(text: str, start: int, *, closes: bool) -> tuple[str, int]:
    """Return a triple's object, which begins at `start`, and the offset at which the text continues after the triple.

    The object ends at the parenthesis that closes the triple, or where a new line or another triple begins.

    Args:
        closes: whether the triple needs a closing parenthesis; the object is "" if the text ends before one.
    """
    depth = 0
    for stop in _STOP.finditer(text, start):
        mark = stop[0].lstrip() or stop[0]
        held = text[start : stop.start()]
        if stop[0] == "(":
            depth += 1
        elif mark == ")" and depth:
            depth -= 1
        elif mark == ")":
            return held, stop.end()
        elif mark[0] != "\\":
            # a new line or triple begins here, so the closing parenthesis was forgotten
            return held.rstrip(" ,;"), stop.start()
    rest = text[start:].rstrip()
    if closes and not rest.endswith(")"):
        rest = ""
    return rest, len(text)


def _between(gap: str, *, cut_off: bool = False) -> tuple[list[Triple], list[str]]:
    """Return the triples without marks that stand between two other triples, and the lines that state nothing.

    Lines that consist only of fences, bullets, numbers, brackets and commas are dropped.
    """
    if not gap.strip(" \n,"):  # the usual case
        return [], []
    found = read_lines(gap, cut_off=cut_off)
    triples = [Triple(*fields) for fields in found.triples]
    left = []
    for line in lines_of("\n".join(found.others)):
        bare = line.strip()
        if not _SCAFFOLD.fullmatch(bare):
            left.append(bare)
    return triples, left


def _decode(value: str) -> str:
    """Return a JSON scalar as one line of text; "" for null."""
    if value[0] != '"':
        return "" if value.casefold() == "null" else value
    try:
        decoded = json.loads(value)
    except json.JSONDecodeError:  # an escape that JSON does not know, as in LaTeX
        decoded = value[1:-1]
    return " ".join(decoded.split())


def _unescape(field: str) -> str:
    bare = " ".join(field.split())
    bold = _BOLD.fullmatch(bare)
    if bold:
        bare = bold[2].strip()
    if "\\" not in bare:  # faster than the substitution
        return bare
    plain = _ESCAPED.sub(r"\1", bare)
    return " ".join(plain.split())

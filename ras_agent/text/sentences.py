"""Finds where sentences begin and end. Facts, citations and chunks point to these spans."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST_SENTENCE = 2000
"""The number of characters after which a sentence without an end is divided. The longest in encyclopaedias have
about 1,000."""

ITEM = r"(?:[-*•+]|\d{1,2}[.)])[ \t]"
"""The pattern with which an item of a list begins."""

# The ends of sentences: a run of end marks with the quotes, brackets, emphasis and footnote numbers that close it; end
# marks of scripts without a space after them; a Greek question mark; a blank line; the line end before a Markdown
# heading, an item of a list or a row of a table. Possessive repetitions after a look-behind read each run only once, so
# that the time is linear in the text's length.
_MARKS = ".!?…‼⁇⁈⁉⸮\u037e؟۔܀-܂߹।॥።፧፨։᙮᠃᠉᭚᭛᭞᭟᪨-᪫᰻᰼᱾᱿꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝-꩟꫰꫱꯫"
_MARKS_WITHOUT_BLANK = "。！？｡．។៕။།༎"
_END = re.compile(
    rf"""(?P<mark>(?<![{_MARKS}])[{_MARKS}]++) (?:["'”’»)\]*_]|\[\d++\])*+ (?=\s|$)"""
    rf"""|[{_MARKS_WITHOUT_BLANK}]++(?<![0-9０-９]．(?=[0-9０-９]))[」』”’）]*+"""
    r"""|(?<=[\u0370-\u03ff]);(?=\s+[Α-ΫΆ-Ώ])"""
    r"""|\n[^\S\n]*+\n\s*+"""
    r"""|\n(?=[ ]{0,3}\#{1,6}[ \t])"""
    rf"""|\n(?=[ \t]{{0,8}}(?:{ITEM}|\|))""",
    re.VERBOSE,
)
# Every end begins with one of these characters. They are searched first, in stretches, so that other threads can work
# in between: one search through megabytes would block the interpreter until it ends.
_MAY_END = re.compile(rf"[{_MARKS}{_MARKS_WITHOUT_BLANK};\n]")
_STRETCH = 1 << 16
_HEADING = re.compile(r"(?:\A|(?<=\n))[ ]{0,3}\#{1,6}[ \t][^\n]*+\n")
# Abbreviations with a full stop that does not end the sentence if a name, a number, or anything follows.
_BEFORE_NAME = "mr mrs ms dr prof maj gen col lt sgt capt cmdr rev hon gov sen rep pres fr cllr mt ft messrs mme mlle"
_BEFORE_NUMBER = "no nos vol p pp fig ch sec art b d c ca approx jan feb mar apr jun jul aug sep sept oct nov dec"
_ANYWHERE = "st jr sr esq lit vs v etc inc ltd co corp bros cf al e.g i.e u.s u.k u.n d.c a.k.a a.m p.m b.c a.d ph.d feat op"
_STANDS_ALONE = re.compile(r"(?<![^\s(\[\"“'‘*_])([^\s(\[\"“'‘*_]+)\.$")
_INITIALS = re.compile(r"^(?:\w\.)*[^\W\d_a-zß-ÿ]$")
# Words that begin a sentence instead of continuing a name: "the U.S. He", but not "the U.S. Army".
_OPENERS = (
    "a an the he she it they we you i his her its their our this that these those there here in on at after before "
    "during since when while where although though however if as for from with by but and so then both"
)
_OPENS = frozenset(_OPENERS.split())
_KIND = {
    **dict.fromkeys(_ANYWHERE.split(), "anywhere"),
    **dict.fromkeys(_BEFORE_NUMBER.split(), "number"),
    **dict.fromkeys(_BEFORE_NAME.split(), "name"),
}
_NUMBERS = re.compile(r"\s*[*_]{0,2}\d{1,3}\.[*_]{0,2}")  # an item of a list
_LONGEST_NUMBER = 100
_GEORGIAN = re.compile("[\u10d0-\u10ff]")  # its sentences begin without a capital
_NEXT = re.compile(r"[\s\"“'‘(\[]*(\w+|[,;:&)\]|]?)")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the character spans (end exclusive) of the sentences of `text`, in order and trimmed, covering all
    its words.

    A full stop after an initial ("J. K.") or an abbreviation ("No. 5", "St. Louis", "the U.S. Army") does not
    end a sentence, nor does any mark before a small letter or a comma ("Yahoo! is"). A blank line always ends a
    sentence. A Markdown heading is a sentence, and an item of a list or a row of a table begins one. A text
    that does not end within LONGEST_SENTENCE characters is divided, between two words if possible.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _ends(text):
        if match.lastgroup == "mark" and _goes_on(text, start, match):
            continue
        _add(spans, text, start, match.end())
        start = match.end()
    _add(spans, text, start, len(text))
    return spans


def _ends(text: str) -> Iterator[re.Match[str]]:
    """Yield the possible ends of sentences, and headings, from left to right."""
    position = 0
    while match := _HEADING.match(text, position) or _next_end(text, position):
        yield match
        position = match.end()


def _next_end(text: str, position: int) -> re.Match[str] | None:
    if len(text) <= _STRETCH:
        return _END.search(text, position)
    while position < len(text):
        candidate = _MAY_END.search(text, position, position + _STRETCH)
        if candidate is None:
            position += _STRETCH
            continue
        if match := _END.match(text, candidate.start()):
            return match
        position = candidate.end()
    return None


def _goes_on(text: str, start: int, match: re.Match[str]) -> bool:
    """Return whether the sentence that began at `start` continues after the end mark."""
    following = _NEXT.match(text, match.end())
    word = following[1] if following else ""
    if _is_number_of_item(text, start, match.end()):
        return True
    is_small = word[:1].islower()
    if is_small and not _GEORGIAN.match(word):
        return True
    if word and word in ",;:&)]|":
        return True
    # only a bare full stop can belong to an abbreviation, and abbreviations are short
    end = match.end("mark")
    bare = match.group().rstrip("*_") == "."
    alone = None
    if bare:
        alone = _STANDS_ALONE.search(text, max(start, end - 24), end)
    if alone is None or not word:
        return False
    if _INITIALS.match(alone[1]):
        kind = "anywhere"
    else:
        kind = _KIND.get(alone[1].casefold(), "")
    if kind == "number":
        return word[0].isdigit()
    return kind == "name" or (kind == "anywhere" and word.casefold() not in _OPENS)


def _is_number_of_item(text: str, start: int, end: int) -> bool:
    """Return whether the text between `start` and `end` is only the number of a list item at the beginning of a
    line.
    """
    if end - start > _LONGEST_NUMBER or not _NUMBERS.fullmatch(text, start, end):
        return False
    return start == 0 or "\n" in text[start - 1 : end]


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    """Add the trimmed span of a sentence, in parts if it is too long."""
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end:
        while text[start].isspace():
            start += 1
        part_end = min(start + LONGEST_SENTENCE, end)
        while start < part_end < end and not text[part_end].isspace():
            part_end -= 1
        if part_end == start:  # the part has no space
            part_end = start + LONGEST_SENTENCE
        spans.append((start, start + len(text[start:part_end].rstrip())))
        start = part_end

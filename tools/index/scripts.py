"""Writes raised and lowered text in one line: exponents as 10^6, marks of notes as [3], fractions as 1/2.

The reader of a document marks such text in place, and `written_out` replaces the marks once the surrounding text is
known. Without that, 1958 with a reference to note 3 would become 19583.
"""

from __future__ import annotations

import re

from ras_agent.text.words import word_set

RAISED = "\ufdd0"
LOWERED = "\ufdd1"
NOTE = "\ufdd2"
END = "\ufdd3"
"""Marks around a raised or lowered text, or a note's number: noncharacters, which no text may contain."""

_BEGINS = f"{RAISED}{LOWERED}{NOTE}"
_MARKED = re.compile(f"([{_BEGINS}])([^{_BEGINS}{END}]*+){END}")
_FRACTION = re.compile(
    rf"(\d?){RAISED}\s*+(\d++)\s*+{END}\s?[/\u2044]\s?{LOWERED}\s*+(\d++)\s*+{END}"
)
_LEFT_OVER = re.compile(f"[{_BEGINS}{END}]")
_DEEPEST = 5  # the maximum depth of powers of powers
_AROUND = 40  # how many characters before a mark are examined
_LAST_WORD = re.compile(r"[^\W\d_]+$")
_YEAR = re.compile(r"(?<![\d.,])(?:1[5-9]|20)\d\d$")
_NUMBERS = re.compile(r"\d{1,3}(?:\s?[,;\u2013-]\s?\d{1,3})*")
_LETTER = re.compile(r"[a-z]|[ivx]{2,4}|[a-z](?:,\s?[a-z])+")
_NOTE_LETTERS = word_set("a b c d f g h")
"""Letters that are notes when they follow a number; other letters are exponents, or the ends of ordinals."""
_ORDINALS = word_set(
    "st nd rd th er re e o a os as do ro to mo vo ère ème nde ste de º ª"
)
_ABBREVIATED = word_set("lle lles me mes gr r rs o os d t te ie ier iers cie st")
_UNITS = word_set(
    "m km cm mm dm nm um µm μm ft yd mi in s h sec kg log ln sin cos tan cot sec mc"
)
_CENTURY = re.compile(r"[IVXLC]+")  # XIXe siècle, XVIII° secolo
_SIGNS = {"TM": "™", "SM": "℠", "R": "®"}
_BRACKETS = "()[]"


def raised(text: str) -> str:
    """Return a text marked as above the line."""
    return f"{RAISED}{text}{END}"


def lowered(text: str) -> str:
    """Return a text marked as below the line."""
    return f"{LOWERED}{text}{END}"


def note(text: str) -> str:
    """Return the number of a note, marked as such."""
    return f"{NOTE}{text}{END}"


def written_out(text: str) -> str:
    """Return a text in which raised text, lowered text and the numbers of notes are written in the line.

    >>> written_out(f"10{raised('6')} crowns in 1958{raised('3')}, H{lowered('2')}O, the dam{note('4')}")
    '10^6 crowns in 1958 [3], H2O, the dam [4]'
    """
    if END not in text:
        return text
    text = _FRACTION.sub(_fraction, text)
    for _ in range(_DEEPEST):
        if END not in text:
            break
        text = _MARKED.sub(_in_the_line, text)
    return _LEFT_OVER.sub("", text)


def _fraction(match: re.Match[str]) -> str:
    whole, above, below = match.groups()
    if whole:
        return f"{whole} {above}/{below}"
    return f"{above}/{below}"


def _in_the_line(match: re.Match[str]) -> str:
    inner = " ".join(match[2].split())
    if not inner:
        return match[2]
    start = match.start()
    around = match.string[max(0, start - _AROUND) : start]
    before = _MARKED.sub("", around).rpartition("\n")[2]
    after = match.string[match.end() : match.end() + 1]
    written = _as_text(match[1], inner, before, after)
    if after.isdigit() and written[-1].isdigit():
        return f"{written} "
    return written


def _as_text(kind: str, inner: str, before: str, after: str) -> str:
    if kind == NOTE and any(map(str.isalnum, inner)):
        return _as_note(inner, before)
    if kind == LOWERED:
        return _as_lowered(inner, before, after)
    return _as_raised(inner, before, after)


def _as_note(inner: str, before: str) -> str:
    """Return a note's number in brackets, after a space."""
    number = inner
    if not inner.startswith(("[", "(")):
        number = f"[{inner}]"
    is_apart = not before or before[-1].isspace()
    return number if is_apart else f" {number}"


def _as_lowered(inner: str, before: str, after: str) -> str:
    """Return a lowered text; numbers in formulas are written without a mark, as in H2O."""
    in_formula = before[-1:].isalpha() or before.endswith((")", "]"))
    if in_formula and inner.isdigit() and not after.isdigit():
        return inner
    return f"_{_grouped(inner)}"


def _as_raised(inner: str, before: str, after: str) -> str:
    if not any(map(str.isalnum, inner)):
        return inner
    if inner.startswith("["):
        return _as_note(inner, before)
    last = before[-1:]
    if last.isdigit():
        return _behind_number(inner, before)
    word = _LAST_WORD.search(before)
    if word:
        return _behind_word(inner, before, word[0])
    if after.isalpha() and not before[-1:].strip():  # an isotope
        return f"^{inner}"
    is_number = _NUMBERS.fullmatch(inner) or _LETTER.fullmatch(inner)
    ends_sentence = before.rstrip().endswith(
        (".", ",", ";", ":", "!", "?", '"', "\u201d", "\u2019", "'", "%", "\u00bb")
    )
    if is_number and ends_sentence:
        return _as_note(inner, before)
    if is_number and last == ")" and _ends_with_words(before):
        return _as_note(inner, before)
    return f"^{_grouped(inner)}"


def _behind_number(inner: str, before: str) -> str:
    """Return the raised text after a number: the end of an ordinal (1st), a note (after a year, or several numbers), or
    an exponent."""
    if inner.casefold() in _ORDINALS and not _is_of_year(inner, before):
        return inner
    if _NUMBERS.fullmatch(inner) and (_YEAR.search(before) or not inner.isdigit()):
        return _as_note(inner, before)
    if inner in _NOTE_LETTERS:
        return _as_note(inner, before)
    return f"^{_grouped(inner)}"


def _is_of_year(inner: str, before: str) -> bool:
    """Return whether a letter after a year is the mark of a note, since years have no such ordinals."""
    return inner in _NOTE_LETTERS and _YEAR.search(before) is not None


def _behind_word(inner: str, before: str, word: str) -> str:
    """Return the raised text after letters: an exponent of a unit or variable, the end of an abbreviation, or a
    note."""
    if inner in _SIGNS:
        return _SIGNS[inner]
    if len(word) <= 2 and inner.casefold() in _ABBREVIATED:
        return inner
    if _CENTURY.fullmatch(word) and inner.casefold() in _ORDINALS:
        return inner
    is_number = _NUMBERS.fullmatch(inner) is not None
    if len(word) == 1 or word.casefold() in _UNITS:
        return f"^{_grouped(inner)}"
    if is_number or _LETTER.fullmatch(inner.casefold()):
        return _as_note(inner, before)
    if inner.isalpha():
        return f" {inner}"
    return f"^{_grouped(inner)}"


def _ends_with_words(before: str) -> bool:
    """Return whether the brackets at the end of a text contain words, unlike those of a formula."""
    inside = before.rpartition("(")[2]
    words = inside.strip(_BRACKETS).split()
    return any(len(word) > 2 and word.isalpha() for word in words)


def _grouped(inner: str) -> str:
    """Return an exponent or index in parentheses if it is more than a number or a word."""
    plain = inner.replace("\u2212", "-")
    unsigned = plain.lstrip("+-").rstrip("+-")
    if unsigned.replace(".", "").replace("^", "").isalnum():
        return plain
    return f"({plain})"

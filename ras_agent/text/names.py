"""Finds names in running text by their capitals and quotation marks."""

from __future__ import annotations

import re
from bisect import bisect

from ras_agent.text.words import FUNCTION_WORDS, MONTHS, word_set

JOINTS = word_set(
    "of the a an and in on at for to from by with de la le du von van der den di da al el y e vs &"
)
"""Small words that may be inside a name."""
DEMONYM = re.compile(
    r"(?:(?:West|East|North|South|Northern|Southern|Anglo|Sino|Indo)[ -])?"
    r"(?:[A-Z][\w-]*(?:[a-z]{2}(?:ian|ean|ican|ese|ish)|[-–](?:born|based))|(?:Asi|Germ|Rom|Cub|Tex|Afgh|Keny|Liby|Tibet"
    r"|Ugand|Angol|Morocc|Sri Lank)an|French|Irish|Dutch|Greek|Swiss|Welsh|Czech|Thai|Slovak|Filipino|Israeli|Iraqi"
    r"|Pakistani|Bangladeshi|Saudi|Icelandic|[A-Z]\.[A-Z]\.|US|UK)"
)
"""Matches words such as "American", "Greek" and "Swedish-born", by their endings or from a list."""

# the first and last character are not white space, so that a run of white space is read only once
_QUOTED = re.compile(
    r"[\"“”](?:\s*+([^\s\"“”](?:[^\"“”]{0,78}[^\s\"“”])?)\s*+|\s++)[\"“”]"
)
_TOKEN = re.compile(r"(?:\d{1,3}(?:,\d{3})+(?!\d)|[^\W_]+)(?:[-–'’./&][^\W_]+)*\.?")
# words that join the two halves of one name: "Battle of the Bulge", "Ludwig van Beethoven", "Simon & Garfunkel"
_JOINT = re.compile(
    r"\s?(?:-|&|\bfor\b|\b(?:of|de|la|le|du|des|del|della|di|da|do|dos|das|von|van|der|den|ter|zu|bin|ibn|ben|al|el|y|e"
    r"|and)\b(?:\s(?:the|la|le|los|las|der|den))?)\s?",
    re.IGNORECASE,
)
# "for 310 pounds" does not continue a name
_FOR = re.compile(r"\s+for\s+", re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_COUNTED = re.compile(r"[\d.,]+\s[a-z]")
_DOTTED = re.compile(
    r"(?:(?:[A-Z]\.)*[A-Z]|Mr|Mrs|Ms|Dr|St|Jr|Sr|Inc|Ltd|Co|Mt|Ft|No|vs|Lt|Col|Gen|Capt|Prof|Rev|Cllr|Sgt|Maj|Hon)\."
)
# the writer, not the first of a name: "At Hill School I have taught" and "Elizabeth I reigned"
_SPEAKER = re.compile(r"I (?:am|have|shall|do|would|don['’]t|founded|worked|wrote)\b")
_SUFFIXES = frozenset({"Jr", "Sr", "Inc", "Ltd", "LLC", "Co", "III", "II"})
_FARTHEST_STOP = 12
_ENDS_SENTENCE = re.compile(r"[.!?]\s*$")


def name_spans(text: str) -> list[tuple[int, int]]:
    """Return the character spans (end exclusive) of the names in `text`, left to right, not overlapping.

    A name is a text between double quotation marks, or a run of capitalised words and numbers, with the small
    words that join them. A capitalised function word ("The", "Who") inside a run belongs to the name, and so
    does one at its beginning, unless it begins the sentence. "and" joins only before "the" ("Echo and the
    Bunnymen").
    """
    quoted = [match.span(1) for match in _QUOTED.finditer(text) if match[1]]
    spans = list(quoted)
    start = end = -1
    for match in _TOKEN.finditer(text):
        place = bisect(quoted, (match.start(), len(text)))
        if place and match.start() < quoted[place - 1][1]:
            continue
        token, (token_start, token_end) = match.group(), match.span()
        if token.endswith(".") and not _DOTTED.fullmatch(token):
            token = token[:-1]
            token_end = token_end - 1
        if not _capitalised(token) or _SPEAKER.match(text, token_start):
            continue
        gap = text[end:token_start] if end >= 0 else ";"
        is_counted = _FOR.fullmatch(gap) and _COUNTED.match(text, token_start)
        if is_counted or _GROUPED.fullmatch(token):
            gap = ";"  # a sum is of no name
        if _joins(gap, text[max(start - 4, 0) : start]) or (
            gap == ", " and token.rstrip(".") in _SUFFIXES
        ):
            end = token_end
            continue
        _keep(spans, text, start, end)
        start = token_start
        end = token_end
    _keep(spans, text, start, end)
    return sorted(spans)


def names_in(text: str) -> list[str]:
    """Return the names in `text`, in order and with repetitions.

    >>> names_in('Who sang "All Join Hands" before Edward Sharpe and the Magnetic Zeros met J. R. R. Tolkien in Bath?')
    ['All Join Hands', 'Edward Sharpe and the Magnetic Zeros', 'J. R. R. Tolkien', 'Bath']
    """
    spans = name_spans(text)
    return [text[start:end] for start, end in spans]


SHORT_FORMS = word_set("US IT WHO")
"""Names that are function words when written in lower case, such as "US" and "us"."""
_LOWER = re.compile("[a-z]{2}")
# the characters in front of a name that follows a word in small letters
_IN_SENTENCE = re.compile(r".*[a-z] ", re.DOTALL)
_AROUND = 40  # characters: a text in capitals has no short forms


def _capitalised(token: str) -> bool:
    return (
        token[0].isupper()
        or token[0].isdigit()
        or (len(token) > 2 and token[1].isupper())
    )


def _joins(gap: str, before: str) -> bool:
    """Tell whether a name continues after `gap`, the small words between two capitalised words.

    "the Ems and the Soeste" are two names; "Echo and the Bunnymen" is one.
    """
    if gap in ("", " "):
        return True
    if gap == " - ":
        # in a sentence a hyphen of a tokenised text, "the Russo - Japanese War"; else a dash that parts a line
        return _IN_SENTENCE.fullmatch(before) is not None
    joint = _JOINT.fullmatch(gap)
    # a bullet begins another item of a list
    if not joint or not gap.strip() or gap.startswith("\n-"):
        return False
    words = gap.lower().split()
    return words[0] != "and" or (
        "the" in words[1:] and not before.lower().endswith("the ")
    )


def _keep(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    """Add the run of name words from `start` to `end`, without a function word that begins the sentence."""
    if start < 0:
        return
    before = text[max(start - _FARTHEST_STOP, 0) : start]
    begins = _ENDS_SENTENCE.search(before) is not None or (
        len(before) == start and not before.strip(" \"'“‘(")
    )
    for match in _TOKEN.finditer(text, start, end):
        begins = begins or match.end() >= end
        word = match.group()
        around = text[max(start - _AROUND, 0) : end + _AROUND]
        is_short_form = word in SHORT_FORMS and _LOWER.search(around) is not None
        if not begins or is_short_form or word.lower() not in FUNCTION_WORDS:
            start = match.start()
            break
    else:
        return
    if text[start:end].endswith(("'s", "’s")):
        end -= 2
    if any(map(str.isalpha, text[start:end])):
        spans.append((start, end))


def is_name(text: str) -> bool:
    """Tell whether the whole `text` is one name: capitalised and small joining words, but not a date or a number.

    >>> is_name("Bank of Boston"), is_name("American television program"), is_name("June 1999")
    (True, False, False)
    """
    stripped = (word.strip("\"“”'’(),.:;!?") for word in text.split())
    words = list(filter(None, stripped))
    if not words or not _capitalised(words[0]) or not _capitalised(words[-1]):
        return False
    is_proper = False
    for word in words:
        small = word.lower()
        if not _capitalised(word) and small not in JOINTS:
            return False
        if word[0].isalpha() and small not in MONTHS:
            is_proper = True
    return is_proper and DEMONYM.fullmatch(" ".join(words)) is None

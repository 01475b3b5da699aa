"""Decides which words of a text may be an entity: not a clock time, a greeting, a question or a single letter."""

from __future__ import annotations

import re

from ras_agent.text.names import SHORT_FORMS
from ras_agent.tools.offline import english
from ras_agent.tools.offline.extractor.words import CLOCK

_WORD = re.compile(r"\w+")
_EMPTY = english.words("things")["never"] | english.CLOSED.keys()
BY_ITSELF = english.words("things")["by_itself"]
"""Words that are a thing only together with others, such as "thirty years"."""
_NUMBERS = re.compile(r"[\W\d_]*")
_MEASURED = re.compile(r"[%$]|\d,\d|\d\.\d+\.\d")
_SAYS_SOMETHING = re.compile(
    r"\b(?:we|you|they|he|she|me|us|them)\b|\bI (?=[a-z])"
    r"|(?i:\b(?:i|we|you|they|he|she|it|that|there|who)['’](?:m|s|re|ve|ll|d)\b)"
)
"""Matches a pronoun inside a phrase, which is then a clause or a quotation."""
_PART = re.compile(
    r"(?i)(?:article|question|section|chapter|part|day|step|appendix|annex|item|page|clause|exercise|lesson|figure|table)"
    r" (?:\d+|[ivx]+)\b"
)
"""Matches the name of a part of a text."""
_WHEN = re.compile(
    r"(?i)\b(?:ago|(?:next|last) (?:week|month|year|time|night|morning|day|evening|afternoon))$"
)
_CLOCK = re.compile(rf"\b{CLOCK}(?!\w)")
_SHORTEST_NUMBER = 4  # digits
_MOST_WORDS = 12


def may_be_thing(text: str) -> bool:
    """Return whether a phrase may be a subject or an object of a fact.

    >>> may_be_thing("Mill Lane 4"), may_be_thing("1902"), may_be_thing("41 %")
    (True, True, True)
    >>> may_be_thing("Can I"), may_be_thing("00"), may_be_thing("Next"), may_be_thing("18:30"), may_be_thing("C")
    (False, False, False, False, False)
    >>> may_be_thing("Noor Hassan I think"), may_be_thing("Elizabeth I"), may_be_thing("us"), may_be_thing("US")
    (False, True, False, True)
    >>> may_be_thing("I'm Ann Lee"), may_be_thing("3.10"), may_be_thing("3.10 m")
    (False, False, True)
    """
    words = _WORD.findall(text.lower())
    if not words or len(words) > _MOST_WORDS:
        return False
    if len(words) == 1 and text == words[0] and words[0] in BY_ITSELF:
        return False
    is_empty = _EMPTY.issuperset(words) and text not in SHORT_FORMS
    if is_empty or _SAYS_SOMETHING.search(text) or _CLOCK.search(text):
        return False
    bare = text.strip(" .,;:")
    if text.startswith("(") and text.endswith(")"):
        return False
    if len(bare) == 1 or is_part(bare) or _WHEN.search(bare):
        return False
    if _NUMBERS.fullmatch(text) is None or _MEASURED.search(text):
        return True
    longest = max(words, key=len)
    return len(longest) >= _SHORTEST_NUMBER


def is_part(title: str) -> bool:
    """Return whether a title only names a part of a text, such as "Article 1" or "Day 2: The glacier"."""
    return _PART.match(title) is not None

"""Which spans of a question name something: by capitals, and by what the graph has names for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ras_agent.mentions import name_spans
from ras_agent.words import FUNCTION_WORDS

__all__ = ["Mention", "query_mentions"]

_WORD = re.compile(r"[^\W_]+(?:[-–'’.&/][^\W_]+)*\.?")
_LONGEST = 8


class Mention(NamedTuple):
    """Characters `start` to `end` of a question. `known`: they are an entity's name as they stand."""

    text: str
    start: int
    end: int
    known: bool


def query_mentions(question: str, is_entity: Callable[[str], bool]) -> list[Mention]:
    """Names by their capitals, phrases of several words that are entities, in the order of the question.

    Of phrases that overlap the longest counts, and a phrase inside a name only if the name itself is no entity. Where
    nothing of the kind is found, single words that are entities.
    """
    names = [Mention(question[a:b], a, b, is_entity(question[a:b])) for a, b in name_spans(question)]
    words = list(_WORD.finditer(question))
    taken = [mention for mention in names if mention.known]
    for phrase in _phrases(question, words, least=2):
        if _apart(phrase, taken) and is_entity(phrase.text):
            taken.append(phrase)
    # a name that is no entity is looked for by what it means, unless part of it is one
    taken += [name for name in names if not name.known and _apart(name, taken)]
    if not taken:
        taken = [word for word in _phrases(question, words, least=1, longest=1) if is_entity(word.text)]
    return sorted(taken, key=lambda mention: mention.start)


def _phrases(question: str, words: list[re.Match[str]], least: int, longest: int = _LONGEST) -> list[Mention]:
    """Runs of words, the longest first, that begin and end with a word that means something."""
    plain = [match.group().lower() in FUNCTION_WORDS for match in words]
    found = []
    for length in range(min(longest, len(words)), least - 1, -1):
        for first in range(len(words) - length + 1):
            last = first + length - 1
            if not plain[first] and not plain[last]:
                start, end = words[first].start(), words[last].end()
                found.append(Mention(question[start:end], start, end, True))
    return found


def _apart(mention: Mention, others: list[Mention]) -> bool:
    return all(mention.end <= other.start or other.end <= mention.start for other in others)

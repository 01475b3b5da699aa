"""Which spans of a question name something: by capitals, and by what the graph has names for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ras_agent.text.names import name_spans
from ras_agent.text.words import FUNCTION_WORDS

__all__ = ["Mention", "query_mentions", "split_mention"]

_WORD = re.compile(r"[^\W_]+(?:[-–'’.&/][^\W_]+)*\.?")
_LONGEST = 8
_QUOTES = frozenset('"“”')


class Mention(NamedTuple):
    """Characters `start` to `end` of a question. `known`: they are an entity's name as they stand."""

    text: str
    start: int
    end: int
    known: bool


def query_mentions(question: str, is_entity: Callable[[str], bool]) -> list[Mention]:
    """Names by their capitals, phrases of several words that are entities, in the order of the question.

    Of phrases that overlap the longest counts; one that begins with a capital or a figure also before a shorter name
    ("Beaver and Erie Canal" before "Erie Canal"), any other only where no name that is an entity stands. What is left
    of a name that is no entity counts if it is one. Where nothing of the kind is found, single words that are entities.
    """
    names = [Mention(question[a:b], a, b, is_entity(question[a:b])) for a, b in name_spans(question)]
    words = list(_WORD.finditer(question))
    phrases = [phrase for phrase in _phrases(question, words, least=2) if is_entity(phrase.text)]
    known = [mention for mention in names if mention.known]
    taken: list[Mention] = []
    for phrase in sorted([*known, *filter(_like_a_name, phrases)], key=lambda mention: mention.start - mention.end):
        if _apart(phrase, taken):
            taken.append(phrase)
    for phrase in phrases:
        if _apart(phrase, taken):
            taken.append(phrase)
    for name in names:
        if not name.known:
            # looked for by what it means, unless part of it is an entity
            taken += [name] if _apart(name, taken) else [rest for rest in _rests(name, taken) if is_entity(rest.text)]
    if not taken:
        taken = [word for word in _phrases(question, words, least=1, longest=1) if is_entity(word.text)]
    return sorted(taken, key=lambda mention: mention.start)


def split_mention(name: str, is_entity: Callable[[str], bool]) -> list[str]:
    """The entities that a name is put together of, the longest first at each place: "Scotland Edinburgh" is two.

    Empty unless all its words belong to one; small words between them count as neither.
    """
    words = list(_WORD.finditer(name))
    parts, at = [], 0
    while at < len(words):
        for last in range(min(len(words), at + _LONGEST), at, -1):
            part = name[words[at].start() : words[last - 1].end()]
            if not _plain(words[at]) and not _plain(words[last - 1]) and is_entity(part):
                parts.append(part)
                at = last
                break
        else:
            if not _plain(words[at]):
                return []
            at += 1
    return parts


def _phrases(question: str, words: list[re.Match[str]], least: int, longest: int = _LONGEST) -> list[Mention]:
    """Runs of words, the longest first, that begin and end with a word that means something or has a capital."""
    weak = [_plain(word) and (number == 0 or not word.group()[0].isupper()) for number, word in enumerate(words)]
    found = []
    for length in range(min(longest, len(words)), least - 1, -1):
        for first in range(len(words) - length + 1):
            run = words[first : first + length]
            if not weak[first] and not weak[first + length - 1] and not all(map(_plain, run)):
                start, end = run[0].start(), run[-1].end()
                found.append(Mention(question[start:end], start, end, True))
    return found


def _rests(name: Mention, taken: list[Mention]) -> list[Mention]:
    """Runs of words of `name` between what is taken of it, without small words around them."""
    runs: list[list[re.Match[str]]] = [[]]
    for word in _WORD.finditer(name.text):
        start, end = name.start + word.start(), name.start + word.end()
        if _apart(Mention("", start, end, False), taken):
            runs[-1].append(word)
        elif runs[-1]:
            runs.append([])
    rests = []
    for run in runs:
        while run and _plain(run[0]):
            run.pop(0)
        while run and _plain(run[-1]):
            run.pop()
        if run:
            start, end = run[0].start(), run[-1].end()
            rests.append(Mention(name.text[start:end], name.start + start, name.start + end, True))
    return rests


def _plain(word: re.Match[str]) -> bool:
    return word.group().lower() in FUNCTION_WORDS


def _like_a_name(mention: Mention) -> bool:
    return (mention.text[0].isupper() or mention.text[0].isdigit()) and not _QUOTES.intersection(mention.text)


def _apart(mention: Mention, others: list[Mention]) -> bool:
    return all(mention.end <= other.start or other.end <= mention.start for other in others)

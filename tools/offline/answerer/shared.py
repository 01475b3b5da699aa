"""What have two things in common? First what both are said to be, then any phrase that is said of both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ras_agent.text.words import stem, stems, word_set
from ras_agent.tools.offline.answerer.answer_type import TypeModel
from ras_agent.tools.offline.answerer.choice import Side
from ras_agent.tools.offline.question import QuestionAnalysis
from ras_agent.tools.offline.reading import Sentence

_IS = re.compile(r"\b(?:is|are|was|were)\s+(?:(?:an?|the|one of the)\s+)?")
# what is said behind these is no longer what the subject is
_DEFINED = re.compile(
    r"\b(?:who|which|that|whose|where|when|known|best|from|based|born|directed|written|produced|released|founded|formed"
    r"|located|in|by|for|with|on|at|to|as)\b|[;:(]|\.(?=\s|$)"
)
_LISTED = re.compile(r",\s++(?:and\s++)?|(?<!\s)(?:\s++(?:and|of|&)\s++|\s*+/\s*+)")
_PEOPLE_OF = frozenset(
    map(stem, word_set("nationality country origin ethnicity citizenship nation continent state city"))
)
_DEPTH = 3
_MOST = 3
_LATER = 0.4


@dataclass(frozen=True, slots=True)
class Common:
    """Holds a phrase said of every side, as the first one has it. grounds: a sentence a side."""

    text: str
    stems: tuple[str, ...]
    grounds: tuple[Sentence, ...]

    @property
    def named(self) -> bool:
        """Return whether it is a name or a word made from one: "Scotland", "American"."""
        return self.text[:1].isupper()


def common_ground(asked: QuestionAnalysis, sides: Sequence[Side]) -> list[Common]:
    """Return phrases that the passages of both sides share: what both are defined as, else names both mention.

    They come in the order of the first side's text.

    Words of the question are no answer, and a phrase that only occurs inside a longer common one is left out. Where
    the question asks for a nationality or a place, only names count; a year or a day never does.
    """
    if len(sides) < 2 or not all(side.sentences for side in sides):
        return []
    known = set(stems(asked.question))
    names_only = bool(known & _PEOPLE_OF)
    for tables in ([_called(side.sentences[0]) for side in sides], [_told(side.sentences[:_DEPTH]) for side in sides]):
        found = [
            Common(text, key, (sentence, *(table[key][1] for table in tables[1:])))
            for key, (text, sentence) in tables[0].items()
            if all(key in table for table in tables[1:]) and not set(key) <= known
        ]
        found = [one for one in found if not any(_inside(one.stems, other.stems) for other in found)]
        found = [one for one in found if one.named or not names_only]
        # "American" is common to many; what both do says more
        plain = [one for one in found if not one.named]
        if found:
            return found if names_only or not plain else plain
    return []


def spoken(asked: QuestionAnalysis, common: Sequence[Common], types: TypeModel) -> Common:
    """Return the common phrase that fits the question best, the earlier the better; all where it asks for several."""
    noun = asked.answer_noun[-1] if asked.answer_noun else ""
    if (noun.endswith("s") or not noun) and not common[0].named:
        chosen = common[:_MOST]
        text = ", ".join(one.text for one in chosen[:-1]) + " and " * (len(chosen) > 1) + chosen[-1].text
        return Common(text, chosen[0].stems, tuple(dict.fromkeys(read for one in chosen for read in one.grounds)))
    fits = types.scores(asked, [one.text for one in common])
    return common[max(range(len(common)), key=lambda place: float(fits[place]) - _LATER * place)]


_Table = dict[tuple[str, ...], tuple[str, Sentence]]


def _called(opening: Sentence) -> _Table:
    """Return what a first sentence says its subject is.

    These are the phrases behind its verb, whole and without their first words.
    """
    found: _Table = {}
    verb = _IS.search(opening.text)
    if verb is None:
        return found
    end = _DEFINED.search(opening.text, verb.end())
    for phrase in _LISTED.split(opening.text[verb.end() : end.start() if end else None]):
        for text in _shortened(phrase.strip(" ,.")):
            key = tuple(stems(text))
            if key:
                found.setdefault(key, (text, opening))
    return found


def _shortened(phrase: str) -> Iterator[str]:
    """Yield the phrase without its names before a common noun, then shorter and shorter; last those names."""
    words = phrase.split()
    names = next((place for place, word in enumerate(words) if not word[:1].isupper()), len(words))
    for place in range(names, len(words)):
        yield " ".join(words[place:])
    if names:
        yield " ".join(words[:names])


def _told(sentences: Sequence[Sentence]) -> _Table:
    """Return names and noun phrases; no dates or numbers."""
    found: _Table = {}
    for sentence in sentences:
        for mention in sentence.mentions:
            key = tuple(token.stem for token in sentence.tokens[mention.first : mention.last] if token.stem)
            if key and mention.kind not in ("date", "number") and not key[0].isdigit():
                found.setdefault(key, (sentence.text[mention.start : mention.end], sentence))
    return found


def _inside(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    size = len(part)
    return size < len(whole) and any(whole[at : at + size] == part for at in range(len(whole) - size + 1))

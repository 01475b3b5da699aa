"""Yes or no? Whether what is asked is in what is said of each of the things asked about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ras_agent.text.canonical import canonical_key
from ras_agent.text.words import stem, stems, word_set
from ras_agent.tools.offline.answerer.choice import GUESSED, Side, choose, well_known
from ras_agent.tools.offline.question import QuestionAnalysis
from ras_agent.tools.offline.reading import Sentence

_SAME = re.compile(r"\b(?:same|different|share[sd]?|common)\b", re.IGNORECASE)
_THAN = re.compile(r"\b(?:than|before|after)\b", re.IGNORECASE)
_DIFFERENT = re.compile(r"\bdifferent\b", re.IGNORECASE)
_EMPTY = frozenset(
    map(stem, word_set("both same type kind sort form considered known called located situated involved"))
)
# what is the same is a common noun: "the same profession"
_CALLED = frozenset(
    map(stem, word_set("profession occupation job career genre type kind sort field industry instrument category"))
)
_WIDEST = frozenset(map(stem, word_set("country nation nationality continent ethnicity origin")))


@dataclass(frozen=True, slots=True)
class Verdict:
    """yes: the answer; grounds: a sentence a side; support: 0..1, how much of what was asked the weaker side says."""

    yes: bool
    grounds: tuple[Sentence, ...]
    support: float

    def confidence(self, sides: Sequence[Side]) -> float:
        """Return how often such a verdict about these sides is right."""
        return 0.75 if self.grounds and well_known(sides) else GUESSED


def decide(asked: QuestionAnalysis, sides: Sequence[Side]) -> Verdict:
    """Yes where every side says it, or where they share what is to be the same."""
    named = {root for side in sides for root in stems(side.name)}
    about = frozenset(stems(asked.question)) - named
    if len(sides) == 2:
        if _SAME.search(asked.question):
            return _shared(asked, sides, about)
        if _THAN.search(asked.question):
            return _first_wins(asked, sides)
    return _each(sides, about - _EMPTY)


def _first_wins(asked: QuestionAnalysis, sides: Sequence[Side]) -> Verdict:
    """Return "Is A older than B?" is yes where A would be chosen."""
    choice = choose(asked, sides)
    return Verdict(choice.side is sides[0] and choice.decided, choice.grounds, 1.0)


def _each(sides: Sequence[Side], about: frozenset[str]) -> Verdict:
    grounds, supports = [], []
    for side in sides:
        told = frozenset(root for sentence in side.sentences for root in sentence.stems)
        supports.append(sum(_says(told, root) for root in about) / len(about) if about else 0.0)
        best = side.best_sentence(about)
        if best:
            grounds.append(best)
    support = min(supports, default=0.0)
    return Verdict(support >= 0.99, tuple(grounds), support)


def _says(told: frozenset[str], root: str) -> bool:
    """Return whether a stem, or a longer or shorter form of it, is told."""
    return root in told or any(min(len(root), len(other)) > 3 and _begins(root, other) for other in told)


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _shared(asked: QuestionAnalysis, sides: Sequence[Side], about: frozenset[str]) -> Verdict:
    """Return whether the sides name something in common where they speak of what is to be the same."""
    match = list(_SAME.finditer(asked.question))[-1]
    wanted = frozenset(stems(asked.question[match.end() :])) & about or about
    found: list[frozenset[str]] = []
    grounds = []
    for side in sides:
        sentence = side.best_sentence(wanted) or (side.sentences[0] if side.sentences else None)
        if sentence is None:
            found.append(frozenset())
            continue
        if not sentence.stems & wanted:
            sentence = side.sentences[0]
        grounds.append(sentence)
        if wanted & _CALLED:
            found.append(_called(side.sentences[0]))
        else:
            found.append(_named(sentence, side, widest=bool(wanted & _WIDEST)))
    common = found[0] & found[1]
    yes = bool(common) != bool(_DIFFERENT.search(asked.question))
    return Verdict(yes, tuple(grounds), 1.0 if grounds else 0.0)


def _named(sentence: Sentence, side: Side, *, widest: bool) -> frozenset[str]:
    """Return keys of the names and numbers said of a side, its own name left out.

    The last of a chain of places ("Nantong, Jiangsu, China") counts only where the widest place is asked for: two
    cities of one country need not be in the same province.
    """
    text, own = sentence.text, canonical_key(side.name)
    spans = sentence.names
    keys = {str(figure.order) for figure in sentence.figures if figure.kind == "number"}
    for place, (start, end) in enumerate(spans):
        follows = place > 0 and text[:start].rstrip().endswith(",")
        goes_on = place + 1 < len(spans) and text[end : spans[place + 1][0]].strip() == ","
        if widest or not follows or goes_on:
            keys.add(canonical_key(text[start:end]))
    return frozenset(key for key in keys if key not in own and own not in key)


def _called(opening: Sentence) -> frozenset[str]:
    """Return stems of the common nouns that its noun phrases end in: what its subject is called."""
    last = [token for run in opening.runs for token in run[-2:]]
    return frozenset(token.stem for token in last if opening.text[token.start].islower())

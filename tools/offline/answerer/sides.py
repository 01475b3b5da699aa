"""The two things that a question compares, each with the passage that is about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ras_agent.records import Passage
from ras_agent.text.canonical import canonical_key
from ras_agent.text.words import stems
from ras_agent.tools.offline.answerer.reading import Read, plain_title
from ras_agent.tools.offline.question import QuestionAnalysis

__all__ = ["Side", "sides_of"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the things compared: its name, and the sentences of the passage about it, in order.

    asked: the name as the question has it, which may hold a word too many. No sentences: no passage is about it.
    """

    asked: str
    name: str
    sentences: tuple[Read, ...]

    def best_sentence(self, stems: frozenset[str]) -> Read | None:
        """The sentence with most of `stems`, the first among equals."""
        return max(self.sentences, key=lambda sentence: len(stems & sentence.stems), default=None)


def sides_of(asked: QuestionAnalysis, passages: Sequence[Passage], sentences: Sequence[Read]) -> tuple[Side, ...]:
    """The sides in the order of the question, one where it asks of one thing; no passage is about two of them."""
    wanted = frozenset(stems(asked.question))
    taken: set[int] = set()
    sides = []
    for name in asked.compared or (asked.mentions[:1] if asked.kind == "yes_no" else ()):
        place = _about(name, wanted, passages, sentences, taken)
        if place is not None:
            taken.add(place)
        own = name if place is None else _trimmed(name, plain_title(passages[place].title))
        sides.append(Side(name, own, tuple(sentence for sentence in sentences if sentence.passage == place)))
    return tuple(sides)


def _trimmed(name: str, title: str) -> str:
    """The title, where the name goes on behind it with words that are not its own: "James Hall Argentinian"."""
    return title if title and canonical_key(name).startswith(f"{canonical_key(title)} ") else name


def _about(
    name: str, wanted: frozenset[str], passages: Sequence[Passage], sentences: Sequence[Read], taken: set[int]
) -> int | None:
    """The passage whose title, or else whose first words, name it; of namesakes the one closest to the question."""
    key = canonical_key(name)
    best, most = None, (0.0, 0.0)
    for place, passage in enumerate(passages):
        if place in taken:
            continue
        opening = next((sentence for sentence in sentences if sentence.passage == place), None)
        likeness = _likeness(key, passage, opening)
        if likeness:
            seen = frozenset(stems(passage.title)) | (opening.stems if opening else frozenset())
            score = (likeness, len(wanted & seen) - place / len(passages))
            if score > most:
                best, most = place, score
    return best


def _likeness(key: str, passage: Passage, opening: Read | None) -> float:
    title, plain = canonical_key(passage.title), canonical_key(plain_title(passage.title))
    if key == title and key != plain:
        return 4.0
    if key == plain:
        return 3.0
    words, others = set(key.split()), set(plain.split())
    if words and (words <= others or (others and others <= words)):
        return 2.0 * min(len(words), len(others)) / max(len(words), len(others)) + 0.5
    if opening and f" {key} " in f" {canonical_key(opening.text[:200])} ":
        return 1.0
    return 0.0

"""Finds the sentence of a text that states something, by the words that their canonical keys share, in any
language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ras_agent.text.canonical import canonical_key
from ras_agent.text.sentences import sentence_spans


@dataclass(frozen=True, slots=True)
class Sentence:
    """Locates a sentence, characters `start` to `end` of a text, and holds its canonical key."""

    start: int
    end: int
    key: str

    def support(self, phrases: Sequence[str]) -> float:
        """Return how well the sentence supports some phrases: the sum of a number for each phrase.

        The number is 1 if the sentence contains the whole phrase. It is m / (n + 1) if it contains m of the
        phrase's n words.
        """
        words = frozenset(self.key.split())
        total = 0.0
        for phrase in filter(None, map(canonical_key, phrases)):
            # in scripts without spaces a sentence is one "word": look for the phrase inside it
            if f" {phrase} " in f" {self.key} " or (
                not phrase.isascii() and phrase in self.key
            ):
                total += 1.0
                continue
            sought = phrase.split()
            shared = sum(word in words for word in sought)
            total += shared / (len(sought) + 1)
        return total


def holds(text: str, name: str) -> bool:
    """Tell whether a text contains the words of a name in a row. Case and punctuation do not matter."""
    key = canonical_key(name)
    return key != "" and f" {key} " in f" {canonical_key(text)} "


def sentences_of(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of `text`, in order."""
    sentences = []
    for start, end in sentence_spans(text):
        key = canonical_key(text[start:end])
        sentences.append(Sentence(start, end, key))
    return tuple(sentences)


def support(text: str, phrases: Sequence[str]) -> float:
    """Return how well a whole text supports some phrases, counted as in `Sentence.support`."""
    whole = Sentence(0, len(text), canonical_key(text))
    return whole.support(phrases)


def best_sentence(
    sentences: Sequence[Sentence], phrases: Sequence[str]
) -> tuple[Sentence | None, float]:
    """Return the sentence with the highest `support` of the phrases (the first of equals), and its support.

    Return (None, 0) if no sentence supports them.
    """
    best = None
    score = 0.0
    for sentence in sentences:
        support = sentence.support(phrases)
        if support > score:
            best = sentence
            score = support
    return best, score

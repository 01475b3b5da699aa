"""Which sentence of a text says a thing? Lexical overlap on canonical keys, language independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ras_agent.text.canonical import canonical_key
from ras_agent.text.sentences import sentence_spans


@dataclass(frozen=True, slots=True)
class Sentence:
    """Characters `start` to `end` of a text, and their canonical key."""

    start: int
    end: int
    key: str

    def support(self, phrases: Sequence[str]) -> float:
        """Return how much of the phrases stands here: 1 for each found whole, else the share of its words."""
        padded, words = f" {self.key} ", frozenset(self.key.split())
        total = 0.0
        for phrase in filter(None, map(canonical_key, phrases)):
            sought = phrase.split()
            # scripts without spaces between words have one "word" a sentence: look for the phrase inside it
            whole = f" {phrase} " in padded or (not phrase.isascii() and phrase in self.key)
            total += 1.0 if whole else sum(word in words for word in sought) / (len(sought) + 1)
        return total


def sentences_of(text: str) -> tuple[Sentence, ...]:
    """Return the sentences of `text`, in order."""
    return tuple(Sentence(start, end, canonical_key(text[start:end])) for start, end in sentence_spans(text))


def support(text: str, phrases: Sequence[str]) -> float:
    """Return how much of the phrases stands in `text`, as `Sentence.support` counts it."""
    return Sentence(0, len(text), canonical_key(text)).support(phrases)


def best_sentence(sentences: Sequence[Sentence], phrases: Sequence[str]) -> tuple[Sentence | None, float]:
    """Return the sentence that supports the phrases best and its score, the first among equals.

    Returns (None, 0) if none does.
    """
    best, score = None, 0.0
    for sentence in sentences:
        support = sentence.support(phrases)
        if support > score:
            best, score = sentence, support
    return best, score

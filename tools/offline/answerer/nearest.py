"""Finds the sentences that share most with a question, shown if no answer can be read in the passages."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.text.words import stem_set
from ras_agent.tools.offline.reading import ReadPassage, Sentence, rarity

_MOST = 3
_LEAST = 0.4  # share of the weight of a question's words
_ASKS = ("?", "?**", ":")  # ends of sentences to which the next sentence belongs
_ABOVE = 0.5  # weight of a word that only the headings above a sentence contain


def nearest_sentences(question: str, passages: Sequence[ReadPassage]) -> list[Sentence]:
    """Return the sentences with most of the question's words, best first; [] if no sentence has enough.

    A word that occurs in few of the passages counts for more than one that occurs in all. A sentence that is itself
    a question or ends in a colon is followed by the next sentence.
    """
    weights = rarity(stem_set(question), passages)
    needed = _LEAST * sum(weights.values())
    near: list[tuple[float, Sentence]] = []
    for passage in passages:
        for sentence in passage.sentences:
            held = 0.0
            for word, weight in weights.items():
                if word in sentence.stems:
                    held += weight
                elif word in passage.title_stems:
                    held += weight * _ABOVE
            if held >= needed and not sentence.stems.isdisjoint(weights):
                near.append((held, sentence))
    near.sort(key=lambda one: one[0], reverse=True)
    shown: list[Sentence] = []
    for _, sentence in near[:_MOST]:
        shown.append(sentence)
        following = sentence.following
        if following is not None and sentence.text.endswith(_ASKS):
            shown.append(following)
    return shown

"""Compares the words of a question, each in its context, with those of the proof of an answer.

A proof may use other words than the question, but then some of them are similar to those of the question.

What antenna was exported for the flights?    "An S-band antenna was used for the flights."    unlike all: "exported"
What antenna was employed for the flights?    the same                                         like "used": "employed"
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import MissingExtra
from ras_agent.text.names import name_spans
from ras_agent.text.words import stem_set
from ras_agent.tools.embed.minilm import token_vectors
from ras_agent.tools.offline.reading import Token, tokens_of

UNKNOWN = 0.7
"""The similarity if it cannot be computed, because all words are names or MiniLM is not installed."""
_GENERIC = stem_set(
    "man woman person people somebody place thing nationality ethnicity citizenship"
    " known called named considered located situated"
)
"""Stems of nouns that a text need not state about its answer, and of verbs that mean no more than "is"."""
_REMEMBERED = 256  # texts in the cache that planner and answerer share


def least_likeness(question: str, proof: str, light: Set[str]) -> float:
    """Return, for the question's word that fits the proof worst, its similarity to the most similar word there, 0..1.

    Names and figures do not count, nor do words with one of the stems `light` or generic words such as "person".
    """
    told = [token for token in tokens_of(proof) if token.stem]
    words = _plain_words(question, light)
    if not words or not told:
        return UNKNOWN
    held = {token.stem for token in told}
    new = [token for token in words if token.stem not in held]
    if not new:
        return 1.0
    try:
        asked = _vectors(question, new)
        proved = _vectors(proof, told)
    except MissingExtra:
        return UNKNOWN
    likeness = asked @ proved.T  # (new words, words of the proof)
    likest = likeness.max(axis=1)
    least = float(likest.min())
    return max(0.0, least)


def _plain_words(question: str, light: Set[str]) -> list[Token]:
    """Return the content words of a question that are neither names nor figures nor generic nor `light`."""
    words: list[Token] = []
    names = name_spans(question)
    uncounted = light | _GENERIC | {""}
    for token in tokens_of(question):
        if token.stem in uncounted:
            continue
        has_digits = any(map(str.isdigit, token.word))
        is_named = any(start <= token.start < end for start, end in names)
        if not has_digits and not is_named:
            words.append(token)
    return words


def _vectors(text: str, words: Sequence[Token]) -> Floats:
    """Return a unit vector for each word (words, 384): the mean of its word pieces, or zeros if it was cut off."""
    vectors, places = _pieces(text)
    width = vectors.shape[1]
    of_words = np.zeros((len(words), width), dtype=np.float32)
    for row, word in enumerate(words):
        for piece, (start, end) in enumerate(places):
            is_special = start == end
            if not is_special and word.start <= start and end <= word.end:
                of_words[row] += vectors[piece]
    lengths = np.linalg.norm(of_words, axis=1, keepdims=True)
    smallest = np.finfo(np.float32).tiny
    of_words /= np.maximum(lengths, smallest)
    return of_words


_pieces = lru_cache(_REMEMBERED)(token_vectors)

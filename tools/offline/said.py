"""Questions that a passage answers and no name does: why, what one can or must do, and what a text says on the whole.

The answer is the sentences themselves, or none: a date is never a reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ras_agent.text.words import stems, word_set
from ras_agent.tools.offline.reading import ReadPassage, Sentence

_WHY = re.compile(
    r"\W*(?:why|how come|for what reason|what (?:is|was|were) the (?:cause(?! of death)|reason)s?)\b", re.IGNORECASE
)
_WHOLE = re.compile(
    r"\W*(?:summari[sz]e|sum up|describe|outline|explain|tell me about|give (?:me )?an? (?:summary|overview)"
    r"|what (?:can|may|must|should) )",
    re.IGNORECASE,
)
_BECAUSE = re.compile(
    r"\b(?:because|since|so that|in order to|due to|owing to|as a result|therefore|the reason|caused?)\b",
    re.IGNORECASE,
)
_ASKED_SO = word_set("why cause causes reason reasons summarise summarize sum describe outline explain tell overview")
_HEADING = re.compile(r"^(?:#{1,6} .+|(?:\d+\. )?[A-Z][^.!?\n]{0,60})$", re.MULTILINE)
_LEAST_SHARED = 0.4  # of the question's words that the passage and the sentence have to have
_MOST = 4  # sentences of a summary
_FEWEST_WORDS = 4  # of a sentence that says something


def asks_for_sentences(question: str) -> bool:
    """Return whether sentences answer a question, and no name or figure.

    >>> asks_for_sentences("Why did the mill close?"), asks_for_sentences("When did the mill close?")
    (True, False)
    """
    return bool(_WHY.match(question) or _WHOLE.match(question))


def sentences_that_say(question: str, passages: Sequence[ReadPassage]) -> list[Sentence]:
    """Return the sentences of a passage that answer such a question, in order; [] where none bears on it."""
    asked = {stem for word in question.split() if word.strip("?.,").lower() not in _ASKED_SO for stem in stems(word)}
    return _reason(asked, passages) if _WHY.match(question) else _section(asked, passages)


def _reason(asked: set[str], passages: Sequence[ReadPassage]) -> list[Sentence]:
    """Return the sentence that gives a reason and has most of what is asked, some of it beside names."""
    best: tuple[float, list[Sentence]] = (0.0, [])
    for passage in passages:
        named = passage.title_stems
        for sentence in passage.sentences:
            own = asked & sentence.stems
            names = {stem for start, end in sentence.names for stem in stems(sentence.text[start:end])}
            if _BECAUSE.search(sentence.text) and own - names:
                shared = len(own) + len((asked & passage.stems) - own) / 2 + len(asked & named) / 4
                if len(asked & passage.stems) >= _LEAST_SHARED * len(asked):
                    best = max(best, (shared, [sentence]), key=lambda one: one[0])
    return best[1]


def _section(asked: set[str], passages: Sequence[ReadPassage]) -> list[Sentence]:
    """Return the first sentences of the passage that has most of the asked words, from the heading that has some."""
    passage = max(passages, key=lambda one: len(asked & one.stems), default=None)
    if passage is None or len(asked & passage.stems) < _LEAST_SHARED * len(asked):
        return []
    left = asked - passage.title_stems
    headings = [(len(left & set(stems(match.group()))), -match.start()) for match in _HEADING.finditer(passage.text)]
    shared, place = max(headings, default=(0, 0))
    start = -place if shared else 0
    said = [one for one in passage.sentences if one.start + len(one.text) > start and len(one.tokens) >= _FEWEST_WORDS]
    return said[:_MOST]

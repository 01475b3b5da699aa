"""An extractor without a model: each sentence's names become facts about what the sentence speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ras_agent.mentions import name_spans
from ras_agent.records import Extraction, Passage, Source, Triple
from ras_agent.sentences import sentence_spans

__all__ = ["OfflineExtractor"]

_DISAMBIGUATOR = re.compile(r"\s*\([^()]*\)\s*$")


class OfflineExtractor:
    """Reads triples with rules of English."""

    name = "offline"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        return Extraction(tuple(triple for passage in passages for triple in _read(passage)))


def _read(passage: Passage) -> Iterator[Triple]:
    topic = _DISAMBIGUATOR.sub("", passage.title)
    for start, end in sentence_spans(passage.text):
        sentence = passage.text[start:end]
        spans = name_spans(sentence)
        source = (Source(passage.id, start, end, extractor="offline"),)
        last = spans[0][1] if spans else 0
        subject = topic or (sentence[slice(*spans[0])] if spans else "")
        for a, b in spans:
            words = sentence[last:a].strip(' ,;:()"“”') or "mentions"
            if subject and sentence[a:b] not in subject:
                yield Triple(subject, " ".join(words.split()[-6:]), sentence[a:b], source)
            last = b

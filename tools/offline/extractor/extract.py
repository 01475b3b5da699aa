"""An extractor without a model: facts out of encyclopaedic and news English, by the closed classes of its grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ras_agent.records import Extraction, Passage, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.titles import bare_title
from ras_agent.tools.offline.extractor.chunks import Chunk, chunked
from ras_agent.tools.offline.extractor.clauses import read_clauses
from ras_agent.tools.offline.extractor.subjects import Fact
from ras_agent.tools.offline.extractor.tokens import tagged
from ras_agent.tools.offline.extractor.topics import (
    ALIAS,
    Aside,
    Topic,
    defined_name,
    facts_in,
    topic_of,
    without_asides,
)
from ras_agent.tools.offline.reading import MOST_READ


class OfflineExtractor:
    """Reads triples with rules of English; knows no entity, relation or question beforehand."""

    name = "offline"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the facts of each sentence, each with the sentence's span.

        Text without words that it can read has none.
        """
        titles = _title_pattern(passages)
        return Extraction(tuple(triple for passage in passages for triple in _triples(passage, titles)))


def _title_pattern(passages: Sequence[Passage]) -> re.Pattern[str] | None:
    """Matches the first passages' titles, the longest first: whatever their words look like, they are names."""
    titles = {bare_title(passage.title) for passage in passages[:MOST_READ]}
    known = sorted(
        (title for title in titles if len(title) > 3 and not title.islower()), key=lambda title: (-len(title), title)
    )
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, known)) + r")(?!\w)") if known else None


def _triples(passage: Passage, titles: re.Pattern[str] | None) -> Iterator[Triple]:
    topic = topic_of(passage.title, passage.text)
    for number, (start, end) in enumerate(sentence_spans(passage.text)):
        source = (Source(passage.id, start, end, extractor="offline"),)
        facts = dict.fromkeys(_facts(passage.text[start:end], topic, titles, first=number == 0))
        for subject, predicate, object_ in facts:
            yield Triple(subject, predicate, object_, source)
            if subject == topic.label and predicate == ALIAS:
                topic = topic.called(object_)


def _facts(sentence: str, topic: Topic, titles: re.Pattern[str] | None, first: bool) -> Iterator[Fact]:
    bare, asides = without_asides(sentence)
    named = defined_name(bare, topic) if first else 0
    chunks = chunked(tagged(bare, titles, named), bare)
    if named:
        name = " ".join(bare[:named].removeprefix("The ").split()).strip('"“”')
        if canonical_key(name) != canonical_key(topic.label):
            yield topic.label, ALIAS, name
        topic = topic.called(bare[:named])
    yield from read_clauses(chunks, topic)
    verb = next((chunk.start for chunk in chunks if chunk.vg is not None), 0) if named else 0
    for aside in asides:
        subject = topic.label if aside.start < verb else _before(aside, chunks)
        if subject:
            label = topic.label if topic.same(subject) else subject
            yield from facts_in(aside.text, label, topic.person or label != topic.label)


def _before(aside: Aside, chunks: Sequence[Chunk]) -> str:
    """Return the phrase that a bracket follows."""
    before = [chunk.np for chunk in chunks if chunk.np is not None and chunk.end <= aside.start]
    return (before[-1].name or before[-1].text) if before else ""

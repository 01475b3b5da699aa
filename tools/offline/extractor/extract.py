"""An extractor without a model: facts out of encyclopaedic and news English, by the closed classes of its grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ras_agent.records import Extraction, Failure, Passage, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import is_name
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.titles import bare_title
from ras_agent.text.words import word_set
from ras_agent.tools.offline.english import EnglishOnly
from ras_agent.tools.offline.extractor.clauses import (
    Fact,
    finite_verbs,
    read_clauses,
    subject_of,
)
from ras_agent.tools.offline.extractor.topics import (
    ALIAS,
    Topic,
    defined_name,
    facts_in,
    topic_of,
    without_asides,
)
from ras_agent.tools.offline.extractor.words import chunked
from ras_agent.tools.offline.reading import MOST_READ

_OPENING = 3  # sentences: two headings, say, and the first that has a verb
_LONGEST_HEADING = 80
_POINTING = word_set("this that these those my our your his her its their")
_NO_THINGS = word_set(
    "next yes no ok okay hello thanks regards sincerely subject re dear please note"
)
_SHORTEST_NUMBER = 3  # digits
_PRONOUNS = word_set(
    "he she it they him her them his its their this that these those i we you"
)


class OfflineExtractor:
    """Reads triples with rules of English; knows no entity, relation or question beforehand."""

    name = "offline"

    def __init__(self, language: str = "") -> None:
        """language: of the texts, if it is known."""
        self._english = EnglishOnly("extractor", language)

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the facts of each sentence, each with the sentence's span.

        Text without words that it can read has no facts, and text that seems to be in another language is a failure.
        """
        if refusal := self._english.refusal(subquery):
            return Extraction((), (Failure("extractor", refusal),))
        english, failures = self._english.readable(passages)
        titles = _title_pattern(english)
        return Extraction(
            tuple(
                triple for passage in english for triple in _triples(passage, titles)
            ),
            failures,
        )


def _title_pattern(passages: Sequence[Passage]) -> re.Pattern[str] | None:
    """Matches the first passages' titles, the longest first: whatever their words look like, they are names."""
    titles = {bare_title(passage.own_title) for passage in passages[:MOST_READ]}
    known = [
        one
        for one in sorted(titles, key=lambda one: (-len(one), one))
        if len(one) > 3 and not one.islower()
    ]
    return (
        re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, known)) + r")(?!\w)")
        if known
        else None
    )


def _triples(passage: Passage, titles: re.Pattern[str] | None) -> Iterator[Triple]:
    spans = sentence_spans(passage.text)
    name = passage.own_title
    if not name and passage.title:
        name = _first_subject(
            [passage.text[start:end] for start, end in spans[:_OPENING]], titles
        )
    topic = topic_of(name, passage.text)
    for number, (start, end) in enumerate(spans):
        source = (Source(passage.id, start, end, extractor="offline"),)
        facts = dict.fromkeys(
            _facts(passage.text[start:end], topic, titles, first=number == 0)
        )
        for subject, predicate, object_ in facts:
            if not topic.label and subject.lower() in _PRONOUNS:
                continue  # nobody knows whom they stand for
            if not _is_thing(subject) or _is_letter(object_):
                continue
            yield Triple(subject, predicate, object_, source)
            if subject == topic.label and predicate == ALIAS:
                topic = topic.called(object_)


def _is_thing(subject: str) -> bool:
    """Tell whether a subject may be one: a lone letter, as of "18 °C", a clock's minutes and "Next" are not."""
    if _is_letter(subject) or subject.lower() in _NO_THINGS:
        return False
    return not (subject.isdigit() and len(subject) < _SHORTEST_NUMBER)


def _is_letter(text: str) -> bool:
    letters = [char for char in text if char.isalnum()]
    return len(letters) == 1 and letters[0].isalpha()


def _first_subject(sentences: Sequence[str], titles: re.Pattern[str] | None) -> str:
    """Return the subject of the first sentence, or a name that is above it as a heading; "" for neither.

    Without a title, "it" stands for that subject later on.
    """
    for sentence in sentences:
        bare, _ = without_asides(sentence)
        chunks = chunked(bare, titles)
        verbs = finite_verbs(chunks)
        subject = subject_of(chunks, verbs, 0, Topic("", (), person=False))
        if subject is not None:
            phrase = chunks[subject.first].np
            unknown = (
                phrase is None
                or phrase.tag == "o"
                or phrase.opener in _POINTING
                or subject.prefix != ""
            )
            return "" if unknown else subject.label
        heading = bare.strip().lstrip("# ")
        if verbs or len(heading) > _LONGEST_HEADING:
            return ""
        if is_name(heading):
            return heading
    return ""


def _facts(
    sentence: str, topic: Topic, titles: re.Pattern[str] | None, first: bool
) -> Iterator[Fact]:
    bare, asides = without_asides(sentence)
    named = defined_name(bare, topic) if first else 0
    chunks = chunked(bare, titles, named)
    if named:
        name = " ".join(bare[:named].removeprefix("The ").split()).strip('"“”')
        if canonical_key(name) != canonical_key(topic.label):
            yield topic.label, ALIAS, name
        topic = topic.called(bare[:named])
    yield from read_clauses(chunks, topic)
    verb = (
        next((chunk.start for chunk in chunks if chunk.kind == "vg"), 0) if named else 0
    )
    for start, aside in asides:
        before = [
            chunk.np.name or chunk.np.text
            for chunk in chunks
            if chunk.np is not None and chunk.end <= start
        ]
        subject = (
            topic.label if start < verb or not before else topic.resolved(before[-1])
        )
        if subject and (before or start < verb):
            yield from facts_in(aside, subject, topic.person or subject != topic.label)

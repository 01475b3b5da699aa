"""Extracts facts from encyclopaedic and news English without a model, by rules over prepositions, verbs and the like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ras_agent.contracts.records import Extraction, Failure, Passage, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import JOINTS, is_name
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.titles import bare_title
from ras_agent.text.values import figures_in
from ras_agent.text.words import word_set
from ras_agent.tools.offline.english import CLOSED, PARTICIPLES, VERBS, EnglishOnly
from ras_agent.tools.offline.extractor.clauses import (
    Fact,
    finite_verbs,
    read_clauses,
    subject_of,
)
from ras_agent.tools.offline.extractor.lines import Line, lines_of
from ras_agent.tools.offline.extractor.things import is_part, may_be_thing
from ras_agent.tools.offline.extractor.topics import (
    ALIAS,
    LINKED,
    ROLES,
    Topic,
    defined_name,
    facts_in,
    topic_of,
    without_asides,
)
from ras_agent.tools.offline.extractor.words import NO_TITLES, Chunk, chunked
from ras_agent.tools.offline.forms import is_heading
from ras_agent.tools.offline.reading import MOST_READ

_OPENING = 3  # sentences, for example two headings and the first sentence with a verb
_LONGEST_HEADING = 80
# the number of chunks from which a line without a known verb may be a sentence
_SENTENCE = 4
_POINTING = word_set("this that these those my our your his her its their")
_SHARES = word_set("half double")
_PRONOUNS = word_set(
    "he she it they him her them his its their this that these those i we you"
)


class OfflineExtractor:
    """Extracts triples by rules of English; knows no entities, relations or questions in advance."""

    name = "offline"

    def __init__(self, language: str = "") -> None:
        """Take the language of the texts, if it is known; "" otherwise."""
        self._english = EnglishOnly("extractor", language)

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the facts of each sentence, each with the sentence's span.

        A text without words that the extractor can read has no facts. A text that seems to be in another language
        is a Failure.
        """
        if refusal := self._english.refusal(subquery):
            return Extraction((), (Failure("extractor", refusal),))
        english, failures = self._english.readable(passages)
        titles = _title_pattern(english)
        triples: list[Triple] = []
        for passage in english:
            facts = list(_triples(passage, titles))
            triples += facts
            triples += _links_of_title(passage, facts)
        return Extraction(tuple(triples), failures)


def _links_of_title(passage: Passage, facts: Sequence[Triple]) -> Iterator[Triple]:
    """Yield links from a title that is in no fact of its passage to the names that the facts are about.

    Otherwise a question that names the title would not find the passage in the graph.
    """
    title = passage.own_title
    if not title or is_part(title):
        return
    label = topic_of(title, passage.text).label
    ends = {end for fact in facts for end in (fact.subject, fact.object)}
    if label in ends:
        return
    for fact in facts:
        if is_name(fact.subject) and fact.subject in ends:
            ends.remove(fact.subject)
            yield Triple(label, LINKED, fact.subject, fact.sources)


def _title_pattern(passages: Sequence[Passage]) -> re.Pattern[str]:
    """Return a pattern of the first passages' titles, longest first, since a title counts as a name in any case."""
    titles = {bare_title(passage.own_title) for passage in passages[:MOST_READ]}
    known: list[str] = []
    for title in sorted(titles, key=lambda one: (-len(one), one)):
        if len(title) > 3 and not title.islower():
            known.append(re.escape(title))
    if not known:
        return NO_TITLES
    return re.compile(rf"(?<!\w)(?:{'|'.join(known)})(?!\w)")


def _triples(passage: Passage, titles: re.Pattern[str]) -> Iterator[Triple]:
    spans = sentence_spans(passage.text)
    name = passage.own_title
    if is_part(name):
        name = ""
    if not name and passage.title:
        name = _first_subject(
            [passage.text[start:end] for start, end in spans[:_OPENING]], titles
        )
    topic = topic_of(name, passage.text)
    above = topic.label
    for number, (start, end) in enumerate(spans):
        source = (Source(passage.id, start, end, extractor="offline"),)
        facts: list[Fact] = []
        for line in lines_of(passage.text[start:end]):
            if not topic.label and is_heading(line) and _may_head(line.text):
                above = line.text
            facts += _facts(line, topic, above, titles, first=number == 0)
        for subject, predicate, object_ in dict.fromkeys(facts):
            if not topic.label and subject.lower() in _PRONOUNS:
                continue  # it is unknown what the pronoun stands for
            is_named = subject in (topic.label, above) or may_be_thing(subject)
            if not is_named or not may_be_thing(object_):
                continue
            yield Triple(subject, predicate, object_, source)
            if subject == topic.label and predicate == ALIAS:
                topic = topic.called(object_)


def _first_subject(sentences: Sequence[str], titles: re.Pattern[str]) -> str:
    """Return the subject of the first sentence, or a name in a heading above it; "" if there is neither.

    In a passage without a title of its own, "it" stands for that subject later on.
    """
    lines: list[Line] = []
    for sentence in sentences:
        lines += lines_of(sentence)
    for line in lines[:_OPENING]:
        bare, _ = without_asides(line.text)
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
        heading = " ".join(bare.split()).replace(" ,", ",")
        words = heading.lower().split() or [""]
        # "14 Wharf Road", "Structural Engineer"
        is_sender = words[-1] in ROLES or (words[0].isdigit() and words[-1].isalpha())
        if verbs or is_sender or len(heading) > _LONGEST_HEADING:
            return ""
        if not line.label and _is_title(heading):
            return heading
    return ""


def _may_head(heading: str) -> bool:
    """Return whether a heading may name the subject of the lines below it: not "Operated by Northern Bird"."""
    first = heading.split()[0].lower()
    is_participle = first in PARTICIPLES or first.endswith("ed")
    return may_be_thing(heading) and not is_participle


def _is_title(heading: str) -> bool:
    """Return whether a heading is the name of something: not "FOR RELEASE" or "Rain." or "By Ann Lee on 5 January"."""
    first, _, rest = heading.lower().partition(" ")
    is_shouted = rest != "" and heading.isupper()
    if heading.endswith(".") or is_shouted:
        return False
    if first in JOINTS and first != "the":
        return False
    figures = figures_in(heading)
    is_dated = any(figure.is_date for figure in figures)
    return is_name(heading) and not is_dated and _may_head(heading)


def _facts(
    line: Line, topic: Topic, above: str, titles: re.Pattern[str], first: bool
) -> Iterator[Fact]:
    """Yield the facts in a line.

    Args:
        above: the topic or, without one, the heading of the form to which a label belongs.
    """
    sentence = line.text
    if line.label and topic.label.startswith(line.label):
        sentence = f"{line.label}: {sentence}"
    bare, asides = without_asides(sentence)
    named = defined_name(bare, topic) if first else 0
    chunks = chunked(bare, titles, named)
    if named:
        name = " ".join(bare[:named].removeprefix("The ").split()).strip('"“”')
        if canonical_key(name) != canonical_key(topic.label):
            yield topic.label, ALIAS, name
        topic = topic.called(bare[:named])
    verbs = [chunk.start for chunk in chunks if chunk.kind == "vg"]
    is_order = _is_order(chunks, topic)
    if not is_order and (verbs or _is_sentence(line, chunks, topic)):
        yield from read_clauses(chunks, topic)
    elif line.label and above and may_be_thing(line.label):
        if not above.startswith(f"{line.label}:"):  # a title of two parts
            yield from _labelled(line.label, chunks, above)
    elif topic.label and not line.label:
        yield from _mentioned(chunks, topic)
    verb = verbs[0] if verbs and named else 0
    for start, aside in asides:
        before = _named_before(start, chunks)
        subject = topic.resolved(before)
        if start < verb:
            subject = topic.label
        if subject:
            is_person = topic.person or subject != topic.label
            yield from facts_in(aside, subject, is_person)


def _named_before(place: int, chunks: Sequence[Chunk]) -> str:
    """Return the last name or noun phrase before a place in a sentence, or ""."""
    named = ""
    for chunk in chunks:
        if chunk.np is not None and chunk.end <= place:
            named = chunk.np.name or chunk.np.text
    return named


def _is_sentence(line: Line, chunks: Sequence[Chunk], topic: Topic) -> bool:
    """Return whether a line without a known verb is a statement: not a label, nor an instruction as in a recipe ("Mix
    flour.")."""
    words = line.text.split()
    is_short = len(chunks) < _SENTENCE or len(words) < 2
    if line.label or is_short or not line.text.endswith("."):
        return False
    first = words[0].lower()
    if first in CLOSED or first in topic.words:
        return True
    return first not in VERBS and not words[1].islower()


def _is_order(chunks: Sequence[Chunk], topic: Topic) -> bool:
    """Return whether a line tells its reader to do something: "Tell your doctor if ...", "Open Settings"."""
    first = chunks[0].np if chunks else None
    if first is None or first.opener or first.owner or first.tag not in "NJE":
        return False
    verb = first.text.split()[0].lower()
    if first.words > 1:
        has_verb = any(chunk.kind == "vg" for chunk in chunks)
        return first.name != first.text and verb in VERBS and not has_verb
    if len(chunks) > 1 and chunks[1].kind in "sr":
        return verb in VERBS  # "Explain why ...", "Check that ..."
    second = chunks[1].np if len(chunks) > 1 else None
    is_followed = second is not None and second.opener != ""
    is_verb = verb not in _SHARES and not topic.same(first.text)
    return is_followed and is_verb


def _mentioned(chunks: Sequence[Chunk], topic: Topic) -> Iterator[Fact]:
    """Yield links from the topic to the names in a line without a verb, as in a list."""
    for chunk in chunks[1:]:
        phrase = chunk.np
        if phrase is None or phrase.tag != "E" or phrase.name != phrase.text:
            continue
        if not topic.same(phrase.name):
            yield topic.label, LINKED, phrase.name


def _labelled(label: str, chunks: Sequence[Chunk], subject: str) -> Iterator[Fact]:
    """Yield the names, dates and figures after a label as facts about the subject: "Captain: Jon Reed"."""
    for chunk in chunks:
        phrase = chunk.np
        if phrase is None:
            continue
        if phrase.name:
            yield subject, label, phrase.name
        elif phrase.tag in "DF":
            yield subject, label, phrase.text

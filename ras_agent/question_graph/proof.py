"""Finds the proof of an answer: the cited sentences that lead from a name in the question to the answer, in
order.

Two sentences can follow each other if both contain the same name. The last sentence contains the answer. A word
for a class ("river", "city", "company") is not a name, so two sentences about two rivers are not a proof. If no
chain of sentences leads to the answer there is no proof, and the citations are evidence without an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ras_agent.contracts.records import Citation, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import is_name, name_spans, names_in

_MOST = 12  # citations that are searched for a chain
_TRIED = 20_000  # steps of the search; names that occur in all of twelve sentences allow millions of chains
_UNSTATED = frozenset({"", "yes", "no", "true", "false"})
# a noun after or before these words only names the kind of a thing: "Which river", "the city where", "an inventor of"
_KIND_BEFORE = r"\b(?:which|what|whose)\s+(?:\w+\s+)?"
_KIND_AFTER = r"\s+(?:of|where|who|whom|whose|which|that|in which|on which)\b"

# words before a name inside a longer name, if the longer name only describes it
_BEHIND = re.compile(r"(?:\b(?:of|in|at|the|for)|\d)\s+$")


@dataclass(frozen=True, slots=True)
class ProofStep:
    """Holds a cited sentence of a proof, which leads from the name `start` to the name `end`.

    The start of the first step is a name in the question. The end of the last step is the answer, or a name in
    it.
    """

    start: str
    end: str
    citation: int
    """the number of the citation"""
    facts: tuple[str, ...] = ()
    """ids of the facts read in the sentence that contain both names"""


@dataclass(frozen=True, slots=True)
class _Sentence:
    """Holds a citation with the names in it (labels by key), and its facts with the keys of their subjects and
    objects.
    """

    number: int
    names: Mapping[str, str]
    facts: Mapping[str, tuple[str, str]]


def proof_of(
    question: str,
    answer: str,
    citations: Iterable[Citation],
    facts: Mapping[str, Triple],
) -> tuple[ProofStep, ...]:
    """Return the sentences that lead from a name of the question to the answer; () if no chain of sentences
    does.

    There is no chain to yes or no, nor to an answer that the question names, because such an answer is chosen,
    not found. A proof contains every name of the question that occurs in any citation; without one of them it
    would answer another question. Of several chains, the one with most sentences is returned, and of equally
    long ones the first in the order of the citations.

    The names of a sentence are those in it, its passage's title, and the subjects and objects of the facts that
    were read in it, so that "He was born in Ulm" has the name of the person. `facts` are those of the
    question's graph, by id.
    """
    answer_key = canonical_key(answer)
    asked_key = canonical_key(question)
    if answer_key in _UNSTATED or f" {answer_key} " in f" {asked_key} ":
        return ()
    usable = []
    for citation in citations:
        if citation.quote and citation.supported is not False:
            usable.append(citation)
    cited = usable[:_MOST]
    read = {}
    for citation in cited:
        facts_read = _facts_in(citation, facts)
        read[citation.number] = list(facts_read)
    known = _known_names(question, cited, read)
    asked = set()
    for key, label in known.items():
        if _names_in_question(label, question):
            asked.add(key)
    sentences = []
    wanted = {}
    supported = {}
    all_supported: set[str] = set()
    for citation in cited:
        number = citation.number
        sentence = _sentence(citation, read[number], known)
        sentences.append(sentence)
        wanted[number] = _answer_in(citation, answer, known, asked)
        supported[number] = asked.intersection(sentence.names)
        all_supported |= supported[number]
    best: tuple[ProofStep, ...] = ()
    for way in _ways(sentences, asked, wanted):
        bears: set[str] = set()
        for step in way:
            bears |= supported[step.citation]
        if bears == all_supported and _rank(way) > _rank(best):
            best = way
    return best


def _rank(way: tuple[ProofStep, ...]) -> tuple[int, list[int]]:
    """Return the key by which chains are compared: more sentences first, then the order of the citations."""
    numbers = [-step.citation for step in way]
    return len(way), numbers


def _known_names(
    question: str, cited: Sequence[Citation], read: Mapping[int, Sequence[Triple]]
) -> dict[str, str]:
    """Return the names in the question, titles, facts and quotes, as labels by key. If a key has several
    labels, the first is kept.

    `read` has the facts that were read in each citation, by its number.
    """
    labels = names_in(question)
    ends = []
    quoted = []
    for citation in cited:
        labels.append(citation.bare_title)
        quoted += names_in(citation.quote)
        for fact in read[citation.number]:
            ends += [fact.subject, fact.object]
    known: dict[str, str] = {}
    for label in reversed([*labels, *ends, *quoted]):
        if is_name(label):
            known[canonical_key(label)] = label
    return known


def _ways(
    sentences: Sequence[_Sentence],
    asked: set[str],
    wanted: Mapping[int, tuple[str, str]],
) -> Iterator[tuple[ProofStep, ...]]:
    """Yield the chains from a name of the question to the answer. A chain uses each sentence and each name
    once.

    `wanted` has key and label of the answer for each sentence; both are "" for a sentence without the answer.
    """
    left = _TRIED

    def further(
        key: str, label: str, way: tuple[ProofStep, ...], seen: frozenset[str]
    ) -> Iterator[tuple[ProofStep, ...]]:
        nonlocal left
        left -= 1
        used = {step.citation for step in way}
        for one in sentences:
            if left < 0:
                return
            if one.number in used or key not in one.names:
                continue
            answer_key, answer = wanted[one.number]
            if answer_key and answer_key != key:
                facts = _between(one, key, answer_key)
                step = ProofStep(label, answer, one.number, facts)
                yield (*way, step)
            for name, text in one.names.items():
                if name not in seen and name != answer_key:
                    facts = _between(one, key, name)
                    step = ProofStep(label, text, one.number, facts)
                    yield from further(name, text, (*way, step), seen | {name})

    for one in sentences:
        for key in one.names:
            if key in asked:
                yield from further(key, one.names[key], (), frozenset({key}))


def _between(sentence: _Sentence, start: str, end: str) -> tuple[str, ...]:
    """Return the ids of a sentence's facts that connect both names. "river Dorve" counts as "Dorve"."""
    first = f" {start} "
    last = f" {end} "
    between = []
    for name, sides in sentence.facts.items():
        subject, target = (f" {side} " for side in sides)
        forwards = first in subject and last in target
        backwards = last in subject and first in target
        if forwards or backwards:
            between.append(name)
    return tuple(between)


def _sentence(
    citation: Citation, facts: Iterable[Triple], known: Mapping[str, str]
) -> _Sentence:
    title = citation.bare_title
    quote_spans = name_spans(citation.quote)
    title_spans = name_spans(title)
    names = {}
    for key, label in known.items():
        is_quoted = _holds(citation.quote, label, quote_spans)
        if is_quoted or _holds(title, label, title_spans):
            names[key] = label
    sides = {}
    further = [canonical_key(title)]
    for fact in facts:
        subject, _, target = fact.key
        sides[fact.id] = (subject, target)
        further += [subject, target]
    for key in further:
        if key in known:
            names.setdefault(key, known[key])
    return _Sentence(citation.number, names, sides)


def _holds(text: str, label: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a text contains a name by itself, not as part of a longer name. `spans` are the names of
    the text.

    "History of Ulm" and "2018 Ulm" contain "Ulm", "Ulm Minster" does not. A single word must have the case of
    the name, so that a page called "River" is not found in every text about rivers.
    """
    bare = re.sub(r"^(?:the|a|an)\s+", "", label, flags=re.IGNORECASE)
    flags = re.NOFLAG
    if " " in bare:
        flags = re.IGNORECASE
    mention = rf"(?<!\w){re.escape(bare)}(?!\w)"
    for match in re.finditer(mention, text, flags):
        place = match.span()
        if not any(_is_part(place, span, text) for span in spans):
            return True
    return False


def _is_part(part: tuple[int, int], span: tuple[int, int], text: str) -> bool:
    """Return whether a name is only part of the longer name at `span`. It is not if it follows a word such as
    "of" there.
    """
    start, end = part
    first, last = span
    if first < end < last:
        return True
    return first < start < last and not _BEHIND.search(text[first:start])


def _names_in_question(label: str, question: str) -> bool:
    """Return whether the question names a thing: by its name, or as "the telephone", but not as "the river that".

    >>> _names_in_question("Telephone", "Who invented the telephone?"), _names_in_question("City", "Which city is old?")
    (True, False)
    >>> _names_in_question("River", "Who lives at the river that passes Ulm?")
    False
    """
    if _holds(question, label, name_spans(question)):
        return True
    word = rf"(?<!\w){re.escape(label)}(?!\w)"
    if not re.search(word, question, re.IGNORECASE):
        return False
    kind = rf"{_KIND_BEFORE}{word}|{word}{_KIND_AFTER}"
    return not re.search(kind, question, re.IGNORECASE)


def _answer_in(
    citation: Citation, answer: str, known: Mapping[str, str], asked: set[str]
) -> tuple[str, str]:
    """Return key and label of the answer in a cited sentence, or of a name in the answer; ("", "") if the
    sentence has neither.

    If the answer is the title of a passage, every sentence of the passage counts as containing it.
    """
    key = canonical_key(answer)
    quoted = f" {canonical_key(citation.quote)} "
    if f" {key} " in quoted or key == canonical_key(citation.bare_title):
        return key, answer
    spans = name_spans(citation.quote)
    for name in names_in(answer):
        key = canonical_key(name)
        if key not in asked and _holds(citation.quote, name, spans):
            return key, name
    return "", ""


def _facts_in(citation: Citation, facts: Mapping[str, Triple]) -> Iterator[Triple]:
    """Yield the facts of a citation that were read in its sentence. A fact without a source counts as read there."""
    place = Source(citation.passage_id, citation.start, citation.end)
    for name in citation.triple_ids:
        fact = facts.get(name)
        if fact and (not fact.sources or fact.was_read_in(place)):
            yield fact

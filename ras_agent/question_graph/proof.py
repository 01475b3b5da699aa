"""The proof of an answer: the cited sentences that lead from a name in the question to the answer, in order.

Sentences follow each other where both hold one name. A class word ("river", "city", "company") is no name, so that two
sentences about two rivers are no proof. The last sentence holds the answer. Where there is no such way there is no
proof, and the citations are evidence without an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ras_agent.records import Citation, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import is_name, name_spans, names_in

_MOST = 12  # citations among which a way is looked for
_TRIED = 20_000  # steps of the search; names that are in all of twelve sentences allow millions of ways
_UNSTATED = frozenset({"", "yes", "no", "true", "false"})
# a noun that stands between these only says of what kind a thing is: "Which river", "the city where", "an inventor of"
_KIND_BEFORE = r"\b(?:which|what|whose)\s+(?:\w+\s+)?"
_KIND_AFTER = r"\s+(?:of|where|who|whom|whose|which|that|in which|on which)\b"

# in front of a name inside a longer one that tells of it
_BEHIND = re.compile(r"(?:\b(?:of|in|at|the|for)|\d)\s+$")


@dataclass(frozen=True, slots=True)
class ProofStep:
    """A cited sentence of a proof: it leads from the name `start` to the name `end`.

    citation: the sentence's number. facts: ids of the facts read in it that have both names. The first start is a name
    of the question, the last end the answer, or a name that the answer has.
    """

    start: str
    end: str
    citation: int
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A citation, the names that it bears, by their keys, and its facts with the keys of their ends."""

    number: int
    names: Mapping[str, str]
    facts: Mapping[str, tuple[str, str]]


def proof_of(
    question: str,
    answer: str,
    citations: Iterable[Citation],
    facts: Mapping[str, Triple],
) -> tuple[ProofStep, ...]:
    """Return the sentences from a name of the question to the answer; () where there is no way.

    There is no way to yes and no, nor to an answer that the question names, which is chosen and not found.
    The proof bears every name of the question that a citation bears: without one of them it would answer another
    question. facts: those of the question's graph, by id. Of several ways the one over most sentences is returned, then
    the one in the order of the citations. A sentence bears the names that it holds, its passage's title, and the ends
    of the facts that were read in it, so that "He was born in Ulm" bears the name of the person.
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
    borne = {}
    all_borne: set[str] = set()
    for citation in cited:
        number = citation.number
        sentence = _sentence(citation, read[number], known)
        sentences.append(sentence)
        wanted[number] = _answer_in(citation, answer, known, asked)
        borne[number] = asked.intersection(sentence.names)
        all_borne |= borne[number]
    best: tuple[ProofStep, ...] = ()
    for way in _ways(sentences, asked, wanted):
        bears: set[str] = set()
        for step in way:
            bears |= borne[step.citation]
        if bears == all_borne and _rank(way) > _rank(best):
            best = way
    return best


def _rank(way: tuple[ProofStep, ...]) -> tuple[int, list[int]]:
    """Return the key by which ways compare: more sentences first, then the order of the citations."""
    numbers = [-step.citation for step in way]
    return len(way), numbers


def _known_names(
    question: str, cited: Sequence[Citation], read: Mapping[int, Sequence[Triple]]
) -> dict[str, str]:
    """Return the names of the question, the titles, the facts and the quotes: each label by its key.

    read: the facts that were read in each citation, by its number. A key has its first label.
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
    """Yield ways from a name that is asked about to the answer, each sentence and each name once.

    wanted: key and label of the answer in each sentence; blank where it does not hold one.
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
    """Return the facts of a sentence that have both names; "river Dorve" has "Dorve"."""
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
    """Return whether a text holds a name that is no part of a longer one. spans: of the names of the text.

    "History of Ulm" and "2018 Ulm" hold "Ulm", "Ulm Minster" does not. A single word has to be written as in the name,
    so that a page called "River" is not in every text of rivers.
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
    """Return whether a name is a part of the longer name at `span`, and not described behind it."""
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
    """Return key and label of the answer in a cited sentence, or of a name of the answer; blank where it holds neither.

    A sentence of a passage about the answer, by its title, holds it.
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
    """Yield the facts of a citation that were read in its sentence; one without a source counts as read there."""
    place = Source(citation.passage_id, citation.start, citation.end)
    for name in citation.triple_ids:
        fact = facts.get(name)
        if fact and (not fact.sources or fact.was_read_in(place)):
            yield fact

"""The proof of an answer: the cited sentences that lead from a name in the question to the answer, in order.

Sentences follow each other where both hold one name. A class word ("river", "city", "company") is no name, so that two
sentences about two rivers are no proof. The last sentence holds the answer. Where there is no such way there is no
proof, and the citations are evidence without an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ras_agent.records import Citation, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import is_name, name_spans, names_in
from ras_agent.text.titles import bare_title, file_title

_MOST = 12  # citations among which a way is looked for
_TRIED = 20_000  # steps of the search; names that are in all of twelve sentences allow millions of ways
_UNSTATED = frozenset({"", "yes", "no", "true", "false"})
# a noun that stands between these only says of what kind a thing is: "Which river", "the city where", "an inventor of"
_KIND_BEFORE = r"\b(?:which|what|whose)\s+(?:\w+\s+)?"
_KIND_AFTER = r"\s+(?:of|where|who|whom|whose|which|that|in which|on which)\b"

_BEHIND = re.compile(r"(?:\b(?:of|in|at|the|for)|\d)\s+$")  # in front of a name inside a longer one that tells of it


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
    question: str, answer: str, citations: Iterable[Citation], facts: Mapping[str, Triple]
) -> tuple[ProofStep, ...]:
    """Return the sentences from a name of the question to the answer; () where there is no way.

    There is none to yes and no, nor to an answer that the question names, which is chosen and not found.
    It bears every name of the question that a citation bears: what leaves one out would answer another question.
    facts: those of the question's graph, by id. Of several ways the one over most sentences is returned, then the one
    in the order of the citations. A sentence bears the names that it holds, its passage's title, and the ends of the
    facts that were read in it, so that "He was born in Ulm" bears whom it is about.
    """
    if canonical_key(answer) in _UNSTATED or f" {canonical_key(answer)} " in f" {canonical_key(question)} ":
        return ()
    cited = [one for one in citations if one.quote and one.supported is not False][:_MOST]
    own = {citation.number: list(_facts_in(citation, facts)) for citation in cited}
    titles = {citation.number: _title(citation) for citation in cited}
    ends = [end for found in own.values() for fact in found for end in (fact.subject, fact.object)]
    labels = [
        *names_in(question),
        *titles.values(),
        *filter(is_name, ends),
    ]
    labels += [name for citation in cited for name in names_in(citation.quote)]
    known = {canonical_key(label): label for label in reversed(labels) if is_name(label)}
    sentences = [_sentence(one, titles[one.number], own[one.number], known) for one in cited]
    asked = {key for key, label in known.items() if _names_in_question(label, question)}
    wanted = {one.number: _answer_in(one, answer, known, asked) for one in cited}
    borne = {one.number: asked.intersection(one.names) for one in sentences}
    told = frozenset().union(*borne.values())
    ways = (
        way
        for way in _ways(sentences, asked, wanted)
        if told == frozenset().union(*(borne[one.citation] for one in way))
    )
    return max(ways, key=lambda way: (len(way), [-step.citation for step in way]), default=())


def _ways(
    sentences: Sequence[_Sentence], asked: set[str], wanted: Mapping[int, tuple[str, str]]
) -> Iterator[tuple[ProofStep, ...]]:
    """Yield ways from a name that is asked about to the answer, each sentence and each name once.

    wanted: key and label of the answer in each sentence; blank where it holds none.
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
                yield (*way, ProofStep(label, answer, one.number, _between(one, key, answer_key)))
            for name, text in one.names.items():
                if name not in seen and name != answer_key:
                    step = ProofStep(
                        label,
                        text,
                        one.number,
                        _between(one, key, name),
                    )
                    yield from further(
                        name,
                        text,
                        (*way, step),
                        seen | {name},
                    )

    for one in sentences:
        for key in one.names:
            if key in asked:
                yield from further(
                    key,
                    one.names[key],
                    (),
                    frozenset({key}),
                )


def _between(sentence: _Sentence, start: str, end: str) -> tuple[str, ...]:
    """Return the facts of a sentence that have both names; "river Dorve" has "Dorve"."""
    held = {name: [f" {side} " for side in sides] for name, sides in sentence.facts.items()}
    return tuple(
        name
        for name, (subject, target) in held.items()
        if (f" {start} " in subject and f" {end} " in target) or (f" {end} " in subject and f" {start} " in target)
    )


def _sentence(citation: Citation, title: str, facts: Iterable[Triple], known: Mapping[str, str]) -> _Sentence:
    sides = {fact.id: (canonical_key(fact.subject), canonical_key(fact.object)) for fact in facts}
    spans = name_spans(citation.quote)
    titled = name_spans(title)
    names = {
        key: label
        for key, label in known.items()
        if _holds(citation.quote, label, spans) or _holds(title, label, titled)
    }
    for key in (canonical_key(title), *chain.from_iterable(sides.values())):
        if key in known:
            names.setdefault(key, known[key])
    return _Sentence(citation.number, names, sides)


def _holds(text: str, label: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a text holds a name that is no part of a longer one. spans: of the names of the text.

    "History of Ulm" and "2018 Ulm" hold "Ulm", "Ulm Minster" does not. A single word has to be written as in the name,
    so that a page called "River" is not in every text of rivers.
    """
    bare = re.sub(
        r"^(?:the|a|an)\s+",
        "",
        label,
        flags=re.IGNORECASE,
    )
    ignore = re.IGNORECASE if " " in bare else re.NOFLAG
    for match in re.finditer(rf"(?<!\w){re.escape(bare)}(?!\w)", text, ignore):
        start, end = match.span()
        if not any(
            first < end < last or (first < start < last and not _BEHIND.search(text[first:start]))
            for first, last in spans
        ):
            return True
    return False


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
    kind = re.compile(rf"{_KIND_BEFORE}{word}|{word}{_KIND_AFTER}", re.IGNORECASE)
    return re.search(word, question, re.IGNORECASE) is not None and kind.search(question) is None


def _answer_in(citation: Citation, answer: str, known: Mapping[str, str], asked: set[str]) -> tuple[str, str]:
    """Return key and label of the answer in a cited sentence, or of a name of the answer; blank where it holds none.

    A sentence of a passage about the answer, by its title, holds it.
    """
    key = canonical_key(answer)
    said = f" {canonical_key(citation.quote)} "
    if f" {key} " in said or key == canonical_key(_title(citation)):
        return key, answer
    spans = name_spans(citation.quote)
    named = [name for name in names_in(answer) if canonical_key(name) not in asked]
    held = [name for name in named if _holds(citation.quote, name, spans)]
    if held:
        return (canonical_key(held[0]), held[0])
    return ("", "")


def _facts_in(citation: Citation, facts: Mapping[str, Triple]) -> Iterator[Triple]:
    """Yield the facts of a citation that were read in its sentence; one without a source counts as read there."""
    place = Source(
        citation.passage_id,
        citation.start,
        citation.end,
    )
    for name in citation.triple_ids:
        fact = facts.get(name)
        if fact and (not fact.sources or fact.was_read_in(place)):
            yield fact


def _title(citation: Citation) -> str:
    """Return a passage's title without what tells namesakes apart; blank where it is but the name of a file."""
    named_by_file = citation.file and citation.title == file_title(citation.file)
    if named_by_file:
        return ""
    return bare_title(citation.title)

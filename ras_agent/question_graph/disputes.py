"""Finds documents that contradict an answer, because they give another value for the same thing in the same
words.

    "The director of the Aune Museum is Ada Brenn." and, in another document, "... is Tom Vell."   disagree
    "Ada Brenn was director from 2012 to 2018." and "Tom Vell has been director since 2018."       are about two times
    "Lotte Brandt was born in Dunmere." and "... in Dunmere, Norland."                             say the same
    "Pavel Orin played for Rovers." and "... for FC Dunmere."                                      may both be true
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ras_agent.contracts.records import (
    Answer,
    Citation,
    Claim,
    Dispute,
    OnConflict,
    Passage,
    Triple,
)
from ras_agent.question_graph.conflicts import frame_of, role_of, values_disagree
from ras_agent.question_graph.graph import QuestionGraph
from ras_agent.text.canonical import canonical_key
from ras_agent.text.overlap import holds
from ras_agent.text.same_text import are_copies, words_said
from ras_agent.text.values import figures_in, value_of

_HAS_ROLE = re.compile(r"(?:is|was) (?P<role>[a-z][\w -]*?) of")
_OF_ROLE = re.compile(r"(?:of|that|which) .+ (?:is|was)(?: in| at| on)?")
_ONCE = re.compile(
    r"(?:(?:is|was|were) )?(?:based|born|buried|died|headquartered|located|situated) (?:in|at)"
    r"|(?:was|were) (?:built|composed|designed|discovered|drawn|established|founded|invented|painted|sculpted|written) by"
)
_NOW = {"is", "are", "has", "have"}
_THEN = {"was", "were", "had"}
_SHORT = 8  # words; the other claim is put into an answer up to this length, and added as a sentence to a longer one


_Frame = tuple[str, str, str]
"""A fact without its value: canonical subject, predicate without auxiliary verbs, canonical object. The value's
place is blank."""

Functional = Callable[[str], bool | None]
"""Tells whether a subject has only one object for a predicate; None if that is not known."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Splits a fact into the value that it gives (`said`) and the frame to which it gives that value."""

    said: str
    frame: _Frame
    fact: Triple


def not_known(predicate: str) -> bool | None:
    """Return None for every predicate, because nothing is known about relations."""
    return None


def with_dispute(
    answer: Answer,
    graph: QuestionGraph,
    passages: Mapping[str, Passage],
    on_conflict: OnConflict = "both",
    functional: Functional = not_known,
) -> Answer:
    """Return the answer with a Dispute added if a document contradicts it; otherwise return it unchanged.

    The confidence is limited to the share of documents that agree with the answer; copies of one text count
    once.

    Args:
        answer: The answer, with its citations.
        graph: The question graph, whose facts may contradict the answer.
        passages: The passages of the run, by id.
        on_conflict: "both" states both claims; "newest" states the claim of the newest document, and which
            documents contradict it; "abstain" turns the answer into an abstention that lists both; "ignore"
            returns it unchanged.
        functional: Tells whether a relation has only one object for a subject. If not, names do not contradict
            each other. If this is unknown, grammar decides.
    """
    if answer.abstained or on_conflict == "ignore":
        return answer
    found = _disagreeing(answer, graph, passages, functional)
    if found is None:
        return answer
    own, other = found
    citations = list(answer.citations)
    for reading in other:
        if not any(reading.fact.id in one.triple_ids for one in citations):
            citation = _citation_of(reading.fact, len(citations) + 1, passages)
            citations.append(citation)
    claims = [_claim(readings, citations, passages) for readings in (own, other)]
    dispute = Dispute(tuple(claims))
    confidence = answer.confidence
    if confidence is not None:
        confidence = min(confidence, dispute.share)
    answer = replace(
        answer,
        citations=tuple(citations),
        confidence=confidence,
        disputes=(dispute,),
    )
    if holds(answer.text, claims[1].text) and on_conflict != "abstain":
        if on_conflict == "both" or len(answer.text.split()) > _SHORT:
            return answer
        answer = replace(answer, text=claims[0].text)
    return _worded(answer, claims, on_conflict)


def _worded(answer: Answer, claims: Sequence[Claim], on_conflict: OnConflict) -> Answer:
    own, other = claims
    if on_conflict == "abstain":
        text = f"The documents disagree: {_with_place(own)} or {_with_place(other)}."
        return replace(answer, text=text, abstained=True)
    if len(answer.text.split()) > _SHORT:
        says = f"{_place(other)} says otherwise: {other.text} [{other.citations[0]}]."
        return replace(answer, text=f"{answer.text} {says}")
    said = answer.text.rstrip(". ")
    if on_conflict == "newest" and own.date and other.date and own.date != other.date:
        if own.date > other.date:
            return replace(answer, text=f"{said}; {_place(other)} says {other.text}")
        return replace(answer, text=f"{other.text}; {_place(own)} says {said}")
    own = replace(own, text=said)
    return replace(answer, text=f"{_with_place(own)} or {_with_place(other)}")


def _with_place(claim: Claim) -> str:
    if not claim.documents:
        return f"{claim.text} [{claim.citations[0]}]"
    return f"{claim.text} ({_place(claim)})"


def _place(claim: Claim) -> str:
    """Return the name of a claim's first document, with its date."""
    if not claim.documents:
        return "Another document"
    if claim.date:
        return f"{claim.documents[0]}, {claim.date}"
    return claim.documents[0]


def _disagreeing(
    answer: Answer,
    graph: QuestionGraph,
    passages: Mapping[str, Passage],
    functional: Functional,
) -> tuple[list[_Reading], list[_Reading]] | None:
    """Return the facts that state the answer, and the facts of other documents that contradict it; None without
    such facts.
    """
    cited: set[str] = set()
    for citation in answer.citations:
        cited.update(citation.triple_ids)
    if not cited:
        return None
    by_frame: dict[_Frame, list[_Reading]] = {}
    for fact in graph.facts:
        for reading in _readings(fact):
            by_frame.setdefault(reading.frame, []).append(reading)
    for frame, same in by_frame.items():
        for reading in same:
            if reading.fact.id not in cited or not are_alike(reading.said, answer.text):
                continue
            rivals = [one for one in same if _disagree(reading, one, graph, passages)]
            if rivals and value_of(reading.said) is None:
                is_functional = None
                if frame[0]:
                    is_functional = functional(reading.fact.predicate)
                if is_functional is None:
                    rivals = _by_grammar(reading, rivals, by_frame, passages)
                elif not is_functional:
                    rivals = []
            if rivals:
                said = rivals[0].said
                own = [one for one in same if are_alike(one.said, reading.said)]
                return own, [one for one in rivals if are_alike(one.said, said)]
    return None


def _readings(fact: Triple) -> Iterator[_Reading]:
    """Yield the reading of a fact whose value is the object and, if the subject has a role, the one whose value
    is the subject.
    """
    subject, predicate, object_ = fact.key
    frame = frame_of(predicate)
    yield _Reading(fact.object, (subject, frame, ""), fact)
    if _HAS_ROLE.fullmatch(fact.predicate):
        yield _Reading(fact.subject, ("", frame, object_), fact)


def _disagree(
    reading: _Reading,
    other: _Reading,
    graph: QuestionGraph,
    passages: Mapping[str, Passage],
) -> bool:
    """Tell whether two facts of the same frame cannot both be true, if a thing has only one such value."""
    fact = reading.fact
    rival = other.fact
    if fact.passage_ids & rival.passage_ids or are_alike(reading.said, other.said):
        return False
    sentences = [_sentence(one, passages) for one in (fact, rival)]
    if not all(sentences) or _tell_of_two_times(reading, other, sentences):
        return False
    if value_of(reading.said) is not None or value_of(other.said) is not None:
        is_disputed = {fact.id, rival.id} <= graph.disputed
        return is_disputed and values_disagree(reading.said, other.said)
    return not _is_linked(reading.said, other.said, graph.facts)


def _by_grammar(
    reading: _Reading,
    rivals: Sequence[_Reading],
    by_frame: Mapping[_Frame, Sequence[_Reading]],
    passages: Mapping[str, Passage],
) -> list[_Reading]:
    """Return the readings that contradict `reading`, if the grammar of the sentences shows that a thing has
    only one such value.
    """
    if not _has_one_value(reading.frame, by_frame):
        return []
    once = []
    for one in (reading, *rivals):
        if _is_once(one.fact, _sentence(one.fact, passages)):
            once.append(one)
    return once[1:] if reading in once else []


def _is_once(fact: Triple, sentence: str) -> bool:
    """Tell whether a thing has only one value of this kind, such as the place where it is based, who wrote it,
    "the director".
    """
    if _ONCE.fullmatch(fact.predicate):
        return True
    has_role = _HAS_ROLE.fullmatch(fact.predicate)
    if has_role:
        role = has_role["role"]
    elif _OF_ROLE.fullmatch(fact.predicate):
        role = fact.subject
    else:
        role = role_of(fact.predicate)
    if not role:
        return False
    definite = rf"(?i)(?:\bthe|['’]s)\s+(?:[\w-]+\s+)?{re.escape(role)}\b"
    return re.search(definite, sentence) is not None


def _has_one_value(
    frame: _Frame, by_frame: Mapping[_Frame, Sequence[_Reading]]
) -> bool:
    """Tell whether the predicate takes one value, because no passage gives any thing two values for it."""
    values: dict[tuple[str, _Frame], set[str]] = {}
    for other, readings in by_frame.items():
        if other[1] != frame[1] or bool(other[0]) != bool(frame[0]):
            continue
        for reading in readings:
            for name in reading.fact.passage_ids:
                said = canonical_key(reading.said)
                values.setdefault((name, other), set()).add(said)
    return all(len(of_thing) == 1 for of_thing in values.values())


def _tell_of_two_times(
    reading: _Reading, other: _Reading, sentences: Sequence[str]
) -> bool:
    """Tell whether two facts are about different times: one says "is" and the other "was", or both sentences have other
    dates."""
    words = [set(one.fact.predicate.split()) for one in (reading, other)]
    if words[0] & _NOW != words[1] & _NOW and words[0] & _THEN != words[1] & _THEN:
        return True
    times: list[set[str]] = []
    for one, sentence in zip((reading, other), sentences, strict=True):
        dates: set[str] = set()
        for figure in figures_in(sentence):
            text = sentence[figure.start : figure.end]
            if figure.is_date and not holds(one.said, text):
                dates.add(text)
        times.append(dates)
    return all(times) and times[0] != times[1]


def _is_linked(one: str, other: str, facts: Iterable[Triple]) -> bool:
    """Tell whether a fact connects the two things, as one may connect a town with its country."""
    ends = {canonical_key(one), canonical_key(other)}
    for fact in facts:
        subject, _, object_ = fact.key
        if {subject, object_} == ends:
            return True
    return False


def are_alike(one: str, other: str) -> bool:
    """Tell whether two texts name the same thing: one contains the other, or they end in the same word ("Mrs Moe")."""
    if holds(one, other) or holds(other, one):
        return True
    if value_of(one) is not None or value_of(other) is not None:
        return False
    last = canonical_key(one).split()[-1:]
    return last != [] and last == canonical_key(other).split()[-1:]


def _sentence(fact: Triple, passages: Mapping[str, Passage]) -> str:
    """Return the text in which a fact was first read; "" if its passages are not known."""
    for source in fact.sources:
        passage = passages.get(source.passage_id)
        if passage is not None:
            return passage.text[source.start : source.end]
    return ""


def _citation_of(
    fact: Triple, number: int, passages: Mapping[str, Passage]
) -> Citation:
    source = next(one for one in fact.sources if one.passage_id in passages)
    passage = passages[source.passage_id]
    return Citation(
        number,
        passage.id,
        passage.title,
        source.start,
        source.end,
        passage.text[source.start : source.end],
        (fact.id,),
        file=passage.file,
        page=passage.page,
        supported=True,
        headings=passage.headings,
    )


def _claim(
    readings: Sequence[_Reading],
    citations: Sequence[Citation],
    passages: Mapping[str, Passage],
) -> Claim:
    numbers: list[int] = []
    documents: dict[str, None] = {}
    dates: list[str] = []
    ids = {reading.fact.id for reading in readings}
    for citation in citations:
        if not ids.isdisjoint(citation.triple_ids):
            numbers.append(citation.number)
            passage = passages[citation.passage_id]
            name = passage.own_title or passage.file or passage.title
            if name:
                documents[name] = None
            dates.append(passage.date)
    return Claim(
        text=readings[0].said,
        citations=tuple(numbers),
        documents=tuple(documents),
        date=max(dates, default=""),
        independent=max(1, len(_documents(readings, passages))),
    )


def _documents(
    readings: Sequence[_Reading], passages: Mapping[str, Passage]
) -> list[Passage]:
    """Return the passages in which the facts were read, one for each independent document."""
    names = {name for one in readings for name in one.fact.passage_ids}
    return independent([passages[name] for name in sorted(names) if name in passages])


def independent(passages: Iterable[Passage]) -> list[Passage]:
    """Return one passage for each independent document. Documents that are copies of one text count as one."""
    counted: list[Passage] = []
    for passage in passages:
        if not any(_are_one(passage, one) for one in counted):
            counted.append(passage)
    return counted


def _are_one(passage: Passage, other: Passage) -> bool:
    if passage.document_id and passage.document_id == other.document_id:
        return True
    return are_copies(words_said(passage.text), words_said(other.text))

"""Collects the facts of passages: extracted from them, stated in their metadata, or imported from a file and matched to
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.titles import bare_title
from ras_agent.tools.index.chunk import piece_number
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.index.stated_facts import (
    STATED,
    PiecesByWord,
    mentions,
    sentence_of,
)
from ras_agent.tools.kg.formats.named import PlacedTriple

_SIZE = 1000  # of a passage, in characters

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PassageFacts:
    """Holds the triples of a passage, and the entities named in it, which need not occur in a triple.

    The sources of a triple say where in the passage it was read; its sources in other passages are ignored.
    """

    passage_id: str
    triples: tuple[Triple, ...] = ()
    entities: tuple[str, ...] = ()

    def places(self, triple: Triple) -> list[Source]:
        """Return the sources of a triple in this passage; if it has no source here, one at the passage's start."""
        own = [at for at in triple.sources if at.passage_id == self.passage_id]
        return own or [Source(self.passage_id)]


class UnstatedEdge(NamedTuple):
    """Holds an edge of an imported graph that no document states."""

    subject: str
    relation: str
    target: str
    similarity: float | None = None
    """The similarity of its two ends if the edge is an equivalence; None if it is a fact."""


def facts_in(passage: Passage, triples: tuple[Triple, ...]) -> PassageFacts:
    """Return the facts extracted from a passage. Its title counts as an entity, unless it is the name of a file."""
    title = bare_title(passage.own_title)
    if not canonical_key(title):
        return PassageFacts(passage.id, triples)
    return PassageFacts(passage.id, triples, (title,))


def knowledge_passages(
    triples: Iterable[PlacedTriple], label: str, size: int = _SIZE
) -> list[Passage]:
    """Write triples out as passages, each with facts about one subject, which is its title.

    Passages follow the order of the subjects. A subject whose facts do not fit into one passage gets several.
    Repeated facts with the same attributes occur once.

    Args:
        label: the id of the document to which the passages belong.
        size: the approximate maximum length of a passage, in characters.
    """
    by_head: dict[str, dict[tuple[str, ...], PlacedTriple]] = {}
    for triple in triples:
        head = canonical_key(triple.subject)
        relation = canonical_key(triple.predicate)
        tail = canonical_key(triple.object)
        key = (relation, tail, triple.attributes.text)
        own = by_head.setdefault(head, {})
        own.setdefault(key, triple)
    passages = []
    for head, own in by_head.items():
        name = f"{label}#{head}"
        for number, part in enumerate(_parts(list(own.values()), size), start=1):
            lines = []
            for fact in part:
                lines.append(sentence_of(fact.subject, fact.predicate, fact.object))
            text = "\n".join(lines)
            facts = list(map(_stated, part))
            if number > 1:
                name = f"{label}#{head}#{number}"
            passage = Passage(name, text, part[0].subject, label, {STATED: facts})
            passages.append(passage)
    return passages


def _stated(fact: PlacedTriple) -> list[Any]:
    """Return a fact in the form that a passage's metadata has."""
    parts: list[Any] = [
        fact.subject,
        fact.predicate,
        fact.object,
        fact.place,
    ]
    if fact.attributes:
        parts.append(dict(fact.attributes))
    return parts


def _parts(facts: Sequence[PlacedTriple], size: int) -> Iterable[list[PlacedTriple]]:
    part: list[PlacedTriple] = []
    length = 0
    for fact in facts:
        own = len(sentence_of(fact.subject, fact.predicate, fact.object)) + 1
        if part and length + own > size:
            yield part
            part = []
            length = 0
        part.append(fact)
        length += own
    if part:
        yield part


class ImportedFacts(NamedTuple):
    """Holds the facts that a file lists for a passage."""

    facts: PassageFacts
    where: str
    """The name of the file."""
    text: str | None = None
    """The passage's text, if the file has it."""


@dataclass(frozen=True, slots=True)
class MatchedFacts:
    """Holds the facts that were matched to passages, these passages by id, and reports of facts that could not be
    used.
    """

    facts: list[PassageFacts] = field(default_factory=list)
    passages: dict[str, Passage] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)


def match_facts(
    imported: Sequence[ImportedFacts], passages: Iterable[Passage]
) -> MatchedFacts:
    """Match the facts of a file to passages: to the passage with the listed id, else to the only one with that title.

    Facts of a document that was cut into pieces go to the piece that contains their place, else to the pieces that
    name both ends, else to the first piece. Facts are skipped if the file's text differs from the passage's, or if
    their place is outside the text. Facts that several files list for a passage count once. A passage without facts
    is not in the result.
    """
    wanted = {item.facts.passage_id for item in imported}
    by_id: dict[str, Passage] = {}
    by_document: dict[str, list[Passage]] = {}
    by_title: dict[str, list[Passage]] = {}
    for passage in passages:
        if passage.id in wanted:
            by_id[passage.id] = passage
        elif passage.document_id in wanted:
            by_document.setdefault(passage.document_id, []).append(passage)
        if passage.title in wanted:
            by_title.setdefault(passage.title, []).append(passage)
    matched = MatchedFacts()
    found: dict[str, PassageFacts] = {}
    for item in imported:
        name = item.facts.passage_id
        own = (
            [by_id[name]]
            if name in by_id
            else by_document.get(name) or by_title.get(name, [])
        )
        if len({passage.document_id or passage.id for passage in own}) == 1:
            own = sorted(own, key=piece_number)
        if reason := _reason(item, own):
            matched.skipped.append(Skipped(item.where, f"facts of {name!r}, {reason}"))
            continue
        outside: list[str] = []
        parts = (
            [(own[0], item.facts)] if len(own) == 1 else _of_pieces(item, own, outside)
        )
        for passage, facts in parts:
            triples = _within(facts.triples, facts.passage_id, passage, outside)
            if outside and not triples and not facts.entities:
                continue  # an empty record would replace the facts that are stored for the passage
            before = found.get(passage.id, PassageFacts(passage.id))
            found[passage.id] = PassageFacts(
                passage.id,
                _united(before.triples, triples),
                _united(before.entities, facts.entities),
            )
            matched.passages[passage.id] = passage
        if outside:
            reason = f"{len(outside)} of the facts of {name!r} have places outside its text: {outside[0]}"
            matched.skipped.append(Skipped(item.where, reason))
    matched.facts.extend(found.values())
    return matched


def _united(first: Iterable[_T], second: Iterable[_T]) -> tuple[_T, ...]:
    """Return the items of both, each as often as it occurs in the one that has more of it."""
    counts = Counter(first) | Counter(second)
    return tuple(counts.elements())


def _reason(item: ImportedFacts, own: Sequence[Passage]) -> str:
    """Return why passages cannot take the facts of a file; "" if they can, as one passage or the pieces of one
    document.
    """
    if not own:
        return "which is not a passage of the index"
    if len({passage.document_id or passage.id for passage in own}) > 1:
        return f"the title of {len(own)} passages of the index: give the id of one"
    if item.text is not None and _starts(item.text, own) is None:
        return "which has another text in the index"
    return ""


def _starts(text: str, pieces: Sequence[Passage]) -> list[int] | None:
    """Return where each piece begins in a text, or None if the text has words that no piece has, or lacks a piece."""
    if len(pieces) == 1:
        return [0] if text == pieces[0].text else None
    starts: list[int] = []
    for piece in pieces:
        starts.append(text.find(piece.text, starts[-1] + 1 if starts else 0))
        if starts[-1] < 0:
            return None
    ends = [
        0,
        *(start + len(piece.text) for start, piece in zip(starts, pieces, strict=True)),
    ]
    left_out = [
        text[end:start] for end, start in zip(ends, [*starts, len(text)], strict=True)
    ]
    return None if any(map(str.strip, left_out)) else starts


def _of_pieces(
    item: ImportedFacts, pieces: Sequence[Passage], outside: list[str]
) -> list[tuple[Passage, PassageFacts]]:
    """Return the facts of a document by the pieces that state them; add facts with impossible places to `outside`."""
    texts = [piece.text for piece in pieces]
    by_word = PiecesByWord(texts)
    starts = _starts(item.text, pieces) if item.text is not None else None
    triples: list[list[Triple]] = [[] for _ in pieces]
    for triple in item.facts.triples:
        places = item.facts.places(triple)
        if item.text is not None and any(
            not 0 <= at.start <= at.end <= len(item.text) for at in places
        ):
            outside.append(str(triple))
            continue
        placed: dict[int, Source] = {}
        for at in places:
            for number, begin in enumerate(starts or ()):
                end = begin + len(texts[number])
                if begin <= at.start < at.end <= end:
                    placed[number] = replace(
                        at,
                        passage_id=pieces[number].id,
                        start=at.start - begin,
                        end=at.end - begin,
                    )
        if not placed:
            fact = (triple.subject, triple.predicate, triple.object)
            for number in by_word.about(fact):
                placed[number] = replace(
                    places[0],
                    passage_id=pieces[number].id,
                    start=0,
                    end=len(texts[number]),
                )
        for number, source in placed.items():
            triples[number].append(replace(triple, sources=(source,)))
    entities: list[list[str]] = [[] for _ in pieces]
    for name in item.facts.entities:
        title = [
            number
            for number, piece in enumerate(pieces)
            if name in (piece.title, bare_title(piece.title))
        ]
        for number in (
            title
            or [number for number, text in enumerate(texts) if mentions(text, name)]
            or [0]
        ):
            entities[number].append(name)
    return [
        (piece, PassageFacts(piece.id, tuple(own), tuple(named)))
        for piece, own, named in zip(pieces, triples, entities, strict=True)
    ]


def _within(
    triples: Iterable[Triple], name: str, passage: Passage, outside: list[str]
) -> list[Triple]:
    """Return the facts whose places lie within `passage`, with its id as source; add descriptions of the rest to
    `outside`."""
    inside = []
    for triple in triples:
        places = [source for source in triple.sources if source.passage_id == name]
        if any(
            not 0 <= source.start <= source.end <= len(passage.text)
            for source in places
        ):
            outside.append(str(triple))
        else:
            inside.append(
                replace(
                    triple,
                    sources=tuple(
                        replace(source, passage_id=passage.id) for source in places
                    ),
                )
            )
    return inside

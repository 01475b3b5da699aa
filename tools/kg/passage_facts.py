"""Facts of passages: extracted from them, carried in their metadata, or imported from a file and matched to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from ras_agent.records import Passage, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.titles import bare_title
from ras_agent.tools.index.load import Skipped
from ras_agent.tools.kg.formats.triples import PlacedTriple

STATED = "facts"
"""The metadata key under which a passage lists its own facts, each [subject, predicate, object, place]."""
_SIZE = 1000  # characters of a passage

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PassageFacts:
    """Holds the triples of a passage, and entities named there that may be in none of them.

    A triple's sources say where in the passage it was read; sources in other passages do not count here.
    """

    passage_id: str
    triples: tuple[Triple, ...] = ()
    entities: tuple[str, ...] = ()

    def spans(self, triple: Triple) -> list[tuple[int, int]]:
        """Return the spans of the passage in which a triple was read; (0, 0) if it has none."""
        return [(at.start, at.end) for at in triple.sources if at.passage_id == self.passage_id] or [(0, 0)]


def facts_in(passage: Passage, triples: tuple[Triple, ...]) -> PassageFacts:
    """Return what was extracted from a passage; its title counts as an entity."""
    title = bare_title(passage.title)
    return PassageFacts(passage.id, triples, (title,) if canonical_key(title) else ())


def sentence_of(subject: str, predicate: str, object_: str) -> str:
    """Return a fact as a sentence."""
    return f"{subject} {predicate} {object_}."


def knowledge_passages(triples: Iterable[PlacedTriple], label: str, size: int = _SIZE) -> list[Passage]:
    """Turn triples into passages of about `size` characters at most, titled after the head of their facts.

    They come in the order of the heads and belong to the document `label`; a head with more facts than fit gets
    several. Repeated facts occur once.
    """
    by_head: dict[str, dict[tuple[str, str, str], PlacedTriple]] = {}
    for triple in triples:
        key = tuple(map(canonical_key, (triple.subject, triple.predicate, triple.object)))
        by_head.setdefault(key[0], {}).setdefault(key, triple)  # type: ignore[arg-type]  # three keys
    passages = []
    for head, own in by_head.items():
        for number, part in enumerate(_parts(list(own.values()), size), start=1):
            text = "\n".join(sentence_of(fact.subject, fact.predicate, fact.object) for fact in part)
            facts = [[fact.subject, fact.predicate, fact.object, fact.place] for fact in part]
            name = f"{label}#{head}" if number == 1 else f"{label}#{head}#{number}"
            passages.append(Passage(name, text, part[0].subject, label, {STATED: facts}))
    return passages


def stated_facts(passage: Passage) -> tuple[Triple, ...] | None:
    """Return the facts in a passage's metadata, each with the span of its sentence and, as extractor, its place.

    None for a passage without such facts, or whose metadata holds something else under that key.
    """
    listed = passage.metadata.get(STATED)
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed or not all(map(_is_fact, listed)):
        return None
    facts = []
    for subject, predicate, object_, place in listed:
        sentence = sentence_of(subject, predicate, object_)
        start = passage.text.find(sentence)
        if start >= 0:  # a passage may be a piece of what was indexed
            facts.append(Triple(subject, predicate, object_, (_source(passage, start, sentence, place),)))
    return tuple(facts)


def _source(passage: Passage, start: int, sentence: str, place: str) -> Source:
    return Source(passage.id, start, start + len(sentence), extractor=place)


def _is_fact(item: Any) -> bool:
    if isinstance(item, str | Mapping) or not isinstance(item, Sequence):
        return False
    return len(item) == 4 and all(isinstance(field, str) and field.strip() for field in item)


def _parts(facts: Sequence[PlacedTriple], size: int) -> Iterable[list[PlacedTriple]]:
    part: list[PlacedTriple] = []
    length = 0
    for fact in facts:
        own = len(sentence_of(fact.subject, fact.predicate, fact.object)) + 1
        if part and length + own > size:
            yield part
            part, length = [], 0
        part.append(fact)
        length += own
    if part:
        yield part


class ImportedFacts(NamedTuple):
    """Holds what a file lists as a passage's facts, the file's name (`where`) and the passage's `text` if it has it."""

    facts: PassageFacts
    where: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class MatchedFacts:
    """Holds facts, the passages they were matched to by id, and what could not be used."""

    facts: list[PassageFacts] = field(default_factory=list)
    passages: dict[str, Passage] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)


def match_facts(imported: Sequence[ImportedFacts], passages: Iterable[Passage]) -> MatchedFacts:
    """Match each of `imported` to the passage with its id, or else to the only one with that title.

    Facts of another text than the passage's are skipped, and so are facts whose place is outside the text; a passage
    with no other imported facts is then left out. What several files say of a passage counts once.
    """
    wanted = {item.facts.passage_id for item in imported}
    by_id: dict[str, Passage] = {}
    by_title: dict[str, list[Passage]] = {}
    for passage in passages:
        if passage.id in wanted:
            by_id[passage.id] = passage
        if passage.title in wanted:
            by_title.setdefault(passage.title, []).append(passage)
    matched = MatchedFacts()
    found: dict[str, PassageFacts] = {}
    for item in imported:
        name = item.facts.passage_id
        own = [by_id[name]] if name in by_id else by_title.get(name, [])
        if reason := _reason(item, own):
            matched.skipped.append(Skipped(item.where, f"facts of {name!r}, {reason}"))
            continue
        (passage,) = own
        triples, outside = _within(item.facts.triples, name, passage)
        if outside:
            reason = f"{len(outside)} of the facts of {name!r} have places outside its text: {outside[0]}"
            matched.skipped.append(Skipped(item.where, reason))
            if not triples and not item.facts.entities:
                continue  # nothing must not replace the facts stored for the passage
        before = found.get(passage.id, PassageFacts(passage.id))
        found[passage.id] = PassageFacts(
            passage.id, _united(before.triples, triples), _united(before.entities, item.facts.entities)
        )
        matched.passages[passage.id] = passage
    matched.facts.extend(found.values())
    return matched


def _united(first: Iterable[_T], second: Iterable[_T]) -> tuple[_T, ...]:
    """Return each item as often as in the one that has it more often."""
    return tuple((Counter(first) | Counter(second)).elements())


def _reason(item: ImportedFacts, own: Sequence[Passage]) -> str:
    """Return why no passage can take the facts; "" if one can."""
    if not own:
        return "which is no passage of the index"
    if len(own) > 1:
        return f"the title of {len(own)} passages of the index: give the id of one"
    if item.text is not None and item.text != own[0].text:
        return "which has another text in the index"
    return ""


def _within(triples: Iterable[Triple], name: str, passage: Passage) -> tuple[list[Triple], list[str]]:
    """Return the facts with places in `passage`, under its own id, and descriptions of those outside its text."""
    inside, outside = [], []
    for triple in triples:
        places = [source for source in triple.sources if source.passage_id == name]
        if any(not 0 <= source.start <= source.end <= len(passage.text) for source in places):
            outside.append(str(triple))
        else:
            inside.append(replace(triple, sources=tuple(replace(source, passage_id=passage.id) for source in places)))
    return inside, outside

"""A knowledge graph that is there already, as passages: the facts around an entity, each a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ras_agent.records import Passage, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.kg.formats.triples import PlacedTriple

__all__ = ["STATED", "knowledge_passages", "sentence_of", "stated_facts"]

STATED = "facts"
"""The key of a passage's metadata under which it says what it states: [subject, predicate, object, place], each."""
_SIZE = 1000  # characters of a passage


def sentence_of(subject: str, predicate: str, object_: str) -> str:
    """A fact as a sentence."""
    return f"{subject} {predicate} {object_}."


def knowledge_passages(triples: Iterable[PlacedTriple], label: str, size: int = _SIZE) -> list[Passage]:
    """Passages of at most about `size` characters, titled after the head of their facts, in the order of the heads.

    They belong to the document `label`; a head with more facts than fit has several. Repeated facts are stated once.
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
    """The facts that a passage comes with, each with its sentence and, as who read it, its place in the file.

    None for a passage that comes with none, or whose metadata holds something else under that key.
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

"""Finds the entities that a name may mean: by their names, by other names that facts state, or by a split."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.text.canonical import canonical_key
from ras_agent.text.words import FUNCTION_WORDS
from ras_agent.tools.kg.edits import key_of
from ras_agent.tools.kg.formats.named import ALSO_CALLED
from ras_agent.tools.kg.index import KGIndex

_GLOSSES = ("is described as", "is a", "instance of", "occupation")


def entities_called(graph: KGIndex, name: str, question: str = "") -> list[int]:
    """Return the numbers of the entities that a name may mean, those whose facts share most words with the question.

    An entity that is nothing but another name of some entity is replaced by that entity. An entity that a person
    split in two is returned with both parts.

    Args:
        question: decides between several entities; if no word is shared, all of them are returned.
    """
    found: list[int] = []
    entity = graph.entity_id(name)
    if entity is not None:
        owners = _owners(graph, entity)
        edges = graph.edges_of(entity)
        is_name_alone = bool(owners) and len(edges) == len(owners)
        if not is_name_alone:
            found.append(entity)
        found.extend(owners)
    key = key_of(name, exact=graph.manifest.exact)
    for split in graph.split_names.get(key, ()):
        other = graph.entity_id(split)
        if other is not None:
            found.append(other)
    distinct = list(dict.fromkeys(found))
    if len(distinct) < 2:
        return distinct
    return _chosen(graph, distinct, name, question)


def _owners(graph: KGIndex, entity: int) -> list[int]:
    """Return the entities that have this entity as another name."""
    relation = graph.relation_id(ALSO_CALLED)
    if relation is None:
        return []
    edges = graph.edges_of(entity)
    rows = graph.edges[edges]
    owners = []
    for head, name, tail in rows.tolist():
        if name == relation and tail == entity and head != entity:
            owners.append(head)
    return owners


def _chosen(
    graph: KGIndex, entities: Sequence[int], name: str, question: str
) -> list[int]:
    """Return the entities whose names and glosses share most words with a question; all of them if no word is
    shared."""
    words = _words(question) - _words(name)
    shared = {}
    for entity in entities:
        gloss = _gloss(graph, entity)
        shared[entity] = len(words & gloss)
    most = max(shared.values())
    return [entity for entity in entities if shared[entity] == most]


def _gloss(graph: KGIndex, entity: int) -> set[str]:
    """Return the words in an entity's name and in the facts that describe it."""
    words = _words(graph.entities[entity])
    relations = {graph.relation_id(gloss) for gloss in _GLOSSES}
    edges = graph.edges_of(entity)
    for head, relation, tail in graph.edges[edges].tolist():
        if head == entity and relation in relations:
            words |= _words(graph.entities[int(tail)])
    return words


def _words(text: str) -> set[str]:
    words = canonical_key(text).split()
    return set(words) - FUNCTION_WORDS

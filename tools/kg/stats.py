"""Summarises a knowledge graph: its size and connections, and the facts about one entity."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from ras_agent.contracts.arrays import Ints
from ras_agent.contracts.schema import OUTSIDE
from ras_agent.text.values import is_value
from ras_agent.tools.kg.index import KGIndex

_SHOWN = 50
_MOST_FREQUENT = 10


def counts(graph: KGIndex, best: int = 5) -> dict[str, Any]:
    """Return the numbers of passages, entities, facts and so on, and how well the graph is connected, by label.

    Args:
        best: the number of best connected entities to list. Dates, times and other figures are left out.
    """
    manifest = graph.manifest
    degree = graph.degrees
    named = islice(_best_connected(graph), best)
    others = Counter(node.type for node in graph.others.nodes)
    return {
        "passages": manifest.documents,
        "entities": manifest.entities,
        "relations": manifest.relations - 1,
        "facts": manifest.facts,
        "equivalences": manifest.equivalences,
        "other nodes": [f"{kind} ({count})" for kind, count in sorted(others.items())]
        or "none",
        "edits of persons": len(graph.edits),
        "sources": len(graph.arrays.sources),
        **_outside(graph),
        "without edges": int(np.count_nonzero(degree == 0)),
        "edges of an entity": f"{degree.mean():.1f} on average, {int(degree.max())} at most"
        if len(degree)
        else "none",
        "best connected": [f"{name} ({count})" for name, count in named],
        "extractor": manifest.extractor or "none",
        "embedder": str(manifest.embedder) if manifest.embedder else "none",
        "threshold": manifest.equivalence.threshold if manifest.embedder else "none",
        "fingerprint": manifest.fingerprint,
    }


def _best_connected(graph: KGIndex) -> Iterator[tuple[str, int]]:
    """Yield the entities with edges that name something, the best connected first, and their numbers of edges."""
    degree = graph.degrees
    for entity in np.argsort(-degree, kind="stable").tolist():
        name = graph.entities[entity]
        if degree[entity] and not is_value(name):
            yield name, int(degree[entity])


def _outside(graph: KGIndex) -> dict[str, list[str]]:
    """Return how many facts lie outside the schema, and their most frequent predicates; {} if there are no such facts."""
    edges = outside(graph)
    if not len(edges):
        return {}
    relations = Counter(graph.edges[edges, 1].tolist())
    lines = [
        f"{len(edges):,} of {graph.manifest.facts:,} facts, with predicates such as"
    ]
    for relation, count in relations.most_common(_MOST_FREQUENT):
        lines.append(f"{graph.relations[relation]} ({count:,})")
    return {"outside the schema": lines}


def outside(graph: KGIndex) -> Ints:
    """Return the numbers of the facts that their extractor marked as outside the schema in some passage."""
    marking = []
    for number, note in enumerate(graph.arrays.notes):
        if note and json.loads(note).get("fact", {}).get(OUTSIDE):
            marking.append(number)
    is_outside = np.isin(graph.arrays.sources["note"], marking)
    edges = graph.arrays.source_edges()
    return np.unique(edges[is_outside])


def about(graph: KGIndex, entity: int) -> dict[str, Any]:
    """Return the facts, the equivalent entities and the passages of an entity, as lines to show."""
    facts = []
    same = []
    for edge in graph.edges_of(entity).tolist():
        triple = graph.triple(edge)
        if edge in graph.facts:
            passages = dict.fromkeys(source.passage_id for source in triple.sources)
            edit = graph.made_by(triple)
            made = f" by {edit.by}, {edit.at[:10]}" if edit else ""
            place = " outside the schema" if OUTSIDE in triple.attributes else ""
            facts.append(
                f"{triple.subject} | {triple.predicate} | {triple.object} [{', '.join(passages)}]{made}{place}"
            )
        else:
            cosine = float(graph.similarities[edge - graph.facts.stop])
            other = (
                triple.object
                if graph.entities[entity] == triple.subject
                else triple.subject
            )
            same.append(f"{other} ({cosine:.2f})")
    numbers: list[int] = graph.mentions.row(entity).tolist()
    documents = [graph.documents[number] for number in numbers]
    return {
        "entity": graph.entities[entity],
        "facts": _few(facts),
        "equivalent": _few(same),
        "passages": _few(documents),
    }


def _few(lines: list[str]) -> list[str]:
    return (
        lines
        if len(lines) <= _SHOWN
        else [*lines[:_SHOWN], f"… {len(lines) - _SHOWN:,} more"]
    )

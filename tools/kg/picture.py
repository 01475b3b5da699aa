"""Draws a knowledge graph as one self-contained page: thousands of nodes on a canvas, laid out beforehand."""

from __future__ import annotations

import html
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ras_agent.arrays import Ints
from ras_agent.errors import MissingExtra
from ras_agent.page import filled, json_for_html, page_file, policy
from ras_agent.tools.kg.index import KGIndex

_INSIDE, _ACROSS, _WIDER = 4.0, 0.25, 1.5
_NAMED = 6  # passages that the panel of an entity names


def most_connected(graph: KGIndex, limit: int) -> Ints:
    """Return the `limit` entities with the most edges, ties by number."""
    degree = np.bincount(graph.edges[:, [0, 2]].ravel(), minlength=len(graph.entities))
    return np.sort(np.argsort(-degree, kind="stable")[:limit])


def nearby(graph: KGIndex, start: Sequence[int], limit: int) -> Ints:
    """Return up to `limit` entities around `start`, step by step, within a step the best connected first."""
    degree = np.bincount(graph.edges[:, [0, 2]].ravel(), minlength=len(graph.entities))
    found = list(dict.fromkeys(start))[:limit]
    seen, last = set(found), found
    while last and len(found) < limit:
        reached = {neighbour for entity in last for neighbour in graph.neighbours(entity).tolist()} - seen
        last = sorted(reached, key=lambda entity: (-degree[entity], entity))[: limit - len(found)]
        found += last
        seen.update(last)
    return np.array(sorted(found), dtype=np.int64)


def graph_page(
    graph: KGIndex,
    entities: Ints,
    title: str = "Knowledge graph",
    seed: int = 1,
    *,
    around: Sequence[int] = (),
    name_of: Callable[[str], str] = str,
) -> str:
    """Return the page of `entities` and the edges among them. Raises MissingExtra without igraph, for layouts.

    around: entities that are marked and in the middle. name_of: what a passage is called, by its id.
    """
    place = np.full(len(graph.entities), -1, dtype=np.int64)
    place[entities] = np.arange(len(entities))
    inside = (place[graph.edges[:, 0]] >= 0) & (place[graph.edges[:, 2]] >= 0)
    numbers = np.flatnonzero(inside & (graph.edges[:, 0] != graph.edges[:, 2]))
    edges = graph.edges[numbers]
    ends = np.stack([place[edges[:, 0]], place[edges[:, 2]]], axis=1)
    used, relation = np.unique(edges[:, 1], return_inverse=True)
    with _seeded(seed):
        groups = _groups(ends, len(entities))
        places = _layout(ends, groups, [int(place[entity]) for entity in around if place[entity] >= 0])
    named = [graph.mentions.row(entity)[:_NAMED].tolist() for entity in entities.tolist()]
    sources = [_first_source(graph, number) for number in numbers.tolist()]
    told = sorted({*(number for row in named for number in row), *(number for number in sources if number >= 0)})
    at = {number: index for index, number in enumerate(told)}
    passages = [name_of(graph.documents[number]) for number in told]
    read_in = [at.get(number, -1) for number in sources]
    for row, number in enumerate(numbers.tolist() if graph.edits else ()):
        edit = graph.made_by(graph.triple(number)) if number in graph.facts else None
        if edit is not None:  # named beside the passage, as if that were another one
            passages.append(f"{passages[read_in[row]] if read_in[row] >= 0 else ''} (by {edit.by})".strip())
            read_in[row] = len(passages) - 1
    data: dict[str, Any] = {
        "title": title,
        "names": [graph.entities[entity] for entity in entities.tolist()],
        "documents": graph.document_frequency[entities].tolist(),
        "passages": passages,
        "named": [[at[number] for number in row] for row in named],
        "sources": read_in,
        "around": [int(place[entity]) for entity in around if place[entity] >= 0],
        "at": places,
        "relations": [graph.relations[number] for number in used.tolist()],
        "edges": np.column_stack([ends, relation.reshape(-1)]).ravel().tolist(),
        "groups": groups,
        "equivalent": int(np.searchsorted(used, graph.equivalence_relation)),
        "whole": [len(graph.entities), len(graph.edges)],
    }
    style, script = page_file("graph.css"), page_file("graph.js")
    slots = {"POLICY": policy([script], [style]), "STYLE": style, "SCRIPT": script}
    return filled(page_file("graph.html"), {**slots, "TITLE": html.escape(title), "DATA": json_for_html(data)})


def _first_source(graph: KGIndex, edge: int) -> int:
    """Return the number of the first passage that an edge was read in, -1 for one that was read in none."""
    start, end = graph.arrays.source_starts[edge : edge + 2].tolist()
    return int(graph.arrays.sources[start].tolist()[0]) if end > start else -1


def _groups(ends: Ints, count: int) -> list[int]:
    """Return each node's group of well connected nodes, the largest group first (Blondel et al., 2008)."""
    igraph = _igraph()
    found = igraph.Graph(count, ends.tolist()).community_multilevel().membership if count else []
    order = {group: number for number, (group, _) in enumerate(Counter(found).most_common())}
    return [order[group] for group in found]


def _layout(ends: Ints, groups: Sequence[int], middle: Sequence[int] = ()) -> list[int]:
    """Return x, y of the nodes one after the other, from 0 to 10,000; wider than high, as screens are.

    With a `middle`, its nodes are there, and the others on rings around them.
    """
    if not groups:
        return []
    igraph = _igraph()
    pairs = np.unique(np.sort(ends, axis=1), axis=0)
    drawn = igraph.Graph(len(groups), pairs.tolist())
    # edges inside a group pull harder, or a graph of thousands is one ball
    group = np.array(groups)
    pull = np.where(group[pairs[:, 0]] == group[pairs[:, 1]], _INSIDE, _ACROSS)
    if middle:
        # rings: an edge away, two edges away, ...
        places = np.array(drawn.layout_reingold_tilford_circular(mode="all", root=list(middle)).coords)
    else:
        places = np.array(drawn.layout_fruchterman_reingold(weights=pull.tolist(), niter=500, grid="grid").coords)
    # lone nodes drift far away; moved to a rim around the others, they leave these room
    centred = places - (places[middle[0]] if middle else np.median(places, axis=0))
    distance = np.hypot(*centred.T)
    reach = np.quantile(distance, 0.95) or 1.0
    beyond = np.maximum(distance - reach, 0) / reach
    factor = np.where(distance > reach, reach * (1 + 0.15 * np.tanh(beyond)) / np.maximum(distance, 1e-9), 1)
    centred *= factor[:, None]
    centred[:, 0] *= _WIDER
    low, high = centred.min(axis=0), centred.max(axis=0)
    scaled = (centred - low) / np.maximum(high - low, 1e-9).max() * 10_000
    flat: list[int] = np.round(scaled).astype(int).ravel().tolist()
    return flat


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Draw the same picture of the same graph, whatever was drawn before."""
    igraph = _igraph()
    igraph.set_random_number_generator(random.Random(seed))
    try:
        yield
    finally:
        igraph.set_random_number_generator(random)


def _igraph() -> Any:
    try:
        import igraph
    except ImportError as error:
        raise MissingExtra("the picture of a knowledge graph", "graph") from error
    return igraph

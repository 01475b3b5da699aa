"""Draws a knowledge graph as one self-contained HTML page: thousands of nodes on a canvas, with a computed layout."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ras_agent.contracts.arrays import Doubles, Ints
from ras_agent.contracts.errors import MissingExtra
from ras_agent.page import filled, json_for_html, page_file, policy
from ras_agent.tools.kg.index import KGIndex

_INSIDE = 1.0
_ACROSS = 0.1
_WIDER = 1.5
_ITERATIONS = 100  # of the force-directed layout
# successive turns by this angle never repeat a direction
_GOLDEN_ANGLE = np.pi * (3 - 5**0.5)
_PICTURE = "the picture of a knowledge graph"
_NAMED = 6  # how many passages the panel of an entity lists


def most_connected(graph: KGIndex, limit: int) -> Ints:
    """Return the numbers of the `limit` entities with the most edges, ascending."""
    degree = np.bincount(graph.edges[:, [0, 2]].ravel(), minlength=len(graph.entities))
    return np.sort(np.argsort(-degree, kind="stable")[:limit])


def nearby(graph: KGIndex, start: Sequence[int], limit: int) -> Ints:
    """Return the numbers of up to `limit` entities around `start`, ascending.

    The nearest are taken first and, at equal distance, those with the most edges.
    """
    degree = np.bincount(graph.edges[:, [0, 2]].ravel(), minlength=len(graph.entities))
    found = list(dict.fromkeys(start))[:limit]
    seen = set(found)
    last = found
    while last and len(found) < limit:
        reached = {
            neighbour
            for entity in last
            for neighbour in graph.neighbours(entity).tolist()
        } - seen
        last = sorted(reached, key=lambda entity: (-degree[entity], entity))[
            : limit - len(found)
        ]
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
    """Return an HTML page of `entities` and the edges between them. Raises MissingExtra without networkx or rustworkx.

    Args:
        entities: the numbers of the entities to draw.
        seed: for the groups and the layout; the same graph and seed give the same page.
        around: the numbers of entities that are marked and placed in the middle.
        name_of: returns a passage's name by its id.
    """
    place = np.full(len(graph.entities), -1, dtype=np.int64)
    place[entities] = np.arange(len(entities))
    inside = (place[graph.edges[:, 0]] >= 0) & (place[graph.edges[:, 2]] >= 0)
    numbers = np.flatnonzero(inside & (graph.edges[:, 0] != graph.edges[:, 2]))
    edges = graph.edges[numbers]
    ends = np.stack([place[edges[:, 0]], place[edges[:, 2]]], axis=1)
    used, relation = np.unique(edges[:, 1], return_inverse=True)
    groups = _groups(ends, len(entities), seed)
    places = _layout(
        ends,
        groups,
        [int(place[entity]) for entity in around if place[entity] >= 0],
        seed,
    )
    named = [
        graph.mentions.row(entity)[:_NAMED].tolist() for entity in entities.tolist()
    ]
    sources = [_first_source(graph, number) for number in numbers.tolist()]
    told = sorted(
        {
            *(number for row in named for number in row),
            *(number for number in sources if number >= 0),
        }
    )
    at = {number: index for index, number in enumerate(told)}
    passages = [name_of(graph.documents[number]) for number in told]
    read_in = [at.get(number, -1) for number in sources]
    for row, number in enumerate(numbers.tolist() if graph.edits else ()):
        edit = graph.made_by(graph.triple(number)) if number in graph.facts else None
        if edit is not None:  # shown as a separate passage, with the person's name
            passages.append(
                f"{passages[read_in[row]] if read_in[row] >= 0 else ''} (by {edit.by})".strip()
            )
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
    style = page_file("graph.css")
    script = page_file("graph.js")
    slots = {"POLICY": policy([script], [style]), "STYLE": style, "SCRIPT": script}
    return filled(
        page_file("graph.html"),
        {**slots, "TITLE": html.escape(title), "DATA": json_for_html(data)},
    )


def _first_source(graph: KGIndex, edge: int) -> int:
    """Return the number of the first passage in which an edge was read, or -1 if there is none."""
    start, end = graph.arrays.source_starts[edge : edge + 2].tolist()
    return int(graph.arrays.sources[start].tolist()[0]) if end > start else -1


def _groups(ends: Ints, count: int, seed: int) -> list[int]:
    """Return the number of each node's group of well connected nodes; the largest group is 0 (Blondel et al., 2008)."""
    try:
        import networkx
    except ImportError as error:
        raise MissingExtra(_PICTURE, "graph") from error
    network = networkx.MultiGraph()
    network.add_nodes_from(range(count))
    network.add_edges_from(ends.tolist())
    communities = networkx.community.louvain_communities(network, seed=seed)
    ordered = sorted(
        map(sorted, communities), key=lambda members: (-len(members), members)
    )
    group_of = {
        node: group for group, members in enumerate(ordered) for node in members
    }
    return [group_of[node] for node in range(count)]


def _layout(
    ends: Ints, groups: Sequence[int], middle: Sequence[int], seed: int
) -> list[int]:
    """Return the coordinates x, y of each node in turn, from 0 to 10,000; the layout is wider than high, like a screen.

    If `middle` names nodes, these are in the middle and all other nodes on rings around them.
    """
    if not groups:
        return []
    pairs = np.unique(np.sort(ends, axis=1), axis=0)
    places = (
        _rings(pairs, len(groups), middle) if middle else _springs(pairs, groups, seed)
    )
    # nodes without edges drift far away: moved to a rim around the other nodes, they leave those more room
    centred = places - (places[middle[0]] if middle else np.median(places, axis=0))
    distance = np.hypot(*centred.T)
    reach = np.quantile(distance, 0.95) or 1.0
    beyond = np.maximum(distance - reach, 0) / reach
    factor = np.where(
        distance > reach,
        reach * (1 + 0.15 * np.tanh(beyond)) / np.maximum(distance, 1e-9),
        1,
    )
    centred *= factor[:, None]
    centred[:, 0] *= _WIDER
    low = centred.min(axis=0)
    high = centred.max(axis=0)
    scaled = (centred - low) / np.maximum(high - low, 1e-9).max() * 10_000
    flat: list[int] = np.round(scaled).astype(int).ravel().tolist()
    return flat


def _springs(pairs: Ints, groups: Sequence[int], seed: int) -> Doubles:
    """Return a force-directed layout (Fruchterman and Reingold, 1991), shape (N, 2).

    Edges inside a group pull harder; otherwise a graph of thousands of nodes would become a single ball.
    """
    try:
        from rustworkx import PyGraph, spring_layout
    except ImportError as error:
        raise MissingExtra(_PICTURE, "graph") from error
    group = np.array(groups)
    pull = np.where(group[pairs[:, 0]] == group[pairs[:, 1]], _INSIDE, _ACROSS)
    network: Any = PyGraph()
    joined = np.unique(pairs)
    network.add_nodes_from(joined.tolist())
    ends = np.searchsorted(joined, pairs).tolist()
    network.add_edges_from(
        [(*pair, weight) for pair, weight in zip(ends, pull.tolist(), strict=True)]
    )
    layout = spring_layout(network, weight_fn=float, num_iter=_ITERATIONS, seed=seed)
    places = np.full((len(groups), 2), np.nan)
    if len(joined):
        places[joined] = [layout[node] for node in range(len(joined))]
    # nodes without an edge are placed around the other nodes
    lone = np.isnan(places[:, 0])
    turn = np.arange(lone.sum()) * _GOLDEN_ANGLE
    centre = np.median(places[joined], axis=0) if len(joined) else np.zeros(2)
    reach = (
        np.quantile(np.hypot(*(places[joined] - centre).T), 0.95)
        if len(joined)
        else 1.0
    )
    rim = reach * np.linspace(1, 1.3, len(turn))
    places[lone] = centre + rim[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return places


def _rings(pairs: Ints, count: int, middle: Sequence[int]) -> Doubles:
    """Return a layout, shape (N, 2), with one ring for the nodes one edge away from the middle, one for two edges, and
    so on.

    The sector of a node is as wide as the number of leaves behind it, and lies within the sector of the node through
    which it was reached. Nodes that no edges connect to the middle are on one further ring.
    """
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for one, other in pairs.tolist():
        neighbours[one].append(other)
        neighbours[other].append(one)
    ring = dict.fromkeys(middle, 0)
    children: dict[int, list[int]] = {}
    reached = list(ring)
    for node in reached:  # breadth first: the list grows during the loop
        children[node] = [
            other for other in dict.fromkeys(neighbours[node]) if other not in ring
        ]
        ring |= dict.fromkeys(children[node], ring[node] + 1)
        reached += children[node]
    outside = [node for node in range(count) if node not in ring]
    leaves = dict.fromkeys(range(count), 1)
    for node in reversed(reached):
        leaves[node] = max(1, sum(leaves[child] for child in children[node]))
    angle = dict.fromkeys(range(count), 0.0)
    sectors: list[tuple[list[int], float, float]] = [
        (list(dict.fromkeys(middle)), 0.0, 2 * np.pi)
    ]
    for nodes, begin, width in sectors:
        share = width / max(1, sum(leaves[node] for node in nodes))
        for node in nodes:
            angle[node] = begin + share * leaves[node] / 2
            sectors.append((children[node], begin, share * leaves[node]))
            begin += share * leaves[node]
    last = 1 + max(ring.values())
    for place, node in enumerate(outside):
        ring[node], angle[node] = last, 2 * np.pi * place / len(outside)
    # a single middle node is at the centre, several are on a small ring around it
    radius = np.array(
        [ring[node] + (len(set(middle)) > 1) * 0.5 for node in range(count)]
    )
    turn = np.array([angle[node] for node in range(count)])
    return np.column_stack([radius * np.cos(turn), radius * np.sin(turn)])

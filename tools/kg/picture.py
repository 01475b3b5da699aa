"""Draws a knowledge graph as one self-contained HTML page: thousands of nodes on a canvas, with a computed layout."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ras_agent.contracts.arrays import Doubles, Ints
from ras_agent.contracts.errors import needs_extra
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
    most = np.argsort(-graph.degrees, kind="stable")[:limit]
    return np.sort(most)


def nearby(graph: KGIndex, start: Sequence[int], limit: int) -> Ints:
    """Return the numbers of up to `limit` entities around `start`, ascending.

    The nearest are taken first and, at equal distance, those with the most edges.
    """
    found = list(dict.fromkeys(start))[:limit]
    last = found
    while last and len(found) < limit:
        reached: set[int] = set()
        for entity in last:
            reached.update(graph.neighbours(entity).tolist())
        reached.difference_update(found)
        ranked = sorted(reached, key=lambda entity: (-graph.degrees[entity], entity))
        last = ranked[: limit - len(found)]
        found += last
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
    all_ends = place[graph.edges[:, [0, 2]]]
    is_inside = (all_ends >= 0).all(axis=1)
    is_loop = all_ends[:, 0] == all_ends[:, 1]
    numbers = np.flatnonzero(is_inside & ~is_loop)
    ends = all_ends[numbers]
    used, relation = np.unique(graph.edges[numbers, 1], return_inverse=True)
    middle = [int(place[entity]) for entity in around if place[entity] >= 0]
    groups = _groups(ends, len(entities), seed)
    places = _layout(ends, groups, middle, seed)
    named = []
    for entity in entities.tolist():
        documents = graph.mentions.row(entity)
        named.append(documents[:_NAMED].tolist())
    sources = [_first_source(graph, number) for number in numbers.tolist()]
    told = {number for number in sources if number >= 0}.union(*named)
    passages: list[str] = []
    at = {-1: -1}
    for number in sorted(told):
        at[number] = len(passages)
        passages.append(name_of(graph.documents[number]))
    read_in = [at[number] for number in sources]
    for row, number in enumerate(numbers.tolist()):
        if not graph.edits or number not in graph.facts:
            continue
        edit = graph.made_by(graph.triple(number))
        if edit is not None:  # shown as a separate passage, with the person's name
            passage = passages[read_in[row]] if read_in[row] >= 0 else ""
            read_in[row] = len(passages)
            passages.append(f"{passage} (by {edit.by})".strip())
    data: dict[str, Any] = {
        "title": title,
        "names": [graph.entities[entity] for entity in entities.tolist()],
        "documents": graph.document_frequency[entities].tolist(),
        "passages": passages,
        "named": [[at[number] for number in row] for row in named],
        "sources": read_in,
        "around": middle,
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
    if start == end:
        return -1
    return int(graph.arrays.sources[start]["document"])


def _groups(ends: Ints, count: int, seed: int) -> list[int]:
    """Return the number of each node's group of well connected nodes; the largest group is 0 (Blondel et al., 2008)."""
    with needs_extra(_PICTURE, "graph"):
        import networkx
    network = networkx.MultiGraph()
    network.add_nodes_from(range(count))
    network.add_edges_from(ends.tolist())
    communities = networkx.community.louvain_communities(network, seed=seed)
    groups = [0] * count
    ordered = sorted(map(sorted, communities))
    ordered.sort(key=len, reverse=True)
    for group, members in enumerate(ordered):
        for node in members:
            groups[node] = group
    return groups


def _layout(
    ends: Ints, groups: Sequence[int], middle: Sequence[int], seed: int
) -> list[int]:
    """Return the coordinates x, y of each node in turn, from 0 to 10,000; the layout is wider than high, like a screen.

    If `middle` names nodes, these are in the middle and all other nodes on rings around them.
    """
    if not groups:
        return []
    pairs = np.unique(np.sort(ends, axis=1), axis=0)
    if middle:
        places = _rings(pairs, len(groups), middle)
        centred = places - places[middle[0]]
    else:
        places = _springs(pairs, groups, seed)
        centred = places - np.median(places, axis=0)
    # nodes without edges drift far away: moved to a rim around the other nodes, they leave those more room
    distance = np.hypot(*centred.T)
    reach = np.quantile(distance, 0.95) or 1.0
    beyond = np.maximum(distance - reach, 0) / reach
    rim = reach * (1 + 0.15 * np.tanh(beyond))
    is_far = distance > reach
    centred[is_far] *= (rim / np.maximum(distance, 1e-9))[is_far, None]
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
    with needs_extra(_PICTURE, "graph"):
        from rustworkx import PyGraph, spring_layout
    network: Any = PyGraph()
    joined = np.unique(pairs)
    number_of = {node: network.add_node(node) for node in joined.tolist()}
    for one, other in pairs.tolist():
        pull = _INSIDE if groups[one] == groups[other] else _ACROSS
        network.add_edge(number_of[one], number_of[other], pull)
    layout = spring_layout(network, weight_fn=float, num_iter=_ITERATIONS, seed=seed)
    places = np.full((len(groups), 2), np.nan)
    centre = np.zeros(2)
    reach = 1.0
    if len(joined):
        drawn = np.array([layout[node] for node in range(len(joined))])
        places[joined] = drawn
        centre = np.median(drawn, axis=0)
        reach = float(np.quantile(np.hypot(*(drawn - centre).T), 0.95))
    # nodes without an edge are placed around the other nodes
    lone = np.isnan(places[:, 0])
    turn = np.arange(lone.sum()) * _GOLDEN_ANGLE
    rim = reach * np.linspace(1, 1.3, len(turn))
    places[lone, 0] = centre[0] + rim * np.cos(turn)
    places[lone, 1] = centre[1] + rim * np.sin(turn)
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
        children[node] = []
        for other in neighbours[node]:
            if other not in ring:
                ring[other] = ring[node] + 1
                children[node].append(other)
        reached += children[node]
    outside = [node for node in range(count) if node not in ring]
    leaves = dict.fromkeys(range(count), 1)
    for node in reversed(reached):
        leaves[node] = max(1, sum(leaves[child] for child in children[node]))
    angle = np.zeros(count)
    roots = list(dict.fromkeys(middle))
    sectors = [(roots, 0.0, 2 * np.pi)]
    for nodes, begin, width in sectors:
        share = width / max(1, sum(leaves[node] for node in nodes))
        for node in nodes:
            sector = share * leaves[node]
            angle[node] = begin + sector / 2
            sectors.append((children[node], begin, sector))
            begin += sector
    angle[outside] = np.linspace(0, 2 * np.pi, len(outside), endpoint=False)
    radius = np.full(count, 1.0 + max(ring.values()))
    for node, number in ring.items():
        radius[node] = number
    if len(roots) > 1:
        # a single middle node is at the centre, several are on a small ring around it
        radius += 0.5
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

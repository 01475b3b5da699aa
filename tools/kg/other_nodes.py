"""Holds the nodes and edges of a graph made by gfm-rag other than its entities, documents and facts.

The graphs of G-reasoner have four types of nodes: attributes, entities, documents, communities. Nodes may be of any
type, and edges may join any two of them. The network of GFM-RAG and the walks of this package read only entities
and mentions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

DOCUMENT = "document"
ENTITY = "entity"
"""The types of nodes that every graph has."""
Attributes = Mapping[str, Any]


class Node(NamedTuple):
    """Identifies a node by its type and its name; the name of a document is its id."""

    type: str
    name: str


class Link(NamedTuple):
    """Describes an edge that is neither a fact nor a mention."""

    source: Node
    relation: str
    target: Node


@dataclass(frozen=True, slots=True)
class OtherNodes:
    """Holds the nodes of a graph that are neither entities nor documents, and the edges that are not facts."""

    nodes: Mapping[Node, Attributes] = field(default_factory=dict)
    """The attributes of each node. An entity that no fact and no document names is among them."""
    links: tuple[Link, ...] = ()
    """Edges between any two nodes."""
    about: Mapping[str, Attributes] = field(default_factory=dict)
    """The attributes of the graph's own entities, by name."""
    relations: Mapping[str, Attributes] = field(default_factory=dict)
    """The attributes of relations, by name."""

    def __bool__(self) -> bool:
        return bool(self.nodes or self.links or self.about or self.relations)

    def ends(self) -> set[Node]:
        """Return the graph's own entities and documents at the ends of links."""
        return {
            end for link in self.links for end in (link.source, link.target)
        } - self.nodes.keys()

    def without(self, gone: Collection[Node]) -> Self:
        """Return a copy without the given entities and documents, and without the nodes that depend only on them.

        A node depends on the entities and documents to which links connect it, over any number of steps.
        """
        ends = self.ends()
        before = _joined(self.links, ends)
        links = _links_without(self.links, gone)
        lost = before - _joined(links, ends.difference(gone))
        nodes = dict(self.nodes)
        for node in lost:
            nodes.pop(node, None)
        about = dict(self.about)
        for node in gone:
            if node.type == ENTITY:
                about.pop(node.name, None)
        left = tuple(_links_without(links, lost))
        return type(self)(nodes, left, about, self.relations)

    def to_json(self) -> str:
        """Return the nodes as JSON that `from_json` reads."""
        nodes = [[*node, about] for node, about in self.nodes.items()]
        links = [[*link.source, link.relation, *link.target] for link in self.links]
        data = [nodes, links, self.about, self.relations]
        return json.dumps(data, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the nodes that `to_json` wrote. Raises ValueError or TypeError for any other text."""
        nodes, links, about, relations = json.loads(text)
        return cls(
            {Node(kind, name): attributes for kind, name, attributes in nodes},
            tuple(Link(Node(*link[:2]), link[2], Node(*link[3:])) for link in links),
            about,
            relations,
        )


def node_text(attributes: Attributes, **first: str) -> str:
    """Return the text of a node or relation that is embedded: a line "key: value" for each attribute; nulls are left
    out.

    Args:
        first: pairs that come before the attributes.
    """
    pairs = [*first.items(), *attributes.items()]
    return "\n".join(
        f"{key}: {value}" for key, value in pairs if value is not None
    ).strip()


def _links_without(links: Iterable[Link], gone: Collection[Node]) -> list[Link]:
    """Return the links of which neither end is gone."""
    left = []
    for link in links:
        if link.source not in gone and link.target not in gone:
            left.append(link)
    return left


def _joined(links: Iterable[Link], ends: Iterable[Node]) -> set[Node]:
    """Return all nodes that links connect to any of `ends`, including `ends`."""
    beside: dict[Node, list[Node]] = {}
    for link in links:
        beside.setdefault(link.source, []).append(link.target)
        beside.setdefault(link.target, []).append(link.source)
    joined = set(ends)
    waiting = list(joined)
    while waiting:
        for node in beside.get(waiting.pop(), ()):
            if node not in joined:
                joined.add(node)
                waiting.append(node)
    return joined

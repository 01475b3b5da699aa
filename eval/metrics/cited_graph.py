"""Which nodes and edges does an answer refer to? Read out of a reply that was asked to list them."""

from __future__ import annotations

import re

from ras_agent.eval.metrics.graphs import CitedGraph

__all__ = ["read_cited_graph"]

_EDGE = re.compile(
    r"\(\s*(?:S>\s*)?(?P<head>[^()|;]+?)\s*(?P<by>[|;])\s*(?:P>\s*)?(?P<relation>[^()|;]+?)"
    r"\s*(?P=by)\s*(?:O>\s*)?(?P<tail>[^()|;]+?)\s*\)"
)
_COMMA_EDGE = re.compile(r"\(\s*([^(),|;]+?)\s*,\s*([^(),|;]+?)\s*,\s*([^(),|;]+?)\s*\)")
_NODES = re.compile(r"^\W*nodes?\W*:(?P<inline>.*)$", re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+(?P<item>.+)$")


def read_cited_graph(reply: str) -> CitedGraph:
    """Edges are (head; relation; tail), (S> head | P> relation | O> tail) or (head, relation, tail), anywhere.

    Nodes are what a line "Nodes: a, b" lists, or the bullets below "Nodes:". Each counts once. An edge's ends count as
    nodes only if they are listed.
    """
    edges = [(found["head"], found["relation"], found["tail"]) for found in _EDGE.finditer(reply)]
    edges += [(head, relation, tail) for head, relation, tail in _COMMA_EDGE.findall(reply) if not _is_box(head)]
    nodes: list[str] = []
    listing = False
    for line in reply.splitlines():
        if heading := _NODES.match(line):
            inline = heading["inline"].strip(" *_")
            listing = not inline
            nodes += [part.strip() for part in re.split(r"[,;]", inline)]
        elif listing and (item := _ITEM.match(line)):
            nodes.append(item["item"].strip())
        elif line.strip():
            listing = False
    return CitedGraph(tuple(dict.fromkeys(node for node in nodes if node)), tuple(dict.fromkeys(edges)))


def _is_box(head: str) -> bool:
    """Whether a triple in commas is the (x,y,w) of a scene graph's box rather than an edge."""
    return head == "x" or head.lstrip("-").isdigit()

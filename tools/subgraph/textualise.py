"""A subgraph as text: G-Retriever's two CSV blocks."""

from __future__ import annotations

import csv
from io import StringIO

from ras_agent.tools.subgraph.graph import Subgraph

__all__ = ["textualise"]


def textualise(subgraph: Subgraph) -> str:
    """`node_id,node_attr` and `src,edge_attr,dst`, a blank line between; nodes are numbered from 0 in their order.

    Names with commas, quotes or line ends are quoted as CSV wants it.
    """
    graph = subgraph.graph
    numbers = {int(node): number for number, node in enumerate(subgraph.nodes)}
    nodes, edges = StringIO(), StringIO()
    writer = csv.writer(nodes, lineterminator="\n")
    writer.writerow(["node_id", "node_attr"])
    writer.writerows([number, graph.nodes[node]] for node, number in numbers.items())
    writer = csv.writer(edges, lineterminator="\n")
    writer.writerow(["src", "edge_attr", "dst"])
    for head, relation, tail in graph.edges[subgraph.edges].tolist():
        writer.writerow([numbers[head], graph.relations[relation], numbers[tail]])
    return f"{nodes.getvalue()}\n{edges.getvalue()}"

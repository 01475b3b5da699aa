"""PCST: the reduction against brute force, the guarantee of the tree, and the text that comes out."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from io import StringIO
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.records import Triple
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.retrieve.graph_retriever import textualise
from ras_agent.tools.subgraph.extract import Extraction
from ras_agent.tools.subgraph.graph import Graph, Subgraph
from ras_agent.tools.subgraph.pcst import PCSTFinder, PCSTSettings, Prizes, instance_of, prizes_of, steiner_tree
from ras_agent.tools.subgraph.scorers.bm25 import BM25Scorer
from ras_agent.tools.subgraph.scoring import Scored

SIZES = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0])


@st.composite
def problems(draw: Any) -> tuple[np.ndarray, Prizes]:
    """Up to 5 nodes and 5 edges, loops and parallel edges among them."""
    count = draw(st.integers(1, 5))
    ends = draw(st.lists(st.tuples(*[st.integers(0, count - 1)] * 2), max_size=5))
    nodes = draw(st.lists(SIZES, min_size=count, max_size=count))
    edges = draw(st.lists(SIZES, min_size=len(ends), max_size=len(ends)))
    cost = draw(st.sampled_from([0.5, 1.0]))
    return np.array(ends, np.int64).reshape(-1, 2), Prizes(np.array(nodes), np.array(edges), cost)


def connected(nodes: set[int], edges: list[tuple[int, int]]) -> bool:
    reached, left = {min(nodes)}, True
    while left:
        grown = {end for edge in edges if reached & set(edge) for end in edge} | reached
        reached, left = grown, grown != reached
    return reached == nodes


def best_value(ends: np.ndarray, node_prizes: np.ndarray, edge_prizes: np.ndarray, costs: np.ndarray) -> float:
    """By trying every connected subgraph: prizes of nodes and edges less the costs of edges."""
    value = float(node_prizes.max(initial=0.0))  # one node alone
    for size in range(1, len(ends) + 1):
        for chosen in combinations(range(len(ends)), size):
            edges = [(int(ends[e, 0]), int(ends[e, 1])) for e in chosen]
            nodes = {end for edge in edges for end in edge}
            if connected(nodes, edges):
                gained = node_prizes[list(nodes)].sum() + edge_prizes[list(chosen)].sum()
                value = max(value, float(gained - costs[list(chosen)].sum()))
    return value


def objective(prizes: Prizes, nodes: np.ndarray, edges: np.ndarray) -> float:
    """Eq. 7: what `nodes` and `edges` (places in the subgraph) are worth, less what the edges cost."""
    return float(prizes.nodes[nodes].sum() + prizes.edges[edges].sum() - prizes.cost * len(edges))


@given(problems())
def test_virtual_nodes_keep_the_best_value(problem: tuple[np.ndarray, Prizes]) -> None:
    ends, prizes = problem
    wanted = best_value(ends, prizes.nodes, prizes.edges, np.full(len(ends), prizes.cost))
    made = instance_of(ends, prizes)
    assert best_value(made.ends, made.prizes, np.zeros(len(made.ends)), made.costs) == pytest.approx(wanted)


@given(problems())
def test_the_tree_is_connected_and_within_its_guarantee(problem: tuple[np.ndarray, Prizes]) -> None:
    ends, prizes = problem
    count = len(prizes.nodes)
    edges = np.stack([ends[:, 0], np.arange(len(ends)), ends[:, 1]], axis=1).astype(np.int32)
    graph = Graph([str(n) for n in range(count)], [str(e) for e in range(len(ends))], edges)
    tree = steiner_tree(Subgraph.whole(graph), prizes)
    best = best_value(ends, prizes.nodes, prizes.edges, np.full(len(ends), prizes.cost))
    if not len(tree.nodes):
        assert best == 0
        return
    assert connected(set(tree.nodes.tolist()), [(int(h), int(t)) for h, t in ends[tree.edges]])
    found = objective(prizes, tree.nodes, tree.edges)
    assert found <= best + 1e-9
    # Goemans and Williamson: costs plus prizes left behind are at most twice the least there is
    total = float(instance_of(ends, prizes).prizes.sum())
    assert total - found <= 2 * (total - best) + 1e-9


def test_the_best_have_prizes_from_k_down_to_one_and_edges_that_tie_share_theirs() -> None:
    prizes = prizes_of(np.array([0.1, 0.9, 0.5, 0.9]), np.array([0.3, 0.8, 0.8, 0.1]), nodes=3, edges=2, cost=1)
    assert prizes.nodes.tolist() == [0, 3, 1, 2]
    assert prizes.edges.tolist() == [1, 1, 1, 0]


def test_what_does_not_fit_at_all_has_no_prize() -> None:
    prizes = prizes_of(np.array([0.0, 0.5, -0.1]), np.array([0.0, 0.0]), nodes=3, edges=2)
    assert (prizes.nodes.tolist(), prizes.edges.tolist()) == ([0, 3, 0], [0, 0])


def test_a_dear_edge_is_bought_with_both_its_ends() -> None:
    graph = Graph.from_triples([("a", "r", "b"), ("b", "s", "c")])
    tree = steiner_tree(Subgraph.whole(graph), Prizes(np.array([1.0, 0, 0]), np.array([2.0, 0]), 0.5))
    assert (tree.nodes.tolist(), tree.edges.tolist()) == ([0, 1], [0])


def test_an_edge_costs_what_its_prize_leaves() -> None:
    graph = Graph.from_triples([("a", "r", "b"), ("b", "s", "c")])
    nodes = np.array([2.0, 0, 0.6])
    near = steiner_tree(Subgraph.whole(graph), Prizes(nodes, np.array([0.0, 0.0]), 0.5))
    assert near.nodes.tolist() == [0]  # the way to c costs 1.0
    prized = steiner_tree(Subgraph.whole(graph), Prizes(nodes, np.array([0.5, 0.0]), 0.5))
    assert prized.nodes.tolist() == [0, 1, 2]  # now 0.5


def test_negative_prizes_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        Prizes(np.array([-1.0]), np.array([]))


def test_the_text_is_two_csv_blocks_that_read_back() -> None:
    graph = Graph.from_triples([('The "Bell", inventor', "born in", "Edinburgh"), ("x", "y", "z")])
    text = textualise(Subgraph.of_edges(graph, [0]))
    assert text == 'node_id,node_attr\n0,"The ""Bell"", inventor"\n1,Edinburgh\n\nsrc,edge_attr,dst\n0,born in,1\n'
    assert next(csv.reader(StringIO(text.splitlines()[1]))) == ["0", 'The "Bell", inventor']


def test_a_question_gets_its_connected_part(family: Graph) -> None:
    finder = PCSTFinder(family, BM25Scorer(), PCSTSettings(nodes=2, edges=1, cost=0.5))
    found = finder.find("Which nationality is frederica 's spouse ernest augustus ?")
    texts = [family.edge_text(edge) for edge in found.subgraph.edges.tolist()]
    assert "frederica spouse ernest augustus" in texts
    assert (found.nodes, found.edges) == (8, 8)


def test_the_names_of_a_graph_are_counted_once_for_all_questions(family: Graph) -> None:
    counted = list[int]()

    class Noted(BM25Scorer):
        def over(self, texts: Sequence[str]) -> Callable[[str], Scored]:
            counted.append(len(texts))
            return super().over(texts)

    finder, fresh = PCSTFinder(family, Noted()), PCSTFinder(family, BM25Scorer())
    for question in ("Who is the spouse of frederica?", "Who knows nobody?"):
        assert finder.find(question).node_prizes.tolist() == fresh.find(question).node_prizes.tolist()
    assert counted == [8, 5]


def test_without_prizes_to_give_a_small_graph_is_taken_whole(family: Graph) -> None:
    found = PCSTFinder(family, BM25Scorer(), PCSTSettings(nodes=0, edges=0)).find("anything")
    assert len(found.subgraph.edges) == len(family.edges)


def test_of_a_large_graph_only_the_neighbourhood_is_looked_at(hash_embedder: Any) -> None:
    chain = [Triple(f"town {n}", "road to", f"town {n + 1}") for n in range(200)]
    graph = Graph.from_index(KGIndex.in_memory([PassageFacts("p", tuple(chain))], hash_embedder))
    found = PCSTFinder(graph, settings=PCSTSettings(neighbourhood=Extraction(max_ent=12))).find("town 50", [])
    assert found.nodes == 12
    assert graph.find("town 50") in found.subgraph.nodes


def test_a_graph_without_vectors_needs_a_scorer(family: Graph) -> None:
    with pytest.raises(ValueError, match="a scorer, or a KGIndex with vectors"):
        PCSTFinder(family)

"""PCST: the reduction against brute force, the guarantee of the tree, and the text that comes out."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.records import Triple
from ras_agent.running.protocols import Scored
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.subgraph.extract import Extraction
from ras_agent.tools.subgraph.graph import Graph, Subgraph, textualise
from ras_agent.tools.subgraph.pcst import (
    PCSTFinder,
    PCSTSettings,
    Prizes,
    instance_of,
    prizes_of,
    steiner_tree,
)
from ras_agent.tools.subgraph.scorers.bm25 import BM25Scorer

SIZES = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0])


@st.composite
def problems(draw: Any) -> tuple[np.ndarray, Prizes]:
    """Up to 5 nodes and 5 edges, loops and parallel edges among them."""
    count = draw(st.integers(1, 5))
    ends = draw(st.lists(st.tuples(*[st.integers(0, count - 1)] * 2), max_size=5))
    nodes = draw(st.lists(SIZES, min_size=count, max_size=count))
    edges = draw(st.lists(SIZES, min_size=len(ends), max_size=len(ends)))
    cost = draw(st.sampled_from([0.5, 1.0]))
    return np.array(ends, np.int64).reshape(-1, 2), Prizes(
        np.array(nodes), np.array(edges), cost
    )


def connected(nodes: set[int], edges: list[tuple[int, int]]) -> bool:
    reached, left = {min(nodes)}, True
    while left:
        grown = {end for edge in edges if reached & set(edge) for end in edge} | reached
        reached, left = grown, grown != reached
    return reached == nodes


def best_value(
    ends: np.ndarray,
    node_prizes: np.ndarray,
    edge_prizes: np.ndarray,
    costs: np.ndarray,
) -> float:
    """By trying every connected subgraph: prizes of nodes and edges less the costs of edges."""
    value = float(node_prizes.max(initial=0.0))  # a single node
    for size in range(1, len(ends) + 1):
        for chosen in combinations(range(len(ends)), size):
            edges = [(int(ends[e, 0]), int(ends[e, 1])) for e in chosen]
            nodes = {end for edge in edges for end in edge}
            if connected(nodes, edges):
                gained = (
                    node_prizes[list(nodes)].sum() + edge_prizes[list(chosen)].sum()
                )
                value = max(value, float(gained - costs[list(chosen)].sum()))
    return value


def objective(prizes: Prizes, nodes: np.ndarray, edges: np.ndarray) -> float:
    """Eq. 7: what `nodes` and `edges` (places in the subgraph) are worth, less the cost of the edges."""
    return float(
        prizes.nodes[nodes].sum() + prizes.edges[edges].sum() - prizes.cost * len(edges)
    )


@given(problems())
def test_virtual_nodes_keep_the_best_value(problem: tuple[np.ndarray, Prizes]) -> None:
    ends, prizes = problem
    wanted = best_value(
        ends, prizes.nodes, prizes.edges, np.full(len(ends), prizes.cost)
    )
    made = instance_of(ends, prizes)
    assert best_value(
        made.ends, made.prizes, np.zeros(len(made.ends)), made.costs
    ) == pytest.approx(wanted)


@given(problems())
def test_the_tree_is_connected_and_within_its_guarantee(
    problem: tuple[np.ndarray, Prizes],
) -> None:
    ends, prizes = problem
    count = len(prizes.nodes)
    edges = np.stack([ends[:, 0], np.arange(len(ends)), ends[:, 1]], axis=1).astype(
        np.int32
    )
    graph = Graph(
        [str(n) for n in range(count)], [str(e) for e in range(len(ends))], edges
    )
    tree = steiner_tree(Subgraph.full(graph), prizes)
    best = best_value(ends, prizes.nodes, prizes.edges, np.full(len(ends), prizes.cost))
    if not len(tree.nodes):
        assert best == 0
        return
    assert connected(
        set(tree.nodes.tolist()), [(int(h), int(t)) for h, t in ends[tree.edges]]
    )
    found = objective(prizes, tree.nodes, tree.edges)
    assert found <= best + 1e-9
    # Goemans and Williamson: costs plus prizes left behind are at most twice the least there is
    total = float(instance_of(ends, prizes).prizes.sum())
    assert total - found <= 2 * (total - best) + 1e-9


def test_the_best_have_prizes_from_k_down_to_one_and_edges_that_tie_share_theirs() -> (
    None
):
    prizes = prizes_of(
        np.array([0.1, 0.9, 0.5, 0.9]),
        np.array([0.3, 0.8, 0.8, 0.1]),
        nodes=3,
        edges=2,
        cost=1,
    )
    assert prizes.nodes.tolist() == [0, 3, 1, 2]
    assert prizes.edges.tolist() == [1, 1, 1, 0]


def published(
    ends: np.ndarray,
    node_scores: np.ndarray,
    edge_scores: np.ndarray,
    topk: int,
    topk_e: int,
    cost: float,
) -> tuple[set[int], set[int]]:
    """G-Retriever's `retrieval_via_pcst`, from its published code, in NumPy: the chosen nodes and edges."""
    from pcst_fast import pcst_fast

    count, less = len(node_scores), 0.01
    topk = min(topk, count)
    node_prizes = np.zeros(count)
    node_prizes[np.argsort(-node_scores, kind="stable")[:topk]] = np.arange(topk, 0, -1)
    distinct = np.unique(edge_scores)
    topk_e = min(topk_e, len(distinct))
    top = np.sort(distinct)[::-1][:topk_e]
    edge_prizes = edge_scores.astype(float).copy()
    edge_prizes[edge_scores < top[-1]] = 0.0
    last = float(topk_e)
    for k in range(topk_e):
        equal = edge_scores == top[k]
        value = min((topk_e - k) / equal.sum(), last)
        edge_prizes[equal] = value
        last = value * (1 - less)
    cost = min(cost, edge_prizes.max() * (1 - less / 2))
    plain, costs, dear = [], [], []
    mapped: dict[int, int] = {}
    for edge, (one, other) in enumerate(ends.tolist()):
        if edge_prizes[edge] <= cost:
            mapped[len(plain)] = edge
            plain.append((one, other))
            costs.append(cost - edge_prizes[edge])
        else:
            dear.append((edge, one, other))
    virtual = [
        pair
        for at, (_, one, other) in enumerate(dear)
        for pair in ((one, count + at), (count + at, other))
    ]
    prizes = np.concatenate(
        [node_prizes, [edge_prizes[edge] - cost for edge, _, _ in dear]]
    )
    all_edges = np.array(plain + virtual, np.int64).reshape(-1, 2)
    nodes, rows = pcst_fast(
        all_edges, prizes, np.array(costs + [0.0] * len(virtual)), -1, 1, "gw", 0
    )
    edges = {mapped[row] for row in rows.tolist() if row < len(plain)}
    edges |= {dear[node - count][0] for node in nodes.tolist() if node >= count}
    chosen = {node for node in nodes.tolist() if node < count}
    return chosen | {int(end) for edge in edges for end in ends[edge]}, edges


@pytest.mark.parametrize("seed", range(40))
def test_ties_as_published_give_the_published_codes_subgraph(seed: int) -> None:
    dice = np.random.default_rng(seed)
    count, relations = 30, int(dice.integers(2, 12))  # few relations make many ties
    ends = np.array(
        [pair for pair in dice.integers(0, count, (90, 2)) if pair[0] != pair[1]]
    )
    kinds = dice.integers(0, relations, len(ends))
    of_nodes, of_relations = dice.normal(size=count), dice.normal(size=relations)
    graph = Graph(
        [str(n) for n in range(count)],
        [str(r) for r in range(relations)],
        np.stack([ends[:, 0], kinds, ends[:, 1]], axis=1).astype(np.int32),
    )
    nodes, edges, cost = ((3, 5, 0.5), (3, 3, 1.0))[seed % 2]
    prizes = prizes_of(
        of_nodes,
        of_relations[kinds],
        nodes=nodes,
        edges=edges,
        cost=cost,
        published=True,
    )
    tree = steiner_tree(Subgraph.full(graph), prizes, published=True)
    wanted = published(ends, of_nodes, of_relations[kinds], nodes, edges, cost)
    assert (set(tree.nodes.tolist()), set(tree.edges.tolist())) == wanted


def test_prizes_of_ties_as_published() -> None:
    made = prizes_of(
        np.array([0.9, -0.1]),
        np.array([0.5, 0.5, 0.5, 0.5, 0.4, 0.3]),
        nodes=3,
        edges=3,
        published=True,
    )
    assert made.nodes.tolist() == [2, 1]  # any score, and no more than there are nodes
    # three prizes: 3 shared by four; 2, but less than the better ones have; 1, but less again
    assert made.edges.tolist() == pytest.approx(
        [0.75] * 4 + [0.75 * 0.99, 0.75 * 0.99**2]
    )
    assert made.cost == 0.5
    low = prizes_of(np.array([1.0]), np.full(10, 0.5), nodes=1, edges=5, published=True)
    # one edge is always worth it
    assert (low.edges[0], low.cost) == (
        pytest.approx(0.1),
        pytest.approx(0.1 * 0.995),
    )


def test_a_finder_takes_ties_as_published(family: Graph) -> None:
    # three edges share the prize of "nationality", less than the cost of one
    ours = PCSTSettings(nodes=0, edges=1, cost=0.9)
    found = [
        PCSTFinder(family, BM25Scorer(), how)
        .find("which nationality ?")
        .subgraph.edges.tolist()
        for how in (ours, replace(ours, published=True))
    ]
    assert found[0] == []
    assert family.relations[family.edges[found[1][0], 1]] == "nationality"


def test_what_does_not_fit_at_all_has_no_prize() -> None:
    prizes = prizes_of(
        np.array([0.0, 0.5, -0.1]), np.array([0.0, 0.0]), nodes=3, edges=2
    )
    assert (prizes.nodes.tolist(), prizes.edges.tolist()) == ([0, 3, 0], [0, 0])


def test_a_dear_edge_is_bought_with_both_its_ends() -> None:
    graph = Graph.from_triples([("a", "r", "b"), ("b", "s", "c")])
    tree = steiner_tree(
        Subgraph.full(graph), Prizes(np.array([1.0, 0, 0]), np.array([2.0, 0]), 0.5)
    )
    assert (tree.nodes.tolist(), tree.edges.tolist()) == ([0, 1], [0])


def test_an_edge_costs_what_its_prize_leaves() -> None:
    graph = Graph.from_triples([("a", "r", "b"), ("b", "s", "c")])
    nodes = np.array([2.0, 0, 0.6])
    near = steiner_tree(Subgraph.full(graph), Prizes(nodes, np.array([0.0, 0.0]), 0.5))
    assert near.nodes.tolist() == [0]  # the way to c costs 1.0
    prized = steiner_tree(
        Subgraph.full(graph), Prizes(nodes, np.array([0.5, 0.0]), 0.5)
    )
    assert prized.nodes.tolist() == [0, 1, 2]  # now 0.5


def test_negative_prizes_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        Prizes(np.array([-1.0]), np.array([]))


def test_the_text_is_two_csv_blocks_that_read_back() -> None:
    graph = Graph.from_triples(
        [('The "Bell", inventor', "born in", "Edinburgh"), ("x", "y", "z")]
    )
    text = textualise(Subgraph.of_edges(graph, [0]))
    assert (
        text
        == 'node_id,node_attr\n0,"The ""Bell"", inventor"\n1,Edinburgh\n\nsrc,edge_attr,dst\n0,born in,1\n'
    )
    assert next(csv.reader(StringIO(text.splitlines()[1]))) == [
        "0",
        'The "Bell", inventor',
    ]


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
        assert (
            finder.find(question).node_prizes.tolist()
            == fresh.find(question).node_prizes.tolist()
        )
    assert counted == [8, 5]


def test_without_prizes_to_give_a_small_graph_is_taken_whole(family: Graph) -> None:
    found = PCSTFinder(family, BM25Scorer(), PCSTSettings(nodes=0, edges=0)).find(
        "anything"
    )
    assert len(found.subgraph.edges) == len(family.edges)


def test_of_a_large_graph_only_the_neighbourhood_is_looked_at(
    hash_embedder: Any,
) -> None:
    chain = [Triple(f"town {n}", "road to", f"town {n + 1}") for n in range(200)]
    graph = Graph.from_index(
        KGIndex.in_memory([PassageFacts("p", tuple(chain))], hash_embedder)
    )
    found = PCSTFinder(
        graph, settings=PCSTSettings(neighbourhood=Extraction(max_ent=12))
    ).find("town 50", [])
    assert found.nodes == 12
    assert graph.find("town 50") in found.subgraph.nodes


def test_a_graph_without_vectors_needs_a_scorer(family: Graph) -> None:
    with pytest.raises(
        ValueError, match="a scorer, or the graph of a KGIndex with vectors"
    ):
        PCSTFinder(family)

"""Which nodes are taken around a question's entities."""

from __future__ import annotations

import numpy as np
import pytest

from ras_agent.tools.subgraph.extract import EXTRACTIONS, Extraction, ego, ppr, rwr
from ras_agent.tools.subgraph.graph import Graph, Subgraph


def names(graph: Graph, nodes: list[int]) -> set[str]:
    return {graph.nodes[node] for node in nodes}


def test_an_ego_network_reaches_as_far_as_its_radius(family: Graph) -> None:
    near = ego(family, [0], Extraction(hops=1))
    assert names(family, near.nodes.tolist()) == {
        "frederica",
        "ernest_augustus",
        "charles_ii",
    }
    assert names(family, ego(family, [0], Extraction(hops=2)).nodes.tolist()) == {
        *("frederica", "ernest_augustus", "charles_ii"),
        *("united_kingdom", "germany", "george_v"),
    }


def test_page_rank_takes_the_nodes_that_the_formula_ranks_highest(
    family: Graph,
) -> None:
    # the stationary walk by repeated multiplication, parallel edges counted
    steps = np.zeros((len(family.nodes),) * 2)
    for head, _, tail in family.edges.tolist():
        steps[head, tail] += 1
        steps[tail, head] += 1
    steps /= steps.sum(axis=0)
    start = np.eye(len(family.nodes))[0]
    scores = start
    for _ in range(500):
        scores = 0.8 * steps @ scores + 0.2 * start
    wanted = np.argsort(-scores, kind="stable")[:4]
    assert set(ppr(family, [0], Extraction(max_ent=4)).nodes.tolist()) == set(
        wanted.tolist()
    )


def test_what_no_walk_reaches_is_left_out(family: Graph) -> None:
    for extraction in EXTRACTIONS.values():
        found = names(family, extraction(family, [0], Extraction()).nodes.tolist())
        assert "frederica" in found
        assert not found & {"lonely", "nobody"}


@pytest.mark.parametrize("name", EXTRACTIONS)
def test_starts_come_first_and_max_ent_is_kept(family: Graph, name: str) -> None:
    part = EXTRACTIONS[name](family, [7, 0], Extraction(max_ent=3))
    assert len(part.nodes) == 3
    assert {0, 7} <= set(part.nodes.tolist())


@pytest.mark.parametrize("name", EXTRACTIONS)
def test_without_a_start_there_is_nothing(family: Graph, name: str) -> None:
    assert EXTRACTIONS[name](family, [], Extraction()).nodes.tolist() == []


def test_walks_are_the_same_for_the_same_seed(family: Graph) -> None:
    few = Extraction(walks=1, steps=2, damping=0.5)
    assert rwr(family, [0], few).nodes.tolist() == rwr(family, [0], few).nodes.tolist()


def star(leaves: int) -> Graph:
    """Node 0 with an edge to each of 1, 2, ..."""
    return Graph.from_triples(
        [("hub", "near", f"leaf {number}") for number in range(leaves)]
    )


def test_a_walk_goes_on_with_the_chance_of_the_damping() -> None:
    line = Graph.from_triples(
        [(str(number), "next", str(number + 1)) for number in range(9)]
    )
    # one step, and back
    assert rwr(line, [0], Extraction(damping=0.0)).nodes.tolist() == [
        0,
        1,
    ]
    assert rwr(line, [0], Extraction(damping=0.99)).nodes.tolist() == list(range(10))


def test_every_start_has_its_walks_of_so_many_steps_at_most() -> None:
    one_step = Extraction(walks=1, steps=1, damping=0.99)
    assert len(rwr(star(40), [0], one_step).nodes) == 2
    assert len(rwr(star(40), [0, 1], one_step).nodes) == 3
    assert len(rwr(star(3), [0], Extraction(walks=64, steps=1)).nodes) == 4
    # there and back
    assert (
        len(rwr(star(40), [0], Extraction(walks=1, steps=2, damping=0.99)).nodes) == 2
    )


def test_walks_are_of_the_seed() -> None:
    ends = [
        rwr(star(1000), [0], Extraction(walks=1, steps=1, seed=seed)).nodes.tolist()
        for seed in range(3)
    ]
    # Random(0), Random(1) and Random(2) choose these of 1,000
    assert ends == [
        [0, 865],
        [0, 138],
        [0, 979],
    ]


def test_what_walks_visit_most_is_taken() -> None:
    often = [("a", f"relation {number}", "c") for number in range(9)]
    graph = Graph.from_triples([("a", "relation", "b"), *often])
    kept = rwr(graph, [0], Extraction(max_ent=2, damping=0.0)).nodes.tolist()
    assert [graph.nodes[node] for node in kept] == ["a", "c"]


def test_walks_look_only_at_the_nodes_they_come_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, looked = star(1000), list[int]()
    near = Graph.neighbours
    monkeypatch.setattr(
        Graph,
        "neighbours",
        lambda self, node: [looked.append(node), near(self, node)][1],
    )
    monkeypatch.setattr(Subgraph, "full", None)
    assert rwr(graph, [5], Extraction(walks=3, steps=1)).nodes.tolist() == [0, 5]
    assert looked == [5]


def test_neighbours_are_in_the_order_of_the_edges_without_loops(family: Graph) -> None:
    assert [family.nodes[node] for node in family.neighbours(0)] == [
        "ernest_augustus",
        "charles_ii",
        "charles_ii",
    ]
    assert Graph.from_triples([("a", "r", "a"), ("b", "r", "a")]).neighbours(0) == [1]


def test_a_damping_of_one_never_comes_back_and_is_refused() -> None:
    with pytest.raises(ValueError, match="damping"):
        Extraction(damping=1.0)

"""Which nodes are taken around a question's entities."""

from __future__ import annotations

import numpy as np
import pytest

from ras_agent.tools.subgraph.extract import EXTRACTIONS, Extraction, ego, ppr, rwr
from ras_agent.tools.subgraph.graph import Graph


def names(graph: Graph, nodes: list[int]) -> set[str]:
    return {graph.nodes[node] for node in nodes}


def test_an_ego_network_reaches_as_far_as_its_radius(family: Graph) -> None:
    near = ego(family, [0], Extraction(hops=1))
    assert names(family, near.nodes.tolist()) == {"frederica", "ernest_augustus", "charles_ii"}
    assert names(family, ego(family, [0], Extraction(hops=2)).nodes.tolist()) == {
        *("frederica", "ernest_augustus", "charles_ii"),
        *("united_kingdom", "germany", "george_v"),
    }


def test_page_rank_takes_the_nodes_that_the_formula_ranks_highest(family: Graph) -> None:
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
    assert set(ppr(family, [0], Extraction(max_ent=4)).nodes.tolist()) == set(wanted.tolist())


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


def test_a_damping_of_one_never_comes_back_and_is_refused() -> None:
    with pytest.raises(ValueError, match="damping"):
        Extraction(damping=1.0)

"""Which paths there are: against networkx's own counts, and led by a scorer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.running.protocols import Scored
from ras_agent.tools.subgraph.extract import Extraction
from ras_agent.tools.subgraph.graph import Graph, Subgraph
from ras_agent.tools.subgraph.paths import (
    Path,
    PathLimits,
    at_random,
    beam,
    by_score,
    complete,
    prune,
    shortest,
)
from ras_agent.tools.subgraph.pipeline import PathSettings
from ras_agent.tools.subgraph.scorers.bm25 import BM25Scorer
from ras_agent.tools.subgraph.scoring import RelativeScorer

EDGES = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 1), st.integers(0, 6)).filter(
        lambda e: e[0] != e[2]
    ),
    # networkx tells paths by their nodes
    unique_by=lambda edge: frozenset((edge[0], edge[2])),
    min_size=1,
    max_size=12,
)


class Liking:
    """Scores a text by how many of some words it holds. Keeps its requests."""

    name = "liking"

    def __init__(self, *words: str) -> None:
        self.words, self.asked = words, list[str]()

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        self.asked += texts
        return Scored(
            np.array(
                [sum(word in text for word in self.words) for text in texts],
                dtype=np.float32,
            )
        )


def graph_of(edges: list[tuple[int, int, int]]) -> Graph:
    return Graph([str(n) for n in range(7)], ["r", "s"], np.array(edges, np.int32))


def texts(graph: Graph, paths: Sequence[Path]) -> list[str]:
    return [path.text(graph) for path in paths]


def _network(edges: list[tuple[int, int, int]]) -> networkx.Graph:
    network = networkx.Graph((head, tail) for head, _, tail in edges)
    network.add_nodes_from(range(7))
    return network


@given(EDGES)
def test_shortest_paths_are_those_networkx_finds(
    edges: list[tuple[int, int, int]],
) -> None:
    found = shortest(Subgraph.full(graph_of(edges)), [0], PathLimits(longest=0)).paths
    network = _network(edges)
    reached = networkx.node_connected_component(network, 0) - {0}
    wanted = [
        tuple(path)
        for node in reached
        for path in networkx.all_shortest_paths(network, 0, node)
    ]
    assert sorted(path.nodes for path in found) == sorted(wanted)


@given(EDGES, st.integers(1, 4))
def test_complete_paths_are_those_networkx_finds(
    edges: list[tuple[int, int, int]], longest: int
) -> None:
    found = complete(
        Subgraph.full(graph_of(edges)), [0], PathLimits(longest=longest)
    ).paths
    network = _network(edges)
    wanted = [
        tuple(path)
        for node in range(1, 7)
        for path in networkx.all_simple_paths(network, 0, node, longest)
    ]
    assert sorted(path.nodes for path in found) == sorted(wanted)


def test_parallel_edges_are_paths_of_their_own_and_short_ones_come_first(
    family: Graph,
) -> None:
    found = shortest(Subgraph.full(family), [0])
    assert texts(family, found.paths) == [
        "frederica → spouse → ernest_augustus",
        "frederica → parents → charles_ii",
        "frederica ← children ← charles_ii",
        "frederica → spouse → ernest_augustus → nationality → united_kingdom",
        "frederica → spouse → ernest_augustus ← parents ← george_v",
        "frederica → parents → charles_ii → nationality → germany",
        "frederica ← children ← charles_ii → nationality → germany",
    ]
    assert not found.truncated


def test_a_limit_cuts_the_longest_and_says_so(family: Graph) -> None:
    found = shortest(Subgraph.full(family), [0], PathLimits(most=3))
    assert [len(path) for path in found.paths] == [1, 1, 1]
    assert found.truncated


def test_complete_paths_need_a_length_cap(family: Graph) -> None:
    with pytest.raises(ValueError, match="maximum length: give `longest`"):
        complete(Subgraph.full(family), [0], PathLimits(longest=0))


def test_a_start_outside_the_subgraph_has_no_paths(family: Graph) -> None:
    part = Subgraph.of_edges(family, [7])
    for filtering in (shortest, complete):
        assert filtering(part, [0]).paths == ()
    assert beam(part, [0], Liking("spouse"), "?").paths == ()


def test_a_beam_follows_what_its_scorer_likes_and_judges_each_edge_once(
    family: Graph,
) -> None:
    scorer = Liking("spouse", "nationality")
    found = beam(
        Subgraph.full(family),
        [0],
        scorer,
        "which nationality?",
        PathLimits(longest=2, width=1),
    )
    assert texts(family, found.paths) == [
        "frederica → spouse → ernest_augustus",
        "frederica → spouse → ernest_augustus → nationality → united_kingdom",
    ]
    assert len(scorer.asked) == len(set(scorer.asked)) == 5


@pytest.mark.parametrize("starts", [("bob",), ("ann", "bob"), ("bob", "ann")])
def test_words_are_rare_among_the_facts_that_compete_whatever_other_starts_there_are(
    starts: Sequence[str],
) -> None:
    # "spouse" is as rare as "club" among bob's facts, and "ann" is found, too
    likes = [("bob", "likes", f"thing{number}") for number in range(10)]
    graph = Graph.from_triples(
        [("ann", "spouse", "bob"), ("bob", "visited", "spouse club"), *likes]
    )
    nodes = [number for number in map(graph.find, starts) if number is not None]
    limits = PathLimits(longest=1, width=1)
    found = beam(
        Subgraph.full(graph), nodes, BM25Scorer(), "who is the spouse of ann", limits
    ).paths
    assert [path.text(graph) for path in found if path.start == graph.find("bob")] == [
        "bob ← spouse ← ann"
    ]


def test_a_front_is_judged_in_one_call_by_a_scorer_whose_calls_do_not_compare(
    family: Graph,
) -> None:
    calls: list[Sequence[str]] = []

    class Noted(BM25Scorer):
        def over(self, texts: Sequence[str]) -> Callable[[str], Scored]:
            calls.append(texts)
            return super().over(texts)

    assert isinstance(BM25Scorer(), RelativeScorer)
    assert not isinstance(Liking(), RelativeScorer)
    beam(
        Subgraph.full(family),
        [0],
        Noted(),
        "?",
        PathLimits(longest=2, width=1),
        "relations",
    )
    # "nationality" of the second front is judged next to "parents", which the first front had as well
    assert [sorted(texts) for texts in calls] == [
        ["children", "parents", "spouse"],
        ["nationality", "parents"],
    ]


def test_a_wide_enough_beam_keeps_every_path(family: Graph) -> None:
    part, limits = Subgraph.full(family), PathLimits(longest=4, width=128)
    led = beam(part, [0], Liking("parents"), "?", limits).paths
    assert set(led) == set(complete(part, [0], limits).paths)


def test_pruning_keeps_the_best_edges_their_ends_and_the_starts(family: Graph) -> None:
    part = prune(
        Subgraph.full(family), [0], Liking("nationality", "germany"), "?", window=2
    ).subgraph
    assert [family.edge_text(edge) for edge in part.edges.tolist()] == [
        "charles ii nationality germany",
        "george v nationality germany",
    ]
    assert 0 in part.nodes


def test_a_random_choice_is_seeded_and_keeps_the_order(family: Graph) -> None:
    paths = complete(Subgraph.full(family), [0]).paths
    first, again, other = (
        at_random(paths, 3, 1),
        at_random(paths, 3, 1),
        at_random(paths, 3, 2),
    )
    assert first == again != other
    places = [paths.index(one.path) for one in first.paths]
    assert places == sorted(places)
    assert len(places) == 3


def test_refinement_puts_the_best_path_first_and_reads_equal_texts_once(
    family: Graph,
) -> None:
    paths = shortest(Subgraph.full(family), [0]).paths
    scorer = Liking("germany", "parents")
    kept = by_score(family, [*paths, *paths], 2, scorer, "?").paths
    assert [(one.path.text(family), one.score) for one in kept] == [
        ("frederica → parents → charles_ii → nationality → germany", 2.0),
        ("frederica → parents → charles_ii → nationality → germany", 2.0),
    ]
    assert len(scorer.asked) == len(paths)


def test_relations_alone_are_read_once_for_all_their_facts(family: Graph) -> None:
    scorer = Liking("parents")
    found = beam(
        Subgraph.full(family), [0], scorer, "?", PathLimits(longest=4), "relations"
    )
    assert (
        sorted(scorer.asked)
        == sorted(set(scorer.asked))
        == ["children", "nationality", "parents", "spouse"]
    )
    best = by_score(
        family, found.paths, 1, Liking("→ spouse ← parents"), "?", "relations"
    ).paths[0]
    assert (
        best.path.text(family)
        == "frederica → spouse → ernest_augustus ← parents ← george_v"
    )
    assert best.path.scored_text(family, "relations") == "→ spouse ← parents"
    part = prune(
        Subgraph.full(family), [0], Liking("nationality"), "?", 3, "relations"
    ).subgraph
    assert {family.edge_text(edge, "relations") for edge in part.edges.tolist()} == {
        "nationality"
    }


def test_the_published_sizes_are_the_defaults() -> None:
    how = Extraction()
    assert (how.max_ent, how.damping, how.walks, PathLimits().width) == (
        2000,
        0.8,
        64,
        128,
    )
    assert (PathSettings().window, PathSettings().top_k) == (24, 64)

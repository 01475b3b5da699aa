"""Personalised PageRank, against networkx and by hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from ras_agent.contracts.errors import MissingExtra
from ras_agent.contracts.records import Triple
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.page_rank import PageRank, walk_matrix
from ras_agent.tools.kg.passage_facts import PassageFacts


def graph_of(*pairs: str) -> KGIndex:
    return KGIndex.in_memory(
        [
            PassageFacts(
                "p", tuple(Triple(pair[0], "r", pair[1]) for pair in pairs), ("z",)
            )
        ]
    )


def test_a_walk_between_two_by_hand() -> None:
    # from a: a = 1/2 + 1/2 b, b = 1/2 a, so a = 2/3
    scores = PageRank(walk_matrix(graph_of("ab"))).scores(
        np.array([1, 0, 0], dtype=np.float32)
    )
    assert scores.tolist() == pytest.approx([2 / 3, 1 / 3, 0], abs=1e-6)


def test_a_walk_from_an_entity_without_edges_stays_there() -> None:
    scores = PageRank(walk_matrix(graph_of("ab"))).scores(
        np.array([0, 0, 3], dtype=np.float32)
    )
    assert scores.tolist() == [0, 0, 1]


@pytest.mark.parametrize("damping", [0.0, 0.5, 0.85])
def test_it_agrees_with_networkx(damping: float) -> None:
    networkx = pytest.importorskip("networkx")
    random = np.random.default_rng(0)
    letters = "abcdefghijklmnopqrst"
    pairs = {
        letters[a] + letters[b] for a, b in random.integers(20, size=(50, 2)) if a != b
    }
    graph = graph_of(*pairs)
    weights = walk_matrix(graph).tocoo()
    twin = networkx.Graph()
    twin.add_nodes_from(range(len(graph.entities)))
    twin.add_weighted_edges_from(
        zip(
            weights.row.tolist(),
            weights.col.tolist(),
            weights.data.tolist(),
            strict=True,
        )
    )
    seeds = np.zeros(len(graph.entities), dtype=np.float32)
    seeds[[1, 4]] = [0.25, 1]
    scores = networkx.pagerank(
        twin, alpha=damping, personalization={1: 0.25, 4: 1}, tol=1e-10, max_iter=1000
    )
    expected = [scores[entity] for entity in range(len(graph.entities))]
    assert PageRank(walk_matrix(graph), damping=damping).scores(
        seeds
    ).tolist() == pytest.approx(expected, abs=1e-5)


def test_weights_in_double_precision_give_scores_in_double_precision() -> None:
    # from one end of a chain of three: a = 1/2 + b/4, b = a/2 + c/2, c = b/4
    graph = graph_of("ab", "bc")
    seeds = np.array([float(name == "a") for name in graph.entities])
    scores = PageRank(walk_matrix(graph).astype(np.float64), tolerance=1e-15).scores(
        seeds
    )
    assert scores.dtype == np.float64
    by_name = dict(zip(graph.entities, scores.tolist(), strict=True))
    assert [by_name[name] for name in "abc"] == pytest.approx(
        [7 / 12, 1 / 3, 1 / 12], abs=1e-14
    )


def test_facts_count_one_each_and_equivalences_their_cosine(
    hash_embedder: object,
) -> None:
    triples = (
        Triple("a b", "r", "c"),
        Triple("a b", "s", "c"),
        Triple("b a", "r", "d"),
    )
    graph = KGIndex.in_memory([PassageFacts("p", triples)], hash_embedder)
    names = [graph.entity_id(name) for name in ("a b", "c", "b a")]
    matrix = walk_matrix(graph, equivalence=0.5).toarray()
    assert matrix[names[0], names[1]] == 2
    assert matrix[names[0], names[2]] == pytest.approx(0.5)
    assert walk_matrix(graph, equivalence=0).toarray()[names[0], names[2]] == 0


def test_facts_of_an_entity_about_itself_do_not_count() -> None:
    graph = graph_of("ab", "aa", "bb")
    assert (
        walk_matrix(graph).toarray().tolist()
        == walk_matrix(graph_of("ab")).toarray().tolist()
    )
    assert walk_matrix(graph).toarray().diagonal().tolist() == [0, 0, 0]


class Near:
    """Embeds so that "river" and "stream" have a cosine of 0.9, and anything else is far from both."""

    name, dimension = "near", 3
    _vectors: ClassVar = {"river": (1, 0, 0), "stream": (0.9, 0.19**0.5, 0)}

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.array(
            [self._vectors.get(text, (0, 0, 1)) for text in texts], dtype=np.float32
        )


def test_an_equivalence_weighs_its_cosine_times_what_it_is_given() -> None:
    graph = KGIndex.in_memory(
        [PassageFacts("p", (Triple("river", "r", "stream"),))], Near()
    )
    # stored in 16 bits
    assert walk_matrix(graph, equivalence=0.5).toarray().max() == pytest.approx(
        1.45, abs=1e-3
    )


def test_where_equivalences_do_not_count_a_walk_stays_at_an_entity_that_has_nothing_else() -> (
    None
):
    graph = KGIndex.in_memory(
        [PassageFacts("p", (Triple("river", "r", "sea"),), ("stream",))], Near()
    )
    seeds = np.eye(3, dtype=np.float32)[graph.entity_id("stream")]
    assert (
        PageRank(walk_matrix(graph, equivalence=0)).scores(seeds).tolist()
        == seeds.tolist()
    )


def test_without_scipy_the_install_line_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(MissingExtra, match=r"ras-agent\[graph\]"):
        walk_matrix(graph_of("ab"))


def test_no_seed_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs a seed"):
        PageRank(walk_matrix(graph_of("ab"))).scores(np.zeros(3, dtype=np.float32))


@pytest.mark.parametrize(
    ("damping", "far"),
    [(0.5, 1e-6), (0.85, 2e-6), (0.99, 2e-5), (0.999, 5e-5), (0.9999, 1e-3)],
)
def test_a_long_walk_is_followed_to_its_end(damping: float, far: float) -> None:
    letters = "abcdefghijklmnopqrst"
    matrix = walk_matrix(graph_of(*(one + other for one, other in pairwise(letters))))
    seeds = np.eye(matrix.shape[0], dtype=np.float32)[0]
    steps = matrix.toarray().astype(float)
    degree = steps.sum(axis=0)
    steps = np.divide(steps, degree, out=np.zeros_like(steps), where=degree > 0)
    wanted = np.linalg.solve(
        np.eye(len(steps)) - damping * steps, (1 - damping) * seeds.astype(float)
    )
    assert np.abs(PageRank(matrix, damping=damping).scores(seeds) - wanted).sum() < far


@pytest.mark.parametrize("damping", [-0.1, 0.99999, 1.0])
def test_a_damping_that_does_not_end_is_refused(damping: float) -> None:
    with pytest.raises(ValueError, match="damping"):
        PageRank(walk_matrix(graph_of("ab")), damping=damping)

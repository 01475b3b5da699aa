"""The features of graphs: nodes by their texts, edges by their ends, a sub-graph for each sub-query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ras_agent.tools.graph_tokens.features import GraphVectors

BELL = ("Bell", "was born in", "Edinburgh")
LEITH = ("Water of Leith", "flows through", "Edinburgh")


class Counting:
    """Embeds a text as its length, and counts how often each is embedded."""

    name, dimension = "counting", 2

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def embed(self, texts: Sequence[str]) -> Any:
        self.seen.update(texts)
        return np.array([[len(text), 1] for text in texts], dtype=np.float32).reshape(
            -1, 2
        )


def test_subjects_and_objects_are_nodes_and_facts_are_edges_from_one_to_the_other() -> (
    None
):
    graph = GraphVectors(Counting()).of_facts([BELL, LEITH])
    assert graph.nodes[:, 0].tolist() == [
        len("Bell"),
        len("Edinburgh"),
        len("Water of Leith"),
    ]
    assert graph.edges[:, 0].tolist() == [len("was born in"), len("flows through")]
    assert graph.edge_index.tolist() == [[0, 2], [1, 1]]
    assert graph.group.tolist() == [0, 0, 0]


def test_names_that_differ_in_case_alone_are_one_node() -> None:
    graph = GraphVectors(Counting()).of_facts(
        [BELL, ("EDINBURGH", "lies in", "Scotland")]
    )
    assert graph.edge_index.tolist() == [[0, 1], [1, 2]]


def test_names_without_any_letter_are_nodes_of_their_own() -> None:
    graph = GraphVectors(Counting()).of_facts(
        [("?!", "precedes", "..."), ("...", "precedes", "?!")]
    )
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]


def test_each_sub_query_has_a_sub_graph_and_one_without_facts_has_none() -> None:
    graph = GraphVectors(Counting()).of_steps([[BELL], [], [LEITH, BELL]])
    assert graph.group.tolist() == [0, 0, 1, 1, 1]
    assert graph.edge_index.tolist() == [[0, 2, 4], [1, 3, 3]]
    assert graph.groups == 2


def test_a_graph_without_facts_has_empty_arrays_of_the_right_shapes() -> None:
    for graph in (
        GraphVectors(Counting()).of_facts([]),
        GraphVectors(Counting()).of_steps([[], []]),
    ):
        assert (graph.nodes.shape, graph.edges.shape, graph.edge_index.shape) == (
            (0, 2),
            (0, 2),
            (2, 0),
        )
        assert graph.groups == 0


def test_a_text_is_embedded_once_while_the_graph_grows() -> None:
    embedder = Counting()
    vectors = GraphVectors(embedder)
    vectors.of_steps([[BELL]])
    vectors.of_steps([[BELL], [LEITH]])
    assert set(embedder.seen.values()) == {1}
    assert set(embedder.seen) == {*BELL, *LEITH}


def test_no_more_texts_are_stored_than_was_said() -> None:
    embedder = Counting()
    vectors = GraphVectors(embedder, most=2)
    for _ in range(2):
        vectors.of_texts(["a", "b"])
        vectors.of_texts(["c"])
    # "a" was dropped for "c", and then "b" and "c" in turn
    assert embedder.seen == {"a": 2, "b": 1, "c": 2}

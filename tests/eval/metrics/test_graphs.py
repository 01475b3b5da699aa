"""Triples, answer entities and cited graphs against scikit-learn and literals worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ras_agent.eval.metrics import Outcome, score
from ras_agent.eval.metrics.answer_sets import SetScore
from ras_agent.eval.metrics.graphs import (
    CitedGraph,
    GraphValidity,
    entity_score,
    graph_validity,
    read_cited_graph,
    triple_score,
)
from ras_agent.eval.question import Question
from ras_agent.records import Triple

NODES = ("mill", "Ardle", "Tam Orr")
EDGES = (("mill", "river", "Ardle"), ("Tam Orr", "owned", "mill"))
TRIPLES = st.lists(st.tuples(*[st.sampled_from(["a", "b"])] * 3), max_size=8)


def test_triples_are_the_same_by_canonical_key() -> None:
    predicted = [("The Mill", "river", "ardle"), ("mill", "river", "Isla")]
    assert triple_score(predicted, EDGES) == SetScore(0.5, 0.5, 0.5)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(TRIPLES, TRIPLES)
def test_triple_scores_are_scikit_learns(
    predicted: list[tuple[str, str, str]], gold: list[tuple[str, str, str]]
) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    every = [(s, p, o) for s in "ab" for p in "ab" for o in "ab"]
    expected = metrics.precision_recall_fscore_support(
        [triple in gold for triple in every],
        [triple in predicted for triple in every],
        average="binary",
        zero_division=0,
    )
    found = triple_score(predicted, gold)
    assert (found.precision, found.recall, found.f1) == pytest.approx(expected[:3])


def test_entities_are_heads_and_tails() -> None:
    # three entities, one of the two answers among them
    assert entity_score(EDGES, ["ardle", "Isla"]) == SetScore(1 / 3, 1 / 2, pytest.approx(0.4))


def test_what_is_cited_either_exists_or_not() -> None:
    cited = CitedGraph(("Mill", "wheel"), (("mill", "river", "Ardle"), ("Ardle", "river", "mill")))
    assert graph_validity(cited, NODES, EDGES) == GraphValidity(nodes=2, valid_nodes=1, edges=2, valid_edges=1)
    assert not graph_validity(cited, NODES, EDGES).fully_valid


def test_a_fully_valid_graph_cites_something() -> None:
    assert graph_validity(CitedGraph(("mill",), EDGES), NODES, EDGES).fully_valid
    assert not graph_validity(CitedGraph(), NODES, EDGES).fully_valid


def test_an_object_of_a_scene_may_be_cited_by_its_name() -> None:
    scene = ("name: mill; attribute: old; (x,y,w,h): (1, 2, 3, 4)", "name: tree; (x,y,w,h): (5, 6, 7, 8)")
    cited = CitedGraph(("mill", "tree"), (("mill", "near", "tree"), ("tree", "near", "mill")))
    found = graph_validity(cited, scene, [(scene[0], "near", scene[1])])
    assert (found.valid_nodes, found.valid_edges) == (2, 1)


def test_bullets_below_nodes_and_edges_anywhere_are_read() -> None:
    reply = """The mill is on the Ardle.

    **Nodes:**
    - mill
    - Ardle

    Edges:
    - (mill; river; Ardle)
    - (S> Tam Orr | P> owned | O> mill)
    - (mill, near, tree)
    - (mill; river; Ardle)
    """
    assert read_cited_graph(reply) == CitedGraph(
        ("mill", "Ardle"), (("mill", "river", "Ardle"), ("Tam Orr", "owned", "mill"), ("mill", "near", "tree"))
    )


def test_nodes_may_stand_on_one_line() -> None:
    assert read_cited_graph("Nodes: mill, Tam Orr; mill\nThat is all.").nodes == ("mill", "Tam Orr")


@pytest.mark.parametrize("reply", ["", "No graph.", "at (3, 4, 5)", "(x,y,w,h): (1, 2, 3, 4)", "a (b) c (d; e)"])
def test_a_reply_may_cite_nothing(reply: str) -> None:
    assert read_cited_graph(reply) == CitedGraph()


def test_a_question_without_a_graph_is_held_to_the_one_that_the_agent_built() -> None:
    metrics = ("valid_nodes", "valid_edges", "fully_valid")
    reply = "Ardle\nNodes: mill, Isla\nEdges:\n- (mill; river; Ardle)"
    question = Question("1", "Which river?", ("Ardle",))
    built = {"1": Triple("mill", "river", "Ardle")}
    assert score(question, Outcome(reply, facts=built), metrics) == {
        "valid_nodes": 0.5,
        "valid_edges": 1.0,
        "fully_valid": 0.0,
    }
    assert score(question, Outcome(reply), metrics) == {}

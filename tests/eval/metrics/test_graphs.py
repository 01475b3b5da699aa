"""Triples and answer entities against scikit-learn and literals worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ras_agent.eval.metrics.answer_sets import SetScore
from ras_agent.eval.metrics.graphs import entity_score, triple_score

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
    assert entity_score(EDGES, ["ardle", "Isla"]) == SetScore(
        1 / 3, 1 / 2, pytest.approx(0.4)
    )

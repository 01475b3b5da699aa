"""The plain network against loops in NumPy."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ras_agent.tools.gfm.cached_rows import cache_rows
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import (
    GraphTensors,
    isolated_scores,
    plain_scores,
    project_relations,
    relation_inputs,
)
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights


def _tensors(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


@pytest.mark.parametrize("message_target", ["head", "tail"])
def test_the_network_equals_loops_over_entities_and_facts(
    small: dict[str, Any], loops: Any, message_target: str
) -> None:
    config = GFMConfig(text_width=12, width=8, layers=3, message_target=message_target)
    graph = GFMGraph.from_edges(
        40, small["facts"], small["vectors"], small["inverse"], message_target
    )
    given = torch.from_numpy(small["questions"]), torch.from_numpy(small["start"])
    found = plain_scores(
        _tensors(small["weights"]), GraphTensors.of(graph), *given
    ).numpy()
    for row in range(3):
        expected = loops(
            small["weights"],
            config,
            small["facts"],
            small["vectors"],
            small["inverse"],
            small["questions"][row],
            small["start"][row],
        )
        np.testing.assert_allclose(found[row], expected, rtol=1e-4, atol=1e-4)


def test_a_node_without_messages_has_one_logit_in_any_graph(
    small: dict[str, Any],
) -> None:
    weights, questions = (
        _tensors(small["weights"]),
        torch.from_numpy(small["questions"]),
    )
    # node 40 is in no fact
    graph = GFMGraph.from_edges(41, small["facts"], small["vectors"], small["inverse"])
    start = torch.cat((torch.from_numpy(small["start"]), torch.zeros(3, 1)), dim=1)
    expected = plain_scores(weights, GraphTensors.of(graph), questions, start)[:, 40]
    torch.testing.assert_close(isolated_scores(weights, questions), expected)


def test_relation_states_computed_before_give_the_same_scores(
    small: dict[str, Any],
) -> None:
    weights, graph = _tensors(small["weights"]), GraphTensors.of(small["graph"])
    given = torch.from_numpy(small["questions"]), torch.from_numpy(small["start"])
    inputs = relation_inputs(weights, graph.vectors)
    known = [
        cache_rows(project_relations(weights, layer, inputs), half=False)
        for layer in range(3)
    ]
    torch.testing.assert_close(
        plain_scores(weights, graph, *given, known),
        plain_scores(weights, graph, *given),
    )


def test_relation_states_cached_in_16_bits_score_as_the_same_states_in_float32(
    small: dict[str, Any],
) -> None:
    weights, graph = _tensors(small["weights"]), GraphTensors.of(small["graph"])
    given = torch.from_numpy(small["questions"]), torch.from_numpy(small["start"])
    inputs = relation_inputs(weights, graph.vectors)
    narrow = [
        cache_rows(project_relations(weights, layer, inputs), half=True)
        for layer in range(3)
    ]
    wide = [cache_rows(cached.rows(slice(None)), half=False) for cached in narrow]
    torch.testing.assert_close(
        plain_scores(weights, graph, *given, narrow),
        plain_scores(weights, graph, *given, wide),
    )


def test_a_message_of_weight_zero_counts_for_nothing(small: dict[str, Any]) -> None:
    weights, facts = _tensors(small["weights"]), small["facts"]
    given = torch.from_numpy(small["questions"]), torch.from_numpy(small["start"])
    graph = GraphTensors.of(small["graph"])
    others = (graph.relation != 2) & (graph.relation != 2 + 5)
    without = GFMGraph.from_edges(
        40, facts[facts[:, 1] != 2], small["vectors"], small["inverse"]
    )
    found = plain_scores(weights, graph, *given, message_weights=[others.float()] * 3)
    torch.testing.assert_close(
        found, plain_scores(weights, GraphTensors.of(without), *given)
    )


def test_a_fact_sends_a_message_to_its_head_and_its_inverse_one_to_its_tail() -> None:
    vectors, inverse = np.zeros((2, 1, 4), dtype=np.float32)
    graph = GFMGraph.from_edges(3, np.array([[0, 0, 2]]), vectors, inverse)
    assert graph.indptr.tolist() == [0, 1, 1, 2]
    assert graph.source.tolist() == [2, 0]
    assert graph.relation.tolist() == [0, 1]


@pytest.mark.parametrize("edge", [[0, 0, 3], [-1, 0, 1], [0, 1, 1]])
def test_an_edge_out_of_range_is_refused(edge: list[int]) -> None:
    vectors = np.zeros((1, 4), dtype=np.float32)
    with pytest.raises(ValueError, match="edges"):
        GFMGraph.from_edges(3, np.array([edge]), vectors, vectors)


def test_untrained_weights_follow_the_seed() -> None:
    config = GFMConfig(text_width=4, width=2, layers=1)
    first, again, other = (initial_weights(config, seed) for seed in (1, 1, 2))
    assert {
        name: tuple(tensor.shape) for name, tensor in first.items()
    } == config.shapes()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["rel_mlp.weight"], other["rel_mlp.weight"])
    assert first["rel_mlp.bias"].abs().max() <= 0.5

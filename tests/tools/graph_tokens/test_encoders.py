"""Graph encoders against formulas written out in numpy, and pooling against means by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ras_agent.errors import SettingsError
from ras_agent.graph_batch import GraphBatch, GraphFeatures

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric", reason="needs the extra 'llm'")

from ras_agent.tools.graph_tokens.encoders import EncoderConfig, build_encoder, pool  # noqa: E402


def _features(group: list[int], width: int = 2) -> GraphFeatures:
    nodes = np.arange(len(group) * width, dtype=np.float32).reshape(-1, width)
    return GraphFeatures(nodes, np.empty((0, width), np.float32), np.empty((2, 0), np.int64), np.array(group, np.int64))


def test_pooling_takes_the_mean_over_nodes_and_then_over_sub_graphs() -> None:
    batch = GraphBatch.of([_features([0, 0, 1]), _features([]), _features([0])], 2)
    pooled = pool(batch.nodes, batch)
    # the first graph: mean of (0, 1) and (2, 3) is (1, 2), and with (4, 5) it is (2.5, 3.5)
    assert pooled.tolist() == [[2.5, 3.5], [0.0, 0.0], [0.0, 1.0]]


def _relu_layer_norm(rows: Any) -> Any:
    centred = rows - rows.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)


def test_the_graph_transformer_attends_from_each_node_over_its_incoming_edges() -> None:
    torch.manual_seed(1)
    encoder = build_encoder(EncoderConfig("graph-transformer", layers=1, heads=1, width=4, input=3)).eval()
    draw = np.random.default_rng(0)
    nodes, edges = draw.normal(size=(3, 3)).astype(np.float32), draw.normal(size=(2, 3)).astype(np.float32)
    graph = GraphFeatures(nodes, edges, np.array([[0, 1], [2, 2]]), np.zeros(3, np.int64))
    states = encoder(GraphBatch.of([graph], 3)).detach().numpy()

    layer = {name: value.detach().numpy() for name, value in encoder.layers[0].named_parameters()}

    def linear(name: str, rows: Any) -> Any:
        return rows @ layer[f"{name}.weight"].T + layer.get(f"{name}.bias", 0)

    # arXiv:2009.03509, eq. 3 and 4: an edge's vector is added to its source's key and value
    edge = linear("lin_edge", edges)
    keys, values = linear("lin_key", nodes[:2]) + edge, linear("lin_value", nodes[:2]) + edge
    logits = keys @ linear("lin_query", nodes)[2] / 2.0
    weights = np.exp(logits) / np.exp(logits).sum()
    expected = linear("lin_skip", nodes)
    expected[2] += weights @ values
    assert np.allclose(states, _relu_layer_norm(expected), atol=1e-5)


def test_gcn_averages_over_neighbours_by_the_roots_of_their_degrees() -> None:
    torch.manual_seed(1)
    encoder = build_encoder(EncoderConfig("gcn", layers=1, heads=1, width=4, input=3)).eval()
    nodes = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    graph = GraphFeatures(nodes, np.zeros((1, 3), np.float32), np.array([[0], [1]]), np.zeros(2, np.int64))
    states = encoder(GraphBatch.of([graph], 3)).detach().numpy()
    mixed = nodes @ encoder.layers[0].lin.weight.detach().numpy().T
    # arXiv:1609.02907, eq. 2, with loops: node 0 has degree 1, node 1 has degree 2
    expected = np.stack([mixed[0], mixed[1] / 2 + mixed[0] / np.sqrt(2)])
    assert np.allclose(states, _relu_layer_norm(expected), atol=1e-5)


def test_the_defaults_are_the_papers() -> None:
    # G-Retriever, section 6.2: four layers of four heads and 1024 numbers, over a sentence encoder's vectors
    defaults = EncoderConfig()
    assert (defaults.kind, defaults.layers, defaults.heads, defaults.width) == ("graph-transformer", 4, 4, 1024)
    assert (defaults.input, defaults.dropout) == (384, 0.0)  # MiniLM's width


def test_each_layer_but_the_first_adds_to_the_state_before_it() -> None:
    torch.manual_seed(1)
    deep = build_encoder(EncoderConfig("gcn", layers=2, heads=1, width=4, input=4)).eval()
    nodes = np.random.default_rng(0).normal(size=(1, 4)).astype(np.float32)
    graph = GraphFeatures(nodes, np.zeros((0, 4), np.float32), np.empty((2, 0), np.int64), np.zeros(1, np.int64))
    states = deep(GraphBatch.of([graph], 4)).detach().numpy()
    first, second = (layer.lin.weight.detach().numpy().T for layer in deep.layers)
    # a node without neighbours is its own only one
    before = np.maximum(_relu_layer_norm(nodes @ first), 0)
    assert np.allclose(states, before + _relu_layer_norm(before @ second), atol=1e-5)


def test_no_nodes_have_no_states() -> None:
    encoder = build_encoder(EncoderConfig("gcn", layers=1, heads=1, width=4, input=2))
    assert encoder(GraphBatch.of([_features([])], 2)).shape == (0, 4)


@pytest.mark.parametrize(
    "changes", [{"kind": "cnn"}, {"layers": 0}, {"heads": 0}, {"input": 0}, {"width": 10, "heads": 4}]
)
def test_an_impossible_encoder_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        EncoderConfig(**changes)

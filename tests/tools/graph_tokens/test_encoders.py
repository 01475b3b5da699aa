"""Graph encoders against formulas written out in numpy, and pooling against means by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from socket import socket
from typing import Any

import numpy as np
import pytest

from ras_agent.config import registry
from ras_agent.config.registry import PLUGINS, register
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.graph_batch import GraphBatch, GraphFeatures

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric", reason="needs the extra 'llm'")

from ras_agent.tools.graph_tokens.encoders import (
    EncoderConfig,
    MessagePassing,
    NodeBatchNorm,
    build_encoder,
    pool,
)
from ras_agent.tools.graph_tokens.graph_llm import GraphTokens
from tests.messages import says


def _features(group: list[int], width: int = 2) -> GraphFeatures:
    nodes = np.arange(len(group) * width, dtype=np.float32).reshape(-1, width)
    return GraphFeatures(
        nodes,
        np.empty((0, width), np.float32),
        np.empty((2, 0), np.int64),
        np.array(group, np.int64),
    )


def test_pooling_takes_the_mean_over_nodes_and_then_over_sub_graphs() -> None:
    batch = GraphBatch.of([_features([0, 0, 1]), _features([]), _features([0])], 2)
    pooled = pool(batch.nodes, batch)
    # the first graph: mean of (0, 1) and (2, 3) is (1, 2), and with (4, 5) it is (2.5, 3.5)
    assert pooled.tolist() == [[2.5, 3.5], [0.0, 0.0], [0.0, 1.0]]


def _normalised(rows: Any, axis: int = 0) -> Any:
    """Return the rows less their mean over their deviation: over the nodes (0), or over the numbers of a node (1).

    That of the nodes is the estimate from a sample, which the running statistics have.
    """
    return (rows - rows.mean(axis, keepdims=True)) / np.sqrt(
        rows.var(axis, keepdims=True, ddof=1 - axis) + 1e-5
    )


def test_the_graph_transformer_attends_from_each_node_over_its_incoming_edges() -> None:
    torch.manual_seed(1)
    encoder = MessagePassing(
        EncoderConfig("graph-transformer", layers=1, heads=1, width=4, input=3)
    ).train()
    draw = np.random.default_rng(0)
    nodes, edges = (
        draw.normal(size=(3, 3)).astype(np.float32),
        draw.normal(size=(2, 3)).astype(np.float32),
    )
    graph = GraphFeatures(
        nodes, edges, np.array([[0, 1], [2, 2]]), np.zeros(3, np.int64)
    )
    states = encoder(GraphBatch.of([graph], 3)).detach().numpy()

    layer = {
        name: value.detach().numpy()
        for name, value in encoder.layers[0].named_parameters()
    }

    def linear(name: str, rows: Any) -> Any:
        return rows @ layer[f"{name}.weight"].T + layer.get(f"{name}.bias", 0)

    # arXiv:2009.03509, eq. 3 and 4: an edge's vector is added to its source's key and value
    edge = linear("lin_edge", edges)
    keys, values = (
        linear("lin_key", nodes[:2]) + edge,
        linear("lin_value", nodes[:2]) + edge,
    )
    logits = keys @ linear("lin_query", nodes)[2] / 2.0
    weights = np.exp(logits) / np.exp(logits).sum()
    expected = linear("lin_skip", nodes)
    expected[2] += weights @ values
    assert np.allclose(states, _normalised(expected), atol=1e-5)


def test_gcn_averages_over_neighbours_by_the_roots_of_their_degrees_and_adds_a_map_of_the_nodes_own_state() -> (
    None
):
    torch.manual_seed(1)
    encoder = MessagePassing(
        EncoderConfig("gcn", layers=1, heads=1, width=4, input=3)
    ).train()
    nodes = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    graph = GraphFeatures(
        nodes, np.zeros((1, 3), np.float32), np.array([[0], [1]]), np.zeros(2, np.int64)
    )
    states = encoder(GraphBatch.of([graph], 3)).detach().numpy()
    mixed = nodes @ encoder.layers[0].lin.weight.detach().numpy().T
    # arXiv:1609.02907, eq. 2, with loops: node 0 has degree 1, node 1 has degree 2
    expected = np.stack([mixed[0], mixed[1] / 2 + mixed[0] / np.sqrt(2)])
    expected += nodes @ encoder.own[0].weight.detach().numpy().T
    assert np.allclose(states, _normalised(expected), atol=1e-5)


def test_the_defaults_are_the_papers() -> None:
    # G-Retriever, section 6.2: four layers of four heads and 1024 numbers, over a sentence encoder's vectors
    defaults = EncoderConfig()
    assert (defaults.kind, defaults.layers, defaults.heads, defaults.width) == (
        "graph-transformer",
        4,
        4,
        1024,
    )
    assert (defaults.input, defaults.dropout) == (384, 0.0)  # MiniLM's width
    assert defaults.norm == "batch"


@pytest.mark.parametrize(("norm", "axis"), [("batch", 0), ("layer", 1)])
def test_each_layer_but_the_first_adds_to_the_state_before_it(
    norm: Any, axis: int
) -> None:
    torch.manual_seed(1)
    deep = MessagePassing(
        EncoderConfig("gcn", layers=2, heads=1, width=4, input=4, norm=norm)
    ).train()
    nodes = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    graph = GraphFeatures(
        nodes,
        np.zeros((0, 4), np.float32),
        np.empty((2, 0), np.int64),
        np.zeros(3, np.int64),
    )
    states = deep(GraphBatch.of([graph], 4)).detach().numpy()
    # a node without neighbours is its own only one
    first, second = (
        (layer.lin.weight + own.weight).detach().numpy().T
        for layer, own in zip(deep.layers, deep.own, strict=True)
    )
    before = np.maximum(_normalised(nodes @ first, axis), 0)
    assert np.allclose(states, before + _normalised(before @ second, axis), atol=1e-5)


def test_the_running_statistics_are_torchs_with_a_mean_of_all_batches() -> None:
    own, torchs = NodeBatchNorm(5), torch.nn.BatchNorm1d(5, momentum=None)
    torch.manual_seed(0)
    for rows in (7, 3, 2):
        states = torch.randn(rows, 5)
        own(states), torchs(states)
    assert torch.allclose(own.running_mean, torchs.running_mean, atol=1e-6)
    assert torch.allclose(own.running_var, torchs.running_var, atol=1e-6)
    states = torch.randn(4, 5)
    assert torch.allclose(own.eval()(states), torchs.eval()(states), atol=1e-6)


def test_a_batch_in_training_has_the_states_of_the_running_statistics_and_the_gradient_of_batch_norm() -> (
    None
):
    norm = NodeBatchNorm(1)
    norm(torch.tensor([[2.0], [4.0]]))
    states = torch.tensor([[1.0], [3.0], [8.0]], requires_grad=True)
    normal = norm(states)
    # means 3 and 4, variances 2 and 13
    assert normal.flatten().tolist() == pytest.approx(
        [(x - 3.5) / np.sqrt(7.5 + 1e-5) for x in (1, 3, 8)], rel=1e-4
    )
    normal.square().sum().backward()
    # batch norm's states do not change where all states move together, nor where they move apart
    assert states.grad is not None
    assert states.grad.sum().item() == pytest.approx(0, abs=1e-5)
    assert (states.grad * (states - 4)).sum().item() == pytest.approx(0, abs=1e-4)


def test_running_statistics_lead_five_deviations_away_from_the_batchs_and_to_a_third_of_its_own_at_most() -> (
    None
):
    norm = NodeBatchNorm(1)
    for _ in range(20):
        norm(torch.tensor([[-1.0], [1.0]]))
    narrow = norm(torch.tensor([[-0.01], [0.01]]))
    # for its variance and the epsilon
    assert narrow.flatten().tolist() == pytest.approx([-1 / 3, 1 / 3], rel=0.06)
    assert norm(torch.tensor([[899.0], [901.0]])).mean().item() == pytest.approx(5)


def test_after_ten_batches_each_has_a_tenth_of_the_running_statistics() -> None:
    norm = NodeBatchNorm(1)
    for _ in range(20):
        norm(torch.tensor([[2.0], [4.0]]))
    norm(torch.tensor([[12.0], [14.0]]))
    assert norm.running_mean.item() == pytest.approx(0.9 * 3 + 0.1 * 13)
    assert norm.running_var.item() == pytest.approx(2)


def test_one_node_alone_is_normalised_by_the_running_statistics_and_does_not_change_them() -> (
    None
):
    norm = NodeBatchNorm(1)
    norm(torch.tensor([[2.0], [4.0]]))
    assert norm(torch.tensor([[5.0]])).item() == pytest.approx(2 / np.sqrt(2 + 1e-5))
    assert norm(torch.zeros(0, 1)).shape == (0, 1)
    assert (norm.running_mean.item(), norm.running_var.item(), int(norm.batches)) == (
        3,
        2,
        1,
    )


PROCESS = """
import sys
import torch
from ras_agent.tools.graph_tokens.encoders import NodeBatchNorm

rank, port = map(int, sys.argv[1:])
torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=2, rank=rank)
norm = NodeBatchNorm(1)
batches = [[[[2.0], [4.0]], [[1.0], [7.0]]], [[[5.0]], [[3.0], [3.0]]]]
outputs = [norm(torch.tensor(batches[turn][rank])).flatten().tolist() for turn in (0, 1)]
print([norm.running_mean.item(), norm.running_var.item(), int(norm.batches)])
print(outputs[0])
"""


@pytest.mark.slow("processes")
def test_the_running_statistics_of_two_processes_are_those_of_one_that_has_their_batches_in_turn() -> (
    None
):
    norm = NodeBatchNorm(1)
    for batch in ([[2.0], [4.0]], [[1.0], [7.0]], [[5.0]], [[3.0], [3.0]]):
        norm(torch.tensor(batch))
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(rank), str(port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    printed = [
        [json.loads(line) for line in process.communicate(timeout=100)[0].splitlines()]
        for process in running
    ]
    one_process = [norm.running_mean.item(), norm.running_var.item(), int(norm.batches)]
    assert [statistics for statistics, _ in printed] == [pytest.approx(one_process)] * 2
    norm, batches = (
        NodeBatchNorm(1),
        [torch.tensor([[2.0], [4.0]]), torch.tensor([[1.0], [7.0]])],
    )
    outputs = [norm(batch).flatten().tolist() for batch in batches]
    assert [output for _, output in printed] == [
        pytest.approx(output, abs=1e-5) for output in outputs
    ]


def test_no_nodes_have_no_states() -> None:
    encoder = build_encoder(EncoderConfig("gcn", layers=1, heads=1, width=4, input=2))
    assert encoder(GraphBatch.of([_features([])], 2)).shape == (0, 4)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "cnn"},
        {"norm": "none"},
        {"layers": 0},
        {"heads": 0},
        {"input": 0},
        {"width": 10, "heads": 4},
    ],
)
def test_an_impossible_encoder_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        EncoderConfig(**changes)


class _Plain(torch.nn.Module):
    """A user's encoder: a linear map of each node."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.width = config.width
        self.own = torch.nn.Linear(config.input, config.width)

    def forward(self, batch: GraphBatch) -> Any:
        return self.own(batch.nodes)


@pytest.fixture
def own_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registered encoder, which is gone after the test."""
    tables = {kind: dict(table) for kind, table in PLUGINS.items()}
    monkeypatch.setattr(registry, "PLUGINS", tables)
    register("graph-encoder", "plain", _Plain)


@pytest.mark.usefixtures("own_encoder")
def test_a_registered_encoder_makes_the_graph_tokens() -> None:
    tokens = GraphTokens(EncoderConfig("plain", heads=1, width=4, input=2), 1, 8, 6)
    assert isinstance(tokens.encoder, _Plain)
    made = tokens([_features([0, 0]), _features([])])
    assert made.shape == (2, 1, 6)


@pytest.mark.usefixtures("own_encoder")
def test_an_encoder_of_another_width_than_it_was_asked_for_is_refused() -> None:
    def narrow(config: EncoderConfig) -> Any:
        return _Plain(replace(config, width=config.width // 2))

    register("graph-encoder", "narrow", narrow)
    with pytest.raises(SettingsError, match=says("'narrow'", "width = 4")):
        build_encoder(EncoderConfig("narrow", heads=1, width=4, input=2))


def test_an_unknown_encoder_names_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=says("'gta'", "gat, gcn", "--plugin FILE")):
        EncoderConfig("gta")

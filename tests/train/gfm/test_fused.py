"""The sums of messages that a training on the CPU takes gradients of, against the plain network's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numba")

from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import GraphTensors, plain_scores
from ras_agent.tools.gfm.reasoner import ReasonerConfig, plain_reasoner_scores
from ras_agent.tools.gfm.weights import GFMConfig
from ras_agent.train.gfm import trainable
from ras_agent.train.gfm.batches import GFMExample
from ras_agent.train.gfm.fused import FusedGraph

CHAIN = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 3]])  # entity 4 is in no fact
BEGINS_AT_0_AND_AT_3 = np.array([[1, 0, 0, 0, 0], [0, 0, 0, 0.5, 0]], dtype=np.float32)


def _graph(
    entities: int, *, negated: bool, facts: int = 260, seed: int = 0
) -> GFMGraph:
    """Facts among nine tenths of the entities; the others are in none."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(9, 12)).astype(np.float32)
    inverse = None if negated else rng.normal(size=(9, 12)).astype(np.float32)
    ends = rng.integers(0, entities * 9 // 10, (facts, 2))
    return GFMGraph.from_edges(
        entities,
        np.column_stack((ends[:, 0], rng.integers(0, 9, facts), ends[:, 1])),
        vectors,
        inverse,
    )


def _weights(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        name: torch.from_numpy(
            rng.normal(size=shape).astype(np.float32)
            / (shape[-1] ** 0.5 if len(shape) > 1 else 2)
        )
        for name, shape in shapes.items()
    }


def _start(questions: int, entities: int) -> Any:
    """Two entities each, and no entity for the last question."""
    rng = np.random.default_rng(2)
    start = np.zeros((questions, entities), dtype=np.float32)
    for row in range(questions - 1):
        start[row, rng.choice(entities, 2, replace=False)] = rng.random(2) + 0.1
    return start


def _vectors(count: int) -> Any:
    return torch.from_numpy(
        np.random.default_rng(3).normal(size=(count, 12)).astype(np.float32)
    )


def _gradients(
    weights: dict[str, Any], scores: Callable[[dict[str, Any]], Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the scores, and the gradients of a sum of probabilities with drawn signs and sizes."""
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
    logits = scores(leaves)
    factors = torch.from_numpy(
        np.random.default_rng(4).normal(size=logits.shape).astype(np.float32)
    )
    (logits.sigmoid() * factors).sum().backward()
    return logits.detach(), {name: leaf.grad for name, leaf in leaves.items()}


def _compare(
    weights: dict[str, Any], ours: Callable[..., Any], plain: Callable[..., Any]
) -> None:
    """Hold scores and gradients to 1e-5 of the largest: the sums have another order."""
    (scores, gradients), (expected, theirs) = (
        _gradients(weights, ours),
        _gradients(weights, plain),
    )
    torch.testing.assert_close(
        scores, expected, rtol=0, atol=1e-5 * float(expected.abs().max())
    )
    assert gradients.keys() == theirs.keys()
    for name, gradient in theirs.items():
        limit = 1e-5 * float(gradient.abs().max()) + 1e-7
        torch.testing.assert_close(
            gradients[name],
            gradient,
            rtol=0,
            atol=limit,
            msg=lambda text, at=name: f"{at}{text}",
        )


@pytest.mark.parametrize(
    ("questions", "negated", "threads"),
    [(1, True, 1), (1, False, 2), (5, False, 1), (5, True, 2)],
)
def test_scores_and_gradients_are_those_of_the_plain_network(
    questions: int, negated: bool, threads: int
) -> None:
    weights, graph = (
        _weights(GFMConfig(12, 24, 4).shapes()),
        _graph(900, negated=negated, facts=700),
    )
    start, vectors, before = (
        _start(questions, 900),
        _vectors(questions),
        torch.get_num_threads(),
    )
    torch.set_num_threads(threads)
    try:
        _compare(
            weights,
            lambda leaves: plain_scores(
                leaves, FusedGraph.of_graph(graph), vectors, torch.from_numpy(start)
            ),
            lambda leaves: plain_scores(
                leaves, GraphTensors.of(graph), vectors, torch.from_numpy(start)
            ),
        )
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("questions", [1, 4])
def test_a_reasoners_scores_and_gradients_are_those_of_its_plain_network(
    questions: int,
) -> None:
    weights, graph = (
        _weights(ReasonerConfig(12, 16, 3).shapes()),
        _graph(120, negated=False),
    )
    start, vectors, nodes = _start(questions, 120), _vectors(questions), _vectors(120)
    _compare(
        weights,
        lambda leaves: plain_reasoner_scores(
            leaves, FusedGraph.of_graph(graph), nodes, vectors, torch.from_numpy(start)
        ),
        lambda leaves: plain_reasoner_scores(
            leaves, GraphTensors.of(graph), nodes, vectors, torch.from_numpy(start)
        ),
    )


def test_more_threads_than_one_give_the_same_gradients_every_time() -> None:
    weights, graph = (
        _weights(GFMConfig(12, 24, 3).shapes()),
        _graph(900, negated=True, facts=900),
    )
    start, vectors, before = _start(3, 900), _vectors(3), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first, again = (
            _gradients(
                weights,
                lambda leaves: plain_scores(
                    leaves, FusedGraph.of_graph(graph), vectors, torch.from_numpy(start)
                ),
            )[1]
            for _ in range(2)
        )
    finally:
        torch.set_num_threads(before)
    for name, gradient in first.items():
        atol = 1e-6 * float(gradient.abs().max())
        torch.testing.assert_close(again[name], gradient, rtol=1e-5, atol=atol)


def _chain() -> GFMGraph:
    vectors = np.ones((1, 4), dtype=np.float32)
    return GFMGraph.from_edges(5, CHAIN, vectors, -vectors)


@pytest.mark.parametrize("fast", [True, False])
def test_a_training_on_the_cpu_takes_them_where_numba_is(
    monkeypatch: pytest.MonkeyPatch, fast: bool
) -> None:
    taken = []
    monkeypatch.setattr(trainable, "has_numba", lambda: fast)
    of_graph = FusedGraph.of_graph
    monkeypatch.setattr(
        FusedGraph, "of_graph", lambda graph: taken.append("fused") or of_graph(graph)
    )
    start = BEGINS_AT_0_AND_AT_3
    vectors = np.ones((2, 4), dtype=np.float32)
    loss = trainable.losses(
        _weights(GFMConfig(4, 8, 2).shapes()),
        GFMExample("chain", _chain(), vectors, start, start),
    )
    assert taken == ["fused"] * fast
    assert torch.isfinite(loss["loss"])

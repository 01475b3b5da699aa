"""Paths that explain a score."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import GraphTensors, plain_scores
from ras_agent.tools.gfm.paths import (
    best_paths,
    heaviest_paths,
    message_gradients,
    published_paths,
)
from ras_agent.tools.gfm.reasoner import ReasonerConfig, plain_reasoner_scores

# 0 -> 1 -> 3, 0 -> 2 -> 3 and 3 -> 4, without inverses: each message goes to its second end
GRAPH = GFMGraph(
    indptr=np.array([0, 0, 1, 2, 4, 5]),
    source=np.array([0, 0, 1, 2, 3]),
    relation=np.zeros(5, dtype=np.int64),
    relation_vectors=np.zeros((1, 4), dtype=np.float32),
)


def _gradients(*layers: list[float]) -> list[Any]:
    return [np.array(layer, dtype=np.float32) for layer in layers]


def _found(*layers: list[float], **options: Any) -> list[tuple[tuple[int, ...], float]]:
    given = {"starts": [0], "goal": 3, **options}
    return [
        (path.messages, path.weight)
        for path in heaviest_paths(GRAPH, _gradients(*layers), **given)
    ]


def test_the_heaviest_chain_of_messages_comes_first() -> None:
    first, second = [1, 0.5, 0, 0, 0], [0, 0, 0.25, 2, 0]
    assert _found(first, second) == [((1, 3), 2.5), ((0, 2), 1.25)]


def test_a_path_may_skip_a_layer_and_counts_at_its_heaviest() -> None:
    assert _found([1, 0, 0, 0, 0], [3, 0, 1, 0, 0], [0, 0, 0.5, 0, 0]) == [
        ((0, 2), 3.5)
    ]


def test_messages_that_lower_the_score_are_not_taken() -> None:
    assert _found([1, 1, 0, 0, 0], [0, 0, -1, 1, 0]) == [((1, 3), 2.0)]


def test_a_path_is_in_the_layers_order() -> None:
    assert _found([0, 0, 1, 1, 0], [1, 1, 0, 0, 0]) == []


def test_no_path_comes_back_to_where_it_was() -> None:
    # 0 and 1 exchange messages: with three layers one could go there, back and there again
    pair = GFMGraph(
        np.array([0, 1, 2]),
        np.array([1, 0]),
        np.zeros(2, dtype=np.int64),
        np.zeros((1, 4), np.float32),
    )
    found = heaviest_paths(pair, _gradients([1, 1], [1, 1], [1, 1]), [0], 1)
    assert [(path.messages, path.weight) for path in found] == [((1,), 1.0)]


def test_a_narrow_beam_leaves_the_heaviest() -> None:
    assert _found([1, 0.5, 0, 0, 0], [0, 0, 0.25, 2, 0], beam=1) == [((1, 3), 2.5)]
    assert _found([1, 0.5, 0, 0, 0], [0, 0, 0.25, 2, 0], count=1) == [((1, 3), 2.5)]


def _walks(
    graph: GFMGraph, at: int, goal: int, longest: int
) -> Iterator[tuple[int, ...]]:
    """Every chain of up to `longest` messages from `at` that ends when it arrives at `goal`."""
    if not longest or at == goal:
        return
    for message in np.flatnonzero(graph.source == at).tolist():
        if int(graph.target[message]) == goal:
            yield (message,)
        for rest in _walks(graph, int(graph.target[message]), goal, longest - 1):
            yield (message, *rest)


@pytest.mark.parametrize("seed", range(8))
def test_paths_as_published_are_those_of_the_highest_mean_among_all_walks(
    seed: int,
) -> None:
    dice = np.random.default_rng(seed)
    ends = np.unique(dice.integers(0, 6, (14, 2)), axis=0)
    ends = ends[np.argsort(ends[:, 1], kind="stable")]  # by target
    indptr = np.searchsorted(ends[:, 1], np.arange(7))
    graph = GFMGraph(
        indptr,
        ends[:, 0],
        np.zeros(len(ends), dtype=np.int64),
        np.zeros((1, 4), np.float32),
    )
    gradients = [dice.normal(size=len(ends)).astype(np.float32) for _ in range(3)]
    walks = [walk for start in (0, 1) for walk in _walks(graph, start, 5, 3)]
    means = sorted(
        (
            -sum(float(gradients[layer][message]) for layer, message in enumerate(walk))
            / len(walk),
            walk,
        )
        for walk in walks
    )
    found = published_paths(graph, gradients, [0, 1], 5, count=4, beam=100)
    assert [path.messages for path in found] == [walk for _, walk in means[:4]]
    assert [path.weight for path in found] == pytest.approx(
        [-mean for mean, _ in means[:4]]
    )


def test_as_published_short_paths_rank_higher_and_layers_are_not_skipped() -> None:
    straight = [1.0, 0.5, 0, 0, 0], [0, 0, 0.25, 2, 0]
    found = published_paths(GRAPH, _gradients(*straight), [0], 3)
    assert [(path.messages, path.weight) for path in found] == [
        ((1, 3), 1.25),
        ((0, 2), 0.625),
    ]
    # the first layer has nothing to offer: ours goes on at the second, the published one cannot
    late = _gradients([0, 0, 0, 0, 0], [3, 0, 0, 0, 0], [0, 0, 1, 0, 0])
    assert [path.weight for path in heaviest_paths(GRAPH, late, [0], 3)] == [4.0]
    assert [path.weight for path in published_paths(GRAPH, late, [0], 3)] == [0.0, 0.0]


def test_gradients_are_what_a_small_change_of_a_messages_weight_does(
    small: dict[str, Any],
) -> None:
    weights = {
        name: torch.from_numpy(array).double()
        for name, array in small["weights"].items()
    }
    graph, target = small["graph"], int(np.bincount(small["graph"].target).argmax())
    single = {name: tensor.float() for name, tensor in weights.items()}
    start = GFMStart(np.array([3]), np.ones(1, np.float32))
    other, found = message_gradients(
        single, graph, small["questions"][0], start, [3, target]
    )
    assert any(
        np.abs(one - two).max() > 1e-3 for one, two in zip(other, found, strict=True)
    )
    messages = GraphTensors.of(graph)
    exact = GraphTensors(
        messages.entities,
        messages.source,
        messages.relation,
        messages.target,
        messages.vectors.double(),
    )
    given = (
        torch.from_numpy(small["questions"][:1]).double(),
        torch.from_numpy(small["start"][:1]).double(),
    )
    layer = int(np.argmax([np.abs(one).max() for one in found]))
    for message in np.argsort(-np.abs(found[layer]))[:5]:
        scores = []
        for change in (1e-5, -1e-5):
            ones = [torch.ones(graph.messages, dtype=torch.float64) for _ in found]
            ones[layer][message] += change
            scores.append(
                float(
                    plain_scores(weights, exact, *given, message_weights=ones)[
                        0, target
                    ]
                )
            )
        assert (scores[0] - scores[1]) / 2e-5 == pytest.approx(
            float(found[layer][message]), rel=1e-2, abs=1e-4
        )


def test_gradients_of_a_network_that_reads_texts_are_what_a_small_change_does(
    small: dict[str, Any],
) -> None:
    graph, rng = small["graph"], np.random.default_rng(7)
    shapes = ReasonerConfig(12, 8, 3).shapes()
    weights = {
        name: torch.from_numpy(rng.normal(size=shape)) for name, shape in shapes.items()
    }
    nodes, question = (
        rng.normal(size=(graph.entities, 12)).astype(np.float32),
        small["questions"][0],
    )
    target, start = (
        int(np.bincount(graph.target).argmax()),
        GFMStart(np.array([3]), np.ones(1, np.float32)),
    )
    single = {name: tensor.float() for name, tensor in weights.items()}
    (found,) = message_gradients(single, graph, question, start, [target], nodes=nodes)
    messages = GraphTensors.of(graph)
    exact = GraphTensors(
        messages.entities,
        messages.source,
        messages.relation,
        messages.target,
        messages.vectors.double(),
    )
    marks = torch.zeros(1, graph.entities, dtype=torch.float64)
    marks[0, 3] = 1
    given = (
        torch.from_numpy(nodes).double(),
        torch.from_numpy(question)[None].double(),
        marks,
    )
    layer = int(np.argmax([np.abs(one).max() for one in found]))
    for message in np.argsort(-np.abs(found[layer]))[:3]:
        scores = []
        for change in (1e-5, -1e-5):
            ones = [torch.ones(graph.messages, dtype=torch.float64) for _ in found]
            ones[layer][message] += change
            scores.append(
                float(
                    plain_reasoner_scores(weights, exact, *given, message_weights=ones)[
                        0, target
                    ]
                )
            )
        assert (scores[0] - scores[1]) / 2e-5 == pytest.approx(
            float(found[layer][message]), rel=1e-2, abs=1e-3
        )


def test_paths_lead_from_the_question_to_the_target(small: dict[str, Any]) -> None:
    weights = {
        name: torch.from_numpy(array) for name, array in small["weights"].items()
    }
    graph, start = small["graph"], GFMStart(np.array([3]), np.ones(1, np.float32))
    target = int(graph.target[graph.source == 3][0])
    (paths,) = best_paths(weights, graph, small["questions"][0], start, [target])
    assert paths
    for path in paths:
        chain = [
            (int(graph.source[message]), int(graph.target[message]))
            for message in path.messages
        ]
        assert chain[0][0] == 3
        assert chain[-1][1] == target
        assert all(before[1] == after[0] for before, after in pairwise(chain))
    assert [path.weight for path in paths] == sorted(
        (path.weight for path in paths), reverse=True
    )
    (published,) = best_paths(
        weights, graph, small["questions"][0], start, [target], published=True
    )
    (gradients,) = message_gradients(
        weights, graph, small["questions"][0], start, [target]
    )
    mean = np.mean(
        [
            gradients[layer][message]
            for layer, message in enumerate(published[0].messages)
        ]
    )
    assert published[0].weight == pytest.approx(float(mean), abs=1e-6)

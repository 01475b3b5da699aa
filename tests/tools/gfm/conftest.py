"""Small networks and graphs, and the network once more as loops over entities and messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ras_agent.contracts.arrays import Floats
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.weights import GFMConfig

Loops = Callable[
    [dict[str, Any], GFMConfig, npt.NDArray[np.int64], Floats, Floats, Floats, Floats],
    Floats,
]


@pytest.fixture(scope="session")
def loops() -> Loops:
    """Give the function that computes one question's scores (N,) entity by entity, from facts and not a GFMGraph."""
    return _loops


def _loops(
    weights: dict[str, Any],
    config: GFMConfig,
    facts: npt.NDArray[np.int64],
    vectors: Floats,
    inverse: Floats,
    question: Floats,
    start: Floats,
) -> Floats:
    w = {name: np.asarray(tensor, dtype=np.float64) for name, tensor in weights.items()}

    def linear(name: str, x: Any) -> Any:
        return w[f"{name}.weight"] @ x + w[f"{name}.bias"]

    asked = linear("question_mlp", question)
    initial = [weight * asked for weight in start]
    state = list(initial)
    for layer in range(config.layers):
        at = f"entity_model.layers.{layer}"

        def relation_state(vector: Any, at: str = at) -> Any:
            first = np.maximum(
                linear(f"{at}.relation_projection.0", linear("rel_mlp", vector)), 0
            )
            return linear(f"{at}.relation_projection.2", first)

        following = []
        for entity in range(len(start)):
            total = initial[entity].copy()
            for head, relation, tail in facts:
                if config.message_target == "tail":
                    head, tail = tail, head
                if head == entity:
                    total += state[tail] * relation_state(vectors[relation])
                if tail == entity:
                    total += state[head] * relation_state(inverse[relation])
            mixed = linear(f"{at}.linear", np.concatenate((state[entity], total)))
            centred = mixed - mixed.mean()
            norm = centred / np.sqrt((centred**2).mean() + 1e-5)
            norm = norm * w[f"{at}.layer_norm.weight"] + w[f"{at}.layer_norm.bias"]
            following.append(np.maximum(norm, 0) + state[entity])
        state = following
    hidden = [
        np.maximum(linear("entity_model.mlp.0", np.concatenate((one, asked))), 0)
        for one in state
    ]
    scores: Floats = np.array(
        [linear("entity_model.mlp.2", one)[0] for one in hidden], dtype=np.float32
    )
    return scores


@pytest.fixture
def small() -> dict[str, Any]:
    """A network of width 8 and 3 layers, 40 entities of uneven degree (two without edges), 90 facts of 5 relations."""
    rng = np.random.default_rng(0)
    config = GFMConfig(text_width=12, width=8, layers=3)
    weights = {
        name: rng.normal(size=shape).astype(np.float32)
        / (shape[-1] ** 0.5 if len(shape) > 1 else 2)
        for name, shape in config.shapes().items()
    }
    common = rng.zipf(1.5, size=(90, 2)).clip(max=38) - 1
    facts = np.column_stack(
        (
            common[:, 0],
            rng.integers(0, 5, 90),
            (common[:, 1] + rng.integers(0, 30, 90)) % 38,
        )
    )
    vectors, inverse = rng.normal(size=(2, 5, 12)).astype(np.float32)
    start = np.zeros((3, 40), dtype=np.float32)
    start[0, 3], start[1, [5, 39]], start[2, 0] = 1, (0.5, 0.25), 1
    return {
        "config": config,
        "weights": weights,
        "facts": facts.astype(np.int64),
        "vectors": vectors,
        "inverse": inverse,
        "questions": rng.normal(size=(3, 12)).astype(np.float32),
        "start": start,
        "graph": GFMGraph.from_edges(40, facts, vectors, inverse),
    }

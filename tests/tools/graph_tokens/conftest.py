"""A small GraphLLM of each kind, and the facts of a question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.records import Source, Triple

LEITH = Triple("Water of Leith", "flows through", "Edinburgh", (Source("p2"),))
BELL = Triple("Alexander Graham Bell", "was born in", "Edinburgh", (Source("p1"),))


@pytest.fixture
def graph_llm(tiny_llm: Path) -> Callable[..., Any]:
    """Return a function that makes a GraphLLM with new weights; its arguments are those of its configuration."""

    def make(seed: int = 0, **config: Any) -> Any:
        from ras_agent.tools.graph_tokens.encoders import EncoderConfig
        from ras_agent.tools.graph_tokens.graph_llm import GraphLLM, GraphLLMConfig

        config = {
            "encoder": EncoderConfig(layers=2, heads=2, width=32),
            "projector": 64,
            **config,
        }
        return GraphLLM.new(GraphLLMConfig(str(tiny_llm), **config), seed)

    return make


def move_weights(model: Any) -> None:
    """Move the weights that a GraphLLM's tuning trains, and the running statistics, as far as a training would."""
    import torch

    model.train()
    facts = [
        (triple.subject, triple.predicate, triple.object) for triple in (LEITH, BELL)
    ]
    model.graph_tokens([model.vectors.of_facts(facts)])  # running statistics
    parts = {"frozen": "graph_tokens.projector", "lora": "lora_B", "full": "mlp"}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if (
                name.startswith("graph_tokens.projector")
                or parts[model.config.tuning] in name
            ):
                weight += torch.randn_like(weight)


@pytest.fixture
def trained(graph_llm: Callable[..., Any], tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that saves a GraphLLM of a tuning, whose weights are as far from new ones as trained ones."""

    def make(tuning: str) -> Path:
        model = graph_llm(tuning=tuning)
        move_weights(model)
        model.save(tmp_path / tuning)
        return tmp_path / tuning

    return make

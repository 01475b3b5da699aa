"""Show whether a graph token is learnt: a language model replies with a colour that its text does not say.

    python -m lab.graph_token --language-model tiny --encoder gcn

Prompts are all the same, and the graph names a thing, its colour and what is near it; some graphs are the colour's node
alone. All weights are trained, those of the language model too, so that one with random weights will do. For each seed
it prints how many of 40 replies about unseen things are right, ten of which chance has, and the loss of the last steps.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from ras_agent.errors import SettingsError
from ras_agent.program import run_program
from ras_agent.prompts import Turn
from ras_agent.tools.graph_tokens.features import Fact
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, SEED, SHARE, check_ranges

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

COLOURS = ("red", "blue", "green", "white")
THINGS = (
    "car",
    "door",
    "hat",
    "boat",
    "lamp",
    "chair",
    "bird",
    "ship",
    "coat",
    "ring",
    "book",
    "bell",
)
PROMPT = (Turn("user", "Question: Which colour?\nAnswer:"),)
_LEARNT = 8  # of the things; the others are for the test
_TEST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTokenConfig:
    """Options of the experiment. Raises SettingsError for a number out of its range.

    language_model: a folder or a hub name. encoder, layers, heads, width, norm: see EncoderConfig.
    single: the share of the training's graphs that are one node. further: facts that say no colour, in each graph.
    """

    language_model: str
    encoder: str = "graph-transformer"
    layers: int = 2
    heads: int = 4
    width: int = 64
    norm: str = "batch"
    steps: int = 200
    batch: int = 8
    rate: float = 1e-3
    single: float = 0.125
    further: int = 1
    seeds: tuple[int, ...] = (0, 1, 2)

    def __post_init__(self) -> None:
        counts = dict.fromkeys(
            ("layers", "heads", "width", "steps", "batch", "further"), COUNT
        )
        check_ranges(self, {**counts, "rate": SHARE, "single": SHARE, "seeds": SEED})


@dataclass(frozen=True, slots=True)
class Learnt:
    """What was learnt. right: replies of 40, on things that no training graph has. loss: the last 20 steps' mean."""

    seed: int
    right: int
    loss: float


def new_model(config: GraphTokenConfig, seed: int) -> GraphLLM:
    """Return a GraphLLM whose weights are all to be trained."""
    from ras_agent.tools.graph_tokens.encoders import EncoderConfig
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM, GraphLLMConfig

    shape = {
        name: getattr(config, name) for name in ("layers", "heads", "width", "norm")
    }
    encoder = EncoderConfig(config.encoder, **shape)  # type: ignore[arg-type]
    return GraphLLM.new(
        GraphLLMConfig(
            config.language_model, encoder, projector=config.width, tuning="full"
        ),
        seed,
    )


def coloured(
    rng: random.Random, things: Sequence[str], further: int = 1
) -> tuple[list[Fact], str]:
    """Return facts in random order, one of which gives a thing its colour, and that colour."""
    thing, colour = rng.choice(things), rng.choice(COLOURS)
    facts = [
        (thing, "has colour", colour),
        *((thing, "is near", rng.choice(THINGS)) for _ in range(further)),
    ]
    rng.shuffle(facts)
    return facts, colour


def learn(
    model: GraphLLM,
    config: GraphTokenConfig,
    seed: int,
    prune: Callable[[list[Fact]], list[Fact]] = lambda facts: facts,
) -> Learnt:
    """Train the model and ask it about things that it has not seen. prune: what it reads of a graph, in both."""
    import torch

    rng = random.Random(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=config.rate)
    losses = []
    model.train()
    for _ in range(config.steps):
        graphs, replies = [], []
        for _ in range(config.batch):
            facts, colour = coloured(rng, THINGS[:_LEARNT], config.further)
            alone = rng.random() < config.single
            graphs.append(
                model.vectors.of_graph([colour], [])
                if alone
                else model.vectors.of_facts(prune(facts))
            )
            replies.append(colour)
        loss = model([PROMPT] * len(graphs), graphs, replies)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
    model.eval()
    unseen = [coloured(rng, THINGS[_LEARNT:], config.further) for _ in range(_TEST)]
    replies_ = model.generate(
        [PROMPT] * _TEST,
        [model.vectors.of_facts(prune(facts)) for facts, _ in unseen],
        max_new_tokens=6,
    )
    right = sum(
        reply.text == colour
        for reply, (_, colour) in zip(replies_, unseen, strict=True)
    )
    return Learnt(seed, right, round(fmean(losses[-20:]), 4))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train for each seed as the options say, and print a line for each."""
    config = config_from(GraphTokenConfig, __doc__, arguments)
    if not config.seeds:
        raise SettingsError("--seeds names at least one")
    for seed in config.seeds:
        print(
            json.dumps(asdict(learn(new_model(config, seed), config, seed))), flush=True
        )


if __name__ == "__main__":
    run_program(main)

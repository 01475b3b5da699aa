r"""Trains a GFM network (GFM-RAG, arXiv:2502.01113): knowledge graph completion first, then retrieval.

    python -m ras_agent.train.gfm.train --sets SETS/hotpotqa,SETS/musique,SETS/2wiki --out RUN --width 64 --steps 4000
    torchrun --nproc-per-node 8 -m ras_agent.train.gfm.train --sets ... --out RUN --width 512 --text-width 768

A set is a folder that ras_agent.train.gfm.examples writes. Every step takes questions of one set and the part
of its graph that some of its documents state: documents that support the questions, documents that name an
entity of the questions, and others. The losses are the paper's eq. 11 to 13, and one for documents.

With `--completion N` the first N steps complete facts instead: a fact is removed from the graph; its relation
is the question, one of its ends the start and the other the target. Each step uses one of the sets, all with
the same probability. The paper's pre-training (its Table 7), and then the fine-tuning over the whole graphs at
a constant rate:

    python -m ras_agent.train.gfm.train --sets A,B,C --out PRE --width 512 --completion 30000 --steps 0 --batch 4 \
        --documents 0 --rate 5e-4 --constant --warmup 0 --clip 0
    python -m ras_agent.train.gfm.train --sets A,B,C --out RUN --start-from PRE --steps N --batch 4 --documents 0 \
        --rate 5e-4 --constant --warmup 0 --clip 0 --labelled 1

`--start-from` begins with the weights of a network: a folder, an id on the Hugging Face hub, or `packaged`; its
shape is then the default.

RUN is then a folder of weights, with training.json (settings and how it ended) and the files of
ras_agent.train.loop: metrics.jsonl has a line for each step, and a training that is started again with the same
settings continues from its last save. The rate is lowest at the last of `--steps`, so a training with more
steps is a different one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.contracts.errors import SettingsError, WeightsError
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.running.program import run_program
from ras_agent.tools.gfm.weights import (
    PACKAGED_NAME,
    GFMConfig,
    initial_weights,
    load_gfm,
    same_encoder,
    weights_folder,
)
from ras_agent.tools.kg.disk import read_kg_manifest
from ras_agent.tools.retrieve.document_ranker import PACKAGED
from ras_agent.train.gfm.batches import (
    GFMExample,
    completion_example,
    retrieval_example,
)
from ras_agent.train.gfm.drawn import DrawnConfig, DrawnExamples, fit_drawn
from ras_agent.train.gfm.sets import GRAPH, REMEDY, GFMSet, load_sets, text_model_of
from ras_agent.train.loop import FIT_RANGES, FitResult, print_result
from ras_agent.train.options import config_from
from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, SHARE, Range, check_ranges

if TYPE_CHECKING:
    from torch import Tensor

_RANGES = {
    **FIT_RANGES,
    **dict.fromkeys(("width", "layers", "text_width", "batch", "negatives"), COUNT),
    **dict.fromkeys(("completion", "warmup", "documents"), NATURAL),
    **dict.fromkeys(("document", "adversarial"), AMOUNT),
    **dict.fromkeys(("alpha", "labelled", "dropout"), SHARE),
    "share": Range(0, 1, above=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GFMTrainingConfig(DrawnConfig):
    """Holds the options of a GFM network's training. Raises SettingsError for a number out of range, or without
    any steps.
    """

    width: int | None = None
    """Width of the network; if not set, that of --start-from, else 64."""
    layers: int | None = None
    """Layers of the network; if not set, those of --start-from, else 6."""
    text_width: int | None = None
    """Width of the question's vector; if not set, that of --start-from, else of the sets' vectors."""
    inverse: str | None = None
    """How an inverse relation gets its vector, text or negated; if not set, as in --start-from, else negated."""
    completion: int = 0
    """Steps that complete facts; the --steps of retrieval follow."""
    batch: int = 8
    """Questions of a step."""
    warmup: int = 200
    """Steps at the start of either phase in which the rate rises."""
    schedule: str = field(default="cosine", init=False)
    lowest_rate: float = field(default=0.05, init=False)
    constant: bool = False
    """Keep the rate constant after the warm-up, as the published trainer does."""
    adversarial: float = 0.0
    """Temperature at which eq. 11 weighs negatives by a softmax of their logits, 0.2 in the published code; 0 weighs
    them alike, as the paper does."""
    document: float = 0.0
    """Weight of the loss for documents, 0 in the paper."""
    negatives: int = 128
    """Entities, next to the target, that the loss of completion reads."""
    labelled: float = 0.5
    """The share of steps that take labelled questions, if a set has them."""
    share: float = 1.0
    """Share of each set's questions that is used; a smaller share's questions are among a larger one's."""
    dropout: float = 0.0
    """Share of a question's entities that is left out, except the last."""

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        if not self.completion + self.steps:
            raise SettingsError(
                "nothing to train: --steps and --completion are both 0; give one of them a number of steps"
            )

    def rate_at(self, step: int, total: int) -> float:
        """Return the learning rate of a step: in each of the two phases a linear warm-up, then a cosine to a
        twentieth.

        With `constant` it stays at its maximum after the warm-up.
        """
        place = step
        steps = self.completion
        if step >= self.completion:
            place = step - self.completion
            steps = total - self.completion
        rate = self.rate * min(1.0, (place + 1) / max(self.warmup, 1))
        if self.constant:
            return rate
        return rate * (0.05 + 0.475 * (1 + math.cos(math.pi * place / max(steps, 1))))


def drawn_examples(
    sets: Sequence[GFMSet], config: GFMTrainingConfig
) -> DrawnExamples[GFMExample]:
    """Return the examples of a training: first facts to complete, then questions for retrieval."""

    def draw(number: int, rng: np.random.Generator) -> GFMExample:
        if number < config.completion * config.accumulate:
            return completion_example(
                sets, config.batch, config.documents, config.negatives, rng
            )
        return retrieval_example(
            sets, config.batch, config.documents, config.labelled, config.dropout, rng
        )

    return DrawnExamples(config.completion + config.steps, config, draw)


def train(config: GFMTrainingConfig) -> FitResult:
    """Train until the steps or the minutes are over, write the weights and training.json, and return the outcome.

    Raises:
        WeightsError: If `start_from` or the training in `out` is of another network.
        IndexMismatch: If the vectors of the sets' graphs do not fit.
        SettingsError: If the training in `out` has other settings, the loss is not finite, or there is nothing to draw.
        IngestError: If a set's questions cannot be read.
    """
    config, shape, weights = _begin(config)
    from ras_agent.train.gfm.trainable import TrainableNetwork, losses

    digests = config.digests(_digests_of)
    examples = drawn_examples(load_sets(config.sets, shape, config.share), config)
    of_example = partial(
        losses,
        alpha=config.alpha,
        document=config.document,
        adversarial=config.adversarial,
    )
    return fit_drawn(
        TrainableNetwork(weights, of_example),
        examples,
        config,
        "ras_agent.train.gfm.train",
        shape,
        digests,
        config.completion + config.steps,
    )


def _digests_of(folder: Path) -> list[str]:
    files = [
        file_sha256(folder / name) for name in ("questions.jsonl", "questions.npz")
    ]
    return [read_kg_manifest(folder / GRAPH, REMEDY).fingerprint, *files]


def _begin(
    config: GFMTrainingConfig,
) -> tuple[GFMTrainingConfig, GFMConfig, dict[str, Tensor]]:
    """Return the options with the shape of the network filled in, the configuration of the network, and its first
    weights."""
    encoder, dimension = text_model_of(config.sets, config.text_width)
    if config.start_from is None:
        shape = GFMConfig(
            text_width=dimension or 384,
            width=config.width or 64,
            layers=config.layers or 6,
            text_model=encoder,
            inverse=config.inverse or "negated",
            ranker=asdict(PACKAGED),
        )
        return _with_shape(config, shape), shape, initial_weights(shape, config.seed)
    start, weights = load_gfm(weights_folder(str(config.start_from)))
    _check_start(config, start, encoder, dimension)
    ranker = start.ranker
    if str(config.start_from) == PACKAGED_NAME:
        ranker = asdict(PACKAGED)
    shape = replace(start, text_model=encoder or start.text_model, ranker=ranker)
    return _with_shape(config, shape), shape, weights


def _check_start(
    config: GFMTrainingConfig, start: GFMConfig, encoder: str, dimension: int | None
) -> None:
    """Raise WeightsError if the network that a training starts from does not fit its options or its sets.

    Args:
        encoder: The name of the encoder that made the sets' vectors, "" without vectors.
        dimension: The width of these vectors.
    """
    if dimension is not None and start.text_width != dimension:
        start_encoder = start.text_model or "which it does not name"
        raise WeightsError(
            f"{config.start_from} reads vectors of width {start.text_width}, but the sets hold vectors of width "
            f"{dimension}: build their graphs with its encoder, {start_encoder}, and write the sets again"
        )
    if encoder and start.text_model and not same_encoder(start.text_model, encoder):
        raise WeightsError(
            f"{config.start_from} reads vectors of {start.text_model}, but the sets hold those of {encoder}: build their "
            f"graphs with {start.text_model}, and write the sets again"
        )
    if start.question_prefix or start.relation_prefix:
        raise WeightsError(
            f"{config.start_from} reads texts with an instruction in front of them, but sets are written without one: "
            "give --start-from other weights"
        )
    flags = []
    for name in ("width", "layers", "inverse"):
        if getattr(config, name) not in (None, getattr(start, name)):
            flags.append(f"--{name} {getattr(start, name)}")
    if flags:
        raise WeightsError(
            f"the network in {config.start_from} has another shape than these options: train it with {' '.join(flags)}"
        )


def _with_shape(config: GFMTrainingConfig, shape: GFMConfig) -> GFMTrainingConfig:
    return replace(
        config,
        width=shape.width,
        layers=shape.layers,
        text_width=shape.text_width,
        inverse=shape.inverse,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and train."""
    print_result(train(config_from(GFMTrainingConfig, __doc__, arguments)))


if __name__ == "__main__":
    run_program(main)

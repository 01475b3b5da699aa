"""Trains a G-reasoner network (arXiv:2509.24276) on questions and the documents that support them.

    ras-agent kg examples my.index mine.jsonl --network greasoner --out SET
    python -m ras_agent.train.gfm.reasoner --sets SET --out RUN --width 1024 --steps 4000
    torchrun --nproc-per-node 8 -m ras_agent.train.gfm.reasoner --sets SET1,SET2 --out RUN

Every step takes questions of one set, and the part of its graph around some documents: those that support the
questions, those at which the questions start, and others. The loss compares only documents: 0.3 of eq. 11 of
GFM-RAG, 0.7 of its eq. 12, and the mean squared error to the encoder's own score of a document, its cosine with
the question. RUN is then a folder of weights for the retriever "greasoner", with the files of
ras_agent.train.loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.contracts.errors import IndexMismatch, WeightsError
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.running.program import run_program
from ras_agent.tools.gfm.reasoner import ReasonerConfig, load_reasoner
from ras_agent.tools.gfm.weights import initial_weights, same_encoder, weights_folder
from ras_agent.train.gfm.drawn import DrawnConfig, DrawnExamples, fit_drawn
from ras_agent.train.gfm.reasoner_sets import (
    ReasonerExample,
    ReasonerSet,
    reasoner_example,
)
from ras_agent.train.loop import FIT_RANGES, FitResult, print_result
from ras_agent.train.options import config_from
from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, SHARE, check_ranges

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonerTrainingConfig(DrawnConfig):
    """Holds the options of a G-reasoner network's training. Raises SettingsError for a number out of range."""

    width: int = 1024
    """Width of a network without --start-from."""
    layers: int = 6
    """Layers of a network without --start-from."""
    batch: int = 4
    """Questions of a step."""
    adversarial: float = 0.2
    """Temperature of the softmax of logits by which eq. 11 weighs negatives; 0 weighs them equally."""
    distillation: float = 1.0
    """Weight of the error to the encoder's cosines."""

    def __post_init__(self) -> None:
        ranges = {
            **FIT_RANGES,
            **dict.fromkeys(("width", "layers", "batch", "steps"), COUNT),
            **dict.fromkeys(("adversarial", "distillation"), AMOUNT),
            "documents": NATURAL,
            "alpha": SHARE,
        }
        check_ranges(self, ranges)


def train(config: ReasonerTrainingConfig) -> FitResult:
    """Train until the steps or the minutes are over, write the weights and training.json, and return the outcome.

    Raises:
        IndexMismatch: If the sets' vectors are of different encoders.
        WeightsError: If `start_from` or the training in `out` is another network.
        RasError: As `fit` and ReasonerSet.read raise it.
    """
    from ras_agent.train.gfm.trainable import TrainableNetwork, reasoner_losses

    sets = [ReasonerSet.read(folder) for folder in config.sets]
    shape, weights = _begin(config, sets)
    digests = config.digests(_digests_of)
    config = replace(config, width=shape.width, layers=shape.layers)
    of_example = partial(
        reasoner_losses,
        alpha=config.alpha,
        adversarial=config.adversarial,
        distillation=config.distillation,
    )

    def draw(number: int, rng: np.random.Generator) -> ReasonerExample:
        return reasoner_example(sets, config.batch, config.documents, rng)

    return fit_drawn(
        TrainableNetwork(weights, of_example),
        DrawnExamples(config.steps, config, draw),
        config,
        "ras_agent.train.gfm.reasoner",
        shape,
        digests,
        config.steps,
    )


def _digests_of(folder: Path) -> list[str]:
    return [
        file_sha256(folder / name)
        for name in ("nodes", "questions.jsonl", "questions.npz")
    ]


def _begin(
    config: ReasonerTrainingConfig, sets: Sequence[ReasonerSet]
) -> tuple[ReasonerConfig, dict[str, Tensor]]:
    """Return the configuration of the network and its first weights."""
    first = sets[0].config
    if others := [one.name for one in sets if one.config != first]:
        raise IndexMismatch(
            f"the sets {sets[0].name} and {', '.join(others)} have vectors of different encoders or instructions: write "
            "them again with the same --encoder and --weights of `ras-agent kg examples`"
        )
    if config.start_from is None:
        shape = replace(first, width=config.width, layers=config.layers)
        return shape, initial_weights(shape, config.seed)
    start, weights = load_reasoner(weights_folder(str(config.start_from)))
    fits = not start.text_model or same_encoder(start.text_model, first.text_model)
    for name in ("text_width", "query_instruct", "passage_instruct", "inverse"):
        if getattr(start, name) != getattr(first, name):
            fits = False
    if not fits:
        raise WeightsError(
            f"{config.start_from} reads vectors of {start.text_model or 'an encoder'} of width {start.text_width}, but the "
            f"sets hold those of {first.text_model} of width {first.text_width}, or with other instructions: write the "
            f"sets again with `ras-agent kg examples --weights {config.start_from}` and the network's encoder"
        )
    return replace(start, text_model=first.text_model), weights


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and train."""
    print_result(train(config_from(ReasonerTrainingConfig, __doc__, arguments)))


if __name__ == "__main__":
    run_program(main)

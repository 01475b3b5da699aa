"""Train a G-reasoner network (arXiv:2509.24276) on questions and the documents that support them.

    ras-agent kg examples my.index mine.jsonl --network greasoner --out SET
    python -m ras_agent.train.gfm.reasoner --sets SET --out RUN --width 1024 --steps 4000
    torchrun --nproc-per-node 8 -m ras_agent.train.gfm.reasoner --sets SET1,SET2 --out RUN

Every step takes questions of one set and the part of its graph around some documents: those that support the questions
or that they start from, and others. The loss reads documents alone: 0.3 of eq. 11 of GFM-RAG, 0.7 of its eq. 12, and
the mean squared error to what the encoder itself says of a document, its cosine with the question. RUN is then a folder
of weights for the retriever "greasoner", with the files of ras_agent.train.loop.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.errors import IndexMismatch, WeightsError
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.program import run_program
from ras_agent.tools.gfm.reasoner import ReasonerConfig, load_reasoner
from ras_agent.tools.gfm.weights import initial_weights, same_encoder, save_gfm, weights_folder
from ras_agent.train.gfm.reasoner_sets import ReasonerExample, ReasonerSet, reasoner_example
from ras_agent.train.loop import FIT_RANGES, FitConfig, FitResult, fit
from ras_agent.train.options import config_from
from ras_agent.train.processes import process_count
from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, SHARE, check_ranges

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonerTrainingConfig(FitConfig):
    """Options of a G-reasoner network's training. Raises SettingsError for a number out of range.

    sets: folders. out: the folder of the run. start_from: the weights to begin with.
    width, layers: of a network without `start_from`.
    batch: questions of a step. documents: the number of documents around which a step's graph lies; 0 for all.
    alpha: the weight of eq. 11 in the loss; eq. 12 has the rest. adversarial: see GFMTrainingConfig.
    distillation: the weight of the error to the encoder's cosines.
    """

    sets: tuple[Path, ...]
    out: Path
    width: int = 1024
    layers: int = 6
    steps: int = 4000
    batch: int = 4
    documents: int = 300
    rate: float = 5e-4
    alpha: float = 0.3
    adversarial: float = 0.2
    distillation: float = 1.0
    decay_biases: bool = True
    bf16: bool | None = False
    start_from: Path | None = None
    # a step's questions are drawn: there are no epochs, and no questions that are held out
    epochs: int = field(default=1, init=False)
    validate_every: int = field(default=0, init=False)
    validate_first: bool = field(default=False, init=False)
    patience: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        ranges = {
            **FIT_RANGES,
            **dict.fromkeys(("width", "layers", "batch", "steps"), COUNT),
            **dict.fromkeys(("adversarial", "distillation"), AMOUNT),
            "documents": NATURAL,
            "alpha": SHARE,
        }
        check_ranges(self, ranges)


class _DrawnExamples:
    """Sequence of a training's examples. Example n is drawn when it is looked up, by a seed that depends on n alone."""

    def __init__(self, sets: Sequence[ReasonerSet], config: ReasonerTrainingConfig, processes: int) -> None:
        self._sets, self._config, self._processes = sets, config, processes

    def __len__(self) -> int:
        return self._config.steps * self._config.accumulate * self._processes

    def __getitem__(self, place: int) -> ReasonerExample:
        rng = np.random.default_rng((self._config.seed, *divmod(place, self._processes)))
        return reasoner_example(self._sets, self._config.batch, self._config.documents, rng)


def train(config: ReasonerTrainingConfig) -> FitResult:
    """Train until the steps or the minutes are over, write the weights and training.json, and return how it ended.

    Raises IndexMismatch where the sets' vectors are of different encoders, WeightsError where `start_from` or what is
    in `out` is another network, and what `fit` and ReasonerSet.read raise.
    """
    from ras_agent.train.gfm.trainable import TrainableReasoner

    sets = [ReasonerSet.read(folder) for folder in config.sets]
    shape, weights = _begin(config, sets)
    digests = {f"sets.{number} {folder.name}": _digest(folder) for number, folder in enumerate(config.sets, 1)}
    config = replace(config, width=shape.width, layers=shape.layers)
    options = {"alpha": config.alpha, "adversarial": config.adversarial, "distillation": config.distillation}
    examples, model = _DrawnExamples(sets, config, process_count()), TrainableReasoner(weights, **options)
    result = fit(model, lambda epoch: examples, None, config, config.out, digests)
    if result.main:
        save_gfm(config.out, shape, model.tensors())
        training = {
            "made_by": "python -m ras_agent.train.gfm.reasoner",
            "sets": [folder.name for folder in config.sets],
            "start_from": config.start_from and config.start_from.name,
            "processes": process_count(),
            "settings": {**config.settings(), **digests},
            "result": asdict(result),
        }
        (config.out / "training.json").write_text(json.dumps(training, indent=1) + "\n", encoding="utf-8")
    return result


def _digest(folder: Path) -> str:
    parts = [file_sha256(folder / name) for name in ("nodes", "questions.jsonl", "questions.npz")]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]


def _begin(config: ReasonerTrainingConfig, sets: Sequence[ReasonerSet]) -> tuple[ReasonerConfig, dict[str, Tensor]]:
    """Return the network's configuration and its first weights."""
    first = sets[0].config
    if others := [one.name for one in sets if one.config != first]:
        raise IndexMismatch(
            f"{sets[0].name} and {', '.join(others)} hold vectors of different encoders or instructions"
        )
    if config.start_from is None:
        shape = replace(first, width=config.width, layers=config.layers)
        return shape, initial_weights(shape, config.seed)
    start, weights = load_reasoner(weights_folder(str(config.start_from)))
    same = not start.text_model or same_encoder(start.text_model, first.text_model)
    told = (start.text_width, start.query_instruct, start.passage_instruct, start.inverse)
    if not same or told != (first.text_width, first.query_instruct, first.passage_instruct, first.inverse):
        raise WeightsError(
            f"{config.start_from} reads vectors of {start.text_model or 'an encoder'} of width {start.text_width}, the "
            f"sets hold those of {first.text_model} of width {first.text_width}, or other instructions: write the sets "
            "with its encoder and its instructions"
        )
    return replace(start, text_model=first.text_model), weights


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and train."""
    result = train(config_from(ReasonerTrainingConfig, __doc__, arguments))
    if result.main:
        print(json.dumps(asdict(result)))


if __name__ == "__main__":
    run_program(main)

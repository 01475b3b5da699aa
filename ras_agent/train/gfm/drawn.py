"""Defines the options and reports of trainings whose examples are drawn at random."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from ras_agent.eval.run.manifest import file_sha256
from ras_agent.tools.gfm.weights import save_gfm, weights_folder
from ras_agent.tools.store.card import write_card
from ras_agent.train.loop import TRAINING, FitConfig, FitResult, fit
from ras_agent.train.processes import process_count

if TYPE_CHECKING:
    from ras_agent.tools.gfm.weights import NetworkConfig
    from ras_agent.train.gfm.trainable import TrainableNetwork

E = TypeVar("E")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnConfig(FitConfig):
    """Holds the options of a training on drawn examples, which has no epochs and no validation questions."""

    sets: tuple[Path, ...]
    """Folders of training sets, as ras_agent.train.gfm.examples writes them."""
    out: Path
    """The folder of the run; the same command resumes a training in it."""
    steps: int = 4000
    """Steps of the optimiser."""
    documents: int = 300
    """Documents whose facts make a step's graph; 0 for the whole graph, as in the paper."""
    rate: float = 5e-4
    alpha: float = 0.3
    """Weight of eq. 11 in the loss of retrieval; eq. 12 has the rest."""
    decay_biases: bool = True
    bf16: bool | None = False
    start_from: Path | None = None
    """Weights to begin with: a folder, a name on the Hugging Face hub, or packaged."""
    epochs: int = field(default=1, init=False)
    validate_every: int = field(default=0, init=False)
    validate_first: bool = field(default=False, init=False)
    patience: int = field(default=0, init=False)

    def digests(self, parts_of: Callable[[Path], Sequence[str]]) -> dict[str, str]:
        """Return short hashes of the sets and of `start_from`, by which a resumed training checks that they are
        unchanged.

        `parts_of` returns the hashes of the files in a set's folder. Raises OSError if a file cannot be read.
        """
        digests = {}
        for number, folder in enumerate(self.sets, 1):
            parts = " ".join(parts_of(folder))
            digests[f"sets.{number} {folder.name}"] = hashlib.sha256(
                parts.encode()
            ).hexdigest()[:12]
        if self.start_from is not None:
            file = weights_folder(str(self.start_from)) / "model.safetensors"
            if not file.is_file():
                file = file.with_suffix(".pth")
            digests["start_from"] = file_sha256(file)[:12]
        return digests


class DrawnExamples(Generic[E]):
    """Draws example n of a training when it is accessed, by a seed that depends only on n."""

    def __init__(
        self,
        steps: int,
        config: DrawnConfig,
        draw: Callable[[int, np.random.Generator], E],
    ) -> None:
        """Take the function that draws example n, given n. Each of the `steps` steps has `accumulate` examples."""
        self._count = steps * config.accumulate
        self._config = config
        self._draw = draw
        self._processes = process_count()

    def __len__(self) -> int:
        return self._count * self._processes

    def __getitem__(self, place: int) -> E:
        number, rank = divmod(place, self._processes)
        return self._draw(
            number, np.random.default_rng((self._config.seed, number, rank))
        )


def fit_drawn(
    model: TrainableNetwork[E],
    examples: DrawnExamples[E],
    config: DrawnConfig,
    made_by: str,
    shape: NetworkConfig,
    digests: Mapping[str, str],
    steps: int,
) -> FitResult:
    """Train a network on examples, and write its weights, and training.json with settings, hashes and outcome.

    Args:
        made_by: The module of the training.
        shape: The network's configuration.
        digests: The hashes of the sets and of the weights to begin with.
        steps: The number of all steps.
    """
    settings = {**config.settings(), **digests}
    result = fit(
        model,
        lambda epoch: examples,
        None,
        replace(config, steps=steps),
        config.out,
        settings,
    )
    if result.main:
        save_gfm(config.out, shape, model.tensors())
        training = {
            "made_by": f"python -m {made_by}",
            "sets": [folder.name for folder in config.sets],
            "start_from": config.start_from and config.start_from.name,
            "processes": process_count(),
            "settings": settings,
            "result": asdict(result),
        }
        write_card(config.out / TRAINING, training)
    return result

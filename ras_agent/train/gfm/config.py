"""Everything that decides what a GFM network's training becomes."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ras_agent.errors import SettingsError
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.tools.kg.disk import read_kg_manifest
from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, SEED, SHARE, Range, check_ranges

__all__ = ["Config", "contents_of", "settings_of"]

_RANGES = {
    **dict.fromkeys(("width", "layers", "text_width", "batch", "documents", "negatives", "save_every"), COUNT),
    **dict.fromkeys(("completion", "steps", "warmup"), NATURAL),
    **dict.fromkeys(("rate", "decay", "document", "minutes"), AMOUNT),
    **dict.fromkeys(("alpha", "labelled", "dropout"), SHARE),
    "seed": SEED,
    "clip": Range(0, sys.float_info.max, above=True),
    "share": Range(0, 1, above=True),
}


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that decides what comes out. Raises SettingsError for a number out of its range, or nothing to do.

    sets: folders. alpha: the share of eq. 11 in the loss of retrieval (it is 1 in completion); document: the weight of
    the loss for documents, 0 in the paper. documents: how many make up a step's graph. negatives: of completion.
    labelled: how often a step takes labelled questions where a set has them. share: of each set's questions that is
    used; a smaller share's questions are among a larger one's. dropout: the share of a question's entities that is left
    out, except the last. bf16: products in bfloat16. minutes: stop and save after so long. start_from: a folder of
    weights to begin with.
    """

    sets: tuple[Path, ...]
    out: Path
    width: int = 64
    layers: int = 6
    text_width: int = 384
    inverse: str = "negated"
    seed: int = 0
    completion: int = 0
    steps: int = 4000
    batch: int = 8
    documents: int = 300
    rate: float = 5e-4
    decay: float = 0.01
    warmup: int = 200
    clip: float = 1.0
    alpha: float = 0.3
    document: float = 0.0
    negatives: int = 128
    labelled: float = 0.5
    share: float = 1.0
    dropout: float = 0.0
    bf16: bool = False
    minutes: float = 0.0
    save_every: int = 500
    start_from: Path | None = None

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        if not self.completion + self.steps:
            raise SettingsError("nothing to train: --steps and --completion are both 0")


def settings_of(config: Config) -> dict[str, Any]:
    """What decides the weights, as JSON: everything but where they go, how they are saved and when a sitting ends."""
    left = ("sets", "out", "minutes", "save_every")
    plain = {name: value for name, value in asdict(config).items() if name not in left}
    start = None if config.start_from is None else str(config.start_from)
    return {**plain, "sets": [folder.name for folder in config.sets], "start_from": start}


def contents_of(config: Config) -> dict[str, Any]:
    """`sets` and `start_from` by what they hold, wherever they lie: short digests by name, for `settings_of`'s paths.

    Raises OSError for a file that cannot be read.
    """
    held: dict[str, Any] = {"sets": {}, "start_from": None}
    for number, folder in enumerate(config.sets, 1):
        parts = [read_kg_manifest(folder / "graph").fingerprint]
        parts += [file_sha256(folder / name) for name in ("questions.jsonl", "questions.npz")]
        held["sets"][f"{number} {folder.name}"] = hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]
    if config.start_from is not None:
        files = (config.start_from / name for name in ("model.safetensors", "model.pth"))
        held["start_from"] = file_sha256(next(file for file in files if file.is_file()))[:12]
    return held

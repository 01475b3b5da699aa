"""What fine-tuning adds to a sentence encoder: two low-rank maps over its vectors, for questions and for texts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.errors import MissingExtra, WeightsError
from ras_agent.protocols import Embedder

__all__ = ["PARTS", "PathHead"]

FORMAT, VERSION = "ras-agent path encoder", 1
PARTS = ("question_down", "question_up", "text_down", "text_up")
_WEIGHTS, _ABOUT = "path_encoder.safetensors", "path_encoder.json"


@dataclass(frozen=True, slots=True)
class PathHead:
    """x becomes x + (x down) up, scaled to unit length; down (d, r), up (r, d), for questions and for texts apart.

    embedder: name of the encoder whose vectors it is for. about: how it was trained, plain JSON.
    """

    embedder: str
    question_down: Floats
    question_up: Floats
    text_down: Floats
    text_up: Floats
    about: dict[str, Any]

    def question(self, vectors: Floats) -> Floats:
        """(n, d) unit vectors of questions, from the encoder's."""
        return _mapped(vectors, self.question_down, self.question_up)

    def text(self, vectors: Floats) -> Floats:
        """(n, d) unit vectors of facts and paths, from the encoder's."""
        return _mapped(vectors, self.text_down, self.text_up)

    def check(self, embedder: Embedder) -> None:
        """Raises WeightsError for an encoder that it was not trained over."""
        if (embedder.name, embedder.dimension) != (self.embedder, len(self.question_down)):
            raise WeightsError(
                f"the path encoder was trained over {self.embedder!r} ({len(self.question_down)} wide), not over "
                f"{embedder.name!r} ({embedder.dimension} wide): take that encoder, or train it with "
                "`python -m ras_agent.train.paths.train`"
            )

    def save(self, folder: str | Path) -> None:
        """Write weights and what is known of them into `folder`, which is made."""
        from safetensors.numpy import save_file

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        save_file({part: np.ascontiguousarray(getattr(self, part)) for part in PARTS}, folder / _WEIGHTS)
        about = {"format": FORMAT, "version": VERSION, "embedder": self.embedder, "about": self.about}
        (folder / _ABOUT).write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Raises WeightsError naming the file that is missing or damaged, MissingExtra without safetensors."""
        try:
            from safetensors import SafetensorError
            from safetensors.numpy import load_file
        except ImportError as error:
            raise MissingExtra("a fine-tuned path encoder", "offline") from error
        folder = Path(folder)
        try:
            about = json.loads((folder / _ABOUT).read_text("utf-8"))
            weights = load_file(folder / _WEIGHTS)
        except FileNotFoundError as error:
            raise WeightsError(
                f"no path encoder at {folder} ({error.filename} is missing): train one with "
                "`python -m ras_agent.train.paths.train`"
            ) from error
        except (SafetensorError, ValueError, OSError) as error:
            raise WeightsError(f"{folder} holds no readable path encoder ({error}): train it anew") from error
        if not isinstance(about, dict) or (about.get("format"), about.get("version")) != (FORMAT, VERSION):
            raise WeightsError(f"{folder / _ABOUT}: expected '{FORMAT}' version {VERSION}: train it anew")
        if set(weights) != set(PARTS) or not _fits(weights):
            raise WeightsError(f"{folder / _WEIGHTS}: its weights do not fit together: train it anew")
        return cls(str(about["embedder"]), **weights, about=dict(about.get("about") or {}))


def _mapped(vectors: Floats, down: Floats, up: Floats) -> Floats:
    moved = vectors + (vectors @ down) @ up
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    result: Floats = (moved / np.maximum(lengths, 1e-12)).astype(np.float32)
    return result


def _fits(weights: dict[str, Any]) -> bool:
    downs, ups = (weights[PARTS[0]], weights[PARTS[2]]), (weights[PARTS[1]], weights[PARTS[3]])
    fits = all(array.ndim == 2 and array.dtype == np.float32 for array in (*downs, *ups))
    return (
        fits
        and downs[0].shape[0] == downs[1].shape[0]
        and all(down.shape == up.shape[::-1] for down, up in zip(downs, ups, strict=True))
    )

"""How the reader's weights are stored: matrices as whole numbers of eight bits, with a factor for each of their rows.

The file holds the whole network, so that reading needs no other package: MiniLM's embeddings, which training leaves as
they are, its trained layers, and the heads. Rounded, they answer as before (lab/reader.md), in a quarter of the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from ras_agent.arrays import Floats
from ras_agent.errors import WeightsError

_FACTORS = ".row_factors"
_STEPS = 127


def save_weights(weights: Mapping[str, Floats], file: Path) -> None:
    """Write weights by name: a matrix rounded, as int8 with a float16 factor for each row; a vector as float16."""
    stored: dict[str, npt.NDArray[Any]] = {}
    for name, array in weights.items():
        if array.ndim == 1 or name.startswith("heads."):
            stored[name] = np.ascontiguousarray(array, np.float16)
            continue
        smallest = np.finfo(np.float16).tiny  # of a row of zeros
        factors = np.maximum(np.abs(array).max(axis=1, keepdims=True) / _STEPS, smallest).astype(np.float16)
        stored[name] = np.clip(np.rint(array / factors.astype(np.float32)), -_STEPS, _STEPS).astype(np.int8)
        stored[name + _FACTORS] = factors
    save_file(stored, file)


def load_weights(file: Path) -> dict[str, Floats]:
    """Return what `save_weights` wrote, as float32. Raises WeightsError for a file that is damaged or missing."""
    try:
        stored = load_file(file)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{file}: the reader's weights cannot be read ({error}); install ras-agent again") from error
    weights: dict[str, Floats] = {}
    for name, array in stored.items():
        if not name.endswith(_FACTORS):
            weights[name] = array.astype(np.float32)
            if (factors := stored.get(name + _FACTORS)) is not None:
                weights[name] *= factors.astype(np.float32)
    return weights

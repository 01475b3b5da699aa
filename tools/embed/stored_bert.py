"""Reads and writes BERT in this package's own file format: weights in eight bits, and a tokenizer.

A weights file holds a whole network: embeddings, layers and heads. Matrices are stored as integers, with a factor
for each row. The packaged reader answers as before this rounding (lab/reader.md), in a quarter of the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import WeightsError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CLS = 101
"""The token id of uncased BERT's [CLS], which begins a text."""
SEP = 102
"""The token id of [SEP], which ends a segment."""
_FACTORS = ".row_factors"
_STEPS = 127


def save_weights(weights: Mapping[str, Floats], file: Path) -> None:
    """Write weights by name: matrices as int8 with a float16 factor for each row, vectors and heads as float16."""
    stored: dict[str, npt.NDArray[Any]] = {}
    smallest = np.finfo(np.float16).tiny  # the factor of a row of zeros
    for name, array in weights.items():
        if array.ndim == 1 or name.startswith("heads."):
            stored[name] = np.ascontiguousarray(array, np.float16)
            continue
        largest = np.abs(array).max(axis=1, keepdims=True)
        factors = np.maximum(largest / _STEPS, smallest)
        factors = factors.astype(np.float16)
        steps = np.rint(array / factors.astype(np.float32))
        steps = np.clip(steps, -_STEPS, _STEPS)
        stored[name] = steps.astype(np.int8)
        stored[name + _FACTORS] = factors
    save_file(stored, file)


def load_weights(file: Path) -> dict[str, Floats]:
    """Load the weights in a file of `save_weights` as float32. Raises WeightsError if it is damaged or missing."""
    try:
        stored = load_file(file)
    except (OSError, SafetensorError) as error:
        raise WeightsError(
            f"{file}: the weights cannot be read ({error}); install ras-agent again"
        ) from error
    weights: dict[str, Floats] = {}
    for name, array in stored.items():
        if not name.endswith(_FACTORS):
            weights[name] = array.astype(np.float32)
            if (factors := stored.get(name + _FACTORS)) is not None:
                weights[name] *= factors.astype(np.float32)
    return weights


def bert_tokenizer() -> Tokenizer:
    """Return the tokenizer of uncased BERT and MiniLM, without special tokens, padding or truncation."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    with as_file(files("ras_agent.data") / "reader_vocab.txt") as file:
        pieces = models.WordPiece.from_file(str(file), unk_token="[UNK]")
    tokenizer = Tokenizer(pieces)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer

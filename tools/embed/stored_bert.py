"""BERT as this package stores it, so that reading needs no other package: its weights in eight bits, its tokenizer.

A file of weights holds a whole network: embeddings, layers and heads. Matrices are whole numbers, with a factor for
each of their rows; the packaged reader, rounded so, answers as before (lab/reader.md), in a quarter of the bytes.
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

from ras_agent.arrays import Floats
from ras_agent.errors import WeightsError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CLS = 101
"""The token of uncased BERT that begins a text."""
SEP = 102
"""The token that ends a segment."""
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
        largest = np.abs(array).max(axis=1, keepdims=True)
        factors = np.maximum(largest / _STEPS, smallest).astype(np.float16)
        steps = np.rint(array / factors.astype(np.float32))
        stored[name] = np.clip(steps, -_STEPS, _STEPS).astype(np.int8)
        stored[name + _FACTORS] = factors
    save_file(stored, file)


def load_weights(file: Path) -> dict[str, Floats]:
    """Return weights of `save_weights` as float32. Raises WeightsError for a file that is damaged or missing."""
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
    """Return the tokenizer of uncased BERT, which is MiniLM's too, without special tokens, padding or truncation."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    with as_file(files("ras_agent.data") / "reader_vocab.txt") as file:
        pieces = models.WordPiece.from_file(str(file), unk_token="[UNK]")
    tokenizer = Tokenizer(pieces)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer

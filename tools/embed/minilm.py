"""The packaged all-MiniLM-L6-v2 in numpy: sentence vectors without torch, ready in a third of a second.

Architecture: BERT (arXiv:1810.04805), 6 post-norm layers of 12 heads, width 384, then the mean over tokens, unit
length. The vectors equal those of sentence-transformers to 1e-6; importing that takes 6 s, which is most of a short
run. For a GPU, `SentenceTransformerEmbedder(packaged_minilm(), name="minilm")` writes the same index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.errors import MissingExtra
from ras_agent.tools.embed.packaged_minilm import packaged_minilm

__all__ = ["MiniLMEmbedder"]


_LAYERS, _HEADS, _WIDTH, _MAX_TOKENS = 6, 12, 384, 256
_BATCH_TOKENS = 2048  # a layer's widest array is 12 MB; larger batches are no faster
_BLOCK = 1 << 14  # elements of one pass over an array that stays in the cache


@dataclass(frozen=True, slots=True)
class _Linear:
    """x W + b with W (in, out)."""

    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        # one product: numpy would make one for each of a batch's texts, and read the weights anew for each
        y: Floats = x.reshape(-1, x.shape[-1]) @ self.weight
        y += self.bias
        return y.reshape(*x.shape[:-1], -1)


@dataclass(frozen=True, slots=True)
class _Norm:
    """Layer normalisation over the last axis, in place."""

    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        x -= x.mean(axis=-1, keepdims=True)
        x /= np.sqrt(np.einsum("...i,...i->...", x, x)[..., None] / np.float32(_WIDTH) + np.float32(1e-12))
        x *= self.weight
        x += self.bias
        return x


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: _Linear
    attended: _Linear
    attended_norm: _Norm
    wide: _Linear
    narrow: _Linear
    norm: _Norm

    def __call__(self, x: Floats, bias: Floats) -> Floats:
        """x (B, T, 384), bias (B, 1, 1, T): 0 for a token, a large negative number for padding."""
        batch, length, _ = x.shape
        heads = self.qkv(x).reshape(batch, length, 3, _HEADS, -1).transpose(2, 0, 3, 1, 4)  # (3, B, heads, T, 32)
        weights = heads[0] @ heads[1].swapaxes(-1, -2)  # (B, heads, T, T); the scale is folded into the query's map
        weights += bias
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        context = (weights @ heads[2]).swapaxes(1, 2).reshape(batch, length, _WIDTH)
        x = self.attended_norm(self.attended(context) + x)
        return self.norm(self.narrow(_gelu(self.wide(x))) + x)


@dataclass(frozen=True, slots=True)
class _Network:
    tokenizer: Any
    words: Floats  # (30522, 384)
    positions: Floats  # (512, 384), the only segment's vector added
    norm: _Norm
    layers: tuple[_Layer, ...]

    def __call__(self, batch: Sequence[Sequence[int]]) -> Floats:
        """Unit vectors (B, 384) of token id lists."""
        length = max(map(len, batch))
        ids = np.zeros((len(batch), length), dtype=np.int32)
        mask = np.zeros((len(batch), length), dtype=np.float32)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        x = self.norm(self.words[ids] + self.positions[:length])
        bias = ((mask - 1) * np.float32(1e9))[:, None, None, :]
        for layer in self.layers:
            x = layer(x, bias)
        total: Floats = np.einsum("bti,bt->bi", x, mask)
        total /= np.linalg.norm(total, axis=1, keepdims=True)
        return total


class MiniLMEmbedder:
    """all-MiniLM-L6-v2 from the extra `offline`. Loads at the first text, once a process; never uses the network."""

    name = "minilm"
    dimension = _WIDTH

    def embed(self, texts: Sequence[str]) -> Floats:
        """Unit vectors, shape (len(texts), 384), float32. Text beyond 256 word pieces is not seen.

        Raises MissingExtra without the weights, IndexMismatch if they are not the official ones.
        """
        vectors = np.empty((len(texts), _WIDTH), dtype=np.float32)
        if texts:
            network = _network()
            # the tokenizer takes no lone surrogates
            clean = [text.encode("utf-8", "replace").decode() for text in texts]
            tokens = [encoding.ids for encoding in network.tokenizer.encode_batch(clean)]
            for rows in _batches(tokens):
                vectors[rows] = network([tokens[row] for row in rows])
        return vectors


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Rows in batches of similar length, the longest first: little padding, and memory runs out early or never."""
    batch: list[int] = []
    for row in sorted(range(len(tokens)), key=lambda row: -len(tokens[row])):
        if batch and (len(batch) + 1) * len(tokens[batch[0]]) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    yield batch


def _gelu(x: Floats) -> Floats:
    """x Phi(x) in place, block by block.

    erf by formula 7.1.26 of Abramowitz and Stegun, to 1.5e-7: numpy has none.
    """
    flat = x.reshape(-1)
    for start in range(0, len(flat), _BLOCK):
        block = flat[start : start + _BLOCK]
        scaled = np.abs(block)
        scaled *= np.float32(0.5**0.5)
        t = 1 / (1 + np.float32(0.3275911) * scaled)
        tail = np.full_like(t, 1.061405429)
        for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            tail *= t
            tail += np.float32(coefficient)
        scaled *= scaled
        tail *= t
        tail *= np.exp(-scaled)  # 1 - erf(|x| / sqrt 2)
        np.subtract(1, tail, out=tail)
        block *= 0.5 * (1 + np.copysign(tail, block))
    return x


@cache
def _network() -> _Network:
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtra("the packaged MiniLM", "offline") from error
    folder = packaged_minilm()
    weights = load_file(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(_MAX_TOKENS)
    tokenizer.no_padding()

    def linear(*names: str, scales: Sequence[float] = (1.0,)) -> _Linear:
        """Several maps of one input side by side."""
        scaled = [(name, np.float32(scale)) for name, scale in zip(names, scales, strict=True)]
        weight = np.concatenate([weights[f"{name}.weight"] * scale for name, scale in scaled]).T
        return _Linear(
            np.ascontiguousarray(weight), np.concatenate([weights[f"{name}.bias"] * scale for name, scale in scaled])
        )

    def norm(name: str) -> _Norm:
        return _Norm(weights[f"{name}.LayerNorm.weight"], weights[f"{name}.LayerNorm.bias"])

    def layer(name: str) -> _Layer:
        attention = f"{name}.attention.self"
        return _Layer(
            linear(
                *(f"{attention}.{part}" for part in ("query", "key", "value")),
                scales=((_WIDTH // _HEADS) ** -0.5, 1.0, 1.0),
            ),
            linear(f"{name}.attention.output.dense"),
            norm(f"{name}.attention.output"),
            linear(f"{name}.intermediate.dense"),
            linear(f"{name}.output.dense"),
            norm(f"{name}.output"),
        )

    segment = weights["embeddings.token_type_embeddings.weight"][0]
    return _Network(
        tokenizer,
        weights["embeddings.word_embeddings.weight"],
        weights["embeddings.position_embeddings.weight"] + segment,
        norm("embeddings"),
        tuple(layer(f"encoder.layer.{number}") for number in range(_LAYERS)),
    )

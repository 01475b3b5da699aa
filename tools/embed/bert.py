"""BERT in numpy (arXiv:1810.04805), as MiniLM-L6 has it: 6 post-norm layers of 12 heads, width 384.

Texts are read in panels: matrices with a column for each token, text after text, without padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.blas import one_blas_thread

LAYERS, HEADS, WIDTH, PLACES = 6, 12, 384, 512
PANEL = 320  # columns; a layer's widest array is 2 MB. OpenBLAS would work on more in two parts
_TILE = 8  # columns that its kernels take at once
_BLOCK = 1 << 15  # elements of one pass over an array that stays in the cache


@dataclass(frozen=True, slots=True)
class _Linear:
    """Linear map W x + b, for W (out, in), x (in, columns) and b (out, 1)."""

    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        y: Floats = self.weight @ x
        y += self.bias
        return y


@dataclass(frozen=True, slots=True)
class _Norm:
    """Layer norm of each column of x (384, columns), in place; weight and bias (384, 1)."""

    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        x -= x.mean(axis=0)
        x /= np.sqrt((x * x).mean(axis=0) + np.float32(1e-12))
        x *= self.weight
        x += self.bias
        return x


class Group(NamedTuple):
    """Place in a panel of the texts of one length, which follow one another."""

    start: int  # their first column
    texts: int
    length: int  # tokens of each

    @property
    def columns(self) -> slice:
        return slice(self.start, self.start + self.texts * self.length)


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: _Linear
    attended: _Linear
    attended_norm: _Norm
    wide: _Linear
    narrow: _Linear
    norm: _Norm

    def __call__(self, x: Floats, groups: Sequence[Group]) -> Floats:
        """Return the layer's output for x (384, columns). groups: the texts that the columns belong to."""
        qkv, context = self.qkv(x), np.zeros_like(x)
        for group in groups:
            # (3, B, heads, 32, T), copied, so that its strides are those of the text alone
            heads = np.ascontiguousarray(
                qkv[:, group.columns].reshape(3, HEADS, -1, group.texts, group.length).transpose(0, 3, 1, 2, 4)
            )
            weights = heads[0].swapaxes(-1, -2) @ heads[1]  # (B, heads, T, T); the scale is folded into the query's map
            weights -= weights.max(axis=-1, keepdims=True)
            np.exp(weights, out=weights)
            weights /= weights.sum(axis=-1, keepdims=True)
            of_group = (heads[2] @ weights.swapaxes(-1, -2)).transpose(1, 2, 0, 3)  # (heads, 32, B, T)
            context[:, group.columns] = of_group.reshape(WIDTH, -1)
        x = self.attended_norm(self.attended(context) + x)
        return self.norm(self.narrow(_gelu(self.wide(x))) + x)


@dataclass(frozen=True, slots=True)
class Bert:
    """Network that reads texts in panels.

    A text has the same states, to the last bit, alone and in any company: each step treats each column or each text by
    itself, except that some matrix products treat the first and last columns of a panel in another way, and there
    `margin` columns are empty. Products run on one thread: OpenBLAS divides a panel among several, and then states
    differ by 1e-7.
    """

    margin: int
    words: Floats  # (30522, 384)
    positions: Floats  # (512, 384)
    segments: Floats  # (2, 384)
    norm: _Norm
    layers: tuple[_Layer, ...]

    @property
    def columns(self) -> int:
        """Return how many tokens a panel holds at most."""
        return PANEL - 2 * self.margin

    def states(self, panel: Sequence[Sequence[int]], firsts: Sequence[int] | None = None) -> tuple[Floats, list[Group]]:
        """Return the last states, a row for each column (columns, 384), and which columns the texts of a length have.

        panel: token id lists, sorted by length. firsts: how many tokens of each are of the first segment; all, if None.
        """
        lengths = [len(tokens) for tokens in panel]
        margin, columns = self.margin, -(-sum(lengths) // _TILE) * _TILE
        if sum(lengths) < 2 * _TILE:  # such a product has no ends; a question alone is read in half the time
            margin, columns = 0, max(sum(lengths), _TILE)
        x = np.zeros((WIDTH, margin + columns + margin), dtype=np.float32)
        places = np.concatenate([np.arange(length) for length in lengths])
        words = self.words[np.concatenate([np.asarray(tokens, dtype=np.int64) for tokens in panel])]
        of_segment = 0 if firsts is None else (places >= np.repeat(firsts, lengths)).astype(np.int64)
        words += self.positions[places] + self.segments[of_segment]
        x[:, margin : margin + len(words)] = words.T
        groups, start = [], margin
        for length, same in groupby(lengths):
            groups.append(Group(start, len(list(same)), length))
            start = groups[-1].columns.stop
        x = self.norm(x)
        with one_blas_thread():
            for layer in self.layers:
                x = layer(x, groups)
        return np.ascontiguousarray(x.T), groups


def bert(weights: Mapping[str, Floats]) -> Bert:
    """Return the network with weights by the names of its published file."""

    def linear(*names: str, scales: Sequence[float] = (1.0,)) -> _Linear:
        """Return one linear map with the outputs of the maps `names` one below another. scales: factor of each."""
        scaled = [(name, np.float32(scale)) for name, scale in zip(names, scales, strict=True)]
        return _Linear(
            np.concatenate([weights[f"{name}.weight"] * scale for name, scale in scaled]),
            np.concatenate([weights[f"{name}.bias"] * scale for name, scale in scaled])[:, None],
        )

    def norm(name: str) -> _Norm:
        return _Norm(weights[f"{name}.LayerNorm.weight"][:, None], weights[f"{name}.LayerNorm.bias"][:, None])

    def layer(name: str) -> _Layer:
        attention = f"{name}.attention.self"
        return _Layer(
            linear(
                *(f"{attention}.{part}" for part in ("query", "key", "value")),
                scales=((WIDTH // HEADS) ** -0.5, 1.0, 1.0),
            ),
            linear(f"{name}.attention.output.dense"),
            norm(f"{name}.attention.output"),
            linear(f"{name}.intermediate.dense"),
            linear(f"{name}.output.dense"),
            norm(f"{name}.output"),
        )

    return Bert(
        _margin(),
        weights["embeddings.word_embeddings.weight"],
        weights["embeddings.position_embeddings.weight"],
        weights["embeddings.token_type_embeddings.weight"],
        norm("embeddings"),
        tuple(layer(f"encoder.layer.{number}") for number in range(LAYERS)),
    )


def panels(tokens: Sequence[Sequence[int]], columns: int) -> Iterator[list[int]]:
    """Yield the rows of each panel of at most `columns` tokens.

    The longest texts come first, so that memory runs out at the beginning or never.
    """
    panel: list[int] = []
    columns_used = 0
    for row in sorted(range(len(tokens)), key=lambda row: -len(tokens[row])):
        if columns_used + len(tokens[row]) > columns:
            yield panel
            panel, columns_used = [], 0
        panel.append(row)
        columns_used += len(tokens[row])
    yield panel


def _gelu(x: Floats) -> Floats:
    """Compute x Phi(x) in place, block by block.

    Phi is one less h(|x|) for x > 0 and h(|x|) for x < 0, with h half of erfc by formula 7.1.26 of Abramowitz and
    Stegun, to 1.5e-7: numpy has none.
    """
    flat = x.reshape(-1)
    scratch = np.empty((3, min(_BLOCK, len(flat))), dtype=np.float32)
    for start in range(0, len(flat), _BLOCK):
        block = flat[start : start + _BLOCK]
        size, t, half = scratch[:, : len(block)]
        np.abs(block, out=size)
        np.multiply(size, np.float32(0.3275911 * 0.5**0.5), out=t)
        t += np.float32(1)
        np.reciprocal(t, out=t)
        half[:] = np.float32(1.061405429 / 2)
        for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            half *= t
            half += np.float32(coefficient / 2)
        half *= t
        np.multiply(size, size, out=t)
        t *= np.float32(-0.5)
        half *= np.exp(t, out=t)
        half *= size
        np.maximum(block, 0, out=block)
        block -= half
    return x


def _margin() -> int:
    """Count the columns at either end of a product that this processor's BLAS treats unlike those between them.

    OpenBLAS's kernels for AVX2 ("Haswell", "Zen") add the first and the last 8 columns up in another order, those for
    AVX-512, AVX and SSE none.
    """
    random = np.random.default_rng(0)
    weight = random.standard_normal((WIDTH, WIDTH), dtype=np.float32)
    column = random.standard_normal((WIDTH, 1), dtype=np.float32)
    product = weight @ np.repeat(column, PANEL, axis=1)
    unlike = np.flatnonzero((product != product[:, [PANEL // 4]]).any(axis=0))
    depths = np.minimum(unlike, PANEL - 1 - unlike) + 1  # how far from the nearer end
    return -(-int(depths.max(initial=0, where=depths <= PANEL // 8)) // _TILE) * _TILE

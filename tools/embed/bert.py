"""Computes BERT (arXiv:1810.04805) in numpy, in the size of MiniLM-L6: 6 post-norm layers of 12 heads, width 384.

Texts are read in panels: matrices with a column for each token, one text after another, without padding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import NamedTuple

import numpy as np

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.running.blas import one_blas_thread

LAYERS = 6
HEADS = 12
WIDTH = 384
PLACES = 512
PANEL = 320  # columns; a layer's widest array is 2 MB. OpenBLAS would split wider panels in two
_TILE = 8  # columns that OpenBLAS's kernels process at once
_BLOCK = 1 << 15  # elements processed at once, to stay in the CPU's cache


@dataclass(frozen=True, slots=True)
class Linear:
    """Computes a linear map W x + b, for W (out, in), x (in, columns) and b (out, 1)."""

    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        """Return the map of x, shape (out, columns)."""
        y: Floats = self.weight @ x
        y += self.bias
        return y


@dataclass(frozen=True, slots=True)
class Norm:
    """Normalises each column of x (384, columns) by a layer norm, in place; weight and bias are (384, 1)."""

    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        """Normalise x in place."""
        x -= x.mean(axis=0)
        variance = (x * x).mean(axis=0)
        x /= np.sqrt(variance + np.float32(1e-12))
        x *= self.weight
        x += self.bias
        return x


class Group(NamedTuple):
    """Holds the position in a panel of consecutive texts of equal length."""

    start: int  # first column of the first text
    texts: int
    length: int  # tokens of each text

    @property
    def columns(self) -> slice:
        """Return the columns of the panel that the texts take."""
        stop = self.start + self.texts * self.length
        return slice(self.start, stop)


@dataclass(frozen=True, slots=True)
class _Layer:
    qkv: Linear
    attended: Linear
    attended_norm: Norm
    wide: Linear
    narrow: Linear
    norm: Norm

    def __call__(self, x: Floats, groups: Sequence[Group]) -> Floats:
        """Return the layer's output for x (384, columns).

        Args:
            groups: the texts that the columns belong to.
        """
        qkv = self.qkv(x)
        context = np.zeros_like(x)
        for group in groups:
            shape = (3, HEADS, -1, group.texts, group.length)
            parts = qkv[:, group.columns].reshape(shape).transpose(0, 3, 1, 2, 4)
            # (3, B, heads, 32, T); copied, so that each text's numbers are contiguous
            query, key, value = np.ascontiguousarray(parts)
            # (B, heads, T, T); the scale is folded into the query's map
            weights = query.swapaxes(-1, -2) @ key
            weights -= weights.max(axis=-1, keepdims=True)
            np.exp(weights, out=weights)
            weights /= weights.sum(axis=-1, keepdims=True)
            of_group = value @ weights.swapaxes(-1, -2)
            by_head = of_group.transpose(1, 2, 0, 3)  # (heads, 32, B, T)
            context[:, group.columns] = by_head.reshape(WIDTH, -1)
        x = self.attended_norm(self.attended(context) + x)
        wide = _gelu(self.wide(x))
        return self.norm(self.narrow(wide) + x)


@dataclass(frozen=True, slots=True)
class Bert:
    """Computes the states of texts by a BERT network, in panels.

    A text's states are the same, to the last bit, whatever other texts are in the panel: each step treats each
    column or each text by itself. Only the matrix products of some processors treat the first and last columns of a
    panel differently; there `margin` columns at both ends stay empty. Products run on one thread, because OpenBLAS
    would divide a panel among several, which changes states by 1e-7.
    """

    margin: int
    words: Floats  # (30522, 384)
    positions: Floats  # (512, 384)
    segments: Floats  # (2, 384)
    norm: Norm
    layers: tuple[_Layer, ...]

    @property
    def columns(self) -> int:
        """Return the maximum number of tokens of a panel."""
        return PANEL - 2 * self.margin

    def states(
        self, panel: Sequence[Sequence[int]], firsts: Sequence[int] | None = None
    ) -> tuple[Floats, list[Group]]:
        """Return the last states (columns, 384), one row for each column, and the groups of texts of equal length.

        Args:
            panel: the token ids of each text, sorted by length.
            firsts: for each text, how many of its tokens belong to the first segment; None for all.
        """
        lengths = list(map(len, panel))
        size = sum(lengths)
        margin = self.margin
        columns = -(-size // _TILE) * _TILE
        # products this small have no differing ends; without margins a single question takes half the time
        if size < 2 * _TILE:
            margin = 0
            columns = max(size, _TILE)
        words, places = words_and_places(self.words, panel)
        segments = self.segments[0]
        if firsts is not None:
            is_second = places >= np.repeat(firsts, lengths)
            segments = self.segments[is_second.astype(np.int64)]
        words += self.positions[places] + segments
        x = np.zeros((WIDTH, columns + 2 * margin), dtype=np.float32)
        x[:, margin : margin + size] = words.T
        x = self.norm(x)
        groups = groups_of(lengths, margin)
        with one_blas_thread():
            for layer in self.layers:
                x = layer(x, groups)
        return np.ascontiguousarray(x.T), groups


def words_and_places(
    words: Floats, panel: Sequence[Sequence[int]]
) -> tuple[Floats, Ints]:
    """Return the word vectors of a panel's tokens, one text after another, and each token's position in its text."""
    tokens = [np.asarray(text, dtype=np.int64) for text in panel]
    places = [np.arange(len(text)) for text in panel]
    joined = np.concatenate(tokens)
    return words[joined], np.concatenate(places)


def groups_of(lengths: Iterable[int], start: int = 0) -> list[Group]:
    """Return the groups of texts with these ascending lengths in a panel that begins at column `start`."""
    groups = []
    for length, same in groupby(lengths):
        group = Group(start, len(list(same)), length)
        groups.append(group)
        start = group.columns.stop
    return groups


def bert(weights: Mapping[str, Floats]) -> Bert:
    """Build the network from weights, given under the names that they have in the published file."""

    def linear(name: str) -> Linear:
        bias = weights[f"{name}.bias"]
        return Linear(weights[f"{name}.weight"], bias[:, None])

    def attention(name: str) -> Linear:
        """Return the maps to queries (scaled), keys and values as one map, one below another."""
        query = linear(f"{name}.query")
        scale = np.float32((WIDTH // HEADS) ** -0.5)
        scaled = Linear(query.weight * scale, query.bias * scale)
        parts = (scaled, linear(f"{name}.key"), linear(f"{name}.value"))
        return Linear(
            np.concatenate([part.weight for part in parts]),
            np.concatenate([part.bias for part in parts]),
        )

    def norm(name: str) -> Norm:
        scale = weights[f"{name}.LayerNorm.weight"]
        bias = weights[f"{name}.LayerNorm.bias"]
        return Norm(scale[:, None], bias[:, None])

    def layer(number: int) -> _Layer:
        name = f"encoder.layer.{number}"
        return _Layer(
            attention(f"{name}.attention.self"),
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
        tuple(map(layer, range(LAYERS))),
    )


def panels(tokens: Sequence[Sequence[int]], columns: int) -> Iterator[list[int]]:
    """Yield the numbers of the texts in each panel of at most `columns` tokens.

    The longest texts come first, so that a lack of memory shows at the beginning.
    """
    panel: list[int] = []
    columns_used = 0
    for row in sorted(range(len(tokens)), key=lambda row: -len(tokens[row])):
        if columns_used + len(tokens[row]) > columns:
            yield panel
            panel = []
            columns_used = 0
        panel.append(row)
        columns_used += len(tokens[row])
    yield panel


def _gelu(x: Floats) -> Floats:
    """Compute x Phi(x) in place, block by block.

    Phi is 1 - h(|x|) for x > 0 and h(|x|) for x < 0, where h is half of erfc, which numpy lacks; it is computed to
    1.5e-7 by formula 7.1.26 of Abramowitz and Stegun.
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
    """Return how many columns at each end of a product this processor's BLAS computes differently from those between.

    OpenBLAS's kernels for AVX2 ("Haswell", "Zen") sum the first and the last 8 columns in another order; those for
    AVX-512, AVX and SSE do not.
    """
    random = np.random.default_rng(0)
    weight = random.standard_normal((WIDTH, WIDTH), dtype=np.float32)
    column = random.standard_normal((WIDTH, 1), dtype=np.float32)
    product = weight @ np.repeat(column, PANEL, axis=1)
    middle = product[:, [PANEL // 4]]
    unlike = np.flatnonzero((product != middle).any(axis=0))
    depths = np.minimum(unlike, PANEL - 1 - unlike) + 1  # distance from the nearer end
    near = depths[depths <= PANEL // 8]
    widest = int(near.max(initial=0))
    return ceil(widest / _TILE) * _TILE

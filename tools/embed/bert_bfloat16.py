"""Computes the same BERT as bert.py in torch, for many texts at once, on processors with instructions for bfloat16.

These instructions for 16-bit numbers are six to eight times as fast as numpy's float32. Factors and products are
rounded to 8 binary digits and summed in float32; the states to which each layer adds are float32 too.
lab/embedding.md has the effect on vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ras_agent.contracts.arrays import Floats
from ras_agent.tools.embed.bert import (
    HEADS,
    WIDTH,
    Bert,
    Group,
    Linear,
    Norm,
    groups_of,
    words_and_places,
)

if TYPE_CHECKING:
    from torch import Tensor

_EPSILON = 1e-12


class _Layer(NamedTuple):
    """Holds the weights of a layer: (outputs, inputs) and (outputs,) in bfloat16; those of its norms (384,) in float32."""

    qkv: tuple[Tensor, Tensor]
    """The queries' part includes the scale of attention."""
    attended: tuple[Tensor, Tensor]
    attended_norm: tuple[Tensor, Tensor]
    wide: tuple[Tensor, Tensor]
    narrow: tuple[Tensor, Tensor]
    norm: tuple[Tensor, Tensor]

    def __call__(self, x: Tensor, groups: Sequence[Group]) -> Tensor:
        """Return the layer's output for x (columns, 384) in float32.

        Args:
            groups: the texts that the columns belong to.
        """
        import torch
        from torch.nn.functional import gelu, layer_norm, linear

        half = x.to(torch.bfloat16)
        qkv = linear(half, *self.qkv)
        context = torch.empty_like(half)
        for group in groups:
            shape = (group.texts, group.length, 3, HEADS, WIDTH // HEADS)
            # (3, B, heads, T, 32)
            query, key, value = qkv[group.columns].view(shape).permute(2, 0, 3, 1, 4)
            # (B, heads, T, T)
            weights = torch.softmax(query @ key.transpose(-1, -2), dim=-1)
            of_group = (weights @ value).transpose(1, 2)
            context[group.columns] = of_group.reshape(-1, WIDTH)
        attended = linear(context, *self.attended)
        x = layer_norm(attended + x, (WIDTH,), *self.attended_norm, _EPSILON)
        wide = linear(x.to(torch.bfloat16), *self.wide)
        narrow = linear(gelu(wide), *self.narrow)
        return layer_norm(narrow + x, (WIDTH,), *self.norm, _EPSILON)


class BFloat16Bert:
    """Computes the states of texts in panels like `Bert`, equal to those of `network` up to rounding."""

    columns = 512
    """The maximum number of tokens of a panel, so that a layer's output for them stays in a core's cache."""

    def __init__(self, network: Bert) -> None:
        """Convert the weights of `network`. Raises ImportError without torch."""
        import torch

        def linear(map: Linear) -> tuple[Tensor, Tensor]:
            weight = torch.tensor(map.weight, dtype=torch.bfloat16)
            bias = torch.tensor(map.bias[:, 0], dtype=torch.bfloat16)
            return weight, bias

        def norm(norm: Norm) -> tuple[Tensor, Tensor]:
            weight = torch.tensor(norm.weight[:, 0])
            bias = torch.tensor(norm.bias[:, 0])
            return weight, bias

        self._words = network.words
        self._places = network.positions + network.segments[0]
        self._norm = norm(network.norm)
        self._layers = []
        for layer in network.layers:
            converted = _Layer(
                qkv=linear(layer.qkv),
                attended=linear(layer.attended),
                attended_norm=norm(layer.attended_norm),
                wide=linear(layer.wide),
                narrow=linear(layer.narrow),
                norm=norm(layer.norm),
            )
            self._layers.append(converted)

    def states(self, panel: Sequence[Sequence[int]]) -> tuple[Floats, list[Group]]:
        """Return the last states (columns, 384), one row for each column, and the groups of texts of equal length.

        Args:
            panel: the token ids of each text, sorted by length.
        """
        import torch
        from torch.nn.functional import layer_norm

        words, places = words_and_places(self._words, panel)
        groups = groups_of(map(len, panel))
        inputs = torch.from_numpy(words + self._places[places])
        with torch.inference_mode():
            x = layer_norm(inputs, (WIDTH,), *self._norm, _EPSILON)
            for layer in self._layers:
                x = layer(x, groups)
        rows: Floats = x.numpy()
        return rows, groups


@cache
def multiplies_bfloat16(processors: Path = Path("/proc/cpuinfo")) -> bool:
    """Return whether this processor has instructions for bfloat16 products. On other systems than Linux the result is
    False.
    """
    try:
        listed = processors.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    for line in listed.splitlines():
        if line.startswith("flags"):
            return not {"amx_bf16", "avx512_bf16"}.isdisjoint(line.split())
    return False

"""The same BERT for many texts at once, in torch, on processors that multiply numbers of 16 bits (bfloat16).

They do so six to eight times as fast as numpy multiplies float32. Factors and products are rounded to 8 binary digits
and summed in float32, as are the states that each layer adds to; lab/embedding.md has what that does to vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.tools.embed.bert import HEADS, WIDTH, Bert, Group

if TYPE_CHECKING:
    from torch import Tensor

_EPSILON = 1e-12


class _Layer(NamedTuple):
    """Weights of a layer: (outputs, inputs) and (outputs,) in bfloat16, of its norms (384,) in float32.

    qkv: the query's share holds the scale of attention.
    """

    qkv: tuple[Tensor, Tensor]
    attended: tuple[Tensor, Tensor]
    attended_norm: tuple[Tensor, Tensor]
    wide: tuple[Tensor, Tensor]
    narrow: tuple[Tensor, Tensor]
    norm: tuple[Tensor, Tensor]

    def __call__(self, x: Tensor, groups: Sequence[Group]) -> Tensor:
        """Return the layer's output for x (columns, 384) in float32. groups: the texts that the columns belong to."""
        import torch
        from torch.nn.functional import gelu, layer_norm, linear

        half = x.to(torch.bfloat16)
        qkv, context = linear(half, *self.qkv), torch.empty_like(half)
        for group in groups:
            shape = (group.texts, group.length, -1, HEADS, WIDTH // HEADS)
            heads = qkv[group.columns].view(shape).permute(2, 0, 3, 1, 4)  # (3, B, heads, T, 32)
            weights = torch.softmax(heads[0] @ heads[1].transpose(-1, -2), dim=-1)  # (B, heads, T, T)
            context[group.columns].view(shape[:2] + shape[3:]).copy_((weights @ heads[2]).transpose(1, 2))
        x = layer_norm(linear(context, *self.attended) + x, (WIDTH,), *self.attended_norm, _EPSILON)
        narrow = linear(gelu(linear(x.to(torch.bfloat16), *self.wide)), *self.narrow)
        return layer_norm(narrow + x, (WIDTH,), *self.norm, _EPSILON)


class BFloat16Bert:
    """Network that reads texts in panels, as `Bert` does: its states are those of `network` but for rounding."""

    columns = 512
    """tokens of a panel: what a layer makes of them stays in a core's cache"""

    def __init__(self, network: Bert) -> None:
        """Take the weights of `network`. Raises ImportError without torch."""
        import torch

        def linear(weight: Floats, bias: Floats) -> tuple[Tensor, Tensor]:
            return torch.tensor(weight, dtype=torch.bfloat16), torch.tensor(bias[:, 0], dtype=torch.bfloat16)

        def norm(weight: Floats, bias: Floats) -> tuple[Tensor, Tensor]:
            return torch.tensor(weight[:, 0]), torch.tensor(bias[:, 0])

        self._words, self._places = network.words, network.positions + network.segments[0]
        self._norm = norm(network.norm.weight, network.norm.bias)
        self._layers = [
            _Layer(
                qkv=linear(layer.qkv.weight, layer.qkv.bias),
                attended=linear(layer.attended.weight, layer.attended.bias),
                attended_norm=norm(layer.attended_norm.weight, layer.attended_norm.bias),
                wide=linear(layer.wide.weight, layer.wide.bias),
                narrow=linear(layer.narrow.weight, layer.narrow.bias),
                norm=norm(layer.norm.weight, layer.norm.bias),
            )
            for layer in network.layers
        ]

    def states(self, panel: Sequence[Sequence[int]]) -> tuple[Floats, list[Group]]:
        """Return the last states, a row for each column (columns, 384), and which columns the texts of a length have.

        panel: token id lists, sorted by length.
        """
        import torch
        from torch.nn.functional import layer_norm

        groups: list[Group] = []
        start = 0
        for length, same in groupby(map(len, panel)):
            groups.append(Group(start, len(list(same)), length))
            start = groups[-1].columns.stop
        places = np.concatenate([np.tile(np.arange(group.length), group.texts) for group in groups])
        words = self._words[np.concatenate([np.asarray(tokens, dtype=np.int64) for tokens in panel])]
        with torch.inference_mode():
            x = layer_norm(torch.from_numpy(words + self._places[places]), (WIDTH,), *self._norm, _EPSILON)
            for layer in self._layers:
                x = layer(x, groups)
        rows: Floats = x.numpy()
        return rows, groups


@cache
def multiplies_bfloat16(processors: Path = Path("/proc/cpuinfo")) -> bool:
    """Return whether this processor has instructions for products of bfloat16; only Linux says so without torch."""
    try:
        with processors.open(encoding="utf-8", errors="replace") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
    except OSError:
        return False
    return not {"amx_bf16", "avx512_bf16"}.isdisjoint(flags)

"""The span reader as the training loop sees it: a delta in training over the frozen MiniLM, and its loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ras_agent.tools.embed.packaged_minilm import packaged_minilm
from ras_agent.tools.offline.span_reader import adapted_names, load_base, merge, pad, span_logits
from ras_agent.train.named_weights import NamedWeights
from ras_agent.train.reader.batches import Row


class TrainableReader(nn.Module):
    """Frozen encoder without its pooler, and a trained delta: low-rank maps of its weights, and a head."""

    def __init__(self, encoder: nn.Module, delta: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.delta = NamedWeights(delta)

    @classmethod
    def begin(cls, rank: int, start_from: Path | None = None) -> Self:
        """Return the packaged MiniLM with a delta of this rank that changes nothing yet, or with a stored one."""
        from safetensors.torch import load_file

        encoder, base = load_base(packaged_minilm())
        if start_from is not None:
            return cls(encoder, {name: tensor.float() for name, tensor in load_file(start_from).items()})
        delta = {"head.weight": 0.02 * torch.randn(2, 384), "head.bias": torch.zeros(2)}
        for name in adapted_names(base):
            width_out, width_in = base[name].shape
            # up starts at 0, so that the first step sees the base weights as they are
            delta[f"{name}.up"] = torch.zeros(width_out, rank)
            delta[f"{name}.down"] = torch.randn(rank, width_in) / math.sqrt(width_in)
        return cls(encoder, delta)

    def train(self, mode: bool = True) -> Self:
        """Switch to training mode, but leave the encoder, which has no dropout, in evaluation mode."""
        super().train(mode)
        self.encoder.train(False)
        return self

    def loss(self, batch: Sequence[Row]) -> Tensor:
        """Return the mean negative log likelihood of the gold spans of a batch.

        A text with several gold spans has the sum of their likelihoods. Start and end are independent given the text.
        """
        delta = self.delta.tensors()
        device = delta["head.bias"].device
        inputs = {name: value.to(device) for name, value in pad([(row.question, row.text) for row in batch]).items()}
        allowed = inputs["token_type_ids"].bool()
        for number, row in enumerate(batch):
            allowed[number, 0] = True
            allowed[number, len(row.question) + len(row.text) + 2] = False  # the last [SEP]
        weights = merge(dict(self.encoder.named_parameters()), delta)

        def encode(**inputs: Tensor) -> Any:
            return functional_call(self.encoder, weights, kwargs=inputs)

        logits = span_logits(encode, inputs, delta)  # (2, B, T)
        with torch.autocast(device.type, enabled=False):
            likelihood = logits.masked_fill(~allowed, -1e9).log_softmax(-1)
            losses = []
            for number, row in enumerate(batch):
                first, last = torch.tensor(row.gold, device=device).T
                losses.append(-torch.logsumexp(likelihood[0, number, first] + likelihood[1, number, last], 0))
            return torch.stack(losses).mean()

    def save(self, file: Path) -> None:
        """Write the delta in half precision: its error stays below that of the base's own rounding."""
        from safetensors.torch import save_file

        tensors = self.delta.tensors().items()
        save_file({name: tensor.detach().half().cpu().contiguous() for name, tensor in tensors}, file)

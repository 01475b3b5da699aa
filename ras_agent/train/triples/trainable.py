"""Makes a text-to-triples model trainable by the training loop: the loss on its targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ras_agent.tools.structure.triple_text import TripleText
from ras_agent.train.triples.examples import EncodedExample

_IGNORED = -100  # a label that the loss ignores


class TrainableTriples(nn.Module):
    """Computes the loss of encoded examples with a transformers model, as a torch module. `text` is the form of
    their texts.
    """

    def __init__(self, model: Any, text: TripleText) -> None:
        super().__init__()
        self.model = model
        self._text = text

    def loss(self, batch: Sequence[EncodedExample]) -> Tensor:
        """Return the mean cross entropy of the targets' tokens."""
        loss: Tensor = self.model(
            **model_inputs(batch, self._text, next(self.parameters()).device)
        ).loss
        return loss


def model_inputs(
    batch: Sequence[EncodedExample], text: TripleText, device: Any = "cpu"
) -> dict[str, Tensor]:
    """Return the inputs from which a transformers model computes its loss: padded tokens (B, T), their mask,
    and labels.

    A seq2seq model reads the sources, and the targets are its labels. A causal model reads source and target in
    a row, and only the target's tokens have labels.
    """
    rows = []
    labels = []
    for example in batch:
        if text.seq2seq:
            rows.append(example.source)
            labels.append(example.target)
        else:
            rows.append(example.source + example.target)
            labels.append([_IGNORED] * len(example.source) + example.target)
    masks = [[1] * len(row) for row in rows]

    def padded(lists: Sequence[Sequence[int]], value: int) -> Tensor:
        tensors = [torch.tensor(row) for row in lists]
        return pad_sequence(tensors, batch_first=True, padding_value=value).to(device)

    return {
        "input_ids": padded(rows, text.tokenizer.pad_token_id or 0),
        "attention_mask": padded(masks, 0),
        "labels": padded(labels, _IGNORED),
    }

"""The span reader's network: the packaged MiniLM plus a low-rank delta and a start/end head, as plain tensors.

For a base weight W (out, in) the delta holds `up` (out, r) and `down` (r, in); the reader runs with W + up @ down
(LoRA, arXiv:2106.09685, its scale folded into `up`). The delta is a few megabytes; the base stays where pip put it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["adapted_names", "load_base", "merge", "pad", "span_logits"]

CLS, SEP = 101, 102
ADAPTED = (
    "attention.self.query.weight",
    "attention.self.key.weight",
    "attention.self.value.weight",
    "attention.output.dense.weight",
    "intermediate.dense.weight",
    "output.dense.weight",
)


def load_base(folder: Path) -> tuple[Module, dict[str, Tensor]]:
    """The encoder without its pooler, in evaluation mode, and its weights as float32 tensors by name."""
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    network = BertModel(BertConfig.from_json_file(str(folder / "config.json")), add_pooling_layer=False)
    known = dict(network.named_parameters())
    base = {name: tensor for name, tensor in load_file(folder / "model.safetensors").items() if name in known}
    network.load_state_dict(base)
    network.train(False)
    return network, base


def adapted_names(base: Mapping[str, Tensor]) -> list[str]:
    """Names of the base weights that carry a delta: all linear maps of every layer."""
    return [name for name in base if name.endswith(ADAPTED)]


def merge(base: Mapping[str, Tensor], delta: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The base weights with `up @ down` added where the delta has them. Differentiable in the delta."""
    return {
        name: weight + delta[f"{name}.up"] @ delta[f"{name}.down"] if f"{name}.up" in delta else weight
        for name, weight in base.items()
    }


def pad(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> dict[str, Tensor]:
    """Token ids of (question, text) pairs as BERT takes them: "[CLS] question [SEP] text [SEP]", each (B, T), int64."""
    import torch

    length = max(len(question) + len(text) + 3 for question, text in pairs)
    ids = torch.zeros(len(pairs), length, dtype=torch.int64)
    mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, (question, text) in enumerate(pairs):
        tokens = [CLS, *question, SEP, *text, SEP]
        ids[row, : len(tokens)] = torch.tensor(tokens)
        mask[row, : len(tokens)] = 1
        types[row, len(question) + 2 : len(tokens)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def span_logits(network: Callable[..., Any], inputs: Mapping[str, Tensor], head: Mapping[str, Tensor]) -> Tensor:
    """Start and end logits (2, B, T) of padded inputs (B, T): one linear map of the last hidden states."""
    from torch.nn.functional import linear

    hidden = network(**inputs).last_hidden_state  # (B, T, 384)
    return linear(hidden.float(), head["head.weight"], head["head.bias"]).permute(2, 0, 1)

"""The reader as the training loop sees it: MiniLM's layers in training over its frozen embeddings, and three heads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lab.weights.reader.batches import Row
from ras_agent.contracts.errors import WeightsError
from ras_agent.tools.embed.bert import WIDTH
from ras_agent.tools.embed.packaged_minilm import packaged_minilm
from ras_agent.tools.embed.stored_bert import CLS, SEP, load_weights, save_weights

HEADS = {"spans": 2, "descriptions": 2, "verdicts": 3}


class TrainableReader(nn.Module):
    """Encoder without its pooler, and linear heads of its last states: answers, descriptions and verdicts."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.encoder.embeddings.requires_grad_(False)
        self.heads = nn.ModuleDict(
            {name: nn.Linear(WIDTH, outputs) for name, outputs in HEADS.items()}
        )

    @classmethod
    def begin(cls, start_from: Path | None = None, dropout: float = 0.0) -> Self:
        """Return the packaged MiniLM with new heads, or with the layers and heads of a stored reader.

        dropout: of its states and attention weights in training.
        Raises WeightsError where a file holds other weights than a reader's.
        """
        model = cls(torch_minilm(packaged_minilm(), dropout))
        if start_from is not None:
            stored = {
                _module_name(name): torch.from_numpy(array)
                for name, array in load_weights(start_from).items()
            }
            kept = {
                name: tensor
                for name, tensor in model.state_dict().items()
                if _is_embedding(name)
            }
            if unlike := (stored | kept).keys() ^ model.state_dict().keys():
                raise WeightsError(
                    f"{start_from}: not a reader's weights; unlike in {', '.join(sorted(unlike)[:3])}"
                )
            model.load_state_dict(stored | kept)
        return model

    def loss(self, batch: Sequence[Row]) -> Tensor:
        """Return the mean negative log likelihood of what a batch's rows ask for.

        A row with several gold spans has the sum of their likelihoods. Start and end are independent given the row.
        """
        device = next(self.parameters()).device
        inputs = {name: value.to(device) for name, value in pad(batch).items()}
        hidden = self.encoder(**inputs).last_hidden_state.float()  # (B, T, 384)
        judged = [number for number, row in enumerate(batch) if row.verdict >= 0]
        asked = [number for number, row in enumerate(batch) if row.verdict < 0]
        with torch.autocast(device.type, enabled=False):
            verdicts = torch.tensor(
                [batch[number].verdict for number in judged],
                dtype=torch.int64,
                device=device,
            )
            total = cross_entropy(
                self.heads["verdicts"](hidden[judged, 0]), verdicts, reduction="sum"
            )
            if asked:
                total = (
                    total
                    - self._span_likelihoods(
                        hidden[asked], [batch[number] for number in asked]
                    ).sum()
                )
            return total / len(batch)

    def _span_likelihoods(self, hidden: Tensor, rows: Sequence[Row]) -> Tensor:
        """Return the log likelihood of each row's gold spans, (R,), from the states (R, T, 384)."""
        allowed = torch.zeros(hidden.shape[:2], dtype=torch.bool)
        gold = torch.full((len(rows), max(len(row.gold) for row in rows), 2), -1)
        for number, row in enumerate(rows):
            allowed[number, slice(*places(row))] = True
            gold[number, : len(row.gold)] = torch.tensor(row.gold)
        allowed[:, 0] = True
        of_text = torch.tensor([bool(row.text) for row in rows], device=hidden.device)[
            :, None, None
        ]
        # (R, T, 2)
        logits = torch.where(
            of_text, self.heads["spans"](hidden), self.heads["descriptions"](hidden)
        )
        blank = ~allowed.to(hidden.device)[:, :, None]
        likelihood = logits.masked_fill(blank, -torch.inf).log_softmax(1)
        ends = gold.to(hidden.device)  # (R, G, 2)
        of_spans = likelihood.gather(1, ends.clamp(min=0)).sum(2)
        return of_spans.masked_fill(ends[:, :, 0] < 0, -torch.inf).logsumexp(1)

    def save(self, file: Path) -> None:
        """Write the whole network and its heads as the reader of the offline mode loads them."""
        save_weights(
            {
                _stored_name(name): tensor.detach().float().cpu().numpy()
                for name, tensor in self.state_dict().items()
            },
            file,
        )


def torch_minilm(folder: Path, dropout: float | None = None) -> Any:
    """Return the encoder of a folder with MiniLM's files, without its pooler, in evaluation mode.

    dropout: in training, of states and attention weights; None for what the folder says.
    """
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    config = BertConfig.from_json_file(str(folder / "config.json"))
    if dropout is not None:
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout
    network = BertModel(config, add_pooling_layer=False)
    known = dict(network.named_parameters())
    weights = load_file(folder / "model.safetensors")
    network.load_state_dict(
        {name: tensor for name, tensor in weights.items() if name in known}
    )
    network.train(False)
    return network


def _stored_name(name: str) -> str:
    return name.removeprefix("encoder.")


def _module_name(name: str) -> str:
    return name if name.startswith("heads.") else f"encoder.{name}"


def _is_embedding(name: str) -> bool:
    return name.startswith("encoder.embeddings.")


def places(row: Row) -> tuple[int, int]:
    """Return the half-open places in a row that may be in a span: its text, or its question where it has no text."""
    first = len(row.question) + 2 if row.text else 1
    return first, first + len(row.text or row.question)


def pad(rows: Sequence[Row]) -> dict[str, Tensor]:
    """Return rows as BERT takes them, "[CLS] question [SEP] text [SEP]", each (B, T), int64."""
    tokens = [
        [CLS, *row.question, SEP, *([*row.text, SEP] if row.text else [])]
        for row in rows
    ]
    length = max(map(len, tokens))
    ids = torch.zeros(len(rows), length, dtype=torch.int64)
    mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
    for number, (row, line) in enumerate(zip(rows, tokens, strict=True)):
        ids[number, : len(line)] = torch.tensor(line)
        mask[number, : len(line)] = 1
        types[number, len(row.question) + 2 : len(line)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}

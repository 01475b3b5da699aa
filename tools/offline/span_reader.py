"""A small extractive reader for the offline mode: the packaged MiniLM with this repository's question-answering delta.

One forward pass over "[CLS] question [SEP] text [SEP]" gives every token a logit of starting and of ending the answer;
the logits at [CLS] say that the text holds none (as Devlin et al. 2019 read SQuAD 2.0, arXiv:1810.04805).
`ras_agent.train.reader.train` made the delta; the JSON card next to it says from what.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.errors import MissingExtra, WeightsError
from ras_agent.records import Span
from ras_agent.tools.embed.packaged_minilm import MINILM_SHA256, packaged_minilm

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


QUESTION_TOKENS = 64
WINDOW_TOKENS = 320  # question, text and three special tokens; a longer text is read in overlapping windows
OVERLAP_TOKENS = 64
ANSWER_TOKENS = 24
BATCH = 8  # texts of like length go together: little padding, and activations that stay in the cache


class MiniLMSpanReader:
    """Reads texts for a question; fits `SpanReader`. Weights load at the first use, on a GPU where there is one.

    delta: another delta than the shipped one, a .safetensors file with its .json card next to it; spans: how many
    answers of a text are given. Raises MissingExtra without the extra `offline`, WeightsError for other weights.
    """

    def __init__(self, delta: Path | str | None = None, spans: int = 5) -> None:
        self._delta = None if delta is None else Path(delta)
        self._spans = spans
        self._loading = Lock()

    def read(self, question: str, texts: Sequence[str]) -> list[list[Span]]:
        """Return one list for each text: up to `spans` answers that do not overlap, best first."""
        with self._loading:
            network = self._network
        return network.read(question, texts, self._spans)

    @cached_property
    def _network(self) -> _Network:
        if self._delta is not None:
            return _Network(self._delta)
        with as_file(files("ras_agent.data")) as folder:
            return _Network(folder / "span_reader.safetensors")


class _Window(NamedTuple):
    """Tokens of a text that are read together, and where each is in the text."""

    text: int
    ids: list[int]
    offsets: list[tuple[int, int]]


class _Network:
    """Holds the merged weights, the tokenizer and the device they run on; nothing changes after construction."""

    def __init__(self, delta: Path) -> None:
        made_for = json.loads(delta.with_suffix(".json").read_text(encoding="utf-8"))["base_sha256"]
        if made_for != MINILM_SHA256:
            raise WeightsError(
                f"{delta}: made for base weights {made_for}, but the packaged MiniLM's are {MINILM_SHA256}; "
                "make it again: python -m ras_agent.train.reader.train --help"
            )
        try:
            import torch
            from safetensors.torch import load_file
            from tokenizers import Tokenizer

            from ras_agent.tools.offline.span_reader import load_base, merge

            network, base = load_base(packaged_minilm())
        except ModuleNotFoundError as missing:
            raise MissingExtra(f"the span reader ({missing.name} is missing)", "offline") from missing
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        tensors = {name: tensor.float() for name, tensor in load_file(delta).items()}
        network.load_state_dict(merge(base, tensors))
        self.network = network.to(self.device)
        self.head = {name: tensors[name].to(self.device) for name in ("head.weight", "head.bias")}
        self.tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def read(self, question: str, texts: Sequence[str], count: int) -> list[list[Span]]:
        question_ids = self.tokenizer.encode(question, add_special_tokens=False).ids[:QUESTION_TOKENS]
        windows = list(self._windows(texts, WINDOW_TOKENS - len(question_ids) - 3))
        windows.sort(key=lambda window: len(window.ids))
        found: list[list[Span]] = [[] for _ in texts]
        for first in range(0, len(windows), BATCH):
            batch = windows[first : first + BATCH]
            for window, logits in zip(batch, self._logits(question_ids, batch), strict=True):
                found[window.text] += _spans(window, logits, len(question_ids) + 2, count)
        return [sorted(spans, key=lambda span: (-span.margin, span.start))[:count] for spans in found]

    def _windows(self, texts: Sequence[str], room: int) -> Iterator[_Window]:
        for number, encoding in enumerate(self.tokenizer.encode_batch(list(texts), add_special_tokens=False)):
            for start in range(0, max(1, len(encoding.ids) - OVERLAP_TOKENS), room - OVERLAP_TOKENS):
                piece = slice(start, start + room)
                if encoding.ids[piece]:
                    yield _Window(number, encoding.ids[piece], encoding.offsets[piece])

    def _logits(self, question_ids: list[int], batch: Sequence[_Window]) -> npt.NDArray[np.float32]:
        """Return (B, 2, T)"""
        import torch

        from ras_agent.tools.offline.span_reader import pad, span_logits

        inputs = {key: value.to(self.device) for key, value in pad([(question_ids, w.ids) for w in batch]).items()}
        with torch.inference_mode():
            logits: npt.NDArray[np.float32] = span_logits(self.network, inputs, self.head).cpu().numpy()
        return logits.transpose(1, 0, 2)


def _spans(window: _Window, logits: npt.NDArray[np.float32], first: int, count: int) -> Iterator[Span]:
    text = logits[:, first : first + len(window.ids)]
    no_answer = float(logits[0, 0] + logits[1, 0])
    for start, end, score in best_spans(text[0], text[1], count):
        yield Span(window.offsets[start][0], window.offsets[end][1], score, no_answer)


def best_spans(
    start: npt.NDArray[np.float32], end: npt.NDArray[np.float32], count: int, longest: int = ANSWER_TOKENS
) -> list[tuple[int, int, float]]:
    """Return the `count` best (first token, last token, start logit + end logit) that do not overlap, best first.

    `start` and `end` have shape (T,); a span has at most `longest` tokens.
    """
    scores = start[:, None] + end[None, :]  # (T, T): row first token, column last token
    allowed = np.triu(np.ones_like(scores, dtype=bool)) & ~np.triu(np.ones_like(scores, dtype=bool), longest)
    scores = np.where(allowed, scores, -np.inf)
    best: list[tuple[int, int, float]] = []
    while len(best) < count and np.isfinite(top := scores.max(initial=-np.inf)):
        first, last = divmod(int(scores.argmax()), len(end))
        best.append((first, last, float(top)))
        scores[: last + 1, first:] = -np.inf  # what begins before this span's end and ends after its start overlaps it
    return best


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
    """Return the encoder without its pooler, in evaluation mode, and its weights as float32 tensors by name."""
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    network = BertModel(BertConfig.from_json_file(str(folder / "config.json")), add_pooling_layer=False)
    known = dict(network.named_parameters())
    base = {name: tensor for name, tensor in load_file(folder / "model.safetensors").items() if name in known}
    network.load_state_dict(base)
    network.train(False)
    return network, base


def adapted_names(base: Mapping[str, Tensor]) -> list[str]:
    """Return names of the base weights that carry a delta: all linear maps of every layer."""
    return [name for name in base if name.endswith(ADAPTED)]


def merge(base: Mapping[str, Tensor], delta: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the base weights with `up @ down` added where the delta has them. Differentiable in the delta."""
    return {
        name: weight + delta[f"{name}.up"] @ delta[f"{name}.down"] if f"{name}.up" in delta else weight
        for name, weight in base.items()
    }


def pad(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> dict[str, Tensor]:
    """Return token ids of (question, text) pairs as BERT takes them.

    "[CLS] question [SEP] text [SEP]", each (B, T), int64.
    """
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

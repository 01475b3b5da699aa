"""A small encoder reads two arguments and a graph, as text, as soft tokens or both, and gives the stance's logit.

It is the small twin of G-Retriever (arXiv:2402.07630): graph encoder, mean pooling, a projector to the language model's
width, and the graph token in front of the words; here the packaged MiniLM takes the place of the language model. Its
lower layers are frozen. The soft tokens join the words above them, so that the words' states below are computed once
for a whole training; with `frozen` 0 they join at the word embeddings, as in the papers, or with `joins` at
a layer above.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from lab.explagraphs.examples import StanceExample, graph_text
from lab.explagraphs.signs import RELATIONS, SIGN_FEATURES, relation_bag, sign_features
from ras_agent.errors import UnknownName, WeightsError
from ras_agent.graph_batch import GraphBatch, GraphFeatures
from ras_agent.tools.embed.packaged_minilm import packaged_minilm
from ras_agent.tools.graph_tokens.encoders import EncoderConfig, build_encoder, pool
from ras_agent.tools.graph_tokens.features import Fact
from ras_agent.train.reader.trainable import torch_minilm

TRAINED_TOKENS = 10  # G-Retriever's ablation has ten trainable tokens in the place of the graph token


@dataclass(frozen=True, slots=True)
class Design:
    """Says what a model reads.

    words: the arguments, through the encoder. graph_text: also the graph's facts, as words. token: soft tokens in front
    of the words, the graph's, trained ones without a graph, or none. signs, bag: features of the last layer, the signs
    of `sign_features` and the counts of `relation_bag`.
    """

    words: bool = True
    graph_text: bool = False
    token: Literal["graph", "trained", "none"] = "none"
    signs: bool = False
    bag: bool = False


DESIGNS = {
    "full": Design(graph_text=True, token="graph"),
    "signed": Design(graph_text=True, token="graph", signs=True),
    "signed-text": Design(graph_text=True, signs=True),
    "trained-tokens": Design(graph_text=True, token="trained"),
    "graph-token": Design(token="graph"),
    "text": Design(graph_text=True),
    "arguments": Design(),
    "signs": Design(words=False, signs=True),
    "relation-bag": Design(words=False, bag=True),
}


@dataclass(frozen=True, slots=True)
class StanceConfig:
    """Describes a model. design: one of DESIGNS. frozen: how many lower layers are as packaged. hidden: the head's.

    joins: how many trained layers the words pass before the graph's token joins them. gate: whether the token is
        multiplied by a learnt number that begins at 0. types: whether edges are their relation's type, which the
        encoder learns a vector of in each layer, and not their text's vector.
    """

    design: str
    encoder: EncoderConfig
    frozen: int = 5
    hidden: int = 128
    dropout: float = 0.1
    joins: int = 0
    gate: bool = False
    types: bool = False

    def __post_init__(self) -> None:
        if self.design not in DESIGNS:
            raise UnknownName("design", self.design, tuple(DESIGNS))

    @property
    def reads(self) -> Design:
        """Return what the design reads."""
        return DESIGNS[self.design]


@dataclass(frozen=True, slots=True)
class StanceInput:
    """Holds what a model reads of an example: states of its words, (T, width) or (0, 0), its graph, its features."""

    states: Tensor
    graph: GraphFeatures
    features: Tensor


class WordEncoder:
    """Computes the states of an example's words below the trained layers. base: the folder of a BERT."""

    def __init__(self, config: StanceConfig, base: Path | None = None) -> None:
        from tokenizers import Tokenizer

        folder = packaged_minilm() if base is None else base
        self.config = config
        self.network: Any = torch_minilm(folder)
        self.tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    @property
    def width(self) -> int:
        """Return the width of a word's state."""
        return int(self.network.config.hidden_size)

    def states(self, examples: Sequence[StanceExample], batch: int = 32) -> list[Tensor]:
        """Return each example's states, (T, width) bfloat16, of "[CLS] argument [SEP] argument [SEP] facts [SEP]"."""
        rows = [self._ids(example) for example in examples]
        found: list[Tensor] = [torch.empty(0)] * len(rows)
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        for first in range(0, len(rows), batch):
            places = order[first : first + batch]
            lengths = torch.tensor([len(rows[place]) for place in places])
            padded = nn.utils.rnn.pad_sequence([torch.tensor(rows[place]) for place in places], batch_first=True)
            mask = torch.arange(padded.shape[1]) < lengths.unsqueeze(1)
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
                states = self.network.embeddings(input_ids=padded)
                states = through(self.network.encoder.layer[: self.config.frozen], states, mask).to(torch.bfloat16)
            for row, place in enumerate(places):
                found[place] = states[row, : lengths[row]].clone()
        return found

    def _ids(self, example: StanceExample) -> list[int]:
        parts = [example.first, example.second]
        if self.config.reads.graph_text:
            parts.append(graph_text(example.facts))
        ids: list[int] = [self.tokenizer.token_to_id("[CLS]")]
        for part in parts:
            ids += [*self.tokenizer.encode(part, add_special_tokens=False).ids, self.tokenizer.token_to_id("[SEP]")]
        most = int(self.network.config.max_position_embeddings)
        return ids[:most]


def through(layers: Sequence[Any], states: Tensor, mask: Tensor) -> Tensor:
    """Return states (B, T, width) after some layers of a BERT; `mask`, (B, T) bool, is True where there is a word."""
    hidden = torch.zeros(mask.shape, dtype=states.dtype).masked_fill(~mask, -1e4)[:, None, None]
    for layer in layers:
        made = layer(states, hidden)
        states = made[0] if isinstance(made, tuple) else made
    return states


class StanceModel(nn.Module):
    """Gives the logit of "support". It holds the trained layers, the graph encoder with its projector, and the head."""

    def __init__(self, config: StanceConfig, words: WordEncoder | None) -> None:
        """Make it with new weights and the upper layers of `words`, which only a design without words does not need."""
        super().__init__()
        self.rate_factors: dict[str, float] = {}
        self.config, reads = config, config.reads
        self.width = words.width if words is not None and reads.words else 0
        upper = words.network.encoder.layer[config.frozen :] if words is not None and reads.words else ()
        self.upper = nn.ModuleList(upper)
        if reads.token == "graph":
            self.encoder = build_encoder(config.encoder)
            inner = config.encoder.width
            self.projector = nn.Sequential(nn.Linear(inner, inner), nn.GELU(), nn.Linear(inner, self.width))
            if config.gate:
                self.gate = nn.Parameter(torch.zeros(()))
        elif reads.token == "trained":
            self.tokens = nn.Parameter(0.02 * torch.randn(TRAINED_TOKENS, self.width))
        features = SIGN_FEATURES * reads.signs + len(RELATIONS) * reads.bag
        self.head = nn.Sequential(
            nn.Dropout(config.dropout),
            nn.Linear(2 * self.width + features, config.hidden),
            nn.GELU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.hidden, 1),
        )

    def forward(self, inputs: Sequence[StanceInput]) -> Tensor:
        """Return the logits, shape (B,)."""
        parts = [torch.stack([one.features for one in inputs])]
        if self.config.reads.words:
            parts += self._read(inputs)
        logits: Tensor = self.head(torch.cat(parts, dim=1).float()).float()  # bfloat16 under autocast
        return logits.squeeze(1)

    def loss(self, batch: tuple[Sequence[StanceInput], Tensor]) -> Tensor:
        """Return the mean cross entropy of inputs and their targets, shape (B,), 1 for support."""
        inputs, targets = batch
        return nn.functional.binary_cross_entropy_with_logits(self(inputs).float(), targets)

    def _read(self, inputs: Sequence[StanceInput]) -> list[Tensor]:
        """Return the state of [CLS] and the mean over the words, each (B, width)."""
        lengths = torch.tensor([len(one.states) for one in inputs])
        states = nn.utils.rnn.pad_sequence([one.states.float() for one in inputs], batch_first=True)
        mask = torch.arange(states.shape[1]) < lengths.unsqueeze(1)  # (B, T)
        soft = self.soft_tokens([one.graph for one in inputs])  # (B, k, width)
        front = torch.ones(soft.shape[:2], dtype=torch.bool)
        layers = list(self.upper)
        states = through(layers[: self.config.joins], states, mask).float()
        both = torch.cat([soft, states], dim=1)
        states = through(layers[self.config.joins :], both, torch.cat([front, mask], dim=1)).float()
        words = states[:, soft.shape[1] :]
        mean = (words * mask.unsqueeze(2)).sum(1) / lengths.unsqueeze(1)
        return [words[:, 0], mean]

    def soft_tokens(self, graphs: Sequence[GraphFeatures]) -> Tensor:
        """Return what goes in front of the words, shape (B, k, width); k is 0 for a design without soft tokens."""
        token = self.config.reads.token
        if token == "graph":
            batch = GraphBatch.of(graphs, self.config.encoder.input)
            made: Tensor = self.projector(pool(self.encoder(batch), batch))
            return (self.gate * made if self.config.gate else made).unsqueeze(1)
        if token == "trained":
            return self.tokens.expand(len(graphs), -1, -1)
        return torch.zeros(len(graphs), 0, self.width)

    def begin_from(self, folder: Path, base: Path | None = None) -> None:
        """Take the weights of a training of the same design, which may have had fewer trained layers.

        Raises WeightsError for a folder that holds something else.
        """
        other, _ = StanceModel.load(folder, base)
        more = other.config.frozen - self.config.frozen
        weights = {_moved(name, more): weight for name, weight in other.state_dict().items()}
        own = self.state_dict()
        if other.config.design != self.config.design or any(
            name not in own or own[name].shape != weight.shape for name, weight in weights.items()
        ):
            raise WeightsError(f"{folder}: holds no {self.config.design} of this form: start from one of that design")
        self.load_state_dict(own | weights)

    def save(self, folder: Path, about: dict[str, Any]) -> None:
        """Write the trained weights and `config.json`, which also holds `about`."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        save_file(
            {name: tensor.contiguous() for name, tensor in self.state_dict().items()}, folder / "model.safetensors"
        )
        text = json.dumps({"model": asdict(self.config), **about}, indent=2, default=str)
        (folder / "config.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, base: Path | None = None) -> tuple[Self, WordEncoder | None]:
        """Return what `save` wrote, ready to score, and what makes its words' states.

        Raises WeightsError for a folder that holds something else.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            data = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model"]
            config = StanceConfig(**{**data, "encoder": EncoderConfig(**data["encoder"])})
            words = WordEncoder(config, base) if config.reads.words else None
            model = cls(config, words)
            model.load_state_dict(load_file(folder / "model.safetensors"))
        except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
            raise WeightsError(
                f"{folder}: holds no stance model of this version ({error!r:.200}): train one with "
                "python -m lab.explagraphs.train"
            ) from error
        model.eval()
        return model, words


def _moved(name: str, layers: int) -> str:
    """Return a weight's name where so many more layers below are trained."""
    if not name.startswith("upper."):
        return name
    _, number, rest = name.split(".", 2)
    return f"upper.{int(number) + layers}.{rest}"


def with_types(graph: GraphFeatures, facts: Sequence[Fact]) -> GraphFeatures:
    """Return a graph whose edges are their relations' types: 1 at the relation's place in RELATIONS, and else 0.

    A linear map of such edges, as encoders have in each layer, is a learnt vector for each relation.
    """
    edges = np.zeros_like(graph.edges)
    for row, (_, relation, _) in zip(edges, facts, strict=True):
        if relation in RELATIONS:
            row[RELATIONS.index(relation)] = 1.0
    return replace(graph, edges=edges)


def features_of(reads: Design, examples: Sequence[StanceExample]) -> Tensor:
    """Return the features of the last layer, shape (B, F); F is 0 for a design without any."""
    columns = [torch.zeros(len(examples), 0)]
    if reads.signs:
        columns.append(torch.from_numpy(sign_features(examples)))
    if reads.bag:
        columns.append(torch.from_numpy(relation_bag(examples)))
    return torch.cat(columns, dim=1)

"""Defines GraphLLM, a causal language model that reads a graph through soft tokens before its text.

Sources: RAS (section 3.3, eq. 2 and 8) and G-Retriever (arXiv:2402.07630, eq. 10 to 13). A graph encoder and a
projector turn the graph into `graph_tokens` vectors as wide as the model's word vectors; together with those of the
text they are the model's input. The language model is any causal one of Hugging Face: frozen, with a low-rank adapter
(LoRA), or trained as a whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, Self, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor, nn

from ras_agent.contracts.errors import (
    SettingsError,
    WeightsError,
    needs_extra,
)
from ras_agent.contracts.graph_batch import GraphBatch, GraphFeatures
from ras_agent.contracts.records import EvidenceLayout
from ras_agent.prompts import Turn
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.graph_tokens.encoders import EncoderConfig, build_encoder, pool
from ras_agent.tools.graph_tokens.features import GraphVectors
from ras_agent.tools.graph_tokens.word_vectors import load_word_vectors
from ras_agent.tools.store.card import write_card

Tuning = Literal["frozen", "lora", "full"]

CONFIG = "config.json"
GRAPH_WEIGHTS = "graph_tokens.safetensors"
ADAPTER = "adapter"
LANGUAGE_MODEL = "language_model"
MERGE = "python -m ras_agent.train.graphllm.merge"
"""The command that merges an adapter into its language model's weights."""
_IGNORED = -100  # the label of tokens that the loss ignores


@dataclass(frozen=True, slots=True)
class Lora:
    """Sets the size of a low-rank adapter. The defaults are G-Retriever's."""

    rank: int = 8
    alpha: int = 16
    dropout: float = 0.05
    targets: tuple[str, ...] = ()
    """The names of the layers that get an adapter; () for peft's choice."""


@dataclass(frozen=True, slots=True)
class GraphLLMConfig:
    """Describes a GraphLLM."""

    language_model: str
    """The language model's folder or hub name; if it was trained as a whole, the folder next to this configuration."""
    encoder: EncoderConfig | None = field(default_factory=EncoderConfig)
    """The configuration of the graph encoder; None for trained soft tokens that are the same for every graph, with
    which G-Retriever compares its encoder.
    """
    graph_tokens: int = 1
    """The number of soft tokens."""
    projector: int = 2048
    """The hidden width of the projector; 0 for no projector, if the encoder is as wide as a word's vector."""
    tuning: Tuning = "frozen"
    """Whether the language model is frozen, has an adapter ("lora"), or is trained as a whole ("full")."""
    lora: Lora = field(default_factory=Lora)
    text_tokens: int = 2500
    """The maximum number of tokens of a prompt; of a longer one the beginning is cut off."""
    embedder: str = "minilm"
    """The name of the embedder that makes the vectors which the encoder reads."""
    layout: EvidenceLayout = "chain"
    """How planner and answerer show the question's graph as text; "searches" leaves it to the graph tokens."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the configuration that `asdict` wrote. Raises TypeError for unknown or missing names."""
        encoder = data.get("encoder")
        lora = dict(data.get("lora", {}))
        lora["targets"] = tuple(lora.get("targets", ()))
        return cls(
            **{
                **data,
                "encoder": EncoderConfig(**encoder) if encoder else None,
                "lora": Lora(**lora),
            }
        )


class ReadsGraph(Protocol):
    """Describes an input of a GraphLLM that includes a graph."""

    def features(self, vectors: GraphVectors) -> GraphFeatures:
        """Return the graph's features for an encoder."""
        ...


@dataclass(frozen=True, slots=True)
class Generated:
    """Holds a generated text and its numbers of tokens."""

    text: str
    input_tokens: int
    output_tokens: int
    truncated: bool
    """Whether it reached the token limit."""


class GraphTokens(nn.Module):
    """Turns graphs into soft tokens: encoder, mean pooling, projector to the language model's width."""

    def __init__(
        self, encoder: EncoderConfig, tokens: int, hidden: int, width: int
    ) -> None:
        """Build the network with random weights.

        Args:
            encoder: the configuration of the graph encoder.
            tokens: the number of soft tokens.
            hidden: the hidden width of the projector; 0 for no projector.
            width: the width of the language model's word vectors.
        """
        super().__init__()
        self.encoder = build_encoder(encoder)
        self.projector: nn.Module = nn.Identity()
        if hidden:
            wide = nn.Linear(hidden, tokens * width)
            self.projector = nn.Sequential(
                nn.Linear(encoder.width, hidden), nn.GELU(), wide
            )
        elif encoder.width != tokens * width:
            raise SettingsError(
                f"without a projector the encoder's width has to be that of its tokens' vectors, {tokens * width}, got "
                f"{encoder.width}: set the encoder's width, or add a projector"
            )
        self.tokens = tokens
        self.input = encoder.input

    def forward(self, graphs: Sequence[GraphFeatures]) -> Tensor:
        """Return soft tokens, shape (B, tokens, width).

        A graph without facts gets learnt tokens, from a state of zeros.
        """
        device = next(self.parameters()).device
        batch = GraphBatch.of(graphs, self.input, device)
        states = self.encoder(batch)
        pooled = pool(states, batch)  # (B, encoder's width)
        tokens: Tensor = self.projector(pooled)
        return tokens.view(len(tokens), self.tokens, -1)


class TrainedTokens(nn.Module):
    """Holds soft tokens that do not depend on any graph: prompt tuning, with which G-Retriever compares its encoder."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(tokens, width) * 0.02)

    def forward(self, graphs: Sequence[GraphFeatures]) -> Tensor:
        """Return the same tokens for each graph, shape (B, tokens, width)."""
        return self.vectors.expand(len(graphs), -1, -1)


class GraphLLM(nn.Module):
    """Reads the soft tokens of a graph, then a prompt, by a language model. Calling it returns the training loss."""

    def __init__(
        self, config: GraphLLMConfig, language_model: Any, tokenizer: Any
    ) -> None:
        """Combine the parts. Raises MissingExtra without the packages of the extra `llm`.

        Args:
            language_model: a causal language model of transformers.
            tokenizer: its tokenizer.
        """
        super().__init__()
        self.config = config
        self.language_model = language_model
        self.tokenizer = tokenizer
        self.vectors = GraphVectors(resolve_embedder(config.embedder))
        # read from the weights, as an adapter's layer has no attribute for it
        width = language_model.get_input_embeddings().weight.shape[1]
        self.graph_tokens: GraphTokens | TrainedTokens
        if config.encoder is None:
            self.graph_tokens = TrainedTokens(config.graph_tokens, width)
        else:
            self.graph_tokens = GraphTokens(
                config.encoder, config.graph_tokens, config.projector, width
            )
        if config.tuning == "frozen":
            language_model.requires_grad_(False)
        # digest of the graph part's weights, if they were read from a file
        self.fingerprint = ""
        self.train(False)

    @classmethod
    def new(cls, config: GraphLLMConfig, seed: int = 0) -> Self:
        """Build a GraphLLM on the pre-trained model that `config` names, with new weights for everything else."""
        torch.manual_seed(seed)
        language_model, tokenizer = load_language_model(config.language_model)
        if config.tuning == "lora":
            language_model = add_adapter(language_model, config.lora)
        return cls(config, language_model, tokenizer)

    def train(self, mode: bool = True) -> Self:
        """Switch between training and use. A frozen language model stays in evaluation mode, without dropout."""
        super().train(mode)
        if self.config.tuning == "frozen":
            self.language_model.train(False)
            for layer in self.language_model.modules():
                if getattr(layer, "gradient_checkpointing", False):
                    layer.training = mode  # as checkpointing needs it
        return self

    @property
    def device(self) -> torch.device:
        """Return the device of the model's word vectors."""
        return cast(
            torch.device, self.language_model.get_input_embeddings().weight.device
        )

    @property
    def window(self) -> int:
        """Return the maximum number of tokens of a prompt and its reply together."""
        positions = getattr(self.language_model.config, "max_position_embeddings", None)
        most = self.config.text_tokens + self.config.graph_tokens
        if isinstance(positions, int):
            return min(most, positions)
        return most

    def prompt_tokens(self, turns: Sequence[Turn]) -> list[int]:
        """Return the tokens of a prompt in the model's chat template; without a template, its turns as paragraphs."""
        tokens = _chat_tokens(self.tokenizer, turns)
        most = self.config.text_tokens
        if len(tokens) <= most:
            return tokens
        return [*tokens[:1], *tokens[1 - most :]]

    def features(self, item: ReadsGraph) -> GraphFeatures:
        """Return the features of an input's graph; for a model without an encoder, those of an empty graph."""
        if self.config.encoder is None:  # so that nothing is embedded needlessly
            return self.vectors.of_steps(())
        return item.features(self.vectors)

    def count_tokens(self, text: str) -> int:
        """Return how many tokens a text has inside a prompt."""
        return len(self._plain_tokens(text))

    def forward(
        self,
        prompts: Sequence[Sequence[Turn]],
        graphs: Sequence[GraphFeatures],
        targets: Sequence[str],
    ) -> Tensor:
        """Return the mean cross-entropy of the targets' tokens and end tokens. Each target follows its prompt."""
        logits, labels = self.target_logits(prompts, graphs, targets)
        return nn.functional.cross_entropy(logits.float(), labels)

    def target_logits(
        self,
        prompts: Sequence[Sequence[Turn]],
        graphs: Sequence[GraphFeatures],
        targets: Sequence[str],
    ) -> tuple[Tensor, Tensor]:
        """Return the logits of all targets' tokens, shape (n, vocabulary), and those tokens, shape (n,).

        On a GPU the rows form one padded batch. On a CPU a batch gains nothing, and padding costs as much as words, so
        each row is processed separately.
        """
        ends = self.tokenizer.eos_token_id
        replies = [
            [*self._plain_tokens(target), *([] if ends is None else [ends])]
            for target in targets
        ]
        vectors = []
        labels = []
        for prompt, reply in zip(self._inputs(prompts, graphs), replies, strict=True):
            vectors.append(torch.cat([prompt, self._words(reply)]))
            labels.append(
                torch.tensor([_IGNORED] * len(prompt) + reply, device=self.device)
            )
        if self.device.type != "cpu":
            return self._target_logits(vectors, labels)
        of_rows = []
        targets_of_rows = []
        for row, label in zip(vectors, labels, strict=True):
            logits, tokens = self._target_logits([row], [label])
            of_rows.append(logits)
            targets_of_rows.append(tokens)
        return torch.cat(of_rows), torch.cat(targets_of_rows)

    def _target_logits(
        self, vectors: Sequence[Tensor], labels: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return the logits and tokens of `target_logits` for rows that are padded to one batch.

        Args:
            vectors: for each row, those of its prompt and target, (T, width).
            labels: for each row (T,), the target's tokens; _IGNORED for the prompt.
        """
        padded = nn.utils.rnn.pad_sequence(
            list(vectors), batch_first=True
        )  # (B, T, width)
        mask = nn.utils.rnn.pad_sequence(
            [torch.ones(len(row)) for row in vectors], batch_first=True
        )
        # the position before a token predicts it
        next_ = nn.utils.rnn.pad_sequence(
            list(labels), batch_first=True, padding_value=_IGNORED
        )[:, 1:]
        # prompts are long and vocabularies large, so logits are computed only at positions where some row has a target
        places = (next_ != _IGNORED).any(dim=0).nonzero().squeeze(1)
        output = self.language_model(
            inputs_embeds=padded,
            attention_mask=mask.to(self.device),
            logits_to_keep=places,
            use_cache=False,
        )
        next_ = next_[:, places]
        return output.logits[next_ != _IGNORED], next_[next_ != _IGNORED]

    @torch.no_grad()
    def generate(
        self,
        prompts: Sequence[Sequence[Turn]],
        graphs: Sequence[GraphFeatures | None],
        max_new_tokens: int = 100,
        temperature: float = 0.0,
        seconds: float | None = None,
    ) -> list[Generated]:
        """Return a reply to each prompt, all generated in one batch. If a graph is None, its prompt has no graph
        tokens.

        Args:
            temperature: 0 for the likeliest token each time.
            seconds: generation stops after this time, even inside a reply.
        """
        if not prompts:
            return []
        rows = self._inputs(prompts, graphs)
        longest = max(map(len, rows))
        # padding comes first, so that all replies begin in the same column
        padded = torch.stack(
            [nn.functional.pad(row, (0, 0, longest - len(row), 0)) for row in rows]
        )
        mask = (
            torch.stack([torch.arange(longest) >= longest - len(row) for row in rows])
            .long()
            .to(self.device)
        )
        if temperature > 0:
            sampling = {"do_sample": True, "temperature": temperature}
        else:
            sampling = {"do_sample": False}
        ends = self.tokenizer.eos_token_id
        pad = self.tokenizer.pad_token_id
        outputs = self.language_model.generate(
            inputs_embeds=padded,
            attention_mask=mask,
            max_new_tokens=max_new_tokens,
            max_time=seconds,
            pad_token_id=pad if pad is not None else ends if ends is not None else 0,
            **sampling,
        )
        return [
            self._generated(tokens, len(row))
            for tokens, row in zip(outputs.tolist(), rows, strict=True)
        ]

    @torch.no_grad()
    def prompt_embeddings(
        self, turns: Sequence[Turn], graph: GraphFeatures | None
    ) -> Tensor:
        """Return the vectors that the language model reads, shape (T, width), for a server that accepts them."""
        return self._inputs([turns], [graph])[0]

    def save(self, folder: str | Path) -> None:
        """Write the configuration and all trained weights. The base model is only named, unless it was trained itself."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        config = self.config
        if config.tuning == "full":
            self.language_model.save_pretrained(folder / LANGUAGE_MODEL)
            self.tokenizer.save_pretrained(folder / LANGUAGE_MODEL)
            config = replace(config, language_model=LANGUAGE_MODEL)
        elif config.tuning == "lora":
            # otherwise peft would look up the base model's vocabulary on the hub
            self.language_model.save_pretrained(
                folder / ADAPTER, save_embedding_layers=False
            )
        save_file(
            {
                name: tensor.contiguous()
                for name, tensor in self.graph_tokens.state_dict().items()
            },
            folder / GRAPH_WEIGHTS,
        )
        write_card(folder / CONFIG, asdict(config))

    @classmethod
    def load(cls, folder: str | Path, *, words_only: bool = False) -> Self:
        """Load the GraphLLM in a folder.

        Raises WeightsError for a folder without one, and MissingExtra if a package is not installed.

        Args:
            words_only: whether to load only the word vectors of the language model, as prompt_embeddings needs;
                such a GraphLLM cannot generate.
        """
        folder = Path(folder)
        config = read_config(folder)
        name = base_model(folder, config)
        if config.tuning == "lora":
            adapter = folder / ADAPTER
        else:
            adapter = None
        language_model: Any
        if words_only:
            language_model, tokenizer = load_word_vectors(name, adapter)
        else:
            language_model, tokenizer = load_language_model(name)
            if adapter is not None:
                from peft import PeftModel

                language_model = PeftModel.from_pretrained(
                    language_model, adapter, is_trainable=True
                )
        model = cls(config, language_model, tokenizer)
        try:
            stored = (folder / GRAPH_WEIGHTS).read_bytes()
            model.graph_tokens.load_state_dict(load(stored))
        except (OSError, RuntimeError, ValueError, SafetensorError) as error:
            why = str(error).partition("\n")[0]
            raise WeightsError(
                f"{folder / GRAPH_WEIGHTS}: no weights of the model in {CONFIG} ({why}): train it again"
            ) from error
        model.fingerprint = hashlib.sha256(stored).hexdigest()[:16]
        return model

    def merged(self) -> Self:
        """Return a GraphLLM with this one's adapter merged into its language model; this one can no longer be used.

        The result counts as trained as a whole, and writes the same replies. Raises SettingsError if there is no
        adapter.
        """
        if self.config.tuning != "lora":
            raise SettingsError(
                f"there is no adapter to merge: the GraphLLM's tuning is {self.config.tuning!r}, and only 'lora' has one"
            )
        merged = type(self)(
            replace(self.config, tuning="full"),
            self.language_model.merge_and_unload(),
            self.tokenizer,
        )
        merged.graph_tokens.load_state_dict(self.graph_tokens.state_dict())
        return merged

    def _inputs(
        self, prompts: Sequence[Sequence[Turn]], graphs: Sequence[GraphFeatures | None]
    ) -> list[Tensor]:
        """Return the language model's input for each prompt, (T, width): its graph's tokens, then the text's.

        If the model's texts all begin with the same token, that one stays first.
        """
        features = [graph for graph in graphs if graph is not None]
        soft = iter(self.graph_tokens(features) if features else ())
        inputs = []
        for turns, graph in zip(prompts, graphs, strict=True):
            words = self._words(tokens := self.prompt_tokens(turns))
            if graph is not None:
                begins = int(bool(tokens) and tokens[0] == self.tokenizer.bos_token_id)
                words = torch.cat(
                    [words[:begins], next(soft).to(words.dtype), words[begins:]]
                )
            inputs.append(words)
        return inputs

    def _words(self, tokens: Sequence[int]) -> Tensor:
        """Return the word vectors of tokens, shape (len(tokens), width)."""
        ids = torch.tensor(list(tokens), dtype=torch.long, device=self.device)
        embed = self.language_model.get_input_embeddings()
        return cast(Tensor, embed(ids))

    def _plain_tokens(self, text: str) -> list[int]:
        return cast(
            "list[int]", self.tokenizer(text, add_special_tokens=False)["input_ids"]
        )

    def _generated(self, tokens: list[int], input_tokens: int) -> Generated:
        ends = _ends(self.language_model, self.tokenizer)
        stop = next(
            (place for place, token in enumerate(tokens) if token in ends), None
        )
        text = self.tokenizer.decode(tokens[:stop], skip_special_tokens=True)
        output_tokens = len(tokens) if stop is None else stop + 1
        return Generated(text.strip(), input_tokens, output_tokens, stop is None)


def read_config(folder: Path) -> GraphLLMConfig:
    """Load the configuration in a GraphLLM's folder. Raises WeightsError if it is missing or has another format."""
    path = folder / CONFIG
    try:
        return GraphLLMConfig.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        command = "python -m ras_agent.train.graphllm.train"
        raise WeightsError(
            f"{folder}: there is no GraphLLM in this folder, as {CONFIG} is missing; {command} makes one"
        ) from error
    except (json.JSONDecodeError, TypeError, AttributeError, SettingsError) as error:
        raise WeightsError(
            f"{path}: not a GraphLLM's configuration ({error}): train it again"
        ) from error


def base_model(folder: Path, config: GraphLLMConfig) -> str:
    """Return the folder or hub name of the language model in a GraphLLM's folder, without its adapter."""
    inside = folder / config.language_model
    if inside.is_dir():
        return str(inside)
    return config.language_model


def load_language_model(name: str) -> tuple[Any, Any]:
    """Load a causal language model and its tokenizer, given by a folder or a hub name. Only safetensors are read.

    Raises WeightsError if the model cannot be loaded, and MissingExtra if transformers is not installed.
    """
    with needs_extra("a local language model", "llm"):
        from transformers import AutoModelForCausalLM, AutoTokenizer
    try:
        model = AutoModelForCausalLM.from_pretrained(
            name, dtype="auto", use_safetensors=True
        )
        return model, AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        why = str(error).strip().partition("\n")[0]
        raise WeightsError(
            f"cannot load the language model {name!r}, a folder or a hub name: {why}"
        ) from error


def served_layers(adapter: Path) -> tuple[str, ...]:
    """Return the names of the layers that an adapter changes, for vLLM's option `lora_target_modules`.

    By default vLLM prepares every layer for adapters, including the word vectors. There its engine fails if prompts
    given as vectors overlap, because it counts only the rows of tokens, and for the adapter those of all prompts.
    Raises WeightsError for a folder without an adapter, and SettingsError for one that changes the word vectors.
    """
    file = adapter / "adapter_config.json"
    try:
        named = json.loads(file.read_text(encoding="utf-8"))["target_modules"]
        names = tuple(sorted({str(name).rpartition(".")[2] for name in named}))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise WeightsError(
            f"{file}: not an adapter's configuration ({error}): train it again"
        ) from error
    if words := [name for name in names if "embed" in name or name == "lm_head"]:
        raise SettingsError(
            f"{adapter} changes word vectors ({', '.join(words)}), which ends vLLM's engine where prompts overlap: "
            f"merge it into the language model: {MERGE} {adapter.parent} OUT"
        )
    return names


def add_adapter(language_model: Any, lora: Lora, task: str = "CAUSAL_LM") -> Any:
    """Return a language model with a new low-rank adapter.

    Raises MissingExtra without peft, and SettingsError for a model whose layers peft does not know.

    Args:
        task: peft's name for the kind of model.
    """
    with needs_extra("a LoRA adapter", "llm"):
        from peft import LoraConfig, get_peft_model
    options = LoraConfig(
        task_type=task,
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets) or None,
    )
    try:
        return get_peft_model(language_model, options)
    except ValueError as error:  # peft has no default layers for this model
        raise SettingsError(f"{error}: name the layers in lora.targets") from error


def _chat_tokens(tokenizer: Any, turns: Sequence[Turn]) -> list[int]:
    if not tokenizer.chat_template:
        text = "\n\n".join(turn.text for turn in turns) + "\n"
        if tokenizer.bos_token_id is None:
            begins = []
        else:
            begins = [tokenizer.bos_token_id]
        return [*begins, *tokenizer(text, add_special_tokens=False)["input_ids"]]
    from jinja2.exceptions import TemplateError

    try:
        text = _in_template(tokenizer, turns)
    except TemplateError:  # some templates allow no system turn
        system = [turn for turn in turns if turn.role == "system"]
        first, *others = (turn for turn in turns if turn.role != "system")
        merged = Turn(first.role, "\n\n".join(turn.text for turn in (*system, first)))
        text = _in_template(tokenizer, (merged, *others))
    return cast("list[int]", tokenizer(text, add_special_tokens=False)["input_ids"])


def _in_template(tokenizer: Any, turns: Sequence[Turn]) -> str:
    messages = [{"role": turn.role, "content": turn.text} for turn in turns]
    return cast(
        str,
        tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        ),
    )


def _ends(language_model: Any, tokenizer: Any) -> frozenset[int]:
    """Return the ids of the tokens that end a text, by the tokenizer and the model's generation config."""
    ids = getattr(
        getattr(language_model, "generation_config", None), "eos_token_id", None
    )
    listed = ids if isinstance(ids, list) else [ids]
    return frozenset(
        token for token in (*listed, tokenizer.eos_token_id) if token is not None
    )

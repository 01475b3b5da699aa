"""Defines the options of every training of a GraphLLM: the form of the model, where it starts from, how it is trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from ras_agent.config.registry import names
from ras_agent.contracts.errors import SettingsError
from ras_agent.train.loop import FitConfig
from ras_agent.train.ranges import COUNT, NATURAL, SHARE, check_choices, check_ranges

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLMConfig

_NORMS = ("batch", "layer")
_TUNINGS = ("frozen", "lora", "full")
_RANGES = {
    **dict.fromkeys(
        ("encoder_layers", "encoder_heads", "encoder_width", "lora_rank", "lora_alpha"),
        COUNT,
    ),
    **dict.fromkeys(("batch", "text_tokens"), COUNT),
    **dict.fromkeys(("graph_tokens", "projector", "validation_replies"), NATURAL),
    **dict.fromkeys(("lora_dropout", "encoder_dropout"), SHARE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLLMOptions(FitConfig):
    """Holds the options of a GraphLLM and of its training. Raises SettingsError for options that contradict
    each other.
    """

    # language_model may be a folder, whose place does not matter
    CIRCUMSTANCES: ClassVar[tuple[str, ...]] = (
        *FitConfig.CIRCUMSTANCES,
        "language_model",
    )

    out: Path
    """The folder to write; the same command resumes a training in it."""
    language_model: str = ""
    """The language model to train on: a folder or a name on the Hugging Face hub."""
    start_from: Path | None = None
    """A folder with a trained GraphLLM to start from instead of a language model; its form is kept."""
    tuning: str = "lora"
    """What is trained: frozen, only the graph part; lora, also an adapter; full, all weights."""
    encoder: str = "graph-transformer"
    """The graph encoder: graph-transformer, gat, gcn, a plug-in of yours, or none for trained tokens that are the same
    for every graph."""
    encoder_layers: int = 4
    """Layers of the graph encoder."""
    encoder_heads: int = 4
    """Attention heads of the graph encoder."""
    encoder_width: int = 1024
    """Width of the graph encoder."""
    encoder_dropout: float = 0.0
    """Dropout of the graph encoder."""
    encoder_norm: str = "batch"
    """Norm between the graph encoder's layers: batch or layer."""
    projector: int = 2048
    """Hidden width between encoder and word vectors; 0 for no projector, if the encoder is as wide as the word
    vectors."""
    graph_tokens: int = 1
    """Tokens of a graph in the prompt; 0, with --encoder none, for a model that reads only text."""
    lora_rank: int = 8
    """Rank of the adapter."""
    lora_alpha: int = 16
    """Scale of the adapter; its output is multiplied by this over the rank."""
    lora_dropout: float = 0.05
    """Dropout of the adapter."""
    lora_targets: tuple[str, ...] = ()
    """Names of the layers that get an adapter; if not set, those that peft chooses for the model."""
    text_tokens: int = 2500
    """The maximum number of tokens of a prompt; the beginning of a longer one is cut off."""
    embedder: str = "minilm"
    """The embedder of the texts of nodes and edges, as --embedder of ras-agent index."""
    aligner: Path | None = None
    """A folder of ras_agent.train.aligner.train, whose encoder a new model takes and trains on (Align-GRAG)."""
    batch: int = 2
    """Prompts at once."""
    validation_replies: int = 64
    """Samples of the validation part that are replied to each time."""

    def __post_init__(self) -> None:
        FitConfig.__post_init__(self)
        check_ranges(self, _RANGES)
        encoders = (*names("graph-encoder"), "none")
        check_choices(
            self, {"tuning": _TUNINGS, "encoder": encoders, "encoder_norm": _NORMS}
        )
        if bool(self.language_model) == (self.start_from is not None):
            raise SettingsError(
                "a training begins from a language model or from a GraphLLM: give either --language-model or --start-from"
            )
        if not self.graph_tokens and self.encoder != "none":
            raise SettingsError(
                "--graph-tokens 0 leaves no token for the encoder's output: add --encoder none"
            )

    def model(self) -> GraphLLMConfig:
        """Return the configuration of the GraphLLM to train."""
        from ras_agent.tools.embed.embedders import resolve_embedder
        from ras_agent.tools.graph_tokens.encoders import EncoderConfig, Norm
        from ras_agent.tools.graph_tokens.graph_llm import GraphLLMConfig, Lora, Tuning

        encoder = None
        if self.aligner and self.encoder != "none":
            from ras_agent.tools.graph_tokens.aligner import read_config

            aligner = read_config(self.aligner)
            if aligner.embedder != self.embedder:
                raise SettingsError(
                    f"{self.aligner} was trained with another embedder: add --embedder {aligner.embedder}"
                )
            encoder = aligner.encoder
        elif self.encoder != "none":
            width = resolve_embedder(self.embedder).dimension
            shape = (self.encoder_layers, self.encoder_heads, self.encoder_width, width)
            encoder = EncoderConfig(
                self.encoder,
                *shape,
                self.encoder_dropout,
                cast(Norm, self.encoder_norm),
            )
        base = Path(self.language_model)
        return GraphLLMConfig(
            language_model=str(base.resolve())
            if base.is_dir()
            else self.language_model,
            encoder=encoder,
            graph_tokens=self.graph_tokens,
            projector=self.projector,
            tuning=cast(Tuning, self.tuning),
            lora=Lora(
                self.lora_rank, self.lora_alpha, self.lora_dropout, self.lora_targets
            ),
            text_tokens=self.text_tokens,
            embedder=self.embedder,
        )

    def of_form(self, model: GraphLLMConfig) -> Self:
        """Return these options with the form of `model` if a training starts from a trained model."""
        if not self.start_from:
            return self
        form: dict[str, Any] = {"encoder": "none"}
        for name in ("tuning", "graph_tokens", "projector", "text_tokens", "embedder"):
            form[name] = getattr(model, name)
        for name in ("rank", "alpha", "dropout", "targets"):
            form[f"lora_{name}"] = getattr(model.lora, name)
        if model.encoder is not None:
            form["encoder"] = model.encoder.kind
            for name in ("layers", "heads", "width", "dropout", "norm"):
                form[f"encoder_{name}"] = getattr(model.encoder, name)
        return replace(self, **form)

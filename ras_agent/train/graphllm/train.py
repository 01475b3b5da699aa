"""Train a GraphLLM to plan and to answer from the question's graph, as RAS does (section 3.3), and write its folder.

    python -m ras_agent.train.subq.build --musique musique_ans_v1.0_train.jsonl --out subq.jsonl
    python -m ras_agent.train.graphllm.train --data subq.jsonl --language-model Qwen/Qwen2.5-7B-Instruct \\
        --tuning lora --out graphllm
    ras-agent ask "..." --index my.index --planner graphllm:graphllm --answerer graphllm:graphllm

The same command goes on where a killed one stopped. Several processors, with batches of their own:

    torchrun --nproc-per-node 8 -m ras_agent.train.graphllm.train ...

In --out: what `GraphLLM.save` writes, prompts/ (those it was trained with), training.json (settings, data, scores) and
training/ (metrics.jsonl, where to go on). docs/training-graphllm.md has recipes.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, get_args

from ras_agent.errors import SettingsError
from ras_agent.program import run_program
from ras_agent.records import EvidenceLayout
from ras_agent.tools.store.durable import replace_file
from ras_agent.train.graphllm.examples import PROMPTS, ExampleMaker
from ras_agent.train.loop import FitConfig, FitResult, fit
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, NATURAL, SHARE, check_ranges
from ras_agent.train.subq import SubqSample, read_samples

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM, GraphLLMConfig

Tasks = Literal["both", "plan", "answer"]
_ENCODERS = ("graph-transformer", "gat", "gcn", "none")
_NORMS = ("batch", "layer")
_TUNINGS = ("frozen", "lora", "full")
# those that show no passages, whose texts samples do not hold
_LAYOUTS = ("chain", "searches")
_RANGES = {
    **dict.fromkeys(
        ("encoder_layers", "encoder_heads", "encoder_width", "projector", "lora_rank", "lora_alpha"), COUNT
    ),
    **dict.fromkeys(("batch", "text_tokens"), COUNT),
    **dict.fromkeys(("graph_tokens", "validation_replies"), NATURAL),
    "lora_dropout": SHARE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLLMTrainingConfig(FitConfig):
    """Options of a GraphLLM's training. The defaults are RAS's, of LoRA G-Retriever's.

    data: samples (ras_agent.train.subq). language_model: a folder or a hub name. tuning: "frozen" trains the graph
        part alone, "lora" an adapter too, "full" all weights. tasks: planning and answering at random, or one of them.
    encoder: "graph-transformer", "gat", "gcn", or "none" for trained tokens that are the same for every graph, of
        which --graph-tokens 0 has none: the model reads text alone. encoder_norm: "batch" or "layer" (EncoderConfig).
    layout: "chain" shows each search with its facts, "searches" the searches alone, so that facts are in the graph
        tokens only. citations: whether answers cite. prompts: a folder of your own; None for the packaged ones.
    aligner: a folder of ras_agent.train.aligner.train, whose encoder the model takes and trains on, in place of a new
        one by the encoder options (Align-GRAG).
    validation_replies: how many samples of the validation part are replied to at each validation.
    """

    CIRCUMSTANCES: ClassVar[tuple[str, ...]] = (*FitConfig.CIRCUMSTANCES, "language_model")  # which may be a folder

    data: Path
    out: Path
    language_model: str
    tuning: str = "lora"
    tasks: str = "both"
    encoder: str = "graph-transformer"
    encoder_layers: int = 4
    encoder_heads: int = 4
    encoder_width: int = 1024
    encoder_norm: str = "batch"
    projector: int = 2048
    graph_tokens: int = 1
    lora_rank: int = 8
    lora_alpha: int = 16
    lora_dropout: float = 0.05
    lora_targets: tuple[str, ...] = ()
    text_tokens: int = 2500
    embedder: str = "minilm"
    layout: str = "chain"
    prompts: Path | None = None
    aligner: Path | None = None
    citations: bool = True
    batch: int = 2
    accumulate: int = 2
    epochs: int = 2
    rate: float = 1e-5
    warmup: float = 0.15
    patience: int = 3
    validation_replies: int = 64

    def __post_init__(self) -> None:
        FitConfig.__post_init__(self)
        check_ranges(self, _RANGES)
        choices = {
            "tuning": _TUNINGS,
            "tasks": get_args(Tasks),
            "encoder": _ENCODERS,
            "encoder_norm": _NORMS,
            "layout": _LAYOUTS,
        }
        for name, values in choices.items():
            if (value := getattr(self, name)) not in values:
                raise SettingsError(f"--{name} {value}: unknown; known: {', '.join(values)}")
        if not self.graph_tokens and self.encoder != "none":
            raise SettingsError("--graph-tokens 0 leaves an encoder nothing to write into: add --encoder none")
        if self.aligner and self.encoder == "none":
            raise SettingsError("--aligner is an encoder, and --encoder none wants none: leave one of them out")

    def model(self) -> GraphLLMConfig:
        """Return the configuration of the model to train."""
        from ras_agent.tools.embed.embedders import resolve_embedder
        from ras_agent.tools.graph_tokens.encoders import EncoderConfig, EncoderKind, Norm
        from ras_agent.tools.graph_tokens.graph_llm import GraphLLMConfig, Lora, Tuning

        encoder = None
        if self.aligner:
            from ras_agent.tools.graph_tokens.aligner import read_config

            aligner = read_config(self.aligner)
            if aligner.embedder != self.embedder:
                raise SettingsError(
                    f"{self.aligner} was trained with another embedder: add --embedder {aligner.embedder}"
                )
            encoder = aligner.encoder
        elif self.encoder != "none":
            kind, width = cast(EncoderKind, self.encoder), resolve_embedder(self.embedder).dimension
            shape = (self.encoder_layers, self.encoder_heads, self.encoder_width, width)
            encoder = EncoderConfig(kind, *shape, norm=cast(Norm, self.encoder_norm))
        base = Path(self.language_model)
        return GraphLLMConfig(
            language_model=str(base.resolve()) if base.is_dir() else self.language_model,
            encoder=encoder,
            graph_tokens=self.graph_tokens,
            projector=self.projector,
            tuning=cast(Tuning, self.tuning),
            lora=Lora(self.lora_rank, self.lora_alpha, self.lora_dropout, self.lora_targets),
            text_tokens=self.text_tokens,
            embedder=self.embedder,
            layout=cast(EvidenceLayout, self.layout),
        )


def train(config: GraphLLMTrainingConfig) -> FitResult:
    """Train, write the folder, and return how it ended. Raises RasError children."""
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM
    from ras_agent.train.graphllm.trainable import TrainableGraphLLM

    model = GraphLLM.new(config.model(), config.seed)
    digests = {"data_sha256": hashlib.sha256(config.data.read_bytes()).hexdigest()}
    if config.aligner:
        digests |= _align(model, config.aligner)
    stored_type = next(model.language_model.parameters()).dtype
    _set_precision(model, config)
    maker = ExampleMaker(model.window, model.config.layout, config.prompts or PROMPTS, citations=config.citations)
    parts = samples_by_part(config, maker)
    trainable = TrainableGraphLLM(model, maker)

    def validate() -> Mapping[str, float]:
        return trainable.validation(parts["validation"], config.batch, config.validation_replies)

    result = fit(
        trainable,
        lambda epoch: batches(parts["train"], config.batch, config.seed, epoch),
        validate if parts["validation"] else None,
        config,
        config.out / "training",
        digests,
    )
    if result.main:
        if config.tuning == "full":
            model.language_model.to(stored_type)
        model.language_model.config.use_cache = True
        _write(model, config, {**digests, **_about(parts), "result": asdict(result)})
    return result


def samples_by_part(config: GraphLLMTrainingConfig, maker: ExampleMaker) -> dict[str, list[SubqSample]]:
    """Return the samples of the parts "train" and "validation" for which the role calls its model.

    Raises SettingsError where there are none to train on.
    """
    samples = [
        sample for sample in read_samples(config.data) if config.tasks in ("both", sample.kind) and maker.asks(sample)
    ]
    parts = {part: [sample for sample in samples if sample.split == part] for part in ("train", "validation")}
    if not parts["train"]:
        raise SettingsError(f"{config.data}: no samples of the split train and the tasks {config.tasks}")
    return parts


def _about(parts: Mapping[str, Sequence[SubqSample]]) -> dict[str, Any]:
    """Return a description of the samples for the card."""
    return {
        "sources": sorted({sample.source for samples in parts.values() for sample in samples}),
        "samples": {part: len(samples) for part, samples in parts.items()},
    }


def _write(model: GraphLLM, config: GraphLLMTrainingConfig, facts: Mapping[str, Any]) -> None:
    """Write the model, its prompts and the card, on which `facts` stand."""
    import torch

    from ras_agent.tools.graph_tokens.roles import PROMPTS as PROMPTS_FOLDER

    model.save(config.out)
    shutil.copytree(config.prompts or PROMPTS, config.out / PROMPTS_FOLDER, dirs_exist_ok=True)
    weights = list(model.parameters())
    card = {
        "what": "a GraphLLM that plans and answers from a question's graph",
        "made_by": "python -m ras_agent.train.graphllm.train",
        "settings": {**config.settings(), "language_model": config.language_model},
        **facts,
        "weights": {
            "all": sum(weight.numel() for weight in weights),
            "trained": sum(weight.numel() for weight in weights if weight.requires_grad),
        },
        "device": str(model.device),
        "torch": torch.__version__,
    }
    replace_file(config.out / "training.json", (json.dumps(card, indent=2) + "\n").encode())


def batches(samples: Sequence[SubqSample], size: int, seed: int, epoch: int) -> list[list[SubqSample]]:
    """Return an epoch's batches: all samples, in an order of its own, planning and answering at random."""
    shuffled = list(samples)
    random.Random(f"{seed} {epoch}").shuffle(shuffled)
    return [shuffled[first : first + size] for first in range(0, len(shuffled), size)]


def _align(model: GraphLLM, folder: Path) -> dict[str, str]:
    """Copy the weights of a trained aligner's graph encoder into the model's, and return a description of them."""
    from ras_agent.tools.graph_tokens.aligner import WEIGHTS, align_encoder
    from ras_agent.tools.graph_tokens.graph_llm import GraphTokens

    if isinstance(model.graph_tokens, GraphTokens):
        align_encoder(model.graph_tokens.encoder, folder)
    return {"aligner_sha256": hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()}


def _set_precision(model: GraphLLM, config: GraphLLMTrainingConfig) -> None:
    """Make trained weights float32, since bfloat16 loses small steps, and frozen ones bfloat16 where that is used."""
    import torch

    bf16 = config.bf16
    if bf16 is None:
        bf16 = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    for weight in model.language_model.parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()
        elif bf16 and weight.dtype in (torch.float16, torch.float32):
            weight.data = weight.data.bfloat16()


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and train."""
    result = train(config_from(GraphLLMTrainingConfig, __doc__, arguments))
    if result.main:
        print(json.dumps(asdict(result)))


if __name__ == "__main__":
    run_program(main)

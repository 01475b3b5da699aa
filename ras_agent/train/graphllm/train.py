"""Trains a GraphLLM to plan and answer from the question's graph, as RAS does (section 3.3), and writes its folder.

    python -m ras_agent.train.subq.build --musique musique_ans_v1.0_train.jsonl --out subq.jsonl
    python -m ras_agent.train.graphllm.train --data subq.jsonl --language-model Qwen/Qwen2.5-7B-Instruct \\
        --tuning lora --out graphllm
    ras-agent ask "..." --index my.index --planner graphllm:graphllm --answerer graphllm:graphllm

The same command resumes a killed training. On several processors, each with different batches:

    torchrun --nproc-per-node 8 -m ras_agent.train.graphllm.train ...

In --out: the files of `GraphLLM.save`, prompts/ (those it was trained with), training.json (settings, data, scores) and
training/ (metrics.jsonl, where to go on). docs/training-graphllm.md has recipes.
"""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from ras_agent.contracts.errors import PromptTooLong, SettingsError
from ras_agent.contracts.records import EvidenceLayout
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.running.program import run_program
from ras_agent.tools.graph_tokens.fact_orders import FactPruner, fact_order
from ras_agent.tools.store.card import write_card
from ras_agent.train.data import shuffled_batches
from ras_agent.train.graphllm.examples import (
    INSTRUCTIONS,
    ExampleMaker,
    GraphLLMExample,
)
from ras_agent.train.graphllm.options import GraphLLMOptions
from ras_agent.train.loop import TRAINING, FitResult, fit, print_result
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, Range, check_choices, check_ranges
from ras_agent.train.subq import SubqSample, read_samples

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM, GraphLLMConfig

Tasks = Literal["both", "plan", "answer"]
_LAYOUTS = ("chain", "searches", "chain-of-text")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLLMTrainingConfig(GraphLLMOptions):
    """Holds the options of a planner's and answerer's training. The defaults are those of RAS's paper and
    training script.
    """

    data: Path
    """Samples of ras_agent.train.subq.build."""
    tasks: str = "both"
    """both for planning and answering at random, or plan or answer; one after the other with --start-from is the
    paper's continual training."""
    share: float = 1.0
    """The share of the samples to train on, drawn by --seed (RAS's Fig. 5)."""
    encoder_layers: int = 3
    encoder_heads: int = 8
    encoder_dropout: float = 0.1
    layout: str = "chain"
    """What the prompt shows of each search: chain, with its facts; searches, without, so that facts are in the graph
    tokens only; chain-of-text, with the texts of its passages, which the samples need (--texts of subq.build)."""
    prune_facts: str = ""
    """Show only the best facts, by use, likeness or aligner:FOLDER; if not set, all. Ask the trained model with the
    same option."""
    prune_to: int = 40
    """The number of facts that --prune-facts leaves."""
    instructions: str = "short"
    """short for models that are trained on them, or paper, which say what RAS's do (Fig. 15 and 16) in our words."""
    prompts: Path | None = None
    """A folder of your prompts, used instead of --instructions."""
    citations: bool = True
    """Answers cite the facts they are based on."""
    accumulate: int = 2
    epochs: int = 2
    rate: float = 1e-5
    warmup: float = 0.15
    clip: float = 0.5
    beta2: float = 0.95
    patience: int = 3

    def __post_init__(self) -> None:
        GraphLLMOptions.__post_init__(self)
        check_ranges(self, {"prune_to": COUNT, "share": Range(0, 1, above=True)})
        check_choices(
            self,
            {
                "tasks": get_args(Tasks),
                "layout": _LAYOUTS,
                "instructions": tuple(INSTRUCTIONS),
            },
        )
        if self.aligner and self.encoder == "none":
            raise SettingsError(
                "--aligner brings an encoder, but --encoder none excludes it: leave one of them out"
            )
        if self.aligner and self.start_from:
            raise SettingsError(
                "--start-from already has an encoder: leave --aligner out"
            )

    def model(self) -> GraphLLMConfig:
        """Return the configuration of the GraphLLM to train."""
        return replace(
            GraphLLMOptions.model(self), layout=cast(EvidenceLayout, self.layout)
        )


def train(config: GraphLLMTrainingConfig) -> FitResult:
    """Train the model, write its folder, and return the outcome.

    Raises:
        RasError: If a file cannot be read, or the options do not fit.
    """
    from ras_agent.tools.graph_tokens.roles import PROMPTS as PROMPTS_FOLDER

    start = begin(config)
    model = start.model
    model.config = replace(model.config, layout=cast(EvidenceLayout, config.layout))
    prompts = config.prompts or INSTRUCTIONS[config.instructions]
    pruner = None
    if config.prune_facts:
        pruner = FactPruner(fact_order(config.prune_facts), config.prune_to)
    maker = ExampleMaker(
        model.window,
        model.config.layout,
        prompts,
        citations=config.citations,
        pruner=pruner,
    )
    parts = samples_by_part(config, maker)
    digests = {"data_sha256": file_sha256(config.data)}
    result = train_on(start, maker.example, parts, config, digests)
    if result.main:
        model.save(config.out)
        shutil.copytree(
            prompts,
            config.out / PROMPTS_FOLDER,
            dirs_exist_ok=True,
            ignore=lambda _, names: {"paper"} & {*names},
        )
        what = "a GraphLLM that plans and answers from a question's graph"
        made_by = "ras_agent.train.graphllm.train"
        start.write_card(
            what,
            made_by,
            config,
            {**digests, **_about(parts), "result": asdict(result)},
        )
    return result


@dataclass(frozen=True, slots=True)
class Start:
    """Holds the GraphLLM that a training begins with."""

    model: GraphLLM
    digests: Mapping[str, str]
    """Hashes of the files that the model was made from."""
    stored_type: Any
    """The data type of its language model's weights."""

    def write_card(
        self, what: str, made_by: str, config: GraphLLMOptions, facts: Mapping[str, Any]
    ) -> None:
        """Write training.json into the training's folder.

        Args:
            what: What the model does, as a sentence.
            made_by: The module of the training.
            config: The options of the training.
            facts: Further entries, such as scores.
        """
        import torch

        weights = list(self.model.parameters())
        card = {
            "what": what,
            "made_by": f"python -m {made_by}",
            "settings": {
                **config.of_form(self.model.config).settings(),
                "language_model": config.language_model,
            },
            **self.digests,
            **facts,
            "weights": {
                "all": sum(weight.numel() for weight in weights),
                "trained": sum(
                    weight.numel() for weight in weights if weight.requires_grad
                ),
            },
            "device": str(self.model.device),
            "torch": torch.__version__,
        }
        write_card(config.out / TRAINING, card)


def begin(config: GraphLLMOptions) -> Start:
    """Return the model that a training begins with: a new one on a language model, or a trained one."""
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

    digests = {}
    if config.start_from:
        model = GraphLLM.load(config.start_from)
        digests["start_sha256"] = digest_of_weights(config.start_from)
    else:
        model = GraphLLM.new(config.model(), config.seed)
    if config.aligner and config.encoder != "none" and not config.start_from:
        digests |= _align(model, config.aligner)
    stored_type = next(model.language_model.parameters()).dtype
    _set_precision(model, config)
    return Start(model, digests, stored_type)


def train_on(
    start: Start,
    example_of: Callable[[Any], GraphLLMExample],
    parts: Mapping[str, Sequence[Any]],
    config: GraphLLMOptions,
    digests: Mapping[str, str],
) -> FitResult:
    """Train the model on the samples of the part "train". Those of "validation" choose the weights that it ends
    with.

    Args:
        start: The model to train.
        example_of: Returns the example of a sample.
        parts: The samples by part.
        config: The options.
        digests: Hashes of other inputs that affect the weights; a training with other hashes is not resumed.
    """
    from ras_agent.train.graphllm.trainable import TrainableGraphLLM

    model = start.model
    trainable = TrainableGraphLLM(model, example_of)

    def batches(epoch: int) -> list[list[Any]]:
        dice = random.Random(f"{config.seed} {epoch}")
        return shuffled_batches(parts["train"], config.batch, dice)

    def validate() -> Mapping[str, float]:
        return trainable.validation(
            parts["validation"], config.batch, config.validation_replies
        )

    result = fit(
        trainable,
        batches,
        validate if parts["validation"] else None,
        config.of_form(model.config),
        config.out / "training",
        {**start.digests, **digests},
    )
    if result.main:
        if model.config.tuning == "full":
            model.language_model.to(start.stored_type)
        model.language_model.config.use_cache = True
    return result


def samples_by_part(
    config: GraphLLMTrainingConfig, maker: ExampleMaker
) -> dict[str, list[SubqSample]]:
    """Return the samples to train on and to validate with, under "train" and "validation".

    They are read from the file `config.data`, for the tasks of `config.tasks`. Steps at which planner or
    answerer would call no model are left out, and so are those whose prompt does not fit into the model's window.

    Raises:
        SettingsError: if there are no samples to train on.
    """
    parts: dict[str, list[SubqSample]] = {"train": [], "validation": []}
    for sample in read_samples(config.data):
        if config.tasks in ("both", sample.kind) and maker.asks(sample):
            parts[sample.split].append(sample)
    if config.layout == "chain-of-text":
        _check_texts(config.data, parts)
    if config.share < 1 and parts["train"]:
        count = max(round(config.share * len(parts["train"])), 1)
        parts["train"] = random.Random(config.seed).sample(parts["train"], count)
    parts = {name: _that_fit(samples, maker) for name, samples in parts.items()}
    if not parts["train"]:
        raise SettingsError(
            f"{config.data}: no training samples for the tasks {config.tasks} that fit into {config.text_tokens} tokens: "
            "choose other tasks, raise --text-tokens, or build more samples"
        )
    return parts


def _that_fit(samples: Sequence[SubqSample], maker: ExampleMaker) -> list[SubqSample]:
    """Return the samples whose prompt fits into the model's window, and print how many do not."""
    fitting = []
    too_long = []
    for sample in samples:
        try:
            maker.example(sample)
        except PromptTooLong:
            too_long.append(sample.id)
        else:
            fitting.append(sample)
    if too_long:
        print(
            f"left out: {len(too_long)} of {len(samples)} samples, whose prompts leave no room for facts within "
            f"--text-tokens, such as {too_long[0]}",
            flush=True,
        )
    return fitting


def _check_texts(file: Path, parts: Mapping[str, Sequence[SubqSample]]) -> None:
    """Raise SettingsError if passages of the samples have no texts."""
    samples = chain.from_iterable(parts.values())
    steps = chain.from_iterable(sample.steps for sample in samples)
    passages = chain.from_iterable(step.passages for step in steps)
    if not all(passage.text for passage in passages):
        raise SettingsError(
            f"{file}: its passages have no texts, which --layout chain-of-text shows: make it with --texts "
            "(ras_agent.train.subq.build)"
        )


def _about(parts: Mapping[str, Sequence[SubqSample]]) -> dict[str, Any]:
    """Return a description of the samples for the card."""
    return {
        "sources": sorted(
            {sample.source for samples in parts.values() for sample in samples}
        ),
        "samples": {part: len(samples) for part, samples in parts.items()},
    }


def _align(model: GraphLLM, folder: Path) -> dict[str, str]:
    """Copy the weights of a trained aligner's graph encoder into the model's. Return the aligner's digest."""
    from ras_agent.tools.graph_tokens.aligner import WEIGHTS, align_encoder
    from ras_agent.tools.graph_tokens.graph_llm import GraphTokens

    shape = model.config.encoder
    if isinstance(model.graph_tokens, GraphTokens) and shape is not None:
        align_encoder(model.graph_tokens.encoder, shape, folder)
    return {"aligner_sha256": file_sha256(folder / WEIGHTS)}


def digest_of_weights(folder: Path) -> str:
    """Return a hash of the weights in a GraphLLM's folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.safetensors")):
        if "training" not in file.relative_to(folder).parts:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _set_precision(model: GraphLLM, config: GraphLLMOptions) -> None:
    """Make trained weights float32, because bfloat16 loses small steps, and frozen weights bfloat16 if the
    training uses it.
    """
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
    print_result(train(config_from(GraphLLMTrainingConfig, __doc__, arguments)))


if __name__ == "__main__":
    run_program(main)

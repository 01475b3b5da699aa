"""Trains a text-to-triples model, seq2seq or causal: from pre-trained weights, or a small model from scratch.

    python -m ras_agent.train.triples.train --data FACTS.jsonl --out RUN --model google/flan-t5-large --rate 2e-5
    python -m ras_agent.train.triples.train --data FACTS.jsonl --out RUN --model meta-llama/Llama-3.2-3B --lora 16
    python -m ras_agent.train.triples.train --data edc.jsonl --out RUN --scratch t5 --width 128 --layers 2 --epochs 20
    torchrun --nproc-per-node 8 -m ras_agent.train.triples.train --data ... --out RUN --model ...

FACTS.jsonl holds a text and its triples a line (see ras_agent.train.triples.examples). A part of the texts, chosen by a
hash of the text, is held out: for validation, early stopping, and RUN/held_out.jsonl. RUN/model is then an extractor:

    ras-agent study extractors --gold RUN/held_out.jsonl --extractor text2triple:RUN/model

The loss is the mean over the targets' tokens; a prompt's tokens have no loss. Started again with the same options, a
training continues from its last save (ras_agent.train.loop).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ras_agent.contracts.errors import SettingsError
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.running.program import run_program
from ras_agent.tools.store.card import write_card
from ras_agent.tools.structure.new_model import KINDS, new_model
from ras_agent.tools.structure.triple_model import load_text_model
from ras_agent.tools.structure.triple_text import (
    SOURCE_TOKENS,
    TARGET_TOKENS,
    TripleText,
    titled_text,
)
from ras_agent.train.loop import TRAINING, FitConfig, FitResult, fit, print_result
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, NATURAL, Range, check_ranges
from ras_agent.train.triples.examples import (
    BatchesByLength,
    EncodedExample,
    TripleExample,
    encode,
    split,
    triple_examples,
    write_examples,
)

_RANGES = {
    **dict.fromkeys(
        ("width", "layers", "heads", "batch", "source_tokens", "target_tokens"), COUNT
    ),
    "vocabulary": Range(300),
    "lora": NATURAL,
    "held_out": Range(0, 0.5),
    "dropout": Range(0, 0.9),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TriplesTrainingConfig(FitConfig):
    """Holds the options of a text-to-triples model's training.

    Raises SettingsError for a number out of range, or unless exactly one of `model` and `scratch` is given.
    """

    data: tuple[Path, ...]
    """Files of texts with their triples."""
    out: Path
    """The folder to write; the same command resumes a training in it."""
    model: str = ""
    """Pre-trained weights: a folder or a name on the Hugging Face hub."""
    scratch: str = ""
    """t5 or llama, for a new model with a byte-level vocabulary made of the texts."""
    width: int = 128
    """Width of a new model."""
    layers: int = 2
    """Layers of a new model: of the encoder, and of the decoder."""
    heads: int = 4
    """Attention heads of a new model."""
    vocabulary: int = 4000
    """The maximum number of tokens of a new model's vocabulary."""
    dropout: float = 0.1
    """Dropout of a new model."""
    lora: int = 0
    """Rank of an adapter, which is merged into the model at the end; 0 trains all weights."""
    batch: int = 32
    """Texts at once."""
    source_tokens: int = SOURCE_TOKENS
    """The maximum number of tokens of a text."""
    target_tokens: int = TARGET_TOKENS
    """The maximum number of tokens of its triples."""
    held_out: float = 0.1
    """The share of the texts that are held out for scoring."""

    def __post_init__(self) -> None:
        FitConfig.__post_init__(self)
        check_ranges(self, _RANGES)
        if bool(self.model) == bool(self.scratch) or self.scratch not in ("", *KINDS):
            raise SettingsError(
                "a training begins from a model or from new weights: give either --model, or --scratch with one of "
                f"{', '.join(KINDS)}"
            )


def train(config: TriplesTrainingConfig) -> FitResult:
    """Train the model, write `model`, held_out.jsonl and training.json into `config.out`, and return the outcome.

    Raises:
        IngestError: If the data cannot be read.
        WeightsError: If the model cannot be loaded.
        RasError: As `fit` raises it.
    """
    import torch

    from ras_agent.train.triples.trainable import TrainableTriples

    torch.manual_seed(config.seed)
    train_part, held_out = split(triple_examples(config.data), config.held_out)
    model, tokenizer = _first_model(config, train_part)
    text = TripleText(
        tokenizer,
        seq2seq=bool(model.config.is_encoder_decoder),
        source_tokens=config.source_tokens,
    )
    trainable = TrainableTriples(model, text)

    def in_tokens(example: TripleExample) -> EncodedExample:
        return encode(example, text, config.target_tokens)

    def batches(epoch: int) -> BatchesByLength:
        return BatchesByLength(
            train_part, config.batch, (config.seed, epoch), in_tokens
        )

    def validate() -> dict[str, float]:
        loss = 0.0
        tokens = 0
        for batch in BatchesByLength(held_out, config.batch, 0, in_tokens):
            count = sum(len(example.target) for example in batch)
            loss += count * float(trainable.loss(batch))
            tokens += count
        return {"loss": loss / tokens}

    digests = {"texts": [file_sha256(file)[:12] for file in config.data]}
    result = fit(
        trainable, batches, validate if held_out else None, config, config.out, digests
    )
    if not result.main:
        return result
    if config.lora:
        model = model.merge_and_unload()
    model.save_pretrained(config.out / "model")
    tokenizer.save_pretrained(config.out / "model")
    write_examples(config.out / "held_out.jsonl", held_out)
    card = {
        "what": "text-to-triples model",
        "made_by": "python -m ras_agent.train.triples.train",
        "data": [file.name for file in config.data],
        "texts": {"trained": len(train_part), "held_out": len(held_out)},
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "settings": {**config.settings(), **digests},
        "result": asdict(result),
    }
    write_card(config.out / TRAINING, card)
    return result


def _first_model(
    config: TriplesTrainingConfig, train_part: Sequence[TripleExample]
) -> tuple[Any, Any]:
    """Return the model with its first weights, and its tokenizer."""
    if config.scratch:
        texts = [titled_text(example.title, example.text) for example in train_part]
        for example in train_part:
            texts.append(" ".join(map(" ".join, example.triples)))
        return new_model(
            config.scratch,
            texts,
            width=config.width,
            layers=config.layers,
            heads=config.heads,
            dropout=config.dropout,
            vocabulary=config.vocabulary,
        )
    model, tokenizer = load_text_model(config.model)
    if not config.lora:
        # in float32: bfloat16 would lose small steps
        return (model.float(), tokenizer)
    from ras_agent.tools.graph_tokens.graph_llm import Lora, add_adapter

    task = "CAUSAL_LM"
    if model.config.is_encoder_decoder:
        task = "SEQ_2_SEQ_LM"
    return add_adapter(model, Lora(config.lora, 2 * config.lora), task), tokenizer


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and train."""
    print_result(train(config_from(TriplesTrainingConfig, __doc__, arguments)))


if __name__ == "__main__":
    run_program(main)

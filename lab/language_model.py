"""Make a small Llama with a vocabulary of its own, and teach it to write texts like those of samples.

    python -m lab.language_model --data subq.jsonl --out tiny
    python -m ras_agent.train.graphllm.train --data subq.jsonl --language-model tiny --tuning full --rate 1e-3 ...
    python -m lab.language_model --benchmark explagraphs --data train.tsv --out tiny
    python -m ras_agent.train.graphqa.train --benchmark explagraphs --data train.tsv --language-model tiny ...

It is there so that the way from samples to a cited answer can be walked where no weights of a language model are to be
had. A few million weights learn the grammar of plans and the form of an answer from some hundred samples. They know no
language and no world: do not expect right answers.

The vocabulary is byte-level BPE, as GPT-2's and Llama 3's are, in the case of the texts. Prompts, graphs' facts
included, and replies of the split "train" are the text; the weights are then trained to predict it word by word. With
--benchmark the text is a set's questions with their whole graphs as CSV, and their answers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ras_agent.contracts.errors import MissingExtra
from ras_agent.eval.benchmarks import benchmark
from ras_agent.running.program import run_program
from ras_agent.train.graphllm.examples import ExampleMaker, GraphLLMExample
from ras_agent.train.loop import FitConfig, FitResult, fit
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, Range, check_ranges
from ras_agent.train.subq import read_samples

if TYPE_CHECKING:
    from torch import Tensor

_END, _PAD = "<|end|>", "<|pad|>"
_RANGES: Mapping[str, Range] = dict.fromkeys(
    ("vocabulary", "width", "layers", "heads", "text_tokens", "batch"), COUNT
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(FitConfig):
    """Everything that decides the result.

    data: samples (ras_agent.train.subq), or the questions of a benchmark. vocabulary: the most tokens. width, layers,
        heads: of the network, whose hidden layers are three times as wide. text_tokens: the longest text. batch: texts
        at once.
    """

    data: Path
    out: Path
    benchmark: str = ""
    vocabulary: int = 2000
    width: int = 128
    layers: int = 4
    heads: int = 4
    text_tokens: int = 768
    batch: int = 2
    epochs: int = 2
    rate: float = 3e-3

    def __post_init__(self) -> None:
        FitConfig.__post_init__(self)
        check_ranges(self, _RANGES)


def make(config: Config) -> FitResult:
    """Train vocabulary and weights, write them as transformers does, and return how it ended."""
    try:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError as error:
        raise MissingExtra("a language model", "llm") from error
    texts = [
        "\n\n".join(turn.text for turn in one.turns) + f"\n{one.reply}"
        for one in _examples(config)
    ]
    tokenizer = _vocabulary(texts, config.vocabulary)
    torch.manual_seed(config.seed)
    network = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=config.width,
            intermediate_size=3 * config.width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    rows = [[*ids, tokenizer.eos_token_id] for ids in tokenizer(texts)["input_ids"]]
    # the end of a text has the question and the reply
    rows = [row[-config.text_tokens :] for row in rows]
    result = fit(
        _trainable(network, tokenizer.pad_token_id),
        lambda epoch: _batches(rows, config.batch, config.seed, epoch),
        None,
        config,
        config.out / "training",
        {name: getattr(config, name) for name in _RANGES},
    )
    if result.main:
        network.save_pretrained(config.out)
        tokenizer.save_pretrained(config.out)
        card = {
            "what": "a small language model that learnt from samples for planner and answerer alone",
            "made_by": "python -m lab.language_model",
            "settings": {
                k: str(v) if isinstance(v, Path) else v
                for k, v in asdict(config).items()
            },
            "weights": network.num_parameters(),
            "tokens": sum(map(len, rows)),
            "result": asdict(result),
        }
        (config.out / "training.json").write_text(
            json.dumps(card, indent=2) + "\n", encoding="utf-8"
        )
    return result


def _examples(config: Config) -> Sequence[GraphLLMExample]:
    """Return the examples whose texts are learnt."""
    if not config.benchmark:
        maker = ExampleMaker(config.text_tokens)
        return [
            maker.example(one)
            for one in read_samples(config.data, "train")
            if maker.asks(one)
        ]
    from ras_agent.tools.embed.embedders import resolve_embedder
    from ras_agent.tools.graph_tokens.features import GraphVectors
    from ras_agent.tools.graph_tokens.graph_reader import GraphPrompts, GraphView
    from ras_agent.train.graphqa.examples import example_of

    read = benchmark(config.benchmark)
    view = GraphView(
        task=read.instructions.get("answer", ""), graph_text_tokens=config.text_tokens
    )
    # no vocabulary yet: rows are counted by their characters, which are more
    prompts = GraphPrompts(view, GraphVectors(resolve_embedder("minilm")), len)
    return [example_of(one, read, prompts) for one in read.load(config.data)]


def _vocabulary(texts: Sequence[str], most: int) -> Any:
    """Return a tokenizer with a vocabulary of the texts' own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=most,
        special_tokens=[_PAD, _END],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    wrapped: Any = PreTrainedTokenizerFast
    return wrapped(tokenizer_object=tokenizer, eos_token=_END, pad_token=_PAD)


def _batches(
    rows: Sequence[list[int]], size: int, seed: int, epoch: int
) -> list[list[list[int]]]:
    """Return an epoch's batches in random order, in each of which texts are of like length."""
    rng = random.Random(f"{seed} {epoch}")
    order = sorted(rows, key=lambda row: (len(row), rng.random()))
    found = [order[first : first + size] for first in range(0, len(order), size)]
    rng.shuffle(found)
    return found


def _trainable(network: Any, pad: int) -> Any:
    import torch
    from torch import nn

    class NextToken(nn.Module):
        """Computes the loss of predicting each token of some texts."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def loss(self, batch: Sequence[list[int]]) -> Tensor:
            rows = nn.utils.rnn.pad_sequence(
                [torch.tensor(row) for row in batch],
                batch_first=True,
                padding_value=pad,
            )
            rows = rows.to(network.device)
            labels = rows.masked_fill(rows == pad, -100)
            found: Tensor = network(
                input_ids=rows, attention_mask=(rows != pad).long(), labels=labels
            ).loss
            return found

    return NextToken()


def main() -> None:
    """Command line: one option for each field of `Config`."""
    result = make(config_from(Config, __doc__))
    if result.main:
        print(json.dumps(asdict(result)))


if __name__ == "__main__":
    run_program(main)

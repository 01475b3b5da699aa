"""Fit the ranker: the types of answers, the networks that score spans, and how good they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ras_agent.eval.metrics import token_f1
from ras_agent.tools.offline.answerer.answer_type import ROWS, TypeModel, answer_features, question_features
from ras_agent.tools.offline.answerer.rank import INPUTS, Ranked, Ranker, pooled
from ras_agent.tools.offline.question import analyse
from ras_agent.train.ranker.config import SETS, RankerConfig
from ras_agent.train.ranker.examples import RankerExample

if TYPE_CHECKING:
    from torch import Tensor

Floats = npt.NDArray[np.float32]


def train_types(pairs: Sequence[tuple[str, str]], config: RankerConfig) -> TypeModel:
    """Train two bags of hashed features whose inner product tells a question's answer from those of others."""
    import torch

    torch.manual_seed(config.seed)
    rng = np.random.default_rng(config.seed)
    question_rows = [question_features(analyse(question)) for question, _ in pairs]
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
            batch = order[start : start + config.type_batch]
            question_vectors = questions(*_bags([question_rows[at] for at in batch], rng, config.type_dropout))
            answer_vectors = replies(*_bags([answers[at] for at in batch], rng, config.type_dropout))
            loss = torch.nn.functional.cross_entropy(
                scale * question_vectors @ answer_vectors.T, torch.arange(len(batch))
            )
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
    """Return rows and offsets for an EmbeddingBag. Rows are dropped with chance `dropout`; row 0 fills empty bags."""
    import torch

    bags = [[row for row in bag if rng.random() >= dropout] or [0] for bag in rows]
    sizes = np.array([len(bag) for bag in bags])
    return torch.tensor([row for bag in bags for row in bag]), torch.tensor(np.cumsum(sizes) - sizes)


def asks_for_a_span(question: str, answer: str, config: RankerConfig) -> bool:
    """Tell whether types of answers can be learnt from the pair: no yes or no, not too long, a question for a span."""
    if answer.lower() in ("yes", "no") or len(answer) > config.longest_answer:
        return False
    return analyse(question).kind in ("open", "shared")


def train_ranker(
    sets: Mapping[tuple[str, str], Sequence[RankerExample]], config: RankerConfig
) -> dict[str, npt.NDArray[Any]]:
    """Return weights that make the expected gain of a span, drawn by its probability, greatest (in the logarithm).

    The members of the ensemble differ in where they start and what they draw; their mean is one wider network.
    """
    samples = [(example, SETS[name]) for name, examples in sets.items() for example in examples if example.gain.any()]
    chance = np.array([share for _, share in samples]) / sum(share for _, share in samples)
    sample = np.concatenate([example.inputs for example, _ in samples[:: max(1, len(samples) // 800)]])
    mean, deviation = sample.mean(axis=0), sample.std(axis=0) + 1e-3
    scaled = [((example.inputs - mean) / deviation).clip(-5, 5) for example, _ in samples]
    gains = [example.gain for example, _ in samples]
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
    scaled: Sequence[Floats], gains: Sequence[Floats], chance: npt.NDArray[np.float64], config: RankerConfig
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return one network: linear (F,), hidden weight (F, H), hidden bias (H,), out (H,)."""
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
            picks = _sample_spans(gains[at], config.spans, rng)
            rows[line, : len(picks)], gain[line, : len(picks)] = scaled[at][picks], gains[at][picks]
            used[line, : len(picks)] = True
        inputs = torch.from_numpy(rows)  # (B, S, F)
        activations = torch.nn.functional.dropout(torch.tanh(hidden(inputs)), config.dropout)
        logits = (linear(inputs) + out(activations))[..., 0]  # (B, S)
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


def _sample_spans(gain: Floats, most: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return at most `most` spans: a third of them right ones, the rest wrong ones."""
    right, wrong = rng.permutation(np.nonzero(gain > 0)[0]), rng.permutation(np.nonzero(gain <= 0)[0])
    right = right[: most // 3]
    return np.concatenate([right, wrong[: most - len(right)]])


def cross_validated(
    sets: Mapping[tuple[str, str], Sequence[RankerExample]],
    fixed: Mapping[str, npt.NDArray[Any]],
    config: RankerConfig,
) -> dict[str, float]:
    """Train a ranker without each fold in turn, and return each set's token F1 in per cent on the fold left out."""
    measured: dict[tuple[str, str], list[float]] = {name: [] for name in sets}
    for fold in range(config.folds):
        others = {
            name: [example for example in examples if example.group % config.folds != fold]
            for name, examples in sets.items()
        }
        ranker = Ranker({**fixed, **train_ranker(others, config)})
        for name, examples in sets.items():
            held_out = [example for example in examples if example.group % config.folds == fold]
            measured[name] += [
                token_f1(best_candidates(ranker, example)[0].text, example.answers)
                for example in held_out
                if example.analysis.kind in ("open", "shared")
            ]
    return {", ".join(name): round(100 * float(np.mean(scores)), 1) for name, scores in measured.items()}


def best_candidates(ranker: Ranker, example: RankerExample) -> list[Ranked]:
    """Return the candidates of an example, best first: those that have the form of an answer, or all if none has it."""
    logits = ranker.score(example.inputs)
    return pooled(
        example.candidates, example.inputs, np.where(example.fits, logits, -np.inf) if example.fits.any() else logits
    )

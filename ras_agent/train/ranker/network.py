"""Fit the networks that score spans, and make them one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats
from ras_agent.tools.offline.answerer.rank import INPUTS
from ras_agent.train.ranker.config import Config
from ras_agent.train.ranker.spans import Example

__all__ = ["train_ranker"]


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

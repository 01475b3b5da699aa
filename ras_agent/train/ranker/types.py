"""Learn which answers fit which questions, from questions with their answers alone (InfoNCE, arXiv:1807.03748)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.tools.offline.answerer.answer_type import ROWS, TypeModel, answer_features, question_features
from ras_agent.tools.offline.question import analyse
from ras_agent.train.ranker.config import Config

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["asks_for_a_span", "train_types"]


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


def asks_for_a_span(question: str, answer: str, config: Config) -> bool:
    """Whether the types of answers can be learnt from the pair."""
    if answer.lower() in ("yes", "no") or len(answer) > config.longest_answer:
        return False
    return analyse(question).kind in ("open", "shared")

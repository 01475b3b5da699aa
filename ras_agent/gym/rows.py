"""Writes questions as rows of a trainer's data set, and logs the reward's parts during a training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ras_agent.contracts.records import JSON
from ras_agent.eval.question import Question
from ras_agent.gym.environment import GraphSearch
from ras_agent.prompts import load


def row_of(question: Question) -> JSON:
    """Return a question as the arguments of `GraphSearch.reset`. All rows have the same keys.

    `prompt` is the system turn of a planner that calls tools and an empty user turn, to which trainers append the text
    that `reset` returns. `hops` is the number of hops of the gold answer, None if unknown.
    """
    system = load("react").fill(task="", question="")[0].text
    gold = list(question.supporting)
    return {
        "prompt": [
            {"role": "system", "content": system},
            {"role": "user", "content": ""},
        ],
        "id": question.id,
        "question": question.question,
        "answers": list(question.answers),
        "supporting_titles": gold if question.by_title else None,
        "supporting_ids": None if question.by_title else gold,
        "type": question.type,
        "hops": question.hops,
    }


def rows(questions: Iterable[Question]) -> list[JSON]:
    """Return the row of each question (see `row_of`). `datasets.Dataset.from_list(rows(...))` is a data set for GRPO."""
    return [row_of(question) for question in questions]


def log_parts(
    environments: Sequence[GraphSearch],
    log_metric: Callable[[str, float], None],
    **unused: object,
) -> list[None]:
    """Log the mean of each part of the reward as "parts/NAME", and return no rewards.

    It has the form of a reward function for TRL: `GRPOTrainer(reward_funcs=[log_parts],
    environment_factory=...)`. A part that applies to no episode of the batch is not logged.
    """
    parts: dict[str, list[float]] = {}
    for environment in environments:
        for name, value in environment.reward_parts.items():
            parts.setdefault(name, []).append(value)
    for name, values in parts.items():
        log_metric(f"parts/{name}", sum(values) / len(values))
    return [None] * len(environments)

"""Provides an environment for graph search, in which planners that call tools are trained and compared.

    from ras_agent.gym import environment_factory, rows
    make = environment_factory(index="idx", retriever="bm25")
    GRPOTrainer(model, train_dataset=Dataset.from_list(rows(questions)), environment_factory=make, args=...)

docs/training-planner-rl.md shows a complete training. Rewards are computed without a judge model; other models
are called only if they play a role.
"""

from ras_agent.gym.environment import GraphSearch, environment_factory, search_parts
from ras_agent.gym.play import Player, RandomPolicy, play
from ras_agent.gym.rewards import Episode, Rewards, parts_of, support_gains
from ras_agent.gym.rollout import Policy, Rollout, aroll_out, roll_out, rollout_agent
from ras_agent.gym.rows import log_parts, row_of, rows

__all__ = [
    "Episode",
    "GraphSearch",
    "Player",
    "Policy",
    "RandomPolicy",
    "Rewards",
    "Rollout",
    "aroll_out",
    "environment_factory",
    "log_parts",
    "parts_of",
    "roll_out",
    "rollout_agent",
    "play",
    "row_of",
    "rows",
    "search_parts",
    "support_gains",
]

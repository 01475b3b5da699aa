"""Plays episodes with a policy, as a baseline, or to make conversations from which a model can learn."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ras_agent.contracts.errors import UnknownName
from ras_agent.contracts.records import JSON
from ras_agent.gym.environment import GraphSearch
from ras_agent.prompts import ToolCall
from ras_agent.text.names import names_in
from ras_agent.tools.plan.graph_tools import FINISH

_MOST_CALLS = 50


class Player(Protocol):
    """Chooses the tool calls of an episode, in this process."""

    def act(self, environment: GraphSearch) -> ToolCall:
        """Return the next tool call."""
        ...


@dataclass
class RandomPolicy:
    """Chooses each call at random: a search for the question, for some of its words, or for a name; or
    `finish`.

    It is the baseline that a trained planner has to exceed, and its episodes teach a model how tools are
    called. Equal seeds play equal episodes. The episode also ends when no search is left.
    """

    seed: int = 0
    finish: float = 0.25
    """the probability of ending the episode, from the second call on"""
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def act(self, environment: GraphSearch) -> ToolCall:
        """Return a search, or a call of `finish`."""
        if not environment.searches_left or (
            environment.steps and self._random.random() < self.finish
        ):
            return ToolCall(FINISH.name, {FINISH.argument: "enough"})
        return ToolCall("search", {"query": self._query(environment)})

    def _query(self, environment: GraphSearch) -> str:
        question = environment.question.question
        kind = self._random.choice(
            ("question", "words", "name of question", "name of what was found")
        )
        names = names_in(question)
        if kind == "name of what was found":
            names = [passage.title for passage in environment.passages if passage.title]
        if kind == "question" or (kind.startswith("name") and not names):
            return question
        if kind == "words":
            words = question.split()
            start = self._random.randrange(len(words))
            return " ".join(words[start : start + self._random.randint(1, 5)])
        return self._random.choice(names)


def play(environment: GraphSearch, policy: Player, row: Mapping[str, Any]) -> JSON:
    """Let a policy play one episode, and return its conversation and reward: {"messages", "tools", "reward", "parts"}.

    `row` holds the arguments of `reset`; its `prompt` begins the conversation. In "messages", each assistant turn has
    a tool call; TRL's SFTTrainer takes them together with "tools". An episode ends after at most 50 calls. Raises
    UnknownName if the policy calls something that is not a tool.
    """
    *system, user = row.get("prompt") or [{"role": "user", "content": ""}]
    messages: list[JSON] = [
        *system,
        {**user, "content": user["content"] + environment.reset(**row)},
    ]
    names = tuple(tool.name for tool in environment.offered)
    while not environment.done and len(messages) < 2 * _MOST_CALLS:
        action = policy.act(environment)
        if action.name not in names:
            raise UnknownName("tool", action.name, names)
        shown = getattr(environment, action.name)(**action.arguments)
        function = {"name": action.name, "arguments": dict(action.arguments)}
        messages += [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"type": "function", "function": function}],
            },
            {"role": "tool", "name": action.name, "content": shown},
        ]
    parts = environment.reward_parts
    tools = [tool.schema(everything=True) for tool in environment.offered]
    return {
        "messages": messages,
        "tools": tools,
        "reward": environment.get_reward(),
        "parts": parts,
    }

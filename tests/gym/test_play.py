"""Episodes that a policy plays: the floor of every comparison, and conversations to be taught from."""

from __future__ import annotations

from typing import Any

import pytest

from ras_agent import Limits, Passage
from ras_agent.contracts.errors import UnknownName
from ras_agent.gym import GraphSearch, RandomPolicy, Rewards, play, search_parts
from ras_agent.prompts import ToolCall
from tests.messages import says

TEXTS = [
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh. He invented the telephone.",
        "Alexander Graham Bell",
    ),
    Passage("paris", "The Seine flows through Paris.", "Paris"),
]
ROW: dict[str, Any] = {
    "prompt": [
        {"role": "system", "content": "Search."},
        {"role": "user", "content": "Hello. "},
    ],
    "question": "Where was Alexander Graham Bell born?",
    "supporting_ids": ["bell"],
}


@pytest.fixture(scope="module")
def environment() -> GraphSearch:
    return GraphSearch(
        search_parts(index=TEXTS, limits=Limits(max_hops=3, k=1)),
        rewards=Rewards(f1=0.0),
    )


class Once:
    """A policy that searches once and ends."""

    def act(self, environment: GraphSearch) -> ToolCall:
        if environment.steps:
            return ToolCall("finish", {"reason": "enough"})
        return ToolCall("search", {"query": "telephone"})


class Endless:
    """A policy that never ends."""

    def act(self, environment: GraphSearch) -> ToolCall:
        return ToolCall("search", {"query": "telephone"})


def test_an_episode_is_a_conversation_with_its_tools_and_rewards(
    environment: GraphSearch,
) -> None:
    episode = play(environment, Once(), ROW)
    assert [message["role"] for message in episode["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    assert (
        episode["messages"][1]["content"]
        == "Hello. Question: Where was Alexander Graham Bell born?"
    )
    assert episode["messages"][2]["tool_calls"] == [
        {
            "type": "function",
            "function": {"name": "search", "arguments": {"query": "telephone"}},
        }
    ]
    assert episode["messages"][3]["content"].startswith(
        "Passages:\n[1] Alexander Graham Bell"
    )
    assert [tool["function"]["name"] for tool in episode["tools"]] == [
        "search",
        "neighbours",
        "read",
        "finish",
    ]
    assert list(episode["tools"][3]["function"]["parameters"]["properties"]) == [
        "reason",
        "answer",
    ]
    assert (episode["parts"], episode["reward"]) == (
        {"gold": 1.0, "form": 1.0},
        pytest.approx(1.1),
    )


def test_a_policy_that_does_not_end_is_stopped(environment: GraphSearch) -> None:
    episode = play(environment, Endless(), ROW)
    assert sum(message["role"] == "tool" for message in episode["messages"]) == 49
    assert episode["parts"]["form"] == 0.0


class Cheat:
    """A policy that calls an unknown tool."""

    def act(self, environment: GraphSearch) -> ToolCall:
        return ToolCall("reset", {"question": "Where is Paris?"})


def test_a_call_of_what_is_no_tool_is_refused(environment: GraphSearch) -> None:
    with pytest.raises(
        UnknownName,
        match=says("unknown tool 'reset'", "finish, neighbours, read, search"),
    ):
        play(environment, Cheat(), ROW)
    assert environment.question.question == ROW["question"]


def test_a_random_policy_plays_the_same_episode_for_an_equal_seed(
    environment: GraphSearch,
) -> None:
    first, again = (play(environment, RandomPolicy(3), ROW) for _ in range(2))
    assert first == again


def test_a_random_policy_searches_before_it_ends_and_ends_where_no_search_is_left(
    environment: GraphSearch,
) -> None:
    for seed in range(20):
        play(environment, RandomPolicy(seed), ROW)
        assert 1 <= len(environment.steps) <= 3
        assert environment.reward_parts["form"] == float(
            environment.stop_reason != "repeated_subquery"
        )

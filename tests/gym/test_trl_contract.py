"""The demands of TRL on an environment, by a stand-in that uses it as GRPOTrainer of TRL 1.16.0 does.

tests/contracts/test_trl.py does the same with TRL itself (`make contracts`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ras_agent import Limits
from ras_agent.app.sample import sample_passages
from ras_agent.eval.question import Question
from ras_agent.gym import GraphSearch, Rewards, environment_factory, log_parts, row_of

DYNAMITE = Question(
    "sample-01",
    "In which city was the inventor of dynamite born?",
    ("Stockholm",),
    ("dynamite", "alfred-nobel"),
)


class StandIn:
    """A trainer's handling of environments, without a model: one a rollout, made once, reset often."""

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory
        self.pool = [factory()]
        functions = [
            name
            for name, _ in inspect.getmembers(
                type(self.pool[0]), predicate=inspect.isfunction
            )
        ]
        assert "reset" in functions
        self.owns_reward = "get_reward" in functions
        self.tools = [
            name
            for name in functions
            if name not in ("reset", "get_reward") and not name.startswith("_")
        ]

    def begin(self, rows: Sequence[dict[str, Any]]) -> list[list[dict[str, str]]]:
        """Reset an environment for each row, and return the prompts with the result of `reset`."""
        self.pool += [self.factory() for _ in rows[len(self.pool) :]]
        prompts = []
        for row, environment in zip(rows, self.pool, strict=False):
            *earlier, last = row["prompt"]
            text = environment.reset(**row)
            prompts.append(
                [
                    *earlier,
                    last
                    if text is None
                    else {**last, "content": last["content"] + text},
                ]
            )
        return prompts

    def call(self, rollout: int, name: str, **arguments: Any) -> str:
        """Return the text that the policy sees of a call: also its error, as text."""
        try:
            return str(getattr(self.pool[rollout], name)(**arguments))
        except Exception as error:
            return str({"error": str(error)})

    def rewards(self, count: int) -> list[float]:
        return [environment.get_reward() for environment in self.pool[:count]]


@pytest.fixture(scope="module")
def trainer() -> StandIn:
    rewards = Rewards(f1=0.0, new_support=0.5)
    return StandIn(
        environment_factory(
            index=sample_passages(), rewards=rewards, limits=Limits(max_hops=3, k=2)
        )
    )


def test_the_tools_are_found_on_the_class_and_the_reward_is_the_environments(
    trainer: StandIn,
) -> None:
    assert trainer.tools == ["finish", "neighbours", "read", "search"]
    assert trainer.owns_reward


def test_a_schema_can_be_made_of_each_tool(trainer: StandIn) -> None:
    from transformers.utils import get_json_schema

    schemas = {
        name: get_json_schema(getattr(trainer.pool[0], name))["function"]
        for name in trainer.tools
    }
    assert schemas["search"] == {
        "name": "search",
        "description": "Search the texts; their facts join the graph of the question.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to search for."}
            },
            "required": ["query"],
        },
        "return": {"type": "string", "description": "What the model is shown."},
    }
    assert schemas["finish"]["parameters"]["required"] == ["reason"]
    assert list(schemas["finish"]["parameters"]["properties"]) == ["reason", "answer"]


def test_a_planner_as_an_agent_is_offered_the_same_descriptions(
    trainer: StandIn,
) -> None:
    from transformers.utils import get_json_schema

    from ras_agent.tools.plan.graph_tools import FINISH, NEIGHBOURS, READ, SEARCH

    for tool in (SEARCH, NEIGHBOURS, READ, FINISH):
        shown, trained = (
            tool.schema()["function"],
            get_json_schema(getattr(trainer.pool[0], tool.name))["function"],
        )
        assert shown["description"] == trained["description"]
        for name, argument in shown["parameters"]["properties"].items():
            assert trained["parameters"]["properties"][name] == argument
        assert shown["parameters"]["required"] == trained["parameters"]["required"]


def test_a_group_of_rollouts_is_kept_apart_and_reused(trainer: StandIn) -> None:
    prompts = trainer.begin([row_of(DYNAMITE)] * 2)
    assert [prompt[-1]["content"] for prompt in prompts] == [
        f"Question: {DYNAMITE.question}"
    ] * 2
    assert trainer.call(0, "search", query="Who invented dynamite?").startswith(
        "Passages:\n[1] Dynamite\n[2] Alfred"
    )
    trainer.call(0, "finish", reason="known")
    assert trainer.rewards(2) == [pytest.approx(1.0 + 0.5 + 0.1), 0.0]
    trainer.begin([row_of(DYNAMITE)])
    assert trainer.rewards(2) == [0.0, 0.0]
    assert len(trainer.pool) == 2


def test_a_call_with_a_wrong_argument_is_an_error_that_the_policy_is_shown(
    trainer: StandIn,
) -> None:
    trainer.begin([row_of(DYNAMITE)])
    assert "unexpected keyword argument 'text'" in trainer.call(
        0, "search", text="dynamite"
    )
    assert trainer.rewards(1) == [0.0]


def test_parts_of_the_reward_are_logged_by_a_reward_function_that_rewards_nothing(
    trainer: StandIn,
) -> None:
    logged: dict[str, float] = {}
    trainer.begin([row_of(DYNAMITE)] * 2)
    trainer.call(0, "search", query="Who invented dynamite?")
    environments: list[GraphSearch] = trainer.pool[:2]
    assert log_parts(
        environments=environments, log_metric=logged.__setitem__, prompts=[]
    ) == [None, None]
    assert logged == {"parts/gold": 0.5, "parts/new_support": 0.5, "parts/form": 0.0}

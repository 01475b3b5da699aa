"""The gym as an environment of verifiers (v1): questions as a Taskset, the four tools as a Toolset, parts as rewards.

    pip install ras-agent verifiers
    PYTHONPATH=examples vf-eval verifiers_graph_search -m MODEL

verifiers serves the tools of each rollout over MCP in a process of its own, and shares `GraphState` with the task that
scores it. Any of its harnesses that speaks MCP can be the policy. Another index and other questions are fields of the
configs.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import verifiers.v1 as vf

from ras_agent import Limits
from ras_agent.app.sample import sample_passages
from ras_agent.eval.formats import load_questions
from ras_agent.gym import Rewards, environment_factory, row_of
from ras_agent.tools.plan.graph_tools import (
    FINISH,
    NEIGHBOURS,
    READ,
    SEARCH,
    documented,
)

SAMPLE = str(files("ras_agent.data") / "sample_questions.jsonl")


class GraphState(vf.State):
    """What the tools tell the task: the parts of the reward so far, and their weighted sum."""

    parts: dict[str, float] = {}  # noqa: RUF012 - pydantic copies it
    reward: float = 0.0


class GraphData(vf.TaskData):
    """A question, as the columns that `GraphSearch.reset` takes."""

    row: dict[str, Any]


class GraphToolsConfig(vf.ToolsetConfig):
    """Where to search and how it is rewarded. index: a path or address; "" for the bundled sample."""

    index: str = ""
    retriever: str = "bm25"
    max_hops: int = 4
    passages: int = 3
    weights: dict[str, float] = {"f1": 1.0, "gold": 1.0, "form": 0.1}  # noqa: RUF012


class GraphTools(vf.Toolset[GraphToolsConfig, GraphState]):
    """The tools of one rollout."""

    TOOL_PREFIX = (
        None  # the tools have the names that a planner as an agent knows them by
    )

    async def setup(self) -> None:
        config = self.config
        self._make = environment_factory(
            index=config.index or sample_passages(),
            retriever=config.retriever,
            extractor="offline",
            limits=Limits(max_hops=config.max_hops, k=config.passages),
            rewards=Rewards(**{"f1": 0.0, "gold": 0.0, "form": 0.0, **config.weights}),
        )

    async def setup_task(self, task: GraphData) -> None:
        self._environment = self._make()
        self._environment.reset(**task.row)

    @vf.tool
    @documented(SEARCH)
    def search(self, query: str) -> str:
        return self._scored(self._environment.search(query))

    @vf.tool
    @documented(NEIGHBOURS)
    def neighbours(self, entity: str) -> str:
        return self._scored(self._environment.neighbours(entity))

    @vf.tool
    @documented(READ)
    def read(self, passage: str) -> str:
        return self._scored(self._environment.read(passage))

    @vf.tool
    @documented(FINISH)
    def finish(self, reason: str, answer: str = "") -> str:
        return self._scored(self._environment.finish(reason, answer))

    def _scored(self, shown: str) -> str:
        self.state.parts, self.state.reward = (
            self._environment.reward_parts,
            self._environment.get_reward(),
        )
        return shown


class GraphTaskConfig(vf.TaskConfig):
    """Config of a task: that of its tools."""

    tools: GraphToolsConfig = GraphToolsConfig()


class GraphTask(vf.Task[GraphData, GraphState, GraphTaskConfig]):
    """One question."""

    @classmethod
    def toolsets(cls, config: GraphTaskConfig) -> list[vf.Toolset]:
        return [GraphTools(config.tools)]

    @vf.reward
    async def graph_search(self, trace: vf.Trace) -> float:
        return trace.state.reward

    @vf.metric
    async def parts(self, trace: vf.Trace) -> dict[str, float]:
        return trace.state.parts


class GraphTasksetConfig(vf.TasksetConfig):
    """Config of the questions: a file in any format that ras-agent reads."""

    questions: str = SAMPLE
    task: GraphTaskConfig = GraphTaskConfig()


def tasks_of(config: GraphTasksetConfig, kind: type[GraphTask]) -> Iterator[Any]:
    """Yield the questions of a config as tasks of a kind."""
    for question in load_questions(config.questions):
        row = row_of(question)
        system, _ = row.pop("prompt")
        data = GraphData(
            id=question.id,
            prompt=f"Question: {question.question}",
            system_prompt=system["content"],
            row=row,
        )
        yield kind(data, config.task)


class GraphTaskset(vf.Taskset[GraphTask, GraphTasksetConfig]):
    """Questions as tasks."""

    def load(self) -> Iterator[GraphTask]:
        return tasks_of(self.config, GraphTask)


__all__ = ["GraphTaskset"]

if __name__ == "__main__":
    GraphTools.run()

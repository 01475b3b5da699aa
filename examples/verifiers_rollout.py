"""The agent's own loop as a harness of verifiers (v1): its planner is the model that is trained or evaluated.

    pip install ras-agent verifiers
    PYTHONPATH=examples vf-eval verifiers_rollout -m MODEL --client.base-url URL

Each rollout is a process, `ras-agent rollout`, whose planner asks at verifiers' interception server; the other roles
are the offline ones. Questions are those of examples/verifiers_graph_search.py, where the model calls tools.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from verifiers_graph_search import GraphTask, GraphTasksetConfig, tasks_of

PROGRAM = str(Path(sys.executable).with_name("ras-agent"))


class RolloutTask(GraphTask):
    """One question, for a harness that searches by itself: no tools are served."""

    @classmethod
    def toolsets(cls, config: Any) -> list[vf.Toolset]:
        return []


class RolloutTaskset(vf.Taskset[RolloutTask, GraphTasksetConfig]):
    """Questions as tasks."""

    def load(self) -> Iterator[RolloutTask]:
        return tasks_of(self.config, RolloutTask)


class RolloutHarnessConfig(vf.HarnessConfig):
    """Config of the loop. index: where to search, a path or address; "" for the bundled sample.

    options: further options of `ras-agent rollout`, such as ["--dialect", "search-r1"].
    """

    index: str = ""
    options: list[str] = []  # noqa: RUF012 - pydantic copies it


class RolloutHarness(vf.Harness[RolloutHarnessConfig]):
    """Harness whose program is the loop, with verifiers' model as its planner."""

    APPENDS_SYSTEM_PROMPT = True  # the planner's prompt is the loop's own
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: Any,
    ) -> vf.ProgramResult:
        row = data.row
        gold = [f"--supporting={title}" for title in row["supporting_titles"] or ()]
        variables = {
            "OPENAI_BASE_URL": endpoint,
            "OPENAI_API_KEY": secret,
            "OPENAI_MODEL": ctx.model,
            "GOLDEN_ANSWERS": json.dumps(row["answers"]),
        }
        place = ["--index", self.config.index] if self.config.index else ["--sample"]
        argv = [
            PROGRAM,
            "rollout",
            row["question"],
            *gold,
            *place,
            *self.config.options,
        ]
        result = await runtime.run_program(
            argv, {**self.config.resolved_env, **variables}
        )
        if result.exit_code == 0:
            printed = json.loads(result.stdout)
            trace.state.reward, trace.state.parts = printed["reward"], printed["parts"]
        return result


__all__ = ["RolloutHarness", "RolloutTaskset"]

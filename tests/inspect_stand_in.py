"""A stand-in for inspect-ai with the names that ours uses, for tests without the package.

`make contracts` runs the same task under the real one. `run` treats a task as `inspect_ai.eval` does with each
sample: the solver, then each scorer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any


@dataclass
class Sample:
    input: str
    target: list[str]
    id: str
    metadata: dict[str, Any]


class MemoryDataset(list[Sample]):
    def __init__(self, samples: list[Sample], name: str) -> None:
        super().__init__(samples)
        self.name = name


@dataclass
class Task:
    dataset: MemoryDataset
    solver: Any
    scorer: list[Any]
    name: str


@dataclass
class Score:
    value: float
    answer: str


class Store(dict[str, Any]):
    def set(self, key: str, value: Any) -> None:
        self[key] = value


@dataclass
class State:
    sample_id: str
    store: Store = field(default_factory=Store)
    output: Any = field(default_factory=lambda: SimpleNamespace(completion=""))


class ModelOutput:
    @staticmethod
    def from_content(model: str, content: str) -> Any:
        return SimpleNamespace(model=model, completion=content)


@asynccontextmanager
async def agent_bridge() -> AsyncIterator[None]:
    yield


def _named(**options: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def decorate(build: Callable[[], Any]) -> Callable[[], Any]:
        def built() -> Any:
            part = build()
            part.name = options["name"]
            return part

        return built

    return decorate


def modules() -> dict[str, ModuleType]:
    """Return the modules to put into sys.modules."""
    names: dict[str, dict[str, Any]] = {
        "inspect_ai": {"Task": Task, "task": lambda function: function},
        "inspect_ai.agent": {"agent_bridge": agent_bridge},
        "inspect_ai.dataset": {"MemoryDataset": MemoryDataset, "Sample": Sample},
        "inspect_ai.model": {"ModelOutput": ModelOutput},
        "inspect_ai.scorer": {
            "Score": Score,
            "mean": object,
            "stderr": object,
            "scorer": _named,
        },
        "inspect_ai.solver": {"solver": _named},
    }
    made = {name: ModuleType(name) for name in names}
    for name, module in made.items():
        vars(module).update(names[name])
    return made


def run(task: Task) -> dict[str, dict[str, float]]:
    """Return each sample's scores by scorer; a scorer that returns None has no score."""

    async def one(sample: Sample) -> dict[str, float]:
        state = await task.solver(State(sample.id), None)
        scores = {
            scorer.name: await scorer(state, sample.target) for scorer in task.scorer
        }
        return {
            name: score.value for name, score in scores.items() if score is not None
        }

    async def every() -> dict[str, dict[str, float]]:
        return {sample.id: await one(sample) for sample in task.dataset}

    return asyncio.run(every())

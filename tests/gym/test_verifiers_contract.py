"""The example for verifiers, by stand-ins of the classes that it takes from verifiers 0.4.0.

tests/contracts/test_verifiers.py does the same with verifiers itself (`make contracts`).
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Generic:
    """A class that takes parameters in brackets, and its fields as keywords."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        if args:  # Task(data, config), Toolset(config), Taskset(config)
            self.data, self.config = args[0], args[-1]
        vars(self).update(fields)

    def __class_getitem__(cls, parameters: Any) -> type:
        return cls


class Toolset(Generic):
    """The server of tools; the state is shared with the task that scores them."""

    @property
    def state(self) -> Any:
        return vars(self).setdefault("_state", SimpleNamespace())


def _marked(function: Any) -> Any:
    function.marked = True
    return function


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    package, module = ModuleType("verifiers"), ModuleType("verifiers.v1")
    names = (
        "State",
        "TaskData",
        "ToolsetConfig",
        "TaskConfig",
        "Task",
        "TasksetConfig",
        "Taskset",
        "HarnessConfig",
        "Harness",
    )
    vars(module).update(dict.fromkeys(names, Generic))
    vars(module).update(
        dict.fromkeys(("Trace", "ModelContext", "Runtime", "ProgramResult"), object)
    )
    vars(module).update(Toolset=Toolset, tool=_marked, reward=_marked, metric=_marked)
    vars(package)["v1"] = module
    monkeypatch.setitem(sys.modules, "verifiers", package)
    monkeypatch.setitem(sys.modules, "verifiers.v1", module)
    return _loaded("verifiers_graph_search", monkeypatch)


def _loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, loaded)
    spec.loader.exec_module(loaded)
    return loaded


async def test_a_task_is_played_through_its_tools_and_rewarded_by_their_state(
    example: Any,
) -> None:
    task = next(iter(example.GraphTaskset(example.GraphTasksetConfig()).load()))
    assert (
        task.data.prompt == "Question: In which city was the inventor of dynamite born?"
    )
    (tools,) = task.toolsets(task.config)
    await tools.setup()
    await tools.setup_task(task.data)
    assert "[2] Alfred Nobel" in tools.search("Who invented dynamite?")
    assert tools.neighbours("dynamite").startswith("<facts>")
    assert tools.read("2").startswith("<passage>")
    tools.finish("known", "Stockholm [2]")
    trace = SimpleNamespace(state=tools.state)
    assert await task.graph_search(trace) == pytest.approx(2.1)
    assert await task.parts(trace) == {"f1": 1.0, "gold": 1.0, "form": 1.0}


def test_the_tools_are_marked_and_described_as_a_planner_knows_them(
    example: Any,
) -> None:
    for name in ("search", "neighbours", "read", "finish"):
        assert getattr(example.GraphTools, name).marked
    assert example.GraphTools.search.__doc__.startswith("Search the texts")


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(
    ("index", "options", "given"),
    [
        ("", [], ["--sample"]),
        ("", ["--dialect", "react"], ["--sample", "--dialect", "react"]),
        (
            "my-index",
            ["--dialect", "react"],
            ["--index", "my-index", "--dialect", "react"],
        ),
    ],
)
async def test_the_loop_is_a_harness_that_asks_at_its_endpoint(
    index: str, options: list[str], given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts: Any = _loaded("verifiers_rollout", monkeypatch)
    task = next(iter(rollouts.RolloutTaskset(rollouts.GraphTasksetConfig()).load()))
    assert task.toolsets(task.config) == []
    started = []

    class Runtime:
        async def run_program(self, argv: list[str], variables: dict[str, str]) -> Any:
            started.append((argv[1:], variables))
            return SimpleNamespace(
                exit_code=0, stdout='{"reward": 0.5, "parts": {"f1": 0.5}}\n'
            )

    state = SimpleNamespace()
    harness = rollouts.RolloutHarness()
    harness.config = SimpleNamespace(
        index=index, options=options, resolved_env={"A": "b"}
    )
    at = ("http://127.0.0.1:1/v1", "secret", {}, task.data)
    await harness.launch(
        SimpleNamespace(model="m"), SimpleNamespace(state=state), Runtime(), *at
    )
    assert vars(state) == {"reward": 0.5, "parts": {"f1": 0.5}}
    own = {
        "OPENAI_BASE_URL": at[0],
        "OPENAI_API_KEY": "secret",
        "OPENAI_MODEL": "m",
        "GOLDEN_ANSWERS": '["Stockholm"]',
    }
    question = "In which city was the inventor of dynamite born?"
    assert started == [(["rollout", question, *given], {"A": "b", **own})]

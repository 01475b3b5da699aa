"""Runs a task of this package in Inspect (inspect-ai 0.3): with Inspect's models, log and viewer, and our
questions and metrics.

    task = load_task("hotpotqa", Path("hotpot_dev.json"), settings, limit=100)
    inspect_ai.eval(inspect_task(task, settings), model="openai/gpt-4o-mini")

Inspect's `agent_bridge` intercepts the calls of OpenAI's client library for the model "inspect". So any of
Inspect's providers can answer, and Inspect's log has every call. Each part can be used separately: our agent as
a solver with another scorer, or our metrics as scorers of another solver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import needs_extra
from ras_agent.eval.formats.inspect_log import scorer_name
from ras_agent.eval.metrics import Outcome, find_metric
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import agent_inputs
from ras_agent.eval.run.task import Task
from ras_agent.graphs.resolve import create_agent
from ras_agent.running.trace import Trace

_TRACE = "ras-agent:trace"
_NAMES = {
    "Task": "inspect_ai",
    "agent_bridge": "inspect_ai.agent",
    **dict.fromkeys(("MemoryDataset", "Sample"), "inspect_ai.dataset"),
    "ModelOutput": "inspect_ai.model",
    **dict.fromkeys(("Score", "mean", "scorer", "stderr"), "inspect_ai.scorer"),
    "solver": "inspect_ai.solver",
}


def inspect_task(task: Task, settings: Settings, model: Any = None) -> Any:
    """Return an Inspect task: the questions as samples, the agent that `settings` describe, and a scorer for each
    metric.

    Args:
        task: The task, as `load_task` returns it.
        settings: The settings of the agent.
        model: The model of the roles that have no model in the settings; by default Inspect's.

    Raises:
        MissingExtra: If inspect-ai is not installed.
    """
    parts = _inspect()
    samples = []
    for one in task.questions:
        samples.append(
            parts.Sample(
                input=one.question,
                target=list(one.answers),
                id=one.id,
                metadata={"type": one.type},
            )
        )
    return parts.Task(
        dataset=parts.MemoryDataset(samples, name=task.benchmark.name),
        solver=inspect_solver(task, settings, model),
        scorer=inspect_scorers(task.questions, task.metrics),
        name=f"ras-agent_{task.benchmark.name}",
    )


def inspect_solver(task: Task, settings: Settings, model: Any = None) -> Any:
    """Return an Inspect solver that asks the agent described by `settings`, and keeps the trace in the sample's store.

    `model` is as for `inspect_task`.
    """
    parts = _inspect()
    questions = {question.id: question for question in task.questions}
    inputs = partial(agent_inputs, task, settings.loop)

    def build() -> Any:
        llm: Any = model or _bridged_model()
        arguments: dict[str, Any] = {
            "index": task.index,
            "settings": settings,
            "task": task.instruction_text,
        }
        agent = create_agent(settings.loop, llm=llm, **arguments)

        async def solve(state: Any, generate: Callable[..., Any]) -> Any:
            async with parts.agent_bridge():
                out = await agent.ainvoke(inputs(questions[str(state.sample_id)]))
            state.store.set(_TRACE, Trace.from_state(out, settings.loop).to_dict())
            state.output = parts.ModelOutput.from_content(
                model="ras-agent", content=out["answer"]
            )
            return state

        return solve

    return parts.solver(name="ras_agent")(build)()


def inspect_scorers(questions: Sequence[Question], metrics: Sequence[str]) -> list[Any]:
    """Return an Inspect scorer for each metric. A sample to which the metric does not apply is left unscored.

    The scorer reads the trace in the sample's store, or only the completion if another solver answered.
    """
    by_id = {question.id: question for question in questions}
    return [_scorer(find_metric(name).name, by_id) for name in metrics]


def _scorer(name: str, questions: Mapping[str, Question]) -> Any:
    parts = _inspect()
    score = find_metric(name).score

    def build() -> Any:
        async def measure(state: Any, target: Any) -> Any:
            trace = state.store.get(_TRACE)
            if trace:
                outcome = Outcome.from_output(trace)
            else:
                outcome = Outcome(state.output.completion)
            value = score(questions[str(state.sample_id)], outcome)
            if value is None:
                return None
            return parts.Score(value=value, answer=outcome.answer)

        return measure

    metrics = [parts.mean(), parts.stderr()]
    return parts.scorer(metrics=metrics, name=scorer_name(name))(build)()


def _bridged_model() -> object:
    """Return LangChain's client for the model "inspect", whose calls Inspect's bridge intercepts.

    Raises:
        MissingExtra: the client library is not installed.
    """
    with needs_extra("Inspect's bridge", "openai"):
        from langchain_openai import ChatOpenAI
        from pydantic import SecretStr
    return ChatOpenAI(model="inspect", api_key=SecretStr("inspect"), max_retries=0)


def _inspect() -> Any:
    """Import inspect-ai, and return the names that are used here.

    Raises:
        MissingExtra: inspect-ai is not installed.
    """
    with needs_extra("a task of Inspect", "inspect"):
        return SimpleNamespace(
            **{
                name: getattr(import_module(module), name)
                for name, module in _NAMES.items()
            }
        )

"""Describes an agent under evaluation: any function that turns a question into an output.

EvalAgent("mine", Settings(llm="openai:gpt-4o-mini"))             the agent that settings describe
search_agent("only bm25", settings)                               its retriever, without an answer
baseline_agent("always yes", settings, "yes")                     one search and a fixed answer
EvalAgent.of("other", answer)                                     any `async def answer(question) -> output`
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import ModelRefused, UnknownName
from ras_agent.contracts.records import Hit, Passage
from ras_agent.eval.question import Question
from ras_agent.eval.run.task import Task
from ras_agent.graphs.registry import graph_spec
from ras_agent.graphs.resolve import (
    assemble_agent,
    resolve_parts,
    search_from_settings,
)
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Ledger, Limits, metered
from ras_agent.running.calling import acall, call
from ras_agent.running.protocols import Retriever
from ras_agent.running.recent import forget_recent_results

if TYPE_CHECKING:
    from ras_agent.graphs.agent import Agent
    from ras_agent.graphs.parts import AgentParts
    from ras_agent.graphs.state import Inputs

AnswerQuestion = Callable[[Question], Awaitable[Mapping[str, Any]]]
"""An async function from a question to an output (see ras_agent.graphs.state.Outputs)."""
MakeAnswerer = Callable[[Task, Settings], AnswerQuestion]

NO_ANSWER: Mapping[str, Any] = {
    "answer": "",
    "abstained": False,
    "passages": {},
    "steps": [],
    "stop_reason": "error",
}
"""The output that is scored for a question that failed."""


def settings_answerer(task: Task, settings: Settings) -> AnswerQuestion:
    """Return an async function that asks the agent described by `settings` one question of the task."""
    parts = resolve_parts(
        settings.loop, settings=settings, index=task.index, task=task.instruction_text
    )
    passages = warm_up(parts.retriever, task)
    warm_up_roles(parts, task, passages)
    forget_recent_results()
    inputs = partial(agent_inputs, task, settings.loop)
    return graph_answerer(assemble_agent(parts), inputs)


def warm_up(retriever: Retriever, task: Task) -> tuple[Passage, ...]:
    """Search for the task's first question, so that loading the retriever does not count in the seconds of a
    question.

    Returns the found passage, in a tuple. An error is ignored here, because it is reported when a question is
    asked.
    """
    if not task.questions or task.questions[0].metadata.get("graph"):
        return ()
    question = task.questions[0].question
    with suppress(Exception):
        hits: list[Hit] = call(retriever, "retrieve", question, 1)
        return tuple(hit.passage for hit in hits)
    return ()


def warm_up_roles(parts: AgentParts, task: Task, passages: Sequence[Passage]) -> None:
    """Plan, extract and answer once, so that loading these roles does not count in the seconds of a question.

    Chat models are not called, because the limits here allow no call. An error is ignored here, because it is
    reported when a question is asked.

    Args:
        parts: The roles.
        task: The task, whose first question is used.
        passages: The passages to read; without any, nothing is done.
    """
    if not passages:
        return
    question = task.questions[0].question
    nothing_known = QuestionGraph()
    first: list[tuple[Any, str, tuple[Any, ...]]] = [
        (parts.planner, "plan", (question, nothing_known, ())),
        (parts.extractor, "extract", (passages, question)),
        (parts.answerer, "answer", (question, nothing_known, passages, ())),
    ]
    # a limit of 1 admits no call here: it is reserved for the answerer of a real run
    no_calls = Limits(max_llm_calls=1)
    for role, method, arguments in first:
        if not hasattr(role, method):
            continue
        with metered(Ledger(limits=no_calls)), suppress(Exception):
            call(role, method, *arguments)


def search_answerer(task: Task, settings: Settings) -> AnswerQuestion:
    """Return an async function that searches for a question with the retriever of `settings`, and does not answer."""
    retriever = search_from_settings(settings, task.index)
    warm_up(retriever, task)
    return retriever_answerer(retriever, settings.k)


def retriever_answerer(retriever: Retriever, k: int) -> AnswerQuestion:
    """Return an async function that searches for `k` passages with `retriever`, and does not answer."""

    async def answer(question: Question) -> Mapping[str, Any]:
        ledger = Ledger(role="retriever")
        with metered(ledger):
            passages = await _search(retriever, question, k)
        return {
            **NO_ANSWER,
            "passages": _by_id(passages),
            "failures": [note.to_dict() for note in ledger.notes],
            "steps": [{}],
            "stop_reason": "retrieval_only",
            "searched": question.question,
        }

    return answer


REMOTE_MAKERS: Mapping[str, MakeAnswerer] = {
    "settings": settings_answerer,
    "search": search_answerer,
}
"""Functions that make an agent, which worker processes call by the name that is sent to them."""


@dataclass(frozen=True, slots=True)
class EvalAgent:
    """Holds an agent under evaluation, and its description for the manifests of its runs."""

    name: str
    """Its name in reports."""
    settings: Settings
    make: MakeAnswerer = settings_answerer
    """Makes the function that answers, from the task and the settings, which include the run's rate limits and
    cache."""
    graph: str | None = None
    """The name of the loop in the manifest, in place of the one in `settings`."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """The models or rules of roles that differ from those of `settings`."""
    only_roles: Mapping[str, str] | None = None
    """If given, all roles of the agent; `settings` and `roles` are ignored."""
    limits: Limits | None = None
    """The limits in the manifest, in place of those in `settings`."""
    variant: Mapping[str, Any] = field(default_factory=dict)
    """What a study changed."""
    seed: int = 0
    """The seed of random choices."""
    traces: bool = True
    """Whether results hold their traces."""

    @classmethod
    def of(
        cls,
        name: str,
        answer: AnswerQuestion,
        *,
        roles: Mapping[str, str] | None = None,
        **described: Any,
    ) -> Self:
        """Return an agent that answers with the async function `answer`, from a question to an output.

        Args:
            name: the name of the agent in reports.
            answer: the function.
            roles: the name of the model or rule of each role, for the manifest.
            described: values for the other fields of EvalAgent.
        """
        return cls(
            name,
            Settings(),
            lambda task, settings: answer,
            **{"graph": "none", "only_roles": roles or {}, **described},
        )

    @property
    def searches_only(self) -> bool:
        """Tell whether the agent only searches and does not answer."""
        return self.make is search_answerer


def search_agent(name: str, settings: Settings, **described: Any) -> EvalAgent:
    """Return an agent that searches with the retriever of `settings` and does not answer.

    Use it with `Task.for_search`, which leaves out the metrics of answers. `described` has values for the other fields
    of EvalAgent.
    """
    return EvalAgent(name, settings, search_answerer, graph="none", **described)


_ANSWERS: Mapping[str, Callable[[Sequence[Passage]], str]] = {
    "yes": lambda passages: "yes",
    "no": lambda passages: "no",
    "top-title": lambda passages: passages[0].title if passages else "",
}
BASELINES = tuple(_ANSWERS)


def baseline_agent(
    name: str, settings: Settings, baseline: str, **described: Any
) -> EvalAgent:
    """Return an agent that searches once and answers "yes", "no", or the title of the best passage ("top-title").

    `described` has other fields of EvalAgent. Raises UnknownName for an unknown baseline.
    """
    if baseline not in _ANSWERS:
        raise UnknownName("baseline", baseline, BASELINES)
    text_of = _ANSWERS[baseline]

    def make(task: Task, settings: Settings) -> AnswerQuestion:
        retriever = search_from_settings(settings, task.index)
        warm_up(retriever, task)

        async def answer(question: Question) -> Mapping[str, Any]:
            passages = await _search(retriever, question, settings.k)
            return {
                **NO_ANSWER,
                "answer": text_of(passages),
                "passages": _by_id(passages),
                "steps": [{}],
                "stop_reason": "single_shot",
            }

        return answer

    roles = {"planner": "none", "extractor": "none", "answerer": f"always {baseline}"}
    return EvalAgent(name, settings, make, graph="none", roles=roles, **described)


def graph_answerer(
    agent: Agent, inputs: Callable[[Question], Inputs] | None = None
) -> AnswerQuestion:
    """Return an async function that asks a compiled agent.

    It raises ModelRefused if a model refuses every call. This ends the run, because other questions would fail
    too.

    Args:
        agent: The agent.
        inputs: Makes the agent's input from a question; by default only the question itself.
    """

    async def answer(question: Question) -> Mapping[str, Any]:
        asked = question.inputs
        if inputs:
            asked = inputs(question)
        output = await agent.ainvoke(asked)
        if output["stop_reason"] == "model_refused":
            last = output["failures"][-1]
            raise ModelRefused(last["message"])
        return output

    return answer


def agent_inputs(task: Task, graph: str, question: Question) -> Inputs:
    """Return the input of an agent: the question, and the passages that the benchmark gives with it.

    `graph` is the name of the agent's loop. If the loop does not accept static passages, they are given for the
    first hop.
    """
    inputs = task.benchmark.inputs(question)
    if "static_passages" in inputs and not graph_spec(graph).static:
        inputs["seed_passages"] = inputs.pop("static_passages")
    return cast("Inputs", inputs)


async def _search(retriever: Retriever, question: Question, k: int) -> list[Passage]:
    hits = await acall(retriever, "retrieve", question.question, k)
    return [hit.passage for hit in hits]


def _by_id(passages: Sequence[Passage]) -> dict[str, Any]:
    return {passage.id: passage.to_dict() for passage in passages}

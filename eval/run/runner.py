"""Asks a question set, many questions at a time, and has each result on disk before it counts.

    folder = RunFolder.begin("runs/x", manifest)
    evaluate(EvaluatedSystem(agent_asker(agent), score), questions, folder, concurrency=32)

A question that fails is a result with an error. An interrupted or killed run is resumed by the same call: questions
with a line in the folder are not asked again, and with `folder.replies_path` as the models' reply cache, neither is any
call of the others whose reply had arrived.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ras_agent.calling import acall, raise_if_cancelled
from ras_agent.errors import ModelRefused, RunError
from ras_agent.eval.question import Question
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.own_graphs import asking
from ras_agent.eval.run.result import Result, error_dict, failed_result, result_of
from ras_agent.protocols import Retriever
from ras_agent.records import JSON
from ras_agent.tools.index.text_files import not_unicode
from ras_agent.tools.spread.pool import Do, Pool, do_all
from ras_agent.trace import Trace

if TYPE_CHECKING:
    from ras_agent.graphs.agent import Agent
    from ras_agent.graphs.state import Inputs

AskQuestion = Callable[[Question], Awaitable[Mapping[str, Any]]]
"""From a question to an agent's output, as ras_agent.graphs.state.Outputs has it."""
ScoreOutput = Callable[[Question, Mapping[str, Any]], Mapping[str, float]]
"""From a question and an agent's output to metric -> 0..1. A failed question's output is `NOTHING`."""

NOTHING: Mapping[str, Any] = {"answer": "", "abstained": False, "passages": {}, "steps": [], "stop_reason": "error"}


@dataclass(frozen=True, slots=True)
class EvaluatedSystem:
    """Holds what is evaluated and how; a Pool that asks in this process.

    traces: whether results hold their traces, which `mode` and `roles` head.
    """

    ask: AskQuestion
    score: ScoreOutput
    mode: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    traces: bool = True

    @asynccontextmanager
    async def opened(self, concurrency: int) -> AsyncIterator[Do]:
        """Ask in this process, on this event loop."""
        yield partial(ask_one, self)


def evaluate(
    pool: Pool,
    questions: Sequence[Question],
    folder: RunFolder,
    *,
    concurrency: int = 32,
    retry_errors: bool = False,
    on_end: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Ask what the folder does not hold yet; all results, in the order of `questions`.

    concurrency: how many questions are under way at once. retry_errors: ask again what ended in an error. on_end: told
    each new result once it is on disk.
    KeyboardInterrupt leaves a run that can be resumed; so does ModelRefused, raised where a model cannot be asked at
    all. Raises RunError if another process writes to the folder, or for two questions of one id.
    """
    _check_ids(questions)
    with folder.writing():
        if retry_errors:
            folder.forget({result.id for result in folder.results() if result.error})
        todo = remaining(questions, folder)
        try:
            asyncio.run(run_questions(pool, todo, folder, concurrency=concurrency, on_end=on_end))
        except ModelRefused as error:
            left = len(remaining(questions, folder))
            done = f"{len(questions) - left:,} of {len(questions):,} questions are done and stored"
            raise ModelRefused(f"{error}; {done}, and the same command goes on from there") from error
        ended = {result.id: result for result in folder.results()}
    return [ended[question.id] for question in questions]


def remaining(questions: Iterable[Question], folder: RunFolder) -> list[Question]:
    """Return the questions without a result, in order."""
    ended = {result.id for result in folder.results()}
    return [question for question in questions if question.id not in ended]


async def run_questions(
    pool: Pool,
    questions: Iterable[Question],
    folder: RunFolder,
    *,
    concurrency: int,
    on_end: Callable[[Result], None] | None = None,
) -> None:
    """Ask all `questions`, at most `concurrency` at once, and append each result to the folder as it ends."""

    async def store(result: Result) -> None:
        await asyncio.to_thread(folder.append, result)  # only this question waits for the disk
        if on_end:
            on_end(result)

    await do_all(pool, questions, concurrency=concurrency, on_end=store)


async def ask_one(system: EvaluatedSystem, question: Question) -> Result:
    """Ask and score one question. What it raises becomes the result's error; only a ModelRefused is raised on."""
    began, out = time.perf_counter(), NOTHING
    try:
        with asking(question):
            out = await system.ask(question)
        raise_if_cancelled()
        seconds = time.perf_counter() - began
        result = result_of(question, out, seconds=seconds, trace=_trace(system, out))
    except ModelRefused:  # so would every other question
        raise
    except Exception as error:
        result = failed_result(question, error, seconds=time.perf_counter() - began)
    try:
        return replace(result, scores=dict(system.score(question, out)))
    except Exception as error:  # a user's own metric must not cost the answers of the others
        return replace(result, error=result.error or error_dict(error))


def agent_asker(agent: Agent, inputs: Callable[[Question], Inputs] | None = None) -> AskQuestion:
    """Asks a compiled agent. `inputs`: what it is given for a question; the question alone unless said."""

    async def ask(question: Question) -> Mapping[str, Any]:
        out = await agent.ainvoke(inputs(question) if inputs else {"question": question.question})
        if out["stop_reason"] == "model_refused":
            raise ModelRefused(out["failures"][-1]["message"])
        return out

    return ask


def retrieval_asker(retriever: Retriever, k: int) -> AskQuestion:
    """Searches for the question itself, and answers nothing."""

    async def ask(question: Question) -> Mapping[str, Any]:
        hits = await acall(retriever, "retrieve", question.question, k)
        passages = {hit.passage.id: hit.passage.to_dict() for hit in hits}
        return {**NOTHING, "passages": passages, "steps": [{}], "stop_reason": "retrieval_only"}

    return ask


def _check_ids(questions: Iterable[Question]) -> None:
    for name, count in Counter(question.id for question in questions).items():
        if count > 1:
            raise RunError(f"{count} questions have the id {name!r}; results are kept by id, so give each its own")
        if reason := not_unicode(name):
            raise RunError(f"the id {name!r} {reason}; results are kept by id, so give the question another")


def _trace(system: EvaluatedSystem, out: Mapping[str, Any]) -> JSON | None:
    """Return the trace of a loop; a bare search has none."""
    if not system.traces or "question" not in out:
        return None
    return Trace.from_state(out, system.mode, system.roles).to_dict()

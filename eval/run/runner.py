"""Asks the questions of a benchmark, many at a time, and writes each result to disk as soon as it exists.

    folder = RunFolder.begin("runs/x", manifest)
    evaluate(Here(question_work(graph_answerer(agent), metric_scorer(["em"]))), questions, folder, concurrency=32)

A question that fails gives a result with an error. The same call resumes an interrupted or killed run:
questions with a line in the folder are not asked again. If the models' replies are cached in
`folder.replies_path`, the other questions also reuse the replies that they already got.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ras_agent.contracts.errors import ModelRefused, RunError
from ras_agent.contracts.records import JSON
from ras_agent.eval.metrics.cited_graph import apart
from ras_agent.eval.metrics.registry import Outcome, score
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import NO_ANSWER, AnswerQuestion
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.own_graphs import asking
from ras_agent.eval.run.result import Result, error_dict, failed_result, result_of
from ras_agent.running.calling import measured_queueing, raise_if_cancelled, run_whole
from ras_agent.running.trace import Trace
from ras_agent.tools.index.text_files import not_unicode
from ras_agent.tools.workers.pool import Pool, Work, run_all

# between two collections of the youngest objects; Python's default is 700
_ALLOCATIONS = 20_000

Scorer = Callable[[Question, Mapping[str, Any]], Mapping[str, float]]
"""A function from a question and an agent's output to scores in 0..1 by metric. The output of a failed question
is `NO_ANSWER`."""


def metric_scorer(metrics: Sequence[str], *, cites: bool = False) -> Scorer:
    """Return a function that scores an output by registered metrics.

    Args:
        metrics: The names of the metrics.
        cites: Whether the answers were asked to list the nodes and edges behind them. If so, the answer and the
            list are scored separately.
    """

    def scores(question: Question, output: Mapping[str, Any]) -> dict[str, float]:
        outcome = Outcome.from_output(output)
        return score(question, apart(outcome) if cites else outcome, metrics)

    return scores


def question_work(
    answer: AnswerQuestion,
    scorer: Scorer,
    *,
    mode: str = "",
    roles: Mapping[str, str] | None = None,
    traces: bool = True,
) -> Work:
    """Return a function that turns a Question into its Result, for a pool in this process or in others.

    An exception while answering becomes the error of the result; only ModelRefused is raised.

    Args:
        answer: Answers a question.
        scorer: Scores the answer.
        mode: The name of the loop, for traces.
        roles: The component in each role, for traces.
        traces: Whether results hold their traces.
    """

    async def work(question: Question) -> Result:
        output = NO_ANSWER
        failed: Exception | None = None
        began = time.perf_counter()
        with measured_queueing() as queueing:
            try:
                with asking(question):
                    output = await answer(question)
                raise_if_cancelled()
            except ModelRefused:  # every other question would fail too
                raise
            except Exception as error:
                failed = error
        passed = time.perf_counter() - began
        seconds = max(0.0, passed - queueing.seconds)
        try:
            if failed:
                raise failed
            trace = None
            if traces:
                trace = _trace_of(output, mode, roles or {})
            result = result_of(question, output, seconds=seconds, trace=trace)
        except Exception as error:
            result = failed_result(question, error, seconds=seconds)
        result = replace(result, queued=queueing.seconds)
        if result.error:
            # the answer of a fallback does not count for the system
            lacking = {"answer": "", "abstained": False, "citations": ()}
            output = {**output, **lacking}
        try:
            return replace(result, scores=dict(scorer(question, output)))
        # an error in a user's metric must not lose the other answers
        except Exception as error:
            return replace(result, error=result.error or error_dict(error))

    return work


def _trace_of(
    output: Mapping[str, Any], mode: str, roles: Mapping[str, str]
) -> JSON | None:
    """Return the trace of an output, or of a search's passages; None if the output has no question."""
    if "question" in output:
        return Trace.from_state(output, mode, roles).to_dict()
    if "searched" in output:
        found = {"passages": output["passages"], "stop_reason": output["stop_reason"]}
        return Trace.from_state(
            {"question": output["searched"], **found}, mode, roles
        ).to_dict()
    return None


def evaluate(
    pool: Pool,
    questions: Sequence[Question],
    folder: RunFolder,
    *,
    concurrency: int = 32,
    retry_errors: bool = False,
    on_end: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Ask the questions that have no result in the folder, and return all results, in the order of `questions`.

    After KeyboardInterrupt or ModelRefused the run can be resumed.

    Args:
        pool: Asks the questions.
        questions: All questions of the run.
        folder: The folder of the run.
        concurrency: The maximum number of questions that are asked at the same time.
        retry_errors: Whether questions that ended in an error are asked again.
        on_end: Is called with each new result once it is on disk.

    Raises:
        ModelRefused: If a model refuses every call.
        RunError: If another process writes to the folder, or two questions have the same id.
    """
    _check_ids(questions)
    with folder.writing():
        if retry_errors:
            folder.forget({result.id for result in folder.results() if result.error})
        todo = remaining(questions, folder)
        try:
            with _rare_collections():
                run_whole(
                    run_questions(
                        pool, todo, folder, concurrency=concurrency, on_end=on_end
                    )
                )
        except ModelRefused as error:
            count = len(remaining(questions, folder))
            message = f"{len(questions) - count:,} of {len(questions):,} questions are done and stored"
            raise ModelRefused(
                f"{error}; {message}, and the same command continues the run"
            ) from error
        ended = {result.id: result for result in folder.results()}
    return [ended[question.id] for question in questions]


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect cyclic garbage less often inside the block, and only among objects created there."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def remaining(questions: Iterable[Question], folder: RunFolder) -> list[Question]:
    """Return the questions without a result in the folder, in order."""
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
    """Ask all `questions`, at most `concurrency` at the same time, and append each result to the folder when it
    exists.
    """

    async def store(result: Result) -> None:
        timed = replace(result, at_once=concurrency)
        # in a thread: other questions do not wait for the disk
        await asyncio.to_thread(folder.append, timed)
        if on_end:
            on_end(timed)

    await run_all(pool, questions, concurrency=concurrency, on_end=store)


def _check_ids(questions: Iterable[Question]) -> None:
    for name, count in Counter(question.id for question in questions).items():
        if count > 1:
            raise RunError(
                f"{count} questions have the id {name!r}, but results are kept by id: give each question its own"
            )
        if reason := not_unicode(name):
            raise RunError(f"the id {name!r} {reason}: give the question another id")

"""Measures the questions per second of an evaluation whose models reply after 0.1 s, compared with a sequential
loop.

    python -m ras_agent.eval.bench --parts throughput

Every role calls a loopback server (ras_agent.eval.bench.loopback_model) that replies 0.1 s later, on a separate
core if there are two. The sequential loop is `agent.invoke(question)` in a for loop, which writes nothing;
reference implementations of such agents are evaluated like this. The other runs are evaluations as by
`ras-agent eval`, with several questions in flight, and with results, traces and replies on disk. Their clocks
start after as many warm-up questions as are in flight. Each round measures all of them.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ras_agent.contracts.records import Passage
from ras_agent.eval.bench.loopback_model import Loopback, serving
from ras_agent.eval.bench.rows import BenchRow
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import graph_answerer
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.runner import evaluate, metric_scorer, question_work
from ras_agent.graphs.ras import create_ras_agent
from ras_agent.running.budget import Limits
from ras_agent.tools.answer.llm import LLMAnswerer
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.chat.limits import Rates
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.tools.structure.llm import LLMExtractor
from ras_agent.tools.workers.pool import Here, Pool, Work

_WORDS = 400
_LETTERS = str.maketrans("0123456789", "bcdfghjklm")
_CALLS_A_QUESTION = 2
_AT_LEAST = {32: 20.0, 128: 25.0}


def measure(
    rounds: int,
    ways: Iterable[int],
    *,
    latency: float,
    questions: int,
    sequential: int,
) -> dict[int, list[float]]:
    """Return the questions answered per second in each round, by the number of questions in flight; 0 stands for
    the sequential loop.

    Args:
        rounds: The number of rounds.
        ways: The numbers of questions in flight.
        latency: The seconds after which the model server replies.
        questions: The number of questions of an evaluation.
        sequential: The number of questions of the sequential loop.
    """
    index = PassageIndex.in_memory(_passages())
    rates: dict[int, list[float]] = {}
    with (
        _cores() as core,
        serving(latency, core=core) as model,
        tempfile.TemporaryDirectory() as folder,
    ):
        number = 0  # a new question each time, so that no cached reply answers it
        for place in range(rounds):
            for concurrency in (0, *ways):
                if concurrency <= 1:
                    count = sequential
                else:
                    count = questions
                batch = []
                for offset in range(count + max(1, concurrency)):
                    batch.append(_question(number + offset))
                number += len(batch)
                out = Path(folder) / f"{place}-{concurrency}"
                seconds = _timed(
                    model, index, concurrency, batch[count:], batch[:count], out
                )
                rates.setdefault(concurrency, []).append(count / seconds)
    return rates


def bench_rows(
    rounds: int = 3, at_least: Mapping[int, float] = _AT_LEAST
) -> Iterator[BenchRow]:
    """Yield rows that compare evaluations with several questions in flight with the sequential loop.

    Args:
        at_least: the bar for each number of questions in flight.
    """
    os.environ["NO_PROXY"] = "127.0.0.1"
    rates = measure(rounds, at_least, latency=0.1, questions=128, sequential=6)
    loop = median(rates[0])
    for count, bar in at_least.items():
        name = f"evaluation, {count} in flight"
        rate = median(rates[count])
        yield BenchRow(name, "questions/s", rate, "sequential loop", loop, at_least=bar)


@contextmanager
def _cores() -> Iterator[int | None]:
    """Bind this process to one core inside the block, and yield the number of another; None if there is only one."""
    cores = []
    if hasattr(os, "sched_getaffinity"):
        cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        yield None
        return
    os.sched_setaffinity(0, cores[:1])
    try:
        yield cores[1]
    finally:
        os.sched_setaffinity(0, cores)


@dataclass
class _Warm:
    """Wraps a pool so that it first answers the questions `first`. Then processes and clients are ready, and
    the clock starts.
    """

    pool: Pool
    first: Sequence[Question]
    began: float = 0.0

    @asynccontextmanager
    async def opened(self, concurrency: int) -> AsyncIterator[Work]:
        async with self.pool.opened(concurrency) as ask:
            await asyncio.gather(*map(ask, self.first))
            self.began = time.perf_counter()
            yield ask


def _timed(
    model: Loopback,
    index: PassageIndex,
    concurrency: int,
    first: Sequence[Question],
    questions: Sequence[Question],
    out: Path,
) -> float:
    """Ask `first` untimed, then `questions`. Return the seconds for `questions`."""
    if not concurrency:
        agent = _agent(model.root, index, ChatSettings())
        agent.invoke({"question": first[0].question})
        began = time.perf_counter()
        for question in questions:
            agent.invoke({"question": question.question})
    else:
        warm = _Warm(_pool(model, concurrency, out), first)
        evaluate(warm, questions, RunFolder(out), concurrency=concurrency)
        began = warm.began
    return time.perf_counter() - began


def _pool(model: Loopback, concurrency: int, out: Path) -> Pool:
    folder = RunFolder.begin(out, {"name": out.name})
    rates = Rates(in_flight=_CALLS_A_QUESTION * concurrency)
    settings = ChatSettings(cache=str(folder.replies_path.resolve()), rates=rates)
    agent = _agent(model.root, PassageIndex.in_memory(_passages()), settings)
    scorer = metric_scorer(("f1", "em", "recall@5"))
    return Here(question_work(graph_answerer(agent), scorer, mode="ras"))


def _agent(root: str, index: PassageIndex, settings: ChatSettings) -> Any:
    return create_ras_agent(
        planner=LLMPlanner(f"vllm:{root}/v1#planner", settings=settings),
        extractor=LLMExtractor(f"vllm:{root}/v1#extractor", settings=settings),
        answerer=LLMAnswerer(f"vllm:{root}/v1#answerer", settings=settings),
        index=index,
        limits=Limits(max_hops=3),
    )


def _passages(count: int = 2000) -> list[Passage]:
    """Return passages of 60 made-up words. Every call returns the same."""
    draw = random.Random(0)
    passages = []
    for number in range(count):
        text = " ".join(_word(draw.randrange(_WORDS)) for _ in range(60))
        passages.append(Passage(f"p{number}", f"{text}.", f"Title {number}"))
    return passages


def _question(number: int) -> Question:
    draw = random.Random(f"question {number}")
    words = " ".join(_word(draw.randrange(_WORDS)) for _ in range(6))
    return Question(
        f"q{number}", f"What of {words}, number {number}?", ("x",), (f"p{number % 7}",)
    )


def _word(number: int) -> str:
    """Return a word of letters alone: one with digits would be read as a word, a figure and a word."""
    return f"w{number:03d}x".translate(_LETTERS)

"""Measures questions per second of an evaluation with models that answer after 0.1 s, against a sequential loop.

    python -m ras_agent.eval.bench.throughput --json throughput.jsonl

Every role asks a loopback server (ras_agent.eval.bench.loopback_model) that answers 0.1 s later. It works on the same
cores, or with --apart on a core of its own, as this process then does too. The sequential loop is
`agent.invoke(question)` in a for loop, as reference implementations of such agents are evaluated; it writes nothing.
The others are evaluations as `ras-agent eval` makes them, results, traces and stored replies on disk, with so many
questions in flight, in this process or shared by two; their clocks start when they have asked a first question for
each that is under way. Each round measures every one of them, and the ratios are to
the sequential loop of the same round. `cpu` is processor time of this process for each question: one divided by it is
the throughput that no concurrency exceeds; with two processes it is the time for handing out and writing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ras_agent.budget import Limits
from ras_agent.errors import SettingsError
from ras_agent.eval.bench.loopback_model import Loopback, serving
from ras_agent.eval.bench.rows import BenchRow
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import graph_answerer
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.runner import evaluate, metric_scorer, question_work
from ras_agent.graphs.ras import create_ras_agent
from ras_agent.program import run_program
from ras_agent.records import Passage
from ras_agent.tools.answer.llm import LLMAnswerer
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.chat.limits import Rates
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.tools.structure.llm import LLMExtractor
from ras_agent.tools.workers.pool import Here, Pool, Work, WorkSpec
from ras_agent.tools.workers.processes import Processes

_WORDS = 400
_CALLS_A_QUESTION = 2
_AT_LEAST = {32: 20.0, 128: 25.0}


@dataclass(frozen=True, slots=True)
class Throughput:
    """One measurement.

    concurrency: 0 for the sequential loop. processes: 0 for this one. cpu: processor seconds per question. ratio: to
    the sequential loop.
    """

    round: int
    concurrency: int
    processes: int
    questions: int
    seconds: float
    a_second: float
    calls: int
    cpu: float
    ratio: float


def measure(
    rounds: int,
    ways: Sequence[tuple[int, int]],
    *,
    latency: float,
    questions: int,
    sequential: int,
    apart: bool = False,
) -> Iterator[Throughput]:
    """Measure the sequential loop over `sequential` questions, then each (concurrency, processes), round by round.

    apart: whether this process has the first core that it may run on,
    and the model the second.
    """
    index = PassageIndex.in_memory(_passages())
    with (
        _cores(apart) as core,
        serving(latency, core=core) as model,
        tempfile.TemporaryDirectory() as folder,
    ):
        number = 0  # no question twice, so that no earlier measurement's stored reply answers it
        for place in range(rounds):
            base = 0.0
            for concurrency, processes in ((0, 0), *ways):
                if concurrency <= 1:
                    count = sequential
                else:
                    count = questions
                batch = []
                for offset in range(count + max(1, concurrency)):
                    batch.append(_question(number + offset))
                number += len(batch)
                out = Path(folder) / f"{place}-{concurrency}-{processes}"
                timing = _timed(
                    model,
                    index,
                    (concurrency, processes),
                    batch[count:],
                    batch[:count],
                    out,
                )
                base = base or timing["a_second"]
                ratio = timing["a_second"] / base
                yield Throughput(
                    place, concurrency, processes, count, **timing, ratio=ratio
                )


def bench_rows(
    rounds: int = 3, at_least: Mapping[int, float] = _AT_LEAST
) -> Iterator[BenchRow]:
    """Measure evaluations with so many questions in flight against the sequential loop, the model on its own core.

    at_least: the bar of each number in flight.
    """
    os.environ["NO_PROXY"] = "127.0.0.1"
    apart = hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1
    ways = [(count, 0) for count in at_least]
    rows = list(
        measure(rounds, ways, latency=0.1, questions=128, sequential=6, apart=apart)
    )
    rates = {
        count: median(row.a_second for row in rows if row.concurrency == count)
        for count in (0, *at_least)
    }
    for count, bar in at_least.items():
        name = f"evaluation, {count} in flight"
        yield BenchRow(
            name, "questions/s", rates[count], "sequential loop", rates[0], at_least=bar
        )


@contextmanager
def _cores(apart: bool) -> Iterator[int | None]:
    """Keep this process on one core during the block, and give another one's number; None if all share all cores."""
    if not apart:
        yield None
        return
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SettingsError(
            f"--apart needs two cores, and this process may run on {len(cores)}; leave it out"
        )
    os.sched_setaffinity(0, cores[:1])
    try:
        yield cores[1]
    finally:
        os.sched_setaffinity(0, cores)


@dataclass
class _Warm:
    """Pool that is asked `first` before the clock starts, so that processes are up and clients connected."""

    pool: Pool
    first: Sequence[Question]
    began: float = 0.0
    processor_seconds: float = 0.0

    @asynccontextmanager
    async def opened(self, concurrency: int) -> AsyncIterator[Work]:
        async with self.pool.opened(concurrency) as ask:
            await asyncio.gather(*map(ask, self.first))
            self.began = time.perf_counter()
            self.processor_seconds = time.process_time()
            yield ask


def _timed(
    model: Loopback,
    index: PassageIndex,
    way: tuple[int, int],
    first: Sequence[Question],
    questions: Sequence[Question],
    out: Path,
) -> dict[str, Any]:
    """Ask `first` untimed, then `questions`; `calls` are of both."""
    concurrency, processes = way
    called = model.counts()["answered"]
    if not concurrency:
        agent = _agent(model.root, index, ChatSettings())
        agent.invoke({"question": first[0].question})
        began = time.perf_counter()
        processor_seconds = time.process_time()
        for question in questions:
            agent.invoke({"question": question.question})
    else:
        warm = _Warm(_pool(model, concurrency, processes, out), first)
        evaluate(warm, questions, RunFolder(out), concurrency=concurrency)
        began = warm.began
        processor_seconds = warm.processor_seconds
    seconds = time.perf_counter() - began
    cpu = time.process_time() - processor_seconds
    calls = model.counts()["answered"] - called
    return {
        "seconds": seconds,
        "a_second": len(questions) / seconds,
        "calls": calls,
        "cpu": cpu / len(questions),
    }


def _pool(model: Loopback, concurrency: int, processes: int, out: Path) -> Pool:
    folder = RunFolder.begin(out, {"name": out.name})
    in_flight = max(1, _CALLS_A_QUESTION * concurrency // max(1, processes))
    asking: dict[str, Any] = {
        "root": model.root,
        "replies": str(folder.replies_path.resolve()),
        "in_flight": in_flight,
    }
    spec = WorkSpec("ras_agent.eval.bench.throughput:asks", asking)
    if processes:
        return Processes(spec, processes)
    return Here(asks(**asking))


def asks(root: str, replies: str, in_flight: int) -> Work:
    """Return the function that answers one question, in whichever process it is called."""
    settings = ChatSettings(cache=replies, rates=Rates(in_flight=in_flight))
    agent = _agent(root, PassageIndex.in_memory(_passages()), settings)
    return question_work(
        graph_answerer(agent), metric_scorer(("f1", "em", "recall@5")), mode="ras"
    )


def _agent(root: str, index: PassageIndex, settings: ChatSettings) -> Any:
    return create_ras_agent(
        planner=LLMPlanner(f"vllm:{root}/v1#planner", settings=settings),
        extractor=LLMExtractor(f"vllm:{root}/v1#extractor", settings=settings),
        answerer=LLMAnswerer(f"vllm:{root}/v1#answerer", settings=settings),
        index=index,
        limits=Limits(max_hops=3),
    )


def _passages(count: int = 2000) -> list[Passage]:
    """Make passages of 60 made-up words, the same every time."""
    draw = random.Random(0)
    texts = (
        " ".join(_word(draw.randrange(_WORDS)) for _ in range(60)) for _ in range(count)
    )
    passages = []
    for number, text in enumerate(texts):
        passages.append(Passage(f"p{number}", f"{text}.", f"Title {number}"))
    return passages


def _question(number: int) -> Question:
    draw = random.Random(f"question {number}")
    words = " ".join(_word(draw.randrange(_WORDS)) for _ in range(6))
    return Question(
        f"q{number}", f"What of {words}, number {number}?", ("x",), (f"p{number % 7}",)
    )


def _word(number: int) -> str:
    return f"w{number:03d}x"


def report(measures: Sequence[Throughput]) -> str:
    """Format a Markdown table: medians over the rounds, and the ratio with its minimum and maximum."""
    lines = [
        "| | questions/s | ratio | least to greatest | cpu ms a question |",
        "|---|---|---|---|---|",
    ]
    by_way: dict[tuple[int, int], list[Throughput]] = {}
    for measure in measures:
        way = (measure.concurrency, measure.processes)
        by_way.setdefault(way, []).append(measure)
    for (concurrency, processes), rows in by_way.items():
        ratios = [row.ratio for row in rows]
        name = f"concurrency {concurrency}{f', {processes} processes' if processes else ''}"
        if not concurrency:
            name = "sequential loop"
        spread = f"{median(ratios):.1f} | {min(ratios):.1f} to {max(ratios):.1f}"
        rate = median(row.a_second for row in rows)
        cpu = 1000 * median(row.cpu for row in rows)
        lines.append(f"| {name} | {rate:.2f} | {spread} | {cpu:.1f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, and write JSON Lines; see the module's docstring."""
    parser = argparse.ArgumentParser(
        prog="python -m ras_agent.eval.bench.throughput",
        description=(__doc__ or "").partition("\n")[0],
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--ways",
        default="1,8,32,32x2",
        help="questions under way, x processes that share them",
    )
    parser.add_argument(
        "--latency", type=float, default=0.1, help="seconds from request to reply"
    )
    parser.add_argument(
        "--questions",
        type=int,
        default=128,
        help="a measurement of more than one under way",
    )
    parser.add_argument(
        "--sequential",
        type=int,
        default=8,
        help="questions of a measurement of one at a time",
    )
    parser.add_argument("--json", type=Path, help="one JSON object a measurement")
    parser.add_argument(
        "--apart",
        action="store_true",
        help="this process on one core, the model on another",
    )
    options = parser.parse_args(arguments)
    os.environ["NO_PROXY"] = "127.0.0.1"
    ways = []
    for way in options.ways.split(","):
        ways.append((int(way.partition("x")[0]), int(way.partition("x")[2] or 0)))
    measures = []
    for row in measure(
        options.rounds,
        ways,
        latency=options.latency,
        questions=options.questions,
        sequential=options.sequential,
        apart=options.apart,
    ):
        measures.append(row)
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(
                    json.dumps({"benchmark": "throughput", **asdict(row)}) + "\n"
                )
    print(report(measures))


if __name__ == "__main__":
    run_program(main)

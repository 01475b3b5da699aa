"""Questions a second of an evaluation whose models are away 0.1 s, beside a sequential loop in the same run.

    python -m ras_agent.eval.bench_throughput --json throughput.jsonl

Every role asks a loopback server (ras_agent.eval.loopback_model) that answers 0.1 s later, and that works on the same
cores. The sequential loop is `agent.invoke(question)` in a for loop, which is how reference implementations of such
agents are evaluated; it writes nothing. The others are whole evaluations as `ras-agent eval` makes them, results,
traces and kept replies on disk, with so many questions under way. Each round measures every one of them; the ratios
are to the sequential loop of the same round. `cpu` is processor time of the evaluating process for each question:
one divided by it is the throughput that no concurrency exceeds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ras_agent.budget import Limits
from ras_agent.eval.loopback_model import Loopback, serving
from ras_agent.eval.outcome import Outcome
from ras_agent.eval.questions import Question
from ras_agent.eval.run_folder import RunFolder
from ras_agent.eval.runner import System, agent_asker, evaluate
from ras_agent.eval.scoring import score
from ras_agent.graphs.ras import create_ras_agent
from ras_agent.records import Passage
from ras_agent.tools.answer.llm import LLMAnswerer
from ras_agent.tools.encode.chat import ChatSettings
from ras_agent.tools.encode.chat_limits import Rates
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.tools.structure.llm import LLMExtractor

__all__ = ["Throughput", "main", "measure"]

_WORDS = 400


@dataclass(frozen=True, slots=True)
class Throughput:
    """One measurement. concurrency 0: the sequential loop. cpu: processor seconds a question. ratio: to that loop."""

    round: int
    concurrency: int
    questions: int
    seconds: float
    a_second: float
    calls: int
    cpu: float
    ratio: float


def measure(
    rounds: int, concurrencies: Sequence[int], *, latency: float, questions: int, sequential: int
) -> Iterator[Throughput]:
    """The sequential loop over `sequential` questions, then each concurrency, round by round."""
    index = PassageIndex.in_memory(_passages(2000))
    with serving(latency) as model, tempfile.TemporaryDirectory() as folder:
        number = 0  # no question twice: nothing is answered from what an earlier measurement kept
        for place in range(rounds):
            base = 0.0
            for concurrency in (0, *concurrencies):
                count = sequential if concurrency <= 1 else questions
                asked = [_question(number + offset) for offset in range(count)]
                number += count
                found = _timed(model, index, asked, concurrency, Path(folder) / f"{place}-{concurrency}")
                base = base or found["a_second"]
                yield Throughput(place, concurrency, count, **found, ratio=found["a_second"] / base)


def _timed(
    model: Loopback, index: PassageIndex, questions: Sequence[Question], concurrency: int, out: Path
) -> dict[str, Any]:
    run = _sequential(model, index) if concurrency == 0 else _evaluation(model, index, concurrency, out)
    called, began, spent = model.counts()["answered"], time.perf_counter(), time.process_time()
    run(questions)
    seconds, cpu = time.perf_counter() - began, time.process_time() - spent
    calls = model.counts()["answered"] - called
    return {"seconds": seconds, "a_second": len(questions) / seconds, "calls": calls, "cpu": cpu / len(questions)}


def _agent(model: Loopback, index: PassageIndex, settings: ChatSettings) -> Any:
    return create_ras_agent(
        planner=LLMPlanner(model.spec("planner"), settings=settings),
        extractor=LLMExtractor(model.spec("extractor"), settings=settings),
        answerer=LLMAnswerer(model.spec("answerer"), settings=settings),
        index=index,
        limits=Limits(max_hops=3),
    )


def _sequential(model: Loopback, index: PassageIndex) -> Callable[[Sequence[Question]], None]:
    agent = _agent(model, index, ChatSettings())

    def run(questions: Sequence[Question]) -> None:
        for question in questions:
            agent.invoke({"question": question.question})

    return run


def _evaluation(
    model: Loopback, index: PassageIndex, concurrency: int, out: Path
) -> Callable[[Sequence[Question]], None]:
    folder = RunFolder.begin(out, {"name": out.name})
    rates = Rates(in_flight=int(os.environ.get("IF", "4")) * concurrency)
    agent = _agent(model, index, ChatSettings(cache=folder.replies_path, rates=rates))

    def scores(question: Question, output: Any) -> dict[str, float]:
        return score(question, Outcome.from_output(output), ("f1", "em", "recall@5"))

    def run(questions: Sequence[Question]) -> None:
        evaluate(System(agent_asker(agent), scores, "ras"), questions, folder, concurrency=concurrency)

    return run


def _passages(count: int) -> list[Passage]:
    """Passages of 60 made-up words, the same every time."""
    draw = random.Random(0)
    texts = (" ".join(_word(draw.randrange(_WORDS)) for _ in range(60)) for _ in range(count))
    return [Passage(f"p{number}", f"{text}.", f"Title {number}") for number, text in enumerate(texts)]


def _question(number: int) -> Question:
    draw = random.Random(f"question {number}")
    words = " ".join(_word(draw.randrange(_WORDS)) for _ in range(6))
    return Question(f"q{number}", f"What of {words}, number {number}?", ("x",), (f"p{number % 7}",))


def _word(number: int) -> str:
    return f"w{number:03d}x"


def report(found: Sequence[Throughput]) -> str:
    """A Markdown table: medians over the rounds, the ratio with its least and greatest."""
    lines = ["| | questions/s | ratio | least to greatest | calls | cpu ms a question |", "|---|---|---|---|---|---|"]
    for concurrency in dict.fromkeys(one.concurrency for one in found):
        rows = [one for one in found if one.concurrency == concurrency]
        ratios = [row.ratio for row in rows]
        name = f"concurrency {concurrency}" if concurrency else "sequential loop"
        spread = f"{median(ratios):.1f} | {min(ratios):.1f} to {max(ratios):.1f}"
        rate, cpu = median(row.a_second for row in rows), 1000 * median(row.cpu for row in rows)
        lines.append(f"| {name} | {rate:.2f} | {spread} | {sum(row.calls for row in rows)} | {cpu:.0f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, and write JSON Lines; see the module's docstring."""
    parser = argparse.ArgumentParser(
        prog="python -m ras_agent.eval.bench_throughput", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", default="1,8,32", help="questions under way, separated by commas")
    parser.add_argument("--latency", type=float, default=0.1, help="seconds from request to reply")
    parser.add_argument("--questions", type=int, default=128, help="a measurement of more than one under way")
    parser.add_argument("--sequential", type=int, default=8, help="questions of a measurement of one at a time")
    parser.add_argument("--json", type=Path, help="one JSON object a measurement")
    options = parser.parse_args(arguments)
    os.environ["NO_PROXY"] = "127.0.0.1"
    concurrencies = [int(number) for number in options.concurrency.split(",")]
    found = []
    for one in measure(
        options.rounds, concurrencies, latency=options.latency, questions=options.questions,
        sequential=options.sequential,
    ):  # fmt: skip
        found.append(one)
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"benchmark": "throughput", **asdict(one)}) + "\n")
    print(report(found))


if __name__ == "__main__":
    main()

"""Measures the processor time of the offline mode while other programs keep the processors busy, and on one
processor.

    python -m ras_agent.eval.bench.neighbours
    python -m ras_agent.eval.bench.neighbours --one-processor

The threads of a small matrix product wait for each other. This wastes processor time if other programs run, or
if a container may use fewer processors than the machine has. Each run is a separate process that answers the
bundled questions and prints its processor seconds. To imitate a container's quota, all its threads are bound to
one processor.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from ras_agent.contracts.errors import SettingsError
from ras_agent.eval.bench.rows import BenchRow, median_row
from ras_agent.eval.benchmarks import benchmark
from ras_agent.graphs.resolve import create_agent
from ras_agent.running.program import run_program
from ras_agent.tools.index.store import PassageIndex

_QUESTIONS = 8
_RUNS = 3
_AT_MOST = 1.3
_IDLE = "the same, idle"
_ONE_PROCESSOR = "--one-processor"
_THREADS = Path("/proc/self/task")


def bench_rows(runs: int = _RUNS) -> Iterator[BenchRow]:
    """Yield rows that compare the processor time on busy processors, and on one processor, with that on an idle
    machine.

    A figure is the median of `runs`; the three situations are measured in turn.
    """
    times: dict[str, list[tuple[float, float]]] = {}
    for _ in range(runs):
        idle = _of_own_process()
        with _busy_programs():
            pair = (_of_own_process(), idle)
        times.setdefault("beside a busy process", []).append(pair)
        if _THREADS.exists():
            pair = (_of_own_process(_ONE_PROCESSOR), idle)
            times.setdefault("on one processor of several", []).append(pair)
    for place, pairs in times.items():
        name = f"offline answers {place}"
        yield median_row(name, "s of processor", _IDLE, pairs, _AT_MOST)


@contextmanager
def _busy_programs() -> Iterator[None]:
    """Keep every processor busy inside the block."""
    command = [sys.executable, "-c", "while True: pass"]
    count = os.cpu_count() or 1
    programs = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def _of_own_process(*options: str) -> float:
    """Answer the bundled questions in a new process with these options, and return its processor seconds."""
    command = [sys.executable, "-m", "ras_agent.eval.bench.neighbours", *options]
    # thread limits set by the caller would hide those that the library sets
    environment = {}
    for name, value in os.environ.items():
        if not name.endswith("_NUM_THREADS"):
            environment[name] = value
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    )
    return float(done.stdout)


def processor_seconds(one_processor: bool) -> float:
    """Return the processor seconds of answering the bundled questions, not counting the loading of the reader."""
    plain = benchmark("jsonl")
    with as_file(files("ras_agent.data") / "sample_passages.jsonl") as path:
        index = PassageIndex.in_memory(plain.corpus(path))
    with as_file(files("ras_agent.data") / "sample_questions.jsonl") as path:
        questions = plain.load(path)[: _QUESTIONS + 1]
    agent = create_agent("ras", index=index, llm="offline")
    agent.invoke({"question": questions[0].question})
    if one_processor:
        _share_one_processor()
    before = time.process_time()
    for one in questions[1:]:
        agent.invoke({"question": one.question})
    return time.process_time() - before


def _share_one_processor() -> None:
    """Bind all threads of this process to one processor."""
    if not _THREADS.exists():
        raise SettingsError(f"{_ONE_PROCESSOR} works only on Linux: leave it out")
    first = min(os.sched_getaffinity(0))
    for thread in _THREADS.iterdir():
        os.sched_setaffinity(int(thread.name), {first})


def main() -> None:
    """Print the processor seconds of answering the bundled questions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        _ONE_PROCESSOR, action="store_true", help="bind all threads to one processor"
    )
    options = parser.parse_args()
    print(f"{processor_seconds(options.one_processor):.3f}")


if __name__ == "__main__":
    run_program(main)

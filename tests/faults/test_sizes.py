"""Attacks by size and by patience: many files, one long line, many questions, many loops, interrupts at any moment."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import subprocess
import sys
import time
from itertools import cycle, islice
from pathlib import Path

import pytest

from ras_agent import Limits, create_ras_agent
from ras_agent.app.sample import sample_passages
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from tests.faults.attack import Attack
from tests.faults.interruptions import run

QUESTIONS = (
    "Which river flows through the city where the inventor of the telephone was born?",
    "Who painted the Night Watch?",
    "Was Alfred Nobel born before Marie Curie?",
    "In what year was the creator of Git born?",
)
MEGABYTES = 1 << 20


def _resident() -> int:
    """Return the bytes of memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf(
        "SC_PAGE_SIZE"
    )


def test_very_many_files(attack: Attack, tmp_path: Path) -> None:
    """100,000 small files are one document each"""
    number = len(attack.times(100_000))
    docs = tmp_path / "docs"
    for name in range(number):
        folder = docs / f"{name // 1000}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.txt").write_text(f"File {name} is small.")
    ended = run(lambda: ingest([docs], tmp_path / "index"))
    attack.expect(not ended.error, ended.error)
    attack.expect(
        len(PassageIndex.open(tmp_path / "index")) == number, "some files are missing"
    )


@pytest.mark.parametrize("suffix", ["txt", "jsonl", "csv"])
def test_one_long_line(attack: Attack, tmp_path: Path, suffix: str) -> None:
    """20 MB on one line take at most 800 MB more"""
    words = "water " * (20 * MEGABYTES // 6)
    text = {
        "txt": words,
        "jsonl": f'{{"id": "a", "text": "{words}"}}',
        "csv": f"id,text\na,{words}\n",
    }[suffix]
    path = tmp_path / f"long.{suffix}"
    path.write_text(text)

    def work() -> None:
        # of the process that was forked
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        ingest([path], tmp_path / "index")
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before
        assert grown < 800 * MEGABYTES, f"{grown // MEGABYTES} MB"

    ended = run(work)
    attack.expect(not ended.error, ended.error)


def test_very_many_questions(attack: Attack) -> None:
    """one agent answers 5,000 questions; memory and open files stay as they are after 200"""
    agent = create_ras_agent(index=sample_passages(), limits=Limits(max_hops=1))
    before = files = 0
    answers: dict[str, str] = {}
    for number, question in enumerate(
        islice(cycle(QUESTIONS), len(attack.times(5000)))
    ):
        answer = agent.invoke({"question": question})["answer"]
        attack.expect(
            answers.setdefault(question, answer) == answer,
            f"question {number}: {answer}",
        )
        if number == 200:
            gc.collect()
            before, files = _resident(), len(os.listdir("/proc/self/fd"))
    gc.collect()
    attack.expect(
        not before or _resident() - before < 40 * MEGABYTES,
        f"{(_resident() - before) // MEGABYTES} MB more",
    )
    attack.expect(
        not files or len(os.listdir("/proc/self/fd")) <= files, "files stay open"
    )


def test_many_event_loops(attack: Attack) -> None:
    """one agent answers in 50 event loops, one after another"""
    agent = create_ras_agent(index=sample_passages())
    expected = agent.invoke({"question": QUESTIONS[0]})["answer"]
    for number in attack.times(50):
        out = asyncio.run(agent.ainvoke({"question": QUESTIONS[0]}))
        attack.expect(out["answer"] == expected, f"loop {number}: {out['answer']}")


def test_interrupts_of_the_command(attack: Attack, tmp_path: Path) -> None:
    """SIGINT to `ras-agent ask` at a random moment: it ends in 5 s, with exit code 130 or its answer, no traceback"""
    program = "from ras_agent.app.cli import main; print('begun', flush=True); main()"
    command = [sys.executable, "-c", program, "ask", "--sample", QUESTIONS[0]]
    for number in attack.times(33):
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(attack.random.uniform(0, 1.2))
        process.send_signal(signal.SIGINT)
        try:
            _, told = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            attack.expect(False, f"interrupt {number}: still running")
            continue
        # an interrupt while Python itself ends is the signal's own end, which shells report as 130 too
        held = (
            process.returncode in (0, 130, -signal.SIGINT) and "Traceback" not in told
        )
        attack.expect(
            held, f"interrupt {number}: exit {process.returncode}: {told[-300:]}"
        )

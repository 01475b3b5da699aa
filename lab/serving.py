"""Measures how long callers of `ras-agent serve` wait when many ask at once, and what the server holds meanwhile.

    python -m lab.serving --json serving.jsonl

The server is a process of its own over the bundled sample; its models are a loopback server
(ras_agent.eval.bench.loopback_model) that answers each call so many seconds later, on the same cores. Callers all ask
at the same moment, each for a stream of events in a thread of its own, and wait for its end. A question takes six or so
calls one after the other. `lost` counts streams that did not end in an answer. `alone` is one caller's wait.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles
from subprocess import PIPE, Popen
from typing import Any
from urllib.parse import urlsplit

from ras_agent.eval.bench.loopback_model import Loopback, serving
from ras_agent.program import run_program

_QUESTION = "Which river flows through the birthplace of inventor number {}?"


@dataclass(frozen=True, slots=True)
class Load:
    """Holds one measurement. p50, p95: seconds until the answer. memory: most megabytes resident. cpu: seconds each."""

    latency: float
    callers: int
    alone: float
    p50: float
    p95: float
    lost: int
    memory: float
    cpu: float
    calls: int


def measure(latencies: Sequence[float], callers: Sequence[int], most_hops: int = 2) -> Iterator[Load]:
    """Measure each latency with each number of callers, every one against a new server."""
    for latency in latencies:
        for count in callers:
            with serving(latency) as model, _server(model, most_hops) as (port, pid):
                (alone,) = asyncio.run(_asked(port, 1, 0))
                before, spent = model.counts()["answered"], _seconds_of_processor(pid)
                waits = asyncio.run(_asked(port, count, 1))
                ended = sorted(wait for wait in waits if wait is not None)
                cuts = quantiles(ended, n=20, method="inclusive") if len(ended) > 1 else ended * 19
                yield Load(
                    latency=latency,
                    callers=count,
                    alone=alone or 0.0,
                    p50=cuts[9],
                    p95=cuts[18],
                    lost=len(waits) - len(ended),
                    memory=_most_memory(pid),
                    cpu=(_seconds_of_processor(pid) - spent) / count,
                    calls=model.counts()["answered"] - before,
                )


@contextmanager
def _server(model: Loopback, most_hops: int) -> Iterator[tuple[int, int]]:
    """Start `ras-agent serve` on a free port; yield the port and the number of the process."""
    roles = [f"--{role}={model.spec(role)}" for role in ("planner", "extractor", "answerer")]
    command = [sys.executable, "-P", "-c", "from ras_agent.app.cli import main; main()"]
    command += ["serve", "--sample", "--port=0", f"--max-hops={most_hops}", *roles]
    with Popen(command, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = urlsplit(process.stdout.readline().split()[-1])
            yield address.port or 0, process.pid
        finally:
            process.terminate()


async def _asked(port: int, count: int, first: int) -> list[float | None]:
    """Ask `count` questions at once; return the seconds of each, None for one that was lost."""
    return list(await asyncio.gather(*(_ask(port, _QUESTION.format(first + number)) for number in range(count))))


async def _ask(port: int, question: str) -> float | None:
    body = json.dumps({"question": question, "stream": True}).encode()
    head = (
        f"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    )
    began = time.perf_counter()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=16 * 1024 * 1024)
        writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        last: dict[str, Any] = {}
        name = ""
        async for line in reader:
            if line.startswith(b"event: "):
                name = line[7:].decode().strip()
            elif line.startswith(b"data: ") and name == "done":
                last = json.loads(line[6:])
        writer.close()
    except (OSError, ValueError):
        return None
    return time.perf_counter() - began if last.get("answer") and not last["failed"] else None


def _most_memory(pid: int) -> float:
    """Return the most megabytes that a process has held; 0 where the system does not say."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii")
    except OSError:
        return 0.0
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


def _seconds_of_processor(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(found: Sequence[Load]) -> str:
    """Format a Markdown table."""
    lines = [
        "| model, s a call | callers at once | alone, s | p50, s | p95, s | lost | most MB | cpu ms a question |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        lines.append(
            f"| {one.latency:g} | {one.callers} | {one.alone:.1f} | {one.p50:.1f} | {one.p95:.1f} | {one.lost} "
            f"| {one.memory:.0f} | {1000 * one.cpu:.0f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, and write JSON Lines; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m lab.serving", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--latencies", default="0.2,2", help="seconds from a model call to its reply")
    parser.add_argument("--callers", default="50,200", help="how many ask at once")
    parser.add_argument("--json", type=Path, help="one JSON object a measurement")
    options = parser.parse_args(arguments)
    os.environ["NO_PROXY"] = "127.0.0.1"
    found = []
    latencies = [float(one) for one in options.latencies.split(",")]
    for one in measure(latencies, [int(count) for count in options.callers.split(",")]):
        found.append(one)
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"benchmark": "serving", **asdict(one)}) + "\n")
    print(report(found))


if __name__ == "__main__":
    run_program(main)

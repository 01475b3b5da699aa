"""Measures how long callers of `ras-agent serve` wait when many ask at once, and what the server holds meanwhile.

    python -m lab.serving --json serving.jsonl
    python -m lab.serving --servers 1,2 --checkpoint sqlite:threads.sqlite

The server is a process of its own over an index of the bundled sample; its models are a loopback server
(ras_agent.eval.bench.loopback_model) that answers each call so many seconds later, on the same cores. Callers all ask
at the same moment, each for a stream of events in a thread of its own, and wait for its end. A question takes six or so
calls one after the other. `lost` counts streams that did not end in an answer. `alone` is one caller's wait.

Several servers share the index and the threads. Each caller asks in a thread of his own, whose name decides which
server he asks, as a proxy does that hashes a header.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import quantiles
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4
from zlib import crc32

from ras_agent import PassageIndex
from ras_agent.app.sample import sample_passages
from ras_agent.eval.bench.loopback_model import Loopback, serving
from ras_agent.program import run_program

_QUESTION = "Which river flows through the birthplace of inventor number {}?"


@dataclass(frozen=True, slots=True)
class Load:
    """One measurement. p50, p95: seconds until the answer. memory: most megabytes of all servers. cpu: seconds each."""

    latency: float
    callers: int
    servers: int
    alone: float
    p50: float
    p95: float
    lost: int
    memory: float
    cpu: float
    calls: int


def measure(
    latencies: Sequence[float],
    callers: Sequence[int],
    most_hops: int = 2,
    *,
    servers: Sequence[int] = (1,),
    checkpoint: str = "memory",
) -> Iterator[Load]:
    """Measure each latency with each number of callers and of servers, every one against new servers."""
    for latency, count, processes in product(latencies, callers, servers):
        with TemporaryDirectory() as folder, serving(latency) as model, ExitStack() as stack:
            with closing(PassageIndex.create(Path(folder) / "index")) as index:
                index.add(sample_passages())
            options = [f"--index={folder}/index", f"--max-hops={most_hops}", f"--checkpoint={checkpoint}"]
            started = [stack.enter_context(_server(model, options)) for _ in range(processes)]
            ports, pids = [port for port, _ in started], [pid for _, pid in started]
            alone = max(asyncio.run(_asked([port], 1, 0))[0] or 0.0 for port in ports)
            before, spent = model.counts()["answered"], sum(map(_seconds_of_processor, pids))
            waits = asyncio.run(_asked(ports, count, 1))
            ended = sorted(wait for wait in waits if wait is not None)
            cuts = quantiles(ended, n=20, method="inclusive") if len(ended) > 1 else ended * 19
            yield Load(
                latency=latency,
                callers=count,
                servers=processes,
                alone=alone,
                p50=cuts[9],
                p95=cuts[18],
                lost=len(waits) - len(ended),
                memory=sum(map(_most_memory, pids)),
                cpu=(sum(map(_seconds_of_processor, pids)) - spent) / count,
                calls=model.counts()["answered"] - before,
            )


@contextmanager
def _server(model: Loopback, options: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Start `ras-agent serve` on a free port; yield the port and the number of the process."""
    roles = [f"--{role}={model.spec(role)}" for role in ("planner", "extractor", "answerer")]
    command = [sys.executable, "-P", "-c", "from ras_agent.app.cli import main; main()"]
    with Popen([*command, "serve", "--port=0", *options, *roles], stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = urlsplit(process.stdout.readline().split()[-1])
            yield address.port or 0, process.pid
        finally:
            process.terminate()


async def _asked(ports: Sequence[int], count: int, first: int) -> list[float | None]:
    """Ask `count` questions at once; return the seconds of each, None for one that was lost."""
    threads = [uuid4().hex for _ in range(count)]
    return list(
        await asyncio.gather(
            *(
                _ask(ports[crc32(thread.encode()) % len(ports)], thread, _QUESTION.format(first + number))
                for number, thread in enumerate(threads)
            )
        )
    )


async def _ask(port: int, thread: str, question: str) -> float | None:
    body = json.dumps({"question": question, "thread": thread, "stream": True}).encode()
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
        "| model, s a call | callers | servers | alone, s | p50, s | p95, s | lost | most MB | cpu ms a question |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        lines.append(
            f"| {one.latency:g} | {one.callers} | {one.servers} | {one.alone:.1f} | {one.p50:.1f} | {one.p95:.1f} "
            f"| {one.lost} | {one.memory:.0f} | {1000 * one.cpu:.0f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, and write JSON Lines; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m lab.serving", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--latencies", default="0.2,2", help="seconds from a model call to its reply")
    parser.add_argument("--callers", default="50,200", help="how many ask at once")
    parser.add_argument("--servers", default="1", help="how many processes answer")
    parser.add_argument("--checkpoint", default="memory", help="where they keep threads")
    parser.add_argument("--json", type=Path, help="one JSON object a measurement")
    options = parser.parse_args(arguments)
    os.environ["NO_PROXY"] = "127.0.0.1"
    found = []
    latencies = [float(one) for one in options.latencies.split(",")]
    callers, servers = ([int(count) for count in counts.split(",")] for counts in (options.callers, options.servers))
    for one in measure(latencies, callers, servers=servers, checkpoint=options.checkpoint):
        found.append(one)
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"benchmark": "serving", **asdict(one)}) + "\n")
    print(report(found))


if __name__ == "__main__":
    run_program(main)

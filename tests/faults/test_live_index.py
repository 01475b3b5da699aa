"""Attacks on agents that answer, in many threads and for several tenants, while another process writes their index."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ras_agent import Plan, create_ras_agent
from tests.faults.attack import Attack

TENANTS = ("anna", "boris", "carla")
WRITER = """
import sys, time
from pathlib import Path
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.structure.build_graph import build_graph
from ras_agent.tools.index import segment

segment.SAVED_FROM = 4  # so that segments are written and read, too
folder, rounds, graph, pause = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "graph", float(sys.argv[4])
for round in range(rounds):
    records = [
        {"id": f"{user}-{number}", "title": f"Depot {number}", "user": user,
         "text": f"Depot {number} of {user.title()} was founded by Founder{round}x{user}."}
        for user in ("anna", "boris", "carla") for number in range(4)
    ]
    import json
    (folder / "depots.jsonl").write_text("".join(json.dumps(one) + chr(10) for one in records))
    ingest([folder / "depots.jsonl"], folder / "i")
    if graph:
        build_graph(folder / "i")
    print(round, flush=True)
    time.sleep(pause)
"""


class TwoSearches:
    """Searches twice, so that a write may fall between."""

    def plan(self, question: str, graph: Any, steps: Sequence[Any]) -> Plan:
        return (
            Plan("subq", question if not steps else "Which depots were founded?")
            if len(steps) < 2
            else Plan("sufficient")
        )


class Slow(TwoSearches):
    """Takes as long as a model may."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def plan(self, question: str, graph: Any, steps: Sequence[Any]) -> Plan:
        time.sleep(self._random.uniform(1, 12))
        return super().plan(question, graph, steps)


def _ask(agent: Any, number: int) -> str:
    """Ask as one of the tenants; return the faults of the run, "" for nothing."""
    user = TENANTS[number % 3]
    inputs: Any = {
        "question": f"Who founded Depot {number % 4}?",
        "filter": {"user": user},
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # passages that the graph does not have yet
            out = (
                asyncio.run(agent.ainvoke(inputs))
                if number % 2
                else agent.invoke(inputs)
            )
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    texts = [passage["text"] for passage in out["passages"].values()]
    commits = {text.partition("Founder")[2].partition("x")[0] for text in texts}
    shown = json.dumps(out, default=str).lower()
    wrong = [other for other in TENANTS if other != user and other in shown]
    odd = [
        one
        for one in out["failures"]
        if "another text has its id" not in one["message"]
    ]
    fine = (
        out["question"] == inputs["question"]
        and len(commits) <= 1
        and not wrong
        and not odd
    )
    return (
        ""
        if fine
        else f"{inputs}: commits {commits}, of others {wrong}, {out['failures'][:1]}"
    )


@pytest.mark.parametrize(("retriever", "rounds"), [("bm25", 12), ("ppr", 6)])
def test_each_run_sees_one_commit_and_its_tenant_alone(
    retriever: str, rounds: int, attack: Attack, tmp_path: Path
) -> None:
    """Runs in 12 threads while another process writes the index.

    The last few commits are remembered. A run that more have overtaken searches the last, and lists the facts that it drops.
    """
    kind = "graph" if retriever == "ppr" else "words"
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    subprocess.run([*command, "1", kind, "0"], check=True, capture_output=True)
    agent = create_ras_agent(
        index=tmp_path / "i", retriever=retriever, planner=TwoSearches()
    )
    rewritten = [*command, str(len(attack.times(rounds)) + 1), kind, "0"]
    with subprocess.Popen(rewritten, stdout=subprocess.DEVNULL) as writer:

        def ask(number: int) -> list[str]:
            problems = []
            while writer.poll() is None:
                problems.append(_ask(agent, number))
            return problems

        with ThreadPoolExecutor(12) as pool:
            for told in pool.map(ask, range(12)):
                for problem in told:
                    attack.expect(not problem, problem)
    attack.expect(writer.returncode == 0, "the writer failed")
    last = agent.invoke(
        {"question": "Who founded Depot 1?", "filter": {"user": "anna"}}
    )
    newest = f"Founder{len(attack.times(rounds))}x"
    attack.expect(
        all(newest in one["text"] for one in last["passages"].values()),
        "the last commit is not seen",
    )


def test_one_agent_under_64_threads(
    attack: Attack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One agent in 64 threads for ten minutes, while another process writes the index and its graph."""
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    subprocess.run([*command, "1", "graph", "0"], check=True, capture_output=True)
    agent = create_ras_agent(
        index=tmp_path / "i", retriever="ppr", planner=Slow(attack.random)
    )
    ends = time.monotonic() + len(attack.times(600))
    waits: list[float] = []
    sizes: list[int] = []

    def ask(number: int) -> list[str]:
        problems = []
        while time.monotonic() < ends:
            began = time.monotonic()
            problems.append(_ask(agent, number))
            waits.append(time.monotonic() - began)
            if number == 0:
                sizes.append(_resident_megabytes())
        return problems

    with subprocess.Popen(
        [*command, "100000", "graph", "20"], stdout=subprocess.PIPE, text=True
    ) as writer:
        try:
            with ThreadPoolExecutor(64) as pool:
                for told in pool.map(ask, range(64)):
                    for problem in told:
                        attack.expect(not problem, problem)
            attack.expect(writer.poll() is None, "the writer failed")
        finally:
            writer.terminate()
        commits = len((writer.stdout.read() if writer.stdout else "").splitlines())
    attack.expect(max(waits) < 120, f"a run took {max(waits):.0f} s")
    with capsys.disabled():
        print(
            f"{len(waits)} runs beside {commits} commits, the longest of {max(waits):.0f} s; MB after the first run "
            f"{sizes[0]}, after half of them {sizes[len(sizes) // 2]}, after the last {sizes[-1]}; "
            f"{threading.active_count()} threads are left"
        )


def _resident_megabytes() -> int:
    fields = Path("/proc/self/statm").read_text("ascii").split()
    return int(fields[1]) * resource.getpagesize() // 1_000_000

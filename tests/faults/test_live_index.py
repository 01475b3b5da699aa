"""Attacks on agents that answer, in many threads and for several tenants, while another process writes their index."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ras_agent import Plan, create_ras_agent
from tests.faults.attack import Attack

TENANTS = ("anna", "boris", "carla")
WRITER = """
import sys
from pathlib import Path
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.structure.build_graph import build_graph
from ras_agent.tools.index import segment

segment.SAVED_FROM = 4  # so that segments are written and read, too
folder, rounds, graph = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "graph"
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
"""


class TwoSearches:
    """Searches twice, so that a write may fall between."""

    def plan(self, question: str, graph: Any, steps: Sequence[Any]) -> Plan:
        return (
            Plan("subq", question if not steps else "Which depots were founded?")
            if len(steps) < 2
            else Plan("sufficient")
        )


@pytest.mark.parametrize(("retriever", "rounds"), [("bm25", 12), ("ppr", 6)])
def test_each_run_sees_one_commit_and_its_tenant_alone(
    retriever: str, rounds: int, attack: Attack, tmp_path: Path
) -> None:
    """Runs in 12 threads while another process writes the index.

    The last few commits are remembered. A run that more have overtaken searches the last, and lists what it drops.
    """
    kind = "graph" if retriever == "ppr" else "words"
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    subprocess.run([*command, "1", kind], check=True, capture_output=True)
    agent = create_ras_agent(index=tmp_path / "i", retriever=retriever, planner=TwoSearches())
    with subprocess.Popen([*command, str(len(attack.times(rounds)) + 1), kind], stdout=subprocess.DEVNULL) as writer:

        def ask(number: int) -> list[str]:
            broken = []
            while writer.poll() is None:
                user = TENANTS[number % 3]
                inputs: Any = {"question": "Who founded Depot 1?", "filter": {"user": user}}
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # passages that the graph does not have yet
                        out = asyncio.run(agent.ainvoke(inputs)) if number % 2 else agent.invoke(inputs)
                except Exception as error:
                    broken.append(f"{type(error).__name__}: {error}")
                    continue
                texts = [passage["text"] for passage in out["passages"].values()]
                commits = {text.partition("Founder")[2].partition("x")[0] for text in texts}
                shown = json.dumps(out, default=str).lower()
                wrong = [other for other in TENANTS if other != user and other in shown]
                odd = [one for one in out["failures"] if "also that of another text" not in one["message"]]
                fine = len(commits) <= 1 and not wrong and not odd
                broken.append("" if fine else f"{user}: commits {commits}, of others {wrong}, {out['failures'][:1]}")
            return broken

        with ThreadPoolExecutor(12) as pool:
            for told in pool.map(ask, range(12)):
                for problem in told:
                    attack.expect(not problem, problem)
    attack.expect(writer.returncode == 0, "the writer failed")
    last = agent.invoke({"question": "Who founded Depot 1?", "filter": {"user": "anna"}})
    newest = f"Founder{len(attack.times(rounds))}x"
    attack.expect(all(newest in one["text"] for one in last["passages"].values()), "the last commit is not seen")

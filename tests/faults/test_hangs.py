"""Attacks by hanging: a database, a model or a lock that is silent for a while, without an error and without an end."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from ras_agent import Passage, PassageIndex
from ras_agent.config.address import Address
from ras_agent.config.settings import Settings
from tests.app.serve.conftest import serving
from tests.app.serve.test_process import _process
from tests.faults.attack import Attack
from tests.stalling_proxy import StallingProxy, stalling

QUESTION = "Where was Alexander Graham Bell born?"
BELL = Passage(
    "bell", "Alexander Graham Bell was born in Edinburgh.", "Bell", "bell.md"
)
LONGEST = 60.0
"""Seconds after which a request counts as wedged; the server's own limits are shorter."""
RECOVERY = 30.0
"""Seconds in which all is well once a part is back."""


@dataclass
class Traffic:
    """Callers that go on all the time, and the ends of their requests."""

    url: str
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    requests: int = 0
    refused: int = 0
    wedged: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def call(self, who: int) -> None:
        """Ask one thing after the other until the end."""
        with httpx.Client(
            base_url=self.url, trust_env=False, timeout=LONGEST
        ) as client:
            for number in range(1_000_000):
                if self.ended.is_set():
                    return
                name = f"c{who}n{number}"
                kinds: list[tuple[str, Callable[[str], httpx.Response]]] = [
                    ("retrieve", lambda _: client.get("/api/retrieve?q=Bell")),
                    ("list", lambda _: client.get("/api/documents")),
                    (
                        "ask",
                        lambda name: client.post(
                            "/api/ask", json={"question": QUESTION, "thread": name}
                        ),
                    ),
                    (
                        "upload",
                        lambda name: client.post("/api/documents", files=_file(name)),
                    ),
                ]
                kind, send = kinds[(who + number) % len(kinds)]
                self.count(kind, name, send)

    def count(
        self, kind: str, name: str, send: Callable[[str], httpx.Response]
    ) -> None:
        try:
            told = send(name)
        except httpx.TimeoutException:
            with self.lock:
                self.wedged.append(f"{kind} {name}")
            return
        good = told.status_code == 200
        with self.lock:
            self.requests += 1
            # the model was asked, and did not answer in time
            if told.status_code in (
                409,
                502,
                503,
            ):
                self.refused += 1
            elif not good:
                self.wrong.append(f"{kind}: {told.status_code} {told.text[:200]}")
            elif kind == "ask":
                self.threads.append(name)
            elif kind == "upload":
                self.files.append(f"{name}.txt")


def _file(name: str) -> dict[str, tuple[str, bytes]]:
    return {"files": (f"{name}.txt", b"A mill.")}


def _problem(client: httpx.Client) -> str:
    """Return the parts that do not answer, "" if every part does."""
    try:
        asked, ready = (
            client.post("/api/ask", json={"question": QUESTION}),
            client.get("/ready"),
        )
    except httpx.TransportError as error:
        return repr(error)
    failures = asked.json().get("failures") if asked.status_code == 200 else asked.text
    return f"{ready.text} {failures}" if failures or ready.status_code != 200 else ""


@contextmanager
def _run(traffic: Traffic, callers: int) -> Iterator[None]:
    threads = [
        threading.Thread(target=traffic.call, args=(who,)) for who in range(callers)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        traffic.ended.set()
        for thread in threads:
            thread.join()


def _drain(process: subprocess.Popen[str]) -> None:
    """Read a server's log as it is written: a pipe that nobody reads is full after 64 KB, and stops its writer."""
    assert process.stderr
    threading.Thread(target=process.stderr.read, daemon=True).start()


def test_random_stalls(
    attack: Attack, postgres: str, scripted_llm: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random stalls of the index, the threads and the model: nothing is wedged or lost, and all is well afterwards"""
    scripted_llm.script({"reply": "[SUFFICIENT]", "repeat": True})
    PassageIndex.create(Address(postgres, "stalls")).add([BELL])
    with ExitStack() as stack:
        proxies: dict[str, StallingProxy] = {}
        urls: dict[str, str] = {}
        model, _, name = scripted_llm.spec.removeprefix("vllm:").partition("#")
        for part, url in (("index", postgres), ("threads", postgres), ("model", model)):
            proxies[part], urls[part] = stack.enter_context(stalling(url))
        options = [
            f"--index={urls['index']}?schema=stalls",
            f"--checkpoint=postgres:{urls['threads']}",
            f"--planner=vllm:{urls['model']}#{name}",
            "--extractor=offline",
            "--answerer=offline",
            "--max-seconds=15",
        ]
        process, url = stack.enter_context(
            _process(*options, sample=False, VLLM_BASE_URL=urls["model"])
        )
        _drain(process)
        traffic = Traffic(url)
        client = stack.enter_context(
            httpx.Client(base_url=url, trust_env=False, timeout=LONGEST)
        )
        with _run(traffic, 6):
            for number in attack.times(40):
                part = ("index", "threads", "model")[number % 3]
                seconds, fails_over = (
                    attack.random.uniform(1, 20),
                    attack.random.random() < 0.5,
                )
                before = traffic.requests, traffic.refused, len(traffic.wedged)
                proxies[part].stall()
                time.sleep(seconds)
                attack.expect(
                    client.get("/health").status_code == 200, f"{number}: no health"
                )
                (proxies[part].fail_over if fails_over else proxies[part].resume)()
                problem, took = _recovery(client)
                attack.expect(
                    not problem,
                    f"{number}: {part} was back, and after {took:.0f} s: {problem[:300]}",
                )
                after = traffic.requests, traffic.refused, len(traffic.wedged)
                how = "fails over" if fails_over else "goes on"
                row = part, how, seconds, took, *map(_less, after, before)
                with capsys.disabled():
                    print("| {} | {} | {:.1f} | {:.1f} | {} | {} | {} |".format(*row))
        lost = _check_kept(attack, client, traffic)
        process.terminate()
        attack.expect(process.wait(20) == 0, f"its end: {process.returncode}")
    with capsys.disabled():
        print(
            f"{traffic.requests} requests, {len(traffic.threads)} threads, {len(traffic.files)} files, {len(lost)} lost"
        )


def _less(after: int, before: int) -> int:
    return after - before


def _recovery(client: httpx.Client) -> tuple[str, float]:
    """Wait until every part answers; return the parts that do not after RECOVERY seconds, and the seconds it took."""
    began = time.monotonic()
    while problem := _problem(client):
        if time.monotonic() - began > RECOVERY:
            break
    return problem, time.monotonic() - began


def _check_kept(attack: Attack, client: httpx.Client, traffic: Traffic) -> list[str]:
    """Return the files that callers believe stored, and that are not; count it, and requests that were wedged or wrong."""
    attack.tried += traffic.requests
    for told in (*traffic.wedged, *traffic.wrong):
        attack.expect(False, told)
    known = set(client.get("/api/documents?limit=10000").json()["documents"])
    unfinished = [
        one
        for one in traffic.threads
        if not client.get(f"/api/threads/{one}").json().get("finished")
    ]
    lost = [*unfinished, *(one for one in traffic.files if one not in known)]
    attack.expect(not lost, f"lost: {lost[:5]}")
    return lost


HOLD = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
file.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Have another process hold a file of SQLite for the block."""
    pipe: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLD, str(file)], **pipe) as other:
        other.stdout.readline()
        try:
            yield
        finally:
            other.stdin.close()


def test_files_that_another_process_locks(attack: Attack, tmp_path: Path) -> None:
    """A file of threads, its store, or the index locked for up to 15 s, under traffic: told or waited for, all kept"""
    index = tmp_path / "my.index"
    PassageIndex.create(index).add([BELL])
    threads = tmp_path / "threads.sqlite"
    files = (threads, tmp_path / "threads.sqlite.store", index / "index.sqlite")
    options = [f"--index={index}", f"--checkpoint=sqlite:{threads}"]
    with (
        _process(*options, sample=False) as (process, url),
        httpx.Client(base_url=url, trust_env=False, timeout=LONGEST) as client,
    ):
        _drain(process)
        assert not _problem(client)
        traffic = Traffic(url)
        with _run(traffic, 4):
            for number in attack.times(12):
                file = files[number % 3]
                with _locked(file):
                    time.sleep(attack.random.uniform(0.2, 15))
                    attack.expect(
                        client.get("/health").status_code == 200, f"{number}: no health"
                    )
                problem, took = _recovery(client)
                attack.expect(
                    not problem,
                    f"{number}: {file.name} was free, and after {took:.0f} s: {problem}",
                )
        _check_kept(attack, client, traffic)
    ended = PassageIndex.open(index)
    stored = {passage.document_id for passage in ended.passages}
    attack.expect(
        stored >= set(traffic.files),
        f"lost in the index: {set(traffic.files) - stored}",
    )


def test_tables_that_somebody_locks(attack: Attack, postgres: str) -> None:
    """Tables of an index that a keeper of the database locks: readers hear of it within seconds, and well afterwards"""
    address = Address(postgres, "locked_tables")
    PassageIndex.create(address).add([BELL])
    with (
        serving(Settings(index=address)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=LONGEST) as client,
        closing(psycopg.connect(postgres)) as keeper,
    ):
        for number in attack.times(3):
            keeper.execute(
                "LOCK TABLE locked_tables.passages, locked_tables.index_state"
            )
            told = client.get("/api/retrieve?q=Bell")
            attack.expect(
                told.status_code in (200, 503), f"{number}: {told.status_code}"
            )
            keeper.rollback()
            attack.expect(not _problem(client), f"{number}: not well afterwards")

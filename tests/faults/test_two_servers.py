"""Attacks on an index of two servers at once: uploads, removals and questions by both, of which one is killed."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from ras_agent import Passage, PassageIndex
from tests.app.serve.test_process import _process
from tests.faults.attack import Attack

BELL = Passage(
    "bell", "Alexander Graham Bell was born in Edinburgh.", "Bell", "bell.md"
)
QUESTION = "Where was Alexander Graham Bell born?"


@dataclass
class Uploads:
    """Callers of one server. kept: files whose upload was confirmed. gone: those whose removal was."""

    url: str
    name: str
    kept: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    requests: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def call(self, who: int) -> None:
        """Upload, ask, and remove every third file, until the end or until the server is gone."""
        with httpx.Client(base_url=self.url, trust_env=False, timeout=120) as client:
            for number in range(1_000_000):
                if self.ended.is_set():
                    return
                try:
                    self._turn(
                        client,
                        f"{self.name}-{who}-{number}.txt",
                        removes=number % 3 == 2,
                    )
                except httpx.TransportError:
                    return

    def _turn(self, client: httpx.Client, file: str, *, removes: bool) -> None:
        uploaded = client.post(
            "/api/documents", files={"files": (file, f"The mill of {file}.".encode())}
        )
        if self._is_done(uploaded):
            self.kept.add(file)
        self._is_done(client.post("/api/ask", json={"question": QUESTION}))
        if removes and file in self.kept:
            self.kept.discard(file)  # a kill may come before the reply
            if self._is_done(client.delete("/api/documents", params={"id": file})):
                self.gone.add(file)

    def _is_done(self, reply: httpx.Response) -> bool:
        self.requests += 1
        if reply.status_code not in (200, 409, 503):  # the other writes at the moment
            self.wrong.append(f"{reply.status_code} {reply.text[:200]}")
        return reply.status_code == 200


def test_two_servers_on_one_folder(attack: Attack, tmp_path: Path) -> None:
    """Two servers that upload, remove and answer over one folder, one of them killed: nothing is lost, nothing fails"""
    index = tmp_path / "my.index"
    PassageIndex.create(index).add([BELL])
    options = [f"--index={index}", f"--checkpoint=sqlite:{tmp_path / 'threads.sqlite'}"]
    kept: set[str] = set()
    gone: set[str] = set()
    for turn in attack.times(3):
        with ExitStack() as stack:
            servers = [
                stack.enter_context(_process(*options, sample=False)) for _ in range(2)
            ]
            callers = [
                Uploads(url, f"r{turn}s{number}")
                for number, (_, url) in enumerate(servers)
            ]
            threads = [
                threading.Thread(target=caller.call, args=(who,))
                for caller in callers
                for who in range(2)
            ]
            for thread in threads:
                thread.start()
            time.sleep(attack.random.uniform(5, 10))
            servers[0][0].kill()
            time.sleep(5)
            callers[1].ended.set()
            for thread in threads:
                thread.join()
            for caller in callers:
                kept |= caller.kept
                gone |= caller.gone
                attack.tried += caller.requests
                attack.failures += caller.wrong
            told = httpx.get(
                f"{callers[1].url}/api/documents?limit=10000",
                trust_env=False,
                timeout=120,
            )
            known = set(told.json()["documents"])
            attack.expect(kept <= known, f"lost: {sorted(kept - known)[:5]}")
            attack.expect(
                not gone & known, f"removed, and there: {sorted(gone & known)[:5]}"
            )
            servers[1][0].send_signal(signal.SIGTERM)
            attack.expect(servers[1][0].wait(30) == 0, "the other server's end")
    texts = {
        passage.document_id: passage.text
        for passage in PassageIndex.open(index).passages
    }
    for file in kept:
        attack.expect(
            texts.get(file) == f"The mill of {file}.", f"{file}: {texts.get(file)!r}"
        )

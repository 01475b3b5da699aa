"""Attacks by documents that take long to convert: what of them outlives the server, and who waits for them."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from ras_agent import Passage, PassageIndex
from tests.app.serve.test_process import _process
from tests.faults.attack import Attack
from tests.tools.index.test_apart import ENDLESS, PAGE, book

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")

TOKENS = [f"token-{letter}-0123456789abcdef" for letter in "abcdef"]
SLOW = {"endless.html": ENDLESS, "endless.epub": book(100_000), "endless.htm": b"<div>" * 200_000 + b"x"}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    PassageIndex.create(tmp_path / "my.index").add([Passage("bell", "Bell was born in Edinburgh.", "Bell", "bell.md")])
    return tmp_path / "my.index"


def _children(parent: int) -> list[int]:
    """Return the processes that a process has started, and that work."""
    children = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, owner = (folder / "stat").read_text().rpartition(") ")[2].split()[:2]
            if int(owner) == parent and state != "Z":
                children.append(int(folder.name))
    return children


def _gone(process: int, seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not Path(f"/proc/{process}").exists() or ") Z " in Path(f"/proc/{process}/stat").read_text():
            return True
        time.sleep(0.05)
    return False


def _upload(address: str, name: str, data: bytes, token: str = TOKENS[0]) -> tuple[int, float]:
    """Return the status of an upload, 0 where the server went away, and its seconds."""
    began = time.monotonic()
    headers = {"Authorization": f"Bearer {token}"}
    try:
        told = httpx.post(
            f"{address}/api/documents", files={"files": (name, data)}, headers=headers, trust_env=False, timeout=120
        )
    except httpx.TransportError:
        return 0, time.monotonic() - began
    return told.status_code, time.monotonic() - began


@contextmanager
def _conversion(index: Path, data: bytes) -> Iterator[tuple[int, int]]:
    """Serve, and yield the processes of the server and of a conversion that it has begun."""
    with _process(f"--index={index}", sample=False) as (process, address), ThreadPoolExecutor(1) as pool:
        upload = pool.submit(_upload, address, "endless.html", data)
        while not (children := _children(process.pid)) and not upload.done():
            time.sleep(0.05)
        yield process.pid, children[0]
        process.wait(30)


def test_conversions_whose_server_ends(attack: Attack, index: Path) -> None:
    """Conversions whose server ends by a signal, or whose input ends: none goes on after it"""
    for number in attack.times(3):
        for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGABRT):
            with _conversion(index, ENDLESS) as (server, conversion):
                if number:
                    time.sleep(attack.random.uniform(0, 2))
                os.kill(server, ending)
            held = _gone(conversion)
            attack.expect(held, f"a conversion goes on after {ending.name}")
            if not held:
                os.kill(conversion, signal.SIGKILL)


def test_slow_uploads_of_others(attack: Attack, index: Path, tmp_path: Path) -> None:
    """Uploads that take as long as they may, of five tokens at once: a sixth's own, of each kind, do not wait"""
    teams = {token: {"team": token[6]} for token in TOKENS}
    (tmp_path / "tokens.json").write_text(json.dumps(teams))
    options = (f"--index={index}", f"--tokens={tmp_path / 'tokens.json'}")
    own = {"note.md": b"# Mill\n\nA mill stands.", "page.html": PAGE, "rows.csv": b"text\nA mill stands.\n"}
    with _process(*options, sample=False) as (process, address), ThreadPoolExecutor(5) as pool:
        slow = attack.random.choices(list(SLOW.items()), k=5)
        began = threading.Barrier(6)

        def send(token: str, name: str, data: bytes) -> tuple[int, float]:
            began.wait()
            return _upload(address, name, data, token)

        sent = [pool.submit(send, token, *file) for token, file in zip(TOKENS, slow, strict=False)]
        began.wait()
        time.sleep(3)
        for name, data in own.items():
            status, seconds = _upload(address, name, data, TOKENS[5])
            attack.expect(status == 200 and seconds < 30, f"{name}: {status} after {seconds:.1f} s")
        for upload, (name, _) in zip(sent, slow, strict=True):
            status, seconds = upload.result()
            attack.expect(status in (200, 422) and seconds < 75, f"{name}: {status} after {seconds:.1f} s")
        attack.expect(_children(process.pid) == [], "a conversion goes on after its upload")

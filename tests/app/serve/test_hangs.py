"""A served index whose parts hang: others go on, `/ready` names the part, and all is well when it is back."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from ras_agent import Passage, PassageIndex
from ras_agent.config.address import Address
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import ModelCallError, SettingsError
from ras_agent.running import checkpoints, silence
from ras_agent.tools.index.apart import Apart
from ras_agent.tools.index.text_files import Converted, HeldFile
from tests.app.serve.conftest import Served
from tests.app.serve.test_process import _process
from tests.messages import says
from tests.stalling_proxy import StallingProxy, stalling

QUESTION = {"question": "Where was Alexander Graham Bell born?"}
PASSAGES = [
    Passage("bell", "Alexander Graham Bell was born in Edinburgh.", "Bell", "bell.md")
]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    PassageIndex.create(tmp_path / "my.index").add(PASSAGES)
    return tmp_path / "my.index"


@pytest.fixture
def stalled(postgres: str) -> Iterator[tuple[StallingProxy, str]]:
    """A proxy before a database, and its URL there."""
    with stalling(postgres) as (proxy, through):
        yield proxy, through


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "SECONDS", 1)
    monkeypatch.setitem(silence.TCP, "connect_timeout", 2)  # libpq's shortest
    monkeypatch.setitem(checkpoints._CONNECTION, "connect_timeout", 2)
    for limit in ("timeout", "reconnect_timeout"):
        monkeypatch.setitem(checkpoints._POOL, limit, 1)


def _parts(client: httpx.Client) -> Any:
    return client.get("/ready").json()["parts"]


def _leave(client: httpx.Client, path: str) -> None:
    """Ask, and leave before the answer."""
    with pytest.raises(httpx.ReadTimeout):
        client.get(path, timeout=0.5)


@pytest.mark.slow("waits")
def test_searches_that_hang_at_a_database_leave_a_server_that_searches_again(
    postgres: str, stalled: tuple[StallingProxy, str], served: Served
) -> None:
    proxy, through = stalled
    PassageIndex.create(Address(postgres, "hang")).add(PASSAGES)
    client = served(Settings(index=Address(through, "hang")))
    search = "/api/retrieve?q=Edinburgh"
    with ThreadPoolExecutor(8) as callers:
        assert {told.status_code for told in callers.map(client.get, [search] * 8)} == {
            200
        }
        proxy.stall()
        list(callers.map(lambda _: _leave(client, search), range(8)))
    assert client.get("/health").status_code == 200
    assert _parts(client)["index"] == "down"
    proxy.fail_over()
    told = client.get(search)
    while told.status_code == 503:  # of searches that began in the stall
        told = client.get(search)
    assert [hit["passage"]["id"] for hit in told.json()["hits"]] == ["bell"]
    assert client.post("/api/ask", json=QUESTION).json()["answer"] == "Edinburgh"
    assert set(_parts(client).values()) == {"ok"}


@pytest.mark.slow("waits")
def test_a_database_that_hangs_with_the_threads_is_told_and_the_threads_go_on_afterwards(
    index: Path, stalled: tuple[StallingProxy, str], served: Served
) -> None:
    proxy, through = stalled
    client = served(Settings(index=index, checkpoint=f"postgres:{through}"))
    asked = {**QUESTION, "thread": "a"}
    assert client.post("/api/ask", json=asked).json()["answer"] == "Edinburgh"
    proxy.stall()
    told = client.post("/api/ask", json=asked)
    assert (told.status_code, told.json()["error"]["code"]) == (
        503,
        "threads_unavailable",
    )
    assert client.get("/api/threads/a").status_code == 503
    chat = {
        "model": "ras-agent",
        "messages": [{"role": "user", "content": QUESTION["question"]}],
    }
    assert client.post("/v1/chat/completions", json=chat).status_code == 200
    assert _parts(client) == {
        "index": "ok",
        "search": "ok",
        "threads": "down",
        "memory": "down",
    }
    proxy.fail_over()
    while client.get("/ready").status_code == 503:
        pass
    assert client.post("/api/ask", json=asked).json()["answer"] == "Edinburgh"
    assert client.get("/api/threads/a").json()["finished"]


@pytest.mark.slow("waits")
def test_a_process_that_hangs_at_its_database_ends_when_it_is_asked_to(
    postgres: str, stalled: tuple[StallingProxy, str]
) -> None:
    proxy, through = stalled
    PassageIndex.create(Address(postgres, "ends")).add(PASSAGES)
    index = f"--index={through}?schema=ends"
    soon = "from ras_agent.app.serve import server; server._GRACE, server._END = 1, 2; "
    with (
        _process(index, sample=False, begin=soon) as (process, address),
        httpx.Client(base_url=address, trust_env=False) as client,
    ):
        assert client.get("/api/retrieve?q=Edinburgh").status_code == 200
        proxy.stall()
        _leave(client, "/api/retrieve?q=Edinburgh")
        process.terminate()
        process.wait(10)


def test_a_locked_file_of_threads_is_told_and_they_go_on_afterwards(
    index: Path, tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ras_agent.running.checkpoints._LOCKED_SECONDS", 0.1)
    file = tmp_path / "threads.sqlite"
    client = served(Settings(index=index, checkpoint=f"sqlite:{file}"))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        told = client.post("/api/ask", json=QUESTION)
        assert (told.status_code, told.headers["retry-after"]) == (503, "2")
        assert told.json()["error"]["code"] == "threads_unavailable"
        assert str(tmp_path) not in told.text
    assert client.post("/api/ask", json=QUESTION).json()["answer"] == "Edinburgh"


def test_a_file_of_threads_that_is_locked_is_said_at_the_start(
    index: Path, tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ras_agent.running.checkpoints._LOCKED_SECONDS", 0.1)
    file = tmp_path / "threads.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(
            SettingsError,
            match=says("threads.sqlite", "another process has locked it", "wait"),
        ):
            served(Settings(index=index, checkpoint=f"sqlite:{file}"))


@pytest.mark.parametrize("content", [b"no database" * 1000, None])
def test_a_file_that_holds_no_threads_is_said_at_the_start(
    index: Path, tmp_path: Path, served: Served, content: bytes | None
) -> None:
    file = tmp_path / "threads.sqlite"
    file.mkdir() if content is None else file.write_bytes(content)
    with pytest.raises(
        SettingsError,
        match=says("threads.sqlite cannot be used for threads", "name another file"),
    ):
        served(Settings(index=index, checkpoint=f"sqlite:{file}"))


def test_an_index_that_was_moved_is_told_without_its_path_and_not_begun_anew(
    index: Path, tmp_path: Path, served: Served
) -> None:
    client = served(Settings(index=index))
    index.rename(tmp_path / "elsewhere")
    upload: Any = {"files": ("z.txt", b"A mill.")}
    for told in (
        client.get("/api/retrieve?q=Bell"),
        client.get("/api/documents"),
        client.post("/api/ask", json=QUESTION),
        client.post("/api/documents", files=upload),
    ):
        assert (told.status_code, told.json()["error"]["code"]) == (
            503,
            "index_unavailable",
        )
        assert str(tmp_path) not in told.text
    assert _parts(client)["index"] == "down"
    assert not index.exists()
    (tmp_path / "elsewhere").rename(index)
    assert client.post("/api/ask", json=QUESTION).json()["answer"] == "Edinburgh"


class _Held:
    """Retriever that is held back until its test ends."""

    def __init__(self) -> None:
        self.go_on, self.calls = threading.Event(), threading.Semaphore(0)

    def __call__(self, *args: Any) -> list[Any]:
        self.calls.release()
        self.go_on.wait()
        return []


@pytest.mark.slow("waits")
def test_searches_that_hang_are_bounded_and_hold_up_nothing_else(
    index: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = _Held()
    monkeypatch.setattr("ras_agent.tools.retrieve.search.LiveRetriever.retrieve", held)
    monkeypatch.setattr("ras_agent.app.serve.service._SEARCH_SECONDS", 0.3)
    client = served(Settings(index=index))
    with ThreadPoolExecutor(32) as callers:
        told = list(callers.map(client.get, ["/api/retrieve?q=Bell"] * 32))
    assert {(one.status_code, one.json()["error"]["code"]) for one in told} == {
        (503, "timeout")
    }
    assert client.get("/api/retrieve?q=Bell").status_code == 503
    assert held.calls._value == 32  # the last was not even begun
    assert _parts(client) == {"index": "ok", "search": "down", "threads": "ok"}
    assert client.get("/api/passages/bell").json()["title"] == "Bell"
    assert client.get("/api/documents").json()["total"] == 1
    held.go_on.set()
    assert client.get("/api/retrieve?q=Bell").status_code == 200


def test_a_batch_that_hangs_leaves_threads_to_others_and_ends(
    index: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = _Held()
    monkeypatch.setattr("ras_agent.tools.retrieve.search.LiveRetriever.retrieve", held)
    monkeypatch.setattr("ras_agent.app.serve.service._SEARCH_SECONDS", 0.3)
    client = served(Settings(index=index))
    told = client.post("/retrieve", json={"queries": [f"Bell {n}" for n in range(64)]})
    assert (told.status_code, told.json()["error"]["code"]) == (503, "timeout")
    assert held.calls._value == 4
    assert _parts(client)["search"] == "ok"
    held.go_on.set()
    assert client.post("/retrieve", json={"queries": ["Bell"]}).json() == {
        "result": [[]]
    }


def test_an_embedder_that_gives_no_answer_is_told_as_away(
    index: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: Any) -> None:
        raise ModelCallError("embedder 'm' at http://10.0.0.1:8000 failed")

    monkeypatch.setattr(
        "ras_agent.tools.retrieve.search.LiveRetriever.retrieve", silent
    )
    told = served(Settings(index=index)).get("/api/retrieve?q=Bell")
    assert (told.status_code, told.json()["error"]["code"]) == (
        503,
        "model_unavailable",
    )
    assert "10.0.0.1" not in told.text


TOKENS = {
    "token-of-a-0123456789": {"team": "a"},
    "token-of-b-0123456789": {"team": "b"},
}
A, B = ({"Authorization": f"Bearer {token}"} for token in TOKENS)


def test_a_document_that_takes_long_holds_up_no_other_token(
    index: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert, begun, go_on = Apart.convert, threading.Event(), threading.Event()

    def held(apart: Apart, file: HeldFile) -> Converted:
        if file.suffix == ".epub":
            begun.set()
            go_on.wait()
        return convert(apart, file)

    monkeypatch.setattr(Apart, "convert", held)
    client = served(Settings(index=index), TOKENS)
    slow, quick = {"files": ("a.epub", b"a book")}, {"files": ("b.txt", b"A mill.")}
    with ThreadPoolExecutor() as callers:
        told = callers.submit(client.post, "/api/documents", files=slow, headers=A)
        begun.wait()
        assert client.post("/api/documents", files=quick, headers=B).status_code == 200
        assert client.delete("/api/documents?id=b.txt", headers=B).status_code == 200
        assert not told.done()
        go_on.set()
        assert told.result().status_code == 422


def test_a_token_leaves_others_their_share_of_runs(
    index: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = _Held()
    monkeypatch.setattr("ras_agent.tools.retrieve.search.Search.retrieve", held)
    monkeypatch.setattr("ras_agent.tools.retrieve.search.Search.aretrieve", None)
    client = served(Settings(index=index, max_runs=4), TOKENS)
    with ThreadPoolExecutor(8) as callers:
        runs = [
            callers.submit(client.post, "/api/ask", json=QUESTION, headers=A)
            for _ in range(2)
        ]
        for _ in runs:
            held.calls.acquire()
        refused = client.post("/api/ask", json=QUESTION, headers=A)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "busy")
        other = callers.submit(client.post, "/api/ask", json=QUESTION, headers=B)
        held.calls.acquire()
        held.go_on.set()
        assert {run.result().status_code for run in (*runs, other)} == {200}

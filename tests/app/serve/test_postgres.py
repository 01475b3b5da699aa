"""An index in PostgreSQL, served: searched, changed, and asked while its database is away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any

import httpx
import psycopg
import pytest

from ras_agent import Passage
from ras_agent.app.serve.errors import refusal
from ras_agent.config.address import Address
from ras_agent.config.settings import Settings
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.uploads import read_upload, upload_path
from ras_agent.tools.store.postgres import PostgresDatabase
from tests.app.serve.conftest import Served, events_of

QUESTION = "Where was Bell born?"
PASSAGES = [
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh.",
        "Bell",
        "bell.md",
        {"team": "x"},
    ),
    Passage(
        "leith",
        "The Water of Leith flows through Edinburgh.",
        "Leith",
        "leith.md",
        {"team": "y"},
    ),
]
_numbers = count()


class Database:
    """A database of its own on a server of the tests, which can go away."""

    def __init__(self, server: str) -> None:
        self._server, self._name = server, f"served_{next(_numbers)}"
        self._execute(f"CREATE DATABASE {self._name}")
        self.address = Address(f"{server.rpartition('/')[0]}/{self._name}", "texts")

    def _execute(self, *statements: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def end_connections(self) -> None:
        """End all connections, as a restart of the server does, and wait until they have ended."""
        self._execute(
            f"SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = '{self._name}'"
        )

    @contextmanager
    def away(self) -> Iterator[None]:
        """Let nobody connect inside the block."""
        self._execute(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS false")
        self.end_connections()
        yield
        self._execute(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS true")


@pytest.fixture
def database(postgres: str) -> Database:
    """A database with an index of two passages."""
    made = Database(postgres)
    PassageIndex.create(made.address).add(PASSAGES)
    return made


@pytest.fixture
def client(database: Database, served: Served) -> httpx.Client:
    return served(Settings(index=database.address))


def _found(client: httpx.Client, query: str, **more: str) -> list[str]:
    hits = client.get("/api/retrieve", params={"q": query, **more}).json()["hits"]
    return [hit["passage"]["id"] for hit in hits]


def test_it_is_searched_and_asked_within_a_filter(client: httpx.Client) -> None:
    assert _found(client, "Edinburgh") == ["bell", "leith"]
    assert _found(client, "Edinburgh", filter='{"team": "y"}') == ["leith"]
    assert (
        client.post("/api/ask", json={"question": QUESTION}).json()["answer"]
        == "Edinburgh"
    )
    out = client.post(
        "/api/ask", json={"question": QUESTION, "filter": {"team": "y"}}
    ).json()
    assert "bell" not in out["passages"]
    assert client.get("/api/passages/bell").json()["text"] == PASSAGES[0].text


def test_uploads_and_the_writes_of_other_processes_are_found_at_once(
    client: httpx.Client, database: Database
) -> None:
    upload = {"files": ("z.txt", b"Zyltor was founded by Mara Quist.")}
    done = client.post(
        "/api/documents", files=upload, data={"metadata": '{"team": "z"}'}
    ).json()
    assert (done["passages_total"], done["graph"]) == (3, None)
    assert _found(client, "Zyltor", filter='{"team": "z"}') == ["z.txt"]
    assert (
        read_upload(PostgresDatabase(database.address), upload_path("z.txt"))
        == upload["files"][1]
    )
    PassageIndex.open(database.address).upsert(
        [Passage("new", "Ostrell is a town.", "Ostrell", "new.md")]
    )
    assert _found(client, "Ostrell") == ["new"]
    assert client.delete("/api/documents?id=z.txt").json() == {"documents_removed": 1}
    assert client.delete("/api/documents?id=new.md").json() == {"documents_removed": 1}
    assert client.get("/api/documents").json()["documents"] == ["bell.md", "leith.md"]
    assert read_upload(PostgresDatabase(database.address), upload_path("z.txt")) is None


def test_one_server_searches_while_another_adds_and_forgets(
    client: httpx.Client, database: Database, served: Served
) -> None:
    other = served(Settings(index=database.address))
    upload = {"files": ("z.txt", b"Zyltor lies near Edinburgh.")}

    def write() -> list[list[str]]:
        seen = []
        for _ in range(4):
            client.post("/api/documents", files=upload).raise_for_status()
            seen.append(_found(other, "Zyltor"))
            client.delete("/api/documents?id=z.txt").raise_for_status()
            seen.append(_found(other, "Zyltor"))
        return seen

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not writing.done():
            found = _found(other, "Edinburgh")
            assert {*found} - {"z.txt"} == {"bell", "leith"}
    assert writing.result() == [["z.txt"], []] * 4
    assert _found(client, "Edinburgh") == ["bell", "leith"]


def test_a_document_of_a_file_is_not_removed_behind_the_back_of_another_writer(
    client: httpx.Client, database: Database
) -> None:
    client.post(
        "/api/documents",
        files={"files": ("z.txt", b"Zyltor was founded by Mara Quist.")},
    )
    with PostgresDatabase(database.address).alone():
        assert client.delete("/api/documents?id=z.txt").status_code == 409
    assert _found(client, "Zyltor") == ["z.txt"]


def test_a_database_that_is_away_is_told_at_once_and_found_again(
    client: httpx.Client, database: Database
) -> None:
    _found(client, "Edinburgh")
    upload: Any = {"files": ("z.txt", b"Zyltor was founded by Mara Quist.")}
    chat = {"model": "ras-agent", "messages": [{"role": "user", "content": QUESTION}]}
    with database.away():
        for told in (
            client.get("/api/retrieve?q=Edinburgh"),
            client.get("/api/documents"),
            client.post("/api/ask", json={"question": QUESTION}),
            client.post("/v1/chat/completions", json=chat),
            client.post("/api/documents", files=upload),
            client.delete("/api/documents?id=bell.md"),
        ):
            assert (told.status_code, told.headers["retry-after"]) == (503, "2")
            assert told.json()["error"]["code"] == "index_unavailable"
            assert "127.0.0.1" not in told.text
        streamed = client.post("/api/ask", json={"question": QUESTION, "stream": True})
        assert events_of(streamed.text)[-1][0] == "error"
        assert client.get("/health").status_code == 200
    assert (
        client.post("/api/ask", json={"question": QUESTION}).json()["answer"]
        == "Edinburgh"
    )
    assert client.post("/api/documents", files=upload).status_code == 200


def test_connections_that_the_server_has_ended_are_noticed_before_their_use(
    client: httpx.Client, database: Database
) -> None:
    for _ in range(3):
        assert _found(client, "Edinburgh") == ["bell", "leith"]
        database.end_connections()


@pytest.mark.parametrize("odd", ["\0", "\ud800"])
def test_what_no_text_of_a_database_holds_is_replaced_in_questions_answers_and_notes(
    served: Served, database: Database, scripted_llm: Any, odd: str
) -> None:
    scripted_llm.script(
        {"when": "You steer", "reply": "[SUBQ] Where was Bell born?"},
        {"when": "You steer", "reply": "[SUFFICIENT]", "repeat": True},
        {"when": "You answer", "reply": f"Answer: Edin{odd}burgh [1]", "repeat": True},
        {"reply": f"(S> Be{odd}ll | P> was born in | O> Edinburgh)", "repeat": True},
    )
    threads = f"postgres:{database.address.url}"
    client = served(
        Settings(index=database.address, checkpoint=threads, llm=scripted_llm.spec)
    )
    asked = {"question": f"Where was Be{odd}ll born?", "thread": "th"}
    out = client.post(
        "/api/ask",
        content=json.dumps(asked),
        headers={"Content-Type": "application/json"},
    )
    assert (out.status_code, out.json()["answer"]) == (200, "Edin\ufffdburgh")
    assert "failures" not in out.json() or out.json()["failures"] == []
    client.patch("/api/threads/th", json={"name": "Be\0ll"}).raise_for_status()
    client.patch(
        "/api/threads/th", json={"right": False, "correct": "Lei\0th"}
    ).raise_for_status()
    (thread,) = client.get("/api/threads").json()["threads"]
    assert (thread["name"], thread["question"]) == (
        "Be\ufffdll",
        "Where was Be\ufffdll born?",
    )


def test_of_a_drivers_error_the_log_has_the_first_line_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    quoting = psycopg.DataError(
        'unsupported\nDETAIL: it is "Where was Bell born?"\nCONTEXT: JSON data, line 1: Bell'
    )
    assert refusal(quoting)[0] == 503
    wrapped = KeyError("state")
    wrapped.__cause__ = quoting
    assert refusal(wrapped)[0] == 500
    assert [
        record.getMessage().count("DataError: unsupported") for record in caplog.records
    ] == [1, 1]
    assert "Bell" not in caplog.text

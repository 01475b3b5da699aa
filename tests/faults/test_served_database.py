"""Attacks on an index in PostgreSQL that is served: connections killed, two writers, and filters that hold SQL."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest

from ras_agent import Passage
from ras_agent.config.address import Address
from ras_agent.config.settings import Settings
from ras_agent.tools.index.passages import check_rows
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.uploads import read_upload, upload_path
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.store.postgres import PostgresDatabase
from tests.app.serve.conftest import serving
from tests.faults.attack import Attack

QUESTION = "Where was Bell born?"
BELL = Passage(
    "bell",
    "Alexander Graham Bell was born in Edinburgh.",
    "Bell",
    "bell.md",
    {"team": "x"},
)


@contextmanager
def _served(address: Address, **more: Any) -> Iterator[httpx.Client]:
    with (
        serving(Settings(index=address), **more) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=60) as client,
    ):
        yield client


class Killer:
    """Ends the connection of a statement, the one of a number, before the server reads it."""

    def __init__(self, server: str, patch: pytest.MonkeyPatch) -> None:
        self._own = psycopg.connect(server, autocommit=True)
        self._left, self.killed = -1, False
        execute = psycopg.Cursor.execute

        def counted(cursor: Any, *given: Any, **options: Any) -> Any:
            if cursor.connection is not self._own and self._left >= 0:
                self._left -= 1
                if self._left < 0:
                    self.killed = True
                    pid = cursor.connection.info.backend_pid
                    self._own.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            return execute(cursor, *given, **options)

        patch.setattr(psycopg.Cursor, "execute", counted)

    def before(self, statement: int) -> None:
        self._left, self.killed = statement, False

    def rest(self) -> None:
        self._left = -1


def test_connections_killed_at_each_statement(
    attack: Attack, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections to the database killed at each statement: the answer is right or 503, and the next one right"""
    address = Address(postgres, "killed")
    PassageIndex.create(address).add([BELL])
    killer = Killer(postgres, monkeypatch)
    texts = ("A mill in Leith.", "A mill in Perth.")
    with _served(address) as client:

        def upload(text: str) -> httpx.Response:
            return client.post(
                "/api/documents", files={"files": ("z.txt", text.encode())}
            )

        def mills() -> list[str]:
            hits = client.get("/api/retrieve?q=mill").json()["hits"]
            return [hit["passage"]["text"] for hit in hits]

        def stored() -> str | None:
            data = read_upload(PostgresDatabase(address), upload_path("z.txt"))
            return None if data is None else data.decode()

        def asked() -> httpx.Response:
            return client.post("/api/ask", json={"question": QUESTION})

        def answered(told: httpx.Response) -> bool:
            return bool(told.json()["answer"] == "Edinburgh")

        reads: list[
            tuple[str, Callable[[], httpx.Response], Callable[[httpx.Response], bool]]
        ] = [
            (
                "retrieve",
                lambda: client.get("/api/retrieve?q=Edinburgh"),
                lambda told: "bell.md" in told.text,
            ),
            (
                "list",
                lambda: client.get("/api/documents"),
                lambda told: "bell.md" in told.text,
            ),
            ("ask", asked, answered),
        ]
        for what, read, right in reads:
            for moment in range(100):
                killer.before(moment)
                told = read()
                killer.rest()
                good = told.status_code == 503 or (
                    told.status_code == 200 and (right(told) or killer.killed)
                )
                attack.expect(
                    good, f"{what} {moment}: {told.status_code} {told.text[:100]}"
                )
                attack.expect(right(read()), f"{what} after {moment}")
                if not killer.killed:
                    break
        upload(texts[0])
        for moment in range(300):
            before, after = texts[moment % 2], texts[1 - moment % 2]
            killer.before(moment)
            told = upload(after)
            killer.rest()
            attack.expect(
                told.status_code in (200, 503),
                f"upload {moment}: {told.status_code} {told.text[:100]}",
            )
            # a connection that ends after the commit, before the rest is tidied up, may be reported as an error
            good = [after] if told.status_code == 200 else [before, after]
            attack.expect(
                stored() in good,
                f"upload {moment}, {told.status_code}: stored {stored()}",
            )
            attack.expect(
                mills() == [stored()],
                f"upload {moment}: found {mills()}, stored {stored()}",
            )
            attack.expect(upload(after).status_code == 200, f"upload after {moment}")
            attack.expect(mills() == [after], f"upload after {moment}: found {mills()}")
            if not killer.killed:
                break
        for moment in range(300):
            upload(texts[0])
            killer.before(moment)
            told = client.delete("/api/documents?id=z.txt")
            killer.rest()
            attack.expect(
                told.status_code in (200, 503),
                f"delete {moment}: {told.status_code} {told.text[:100]}",
            )
            if told.status_code == 503:
                again = client.delete("/api/documents?id=z.txt")
                attack.expect(
                    again.status_code in (200, 404),
                    f"delete after {moment}: {again.text[:100]}",
                )
            attack.expect(mills() == [], f"delete {moment}: found {mills()}")
            attack.expect(stored() is None, f"delete {moment}: the file is there")
            if not killer.killed:
                break
    _check_counts(attack, address)


def _check_counts(attack: Attack, address: Address) -> None:
    """Compare the counts of an index with its content, and read every row."""
    index = PassageIndex.open(address)
    with index.database.reading() as connection:
        (counted,) = connection.execute("SELECT passages FROM index_state").fetchone()
        (there,) = connection.execute(
            "SELECT count(*) FROM passages WHERE cell NOT IN (SELECT cell FROM dead)"
        ).fetchone()
    attack.expect(
        counted == there, f"{counted} passages are counted, {there} are there"
    )
    check_rows(index.database)
    index.close()


def test_two_servers_that_write(attack: Attack, postgres: str) -> None:
    """Two servers that write one index at once: each upload is done or refused for now, and no upload is lost"""
    address = Address(postgres, "two_writers")
    PassageIndex.create(address).add([BELL])
    rounds = attack.times(12)
    with _served(address) as one, _served(address) as two:

        def write(client: httpx.Client, who: str) -> None:
            for number in rounds:
                name = f"{who}{number}.txt"
                for _ in range(200):
                    file = {
                        "files": (name, f"The mill {who}{number} is in Leith.".encode())
                    }
                    told = client.post("/api/documents", files=file)
                    if told.status_code != 409:
                        break
                attack.expect(
                    told.status_code == 200,
                    f"{name}: {told.status_code} {told.text[:100]}",
                )
                hits = client.get(
                    "/api/retrieve", params={"q": f"mill {who}{number}", "k": 1}
                ).json()["hits"]
                attack.expect(
                    hits[0]["passage"]["id"] == name, f"{name} was not found at once"
                )

        threads = [
            threading.Thread(target=write, args=(client, who))
            for client, who in ((one, "a"), (two, "b"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        known = set(one.get("/api/documents").json()["documents"])
    wanted = {"bell.md", *(f"{who}{number}.txt" for who in "ab" for number in rounds)}
    attack.expect(known == wanted, f"lost {wanted - known}, more {known - wanted}")
    _check_counts(attack, address)


SQL = [
    *(
        "'",
        "''",
        '"',
        "\\",
        "\\'",
        "';--",
        "' OR '1'='1",
        "x'; DROP TABLE passages; --",
        "%s",
        "%(k)s",
        "%%",
        "{n}",
    ),
    *(
        "') OR true --",
        "$1",
        "$$",
        "/*filter*/",
        "*/ OR true /*",
        "team'::jsonb OR true",
        "\x00",
        "\ud800",
        "\u202e",
    ),
    *(
        "{}",
        "[]",
        "null",
        "true",
        "1",
        "1e999",
        "NaN",
        "-0",
        '{"team": "x"}',
        "a.b",
        "$.team",
        "team->>'x'",
        "*",
        "_",
    ),
]


def test_filters_that_hold_sql(attack: Attack, postgres: str) -> None:
    """Filters and metadata whose names and values hold SQL: the hits are those of an index in files"""
    address = Address(postgres, "sql_in_filters")
    storable = [text for text in SQL if text not in ("\x00", "\ud800")]
    passages = [
        BELL,
        *(
            Passage(f"v{number}", "A mill.", "Mill", f"d{number}", {"team": text})
            for number, text in enumerate(storable)
        ),
        *(
            Passage(f"k{number}", "A mill.", "Mill", f"e{number}", {text: "x"})
            for number, text in enumerate(storable)
        ),
    ]
    PassageIndex.create(address).add(passages)
    here = PassageIndex.in_memory(passages)
    before = PassageIndex.open(address).fingerprint
    tokens = {"root-0123456789abcdef": None, "team-0123456789abcdef": {"team": "x"}}
    with _served(address, tokens=tokens) as client:

        def found(token: str, filter: dict[str, Any]) -> list[str] | int:
            asked = {"q": "mill Edinburgh", "k": 100, "filter": json.dumps(filter)}
            told = client.get(
                "/api/retrieve",
                params=asked,
                headers={"Authorization": f"Bearer {token}"},
            )
            if told.status_code != 200:
                return told.status_code
            return sorted(hit["passage"]["id"] for hit in told.json()["hits"])

        for text in SQL:
            for filter in (
                {"team": text},
                {text: "x"},
                {text: text},
                {"team": [text, "x"]},
                {"document_id": text},
            ):
                if text in ("\x00", "\ud800"):  # one of them is not even JSON's to send
                    attack.expect(
                        found("root-0123456789abcdef", filter) in ([], ["bell"], 422),
                        f"{filter!r}",
                    )
                    continue
                wanted = sorted(
                    hit.passage.id
                    for hit in retriever_over(here.within(filter), "bm25").retrieve(
                        "mill Edinburgh", 100
                    )
                )
                got = found("root-0123456789abcdef", filter)
                attack.expect(got == wanted, f"{filter!r}: {got}, not {wanted}")
                own = found("team-0123456789abcdef", filter)
                attack.expect(
                    own in ([], ["bell"]),
                    f"the token of a team found {own} by {filter!r}",
                )
            for given in ({text: "x"}, {"year": text}):
                told = client.post(
                    "/api/documents",
                    files={"files": ("z.txt", b"Zyltor was founded.")},
                    data={"metadata": json.dumps(given)},
                    headers={"Authorization": "Bearer team-0123456789abcdef"},
                )
                attack.expect(
                    told.status_code in (200, 422),
                    f"metadata {given!r}: {told.status_code} {told.text[:100]}",
                )
        client.delete(
            "/api/documents?id=z.txt",
            headers={"Authorization": "Bearer team-0123456789abcdef"},
        )
    attack.expect(
        PassageIndex.open(address).fingerprint == before,
        "the passages are as they were",
    )

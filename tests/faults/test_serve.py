"""Attacks on the server: callers by the hundred, slow clients, and bodies, names and tokens that are wrong."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from ras_agent import Passage, PassageIndex, build_graph
from ras_agent.app.serve import access
from ras_agent.app.serve import server as server_process
from ras_agent.app.serve.documents import Documents
from ras_agent.config.settings import Settings
from ras_agent.tools.index.text_files import HeldFile
from ras_agent.tools.index.uploads import read_upload, upload_path
from ras_agent.tools.store.sqlite import SqliteDatabase
from tests.app.serve.conftest import events_of, serving
from tests.app.serve.test_process import _process
from tests.faults.attack import Attack
from tests.faults.interruptions import run

CALLERS = 200
QUESTION = "Who invented the telephone?"


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a server of the sample."""
    with serving(Settings(), sample=True) as address:
        yield address


def _client(address: str) -> httpx.Client:
    return httpx.Client(base_url=address, trust_env=False, timeout=120)


def _until_idle(address: str) -> bool:
    """Wait for all runs to end; false if they do not within half a minute."""
    with _client(address) as client:
        for _ in range(300):
            if not client.get("/health").json()["runs"]:
                return True
            time.sleep(0.1)
    return False


async def test_two_hundred_callers_at_once(attack: Attack, server: str) -> None:
    """Two hundred callers at once, every third of whom leaves: the others lose nothing, and no run is left behind"""
    limits = httpx.Limits(max_connections=CALLERS)
    async with httpx.AsyncClient(
        base_url=server, trust_env=False, timeout=300, limits=limits
    ) as client:

        async def ask(number: int) -> str:
            asked = {
                "question": QUESTION,
                "thread": f"t{number}",
                "stream": number % 2 == 0,
            }
            if number % 3 == 0:  # it leaves
                try:
                    await asyncio.wait_for(client.post("/api/ask", json=asked), 0.2)
                except TimeoutError:
                    return "left"
            response = await client.post("/api/ask", json=asked)
            if response.status_code == 409:  # its processes are still ending
                return "left"
            return (
                events_of(response.text)[-1][1]["answer"]
                if asked["stream"]
                else response.json()["answer"]
            )

        answers = await asyncio.gather(*map(ask, attack.times(CALLERS)))
    for number, answer in enumerate(answers):
        attack.expect(
            answer in ("Alexander Graham Bell", "left"), f"caller {number}: {answer!r}"
        )
        attack.expect(number % 3 == 0 or answer != "left", f"caller {number} was lost")
    attack.expect(await asyncio.to_thread(_until_idle, server), "runs were left behind")


def test_clients_that_dawdle(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that send or read slowly, or not at all: they are dropped, and others are served meanwhile"""
    monkeypatch.setattr(access, "BODY_SECONDS", 2.0)
    monkeypatch.setattr(server_process, "SEND_SECONDS", 2)
    long = [
        Passage(f"p{number}", f"telephone {number} " + "word " * 40_000, "Long")
        for number in range(100)
    ]
    PassageIndex.create(tmp_path / "long.index").add(long)
    with (
        serving(Settings(index=tmp_path / "long.index")) as address,
        _client(address) as client,
    ):
        port = int(address.rpartition(":")[2])
        head = f"Host: 127.0.0.1:{port}\r\n"
        post = f"POST /api/ask HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
        get = f"GET /api/retrieve?q=telephone&k=100 HTTP/1.1\r\n{head}\r\n"
        senders = [_connected(port, post + '{"question"') for _ in attack.times(20)]
        readers = [_connected(port, get, window=4096) for _ in attack.times(20)]
        for number in attack.times(20):
            began = time.monotonic()
            attack.expect(client.get("/health").status_code == 200, f"health {number}")
            attack.expect(
                time.monotonic() - began < 10,
                f"health {number} took {time.monotonic() - began:.1f} s",
            )
        for reader in readers:
            select.select([reader], [], [], 60)  # until its answer has begun
        time.sleep(4)
        for number, sender in enumerate(senders):
            attack.expect(
                b" 408 " in _all_of(sender)[:20], f"sender {number} is still waited for"
            )
        for number, reader in enumerate(readers):
            attack.expect(
                len(_all_of(reader)) < 20_000_000, f"reader {number} was waited for"
            )


def _connected(port: int, text: str, window: int | None = None) -> socket.socket:
    connection = socket.socket()
    if window:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    connection.connect(("127.0.0.1", port))
    connection.settimeout(30)
    connection.sendall(text.encode())
    return connection


def _all_of(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    read = bytearray()
    with closing(connection):
        try:
            while piece := connection.recv(1 << 20):
                read += piece
        except (TimeoutError, ConnectionError):
            pass
    return bytes(read)


def _bodies(attack: Attack) -> Iterator[tuple[str, dict[str, str], bytes]]:
    kind = {"Content-Type": "application/json"}
    for number in attack.times(30):
        size = attack.random.choice(
            (access.MOST_BYTES + 1, access.MOST_BYTES * 2, 20_000_000)
        )
        yield f"{size} bytes, {number}", kind, b'{"question": "' + b"x" * size + b'"}'
    for depth in (1_000, 100_000, 1_000_000):
        yield (
            f"{depth} deep",
            kind,
            b'{"question": "Who?", "filter": ' + b"[" * depth + b"]" * depth + b"}",
        )
    for text in (
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"question": 1e999}',
        b'{"question": "\\ud800"}',
        b"NaN",
    ):
        yield repr(text), kind, text
    yield "text", {"Content-Type": "text/plain"}, b'{"question": "Who?"}'
    yield "no kind", {}, b'{"question": "Who?"}'
    parts = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
        for _ in range(5000)
    )
    yield (
        "5000 parts",
        {"Content-Type": "multipart/form-data; boundary=x"},
        parts + b"--x--\r\n",
    )


def test_bodies_that_are_too_large_or_no_json(attack: Attack, server: str) -> None:
    """Bodies that are too large, too deep, or no JSON: refused in the one form, and the server goes on"""
    with _client(server) as client:
        for what, headers, body in _bodies(attack):
            for path in (
                "/api/ask",
                "/v1/chat/completions",
                "/api/threads/x/resume",
                "/api/documents",
            ):
                try:
                    told = client.post(path, content=body, headers=headers)
                except (
                    httpx.WriteError,
                    httpx.ReadError,
                ):  # it was refused before all of it was sent
                    continue
                refused = 400 <= told.status_code < 500 and "error" in told.json()
                attack.expect(
                    refused or "ud800" in what,
                    f"{path} with {what}: {told.status_code} {told.text[:80]}",
                )
        attack.expect(
            client.post("/api/ask", json={"question": QUESTION}).status_code == 200,
            "it went on",
        )


NAMES = [
    *(
        "../x.md",
        "..\\x.md",
        "/x.md",
        "~/x.md",
        "a/../../x.md",
        "....//x.md",
        "..;/x.md",
        "C:\\x.md",
        "x.md/",
    ),
    *(
        "x.md\x00.txt",
        ".x.md",
        "x.md.",
        "con\x1b.md",
        "x\u202e.md",
        "%2e%2e%2fx.md",
        "file:///x.md",
        "\\\\host\\x.md",
    ),
    *(".", "..", " ", ""),
]


def test_names_that_lead_elsewhere(attack: Attack, tmp_path: Path) -> None:
    """Names and paths that lead elsewhere: nothing is written or read outside"""
    index, outside = tmp_path / "in" / "my.index", tmp_path / "secret.js"
    outside.write_text("outside")
    PassageIndex.create(index).add([Passage("p", "Bell was born.", "Bell", "bell.md")])
    with serving(Settings(index=index)) as address, _client(address) as client:
        query = "SELECT path FROM uploads WHERE path IS NOT NULL"
        for name in NAMES:
            for field in ("files", "../files"):
                told = client.post(
                    "/api/documents", files=[(field, (name, b"Zyltor was founded."))]
                )
                with SqliteDatabase(index).reading() as connection:
                    kept = {
                        bytes(path).decode() for (path,) in connection.execute(query)
                    }
                known = {path.name for path in index.parent.iterdir()}
                attack.expect(
                    told.status_code < 500,
                    f"{name!r}: {told.status_code} {told.text[:80]}",
                )
                attack.expect(known == {"my.index"}, f"{name!r} left {known}")
                inside = all(
                    Path(one).parts[1:] and ".." not in Path(one).parts for one in kept
                )
                attack.expect(
                    inside and not any(Path(one).is_absolute() for one in kept),
                    f"{name!r} left {kept}",
                )
            # both in a path and in its request
            for path in (
                f"/page/{name}",
                f"/page/..%2f{name}",
                "/page/../../../secret.js",
                "/page/%2e%2e%2fsecret.js",
            ):
                port = int(address.rpartition(":")[2])
                told = _all_of(
                    _connected(
                        port,
                        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
                    )
                )
                attack.expect(b"outside" not in told, f"{path!r} showed a file")
                attack.expect(b" 50" not in told[:15], f"{path!r}: {told[:80]!r}")
            told = client.delete("/api/documents", params={"id": f"../{name}"})
            attack.expect(
                told.status_code in (404, 422),
                f"delete {name!r}: {told.status_code} {told.text[:80]}",
            )
        attack.expect(
            client.get("/api/documents").json()["documents"][:1] == ["bell.md"],
            "the document is there",
        )
    attack.expect(outside.read_text() == "outside", "the file outside")


def test_a_disk_that_is_full_at_an_upload(attack: Attack, tmp_path: Path) -> None:
    """A disk that is full, and a kill, at each moment of an upload: the index is as it was or as it will be"""
    before, after = (
        "Zyltor was founded by Mara Quist.",
        "Zyltor was founded by Berta Olm.",
    )
    good = [
        {("Bell was born.", None), (before, "x")},
        {("Bell was born.", None), (after, "y")},
    ]
    for how in ("fail_from", "kill_at"):
        moment = 0
        while True:
            index = tmp_path / f"{how}{moment}" / "my.index"
            PassageIndex.create(index).add(
                [Passage("p", "Bell was born.", "Bell", "bell.md")]
            )
            _add(index, before, "x")
            ended = run(lambda index=index: _add(index, after, "y"), **{how: moment})
            attack.expect(_found(index) in good, f"{how} {moment}: {_found(index)}")
            _add(index, after, "y")
            attack.expect(
                _found(index) == good[1], f"{how} {moment}, again: {_found(index)}"
            )
            left = [
                path.name
                for path in index.rglob("*")
                if path.is_file() and before.encode() in path.read_bytes()
            ]
            attack.expect(not left, f"{how} {moment}: the replaced text is in {left}")
            beside = {path.name for path in index.parent.iterdir()} - {"my.index"}
            attack.expect(not beside, f"{how} {moment}: {beside} lie beside the index")
            moment += 1 if attack.times(10).stop == 10 else 5
            if not ended.killed and not ended.error:
                break


def _add(index: Path, text: str, team: str) -> None:
    documents = Documents(PassageIndex.open(index), Settings(index=index))
    documents._add([HeldFile("zyltor.md", text.encode())], [], "", {"team": team})


def _found(index: Path) -> set[tuple[str, object]]:
    """The content of the index: texts with their teams, where the stored file is the one that was indexed."""
    stored = (
        read_upload(SqliteDatabase(index), upload_path("zyltor.md")) or b""
    ).decode()
    passages = PassageIndex.open(index).passages
    texts = {passage.text for passage in passages if passage.document_id == "zyltor.md"}
    torn = set() if texts == {stored} else {(f"the stored file says {stored!r}", None)}
    return {(passage.text, passage.metadata.get("team")) for passage in passages} | torn


def test_uploads_stay_in_their_part(attack: Attack, tmp_path: Path) -> None:
    """Tokens of a part of the index that upload at once, under the same names and ids: each changes only its own"""
    teams = [f"team{number}" for number in range(4)]
    index = tmp_path / "my.index"
    PassageIndex.create(index).add(
        [Passage("Q1", "Root wrote this.", "Root", "z.md", {"team": "root"})]
    )
    tokens = {team: f"token-of-{team}-0123456789" for team in teams}
    bound = {token: {"team": team} for team, token in tokens.items()}
    with (
        serving(Settings(index=index), tokens=bound) as address,
        _client(address) as client,
    ):

        def send(team: str) -> None:
            headers = {"Authorization": f"Bearer {tokens[team]}"}
            for other in ("root", *(one for one in teams if one != team)):
                claims = [
                    f'"team": {value}'
                    for value in (f'"{other}"', f'["{team}", "{other}"]', "null", "[]")
                ]
                for claim in claims:
                    row = f'{{"id": "Q1", "text": "{team} mill.", "document_id": "z.md", {claim}}}'
                    page = f"---\n{claim}\nfile: z.md\n---\n{team} mill."
                    for name, text in (
                        ("z.jsonl", row),
                        ("z.md", page),
                        ("z.txt", f"{team} mill."),
                    ):
                        file = {"files": (name, text.encode())}
                        told = client.post(
                            "/api/documents", files=file, headers=headers
                        )
                        attack.expect(
                            told.status_code == 200,
                            f"{team} {name} {claim}: {told.status_code} {told.text}",
                        )
                    told = client.post(
                        "/api/documents",
                        files=file,
                        data={"metadata": f"{{{claim}}}"},
                        headers=headers,
                    )
                    attack.expect(
                        told.status_code in (403, 422),
                        f"{team} {claim}: {told.status_code} {told.text}",
                    )
                for gone in ("Q1", f"team={other}/z.md", "../z.md", "root", other):
                    told = client.delete(
                        "/api/documents", params={"id": gone}, headers=headers
                    )
                    attack.expect(
                        told.status_code == 404,
                        f"{team} removes {gone}: {told.status_code} {told.text}",
                    )

        threads = [
            threading.Thread(target=send, args=(team,))
            for team in teams[: attack.times(4).stop]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    wanted = {
        "root": ["Root wrote this."],
        **{team: [f"{team} mill."] * 3 for team in teams[: len(threads)]},
    }
    found: dict[str, list[str]] = {}
    for passage in PassageIndex.open(index).passages:
        found.setdefault(str(passage.metadata["team"]), []).append(passage.text)
    attack.expect(found == wanted, f"in the end: {found}")


def test_tenants_stay_apart(attack: Attack, tmp_path: Path) -> None:
    """Tokens that are bound to a part of the index: no answer, list, graph, thread or stream tells of another part"""
    teams = [f"team{number}" for number in range(8)]
    secret = {
        team: f"Zq{number}{hashlib.sha256(team.encode()).hexdigest()[:6]}"
        for number, team in enumerate(teams)
    }
    passages = [
        Passage(f"{team}-{number}", f"The project {secret[team]} was founded by {secret[team]}son{number} in Leith.",
                secret[team], f"{team}.md", {"team": team})
        for team in teams for number in range(5)
    ]  # fmt: skip
    index = tmp_path / "my.index"
    PassageIndex.create(index).add(passages)
    build_graph(index)
    tokens = {team: f"token-of-{team}-0123456789" for team in teams}
    bound = {token: {"team": team} for team, token in tokens.items()}
    settings = Settings(index=index, retriever="bm25+ppr", max_hops=2)
    with serving(settings, tokens=bound) as address, _client(address) as client:

        def told(team: str, other: str) -> Iterator[tuple[str, str]]:
            headers = {"Authorization": f"Bearer {tokens[team]}"}
            question = f"Who founded the project {secret[other]}?"
            for body in (
                {"question": question},
                {"question": question, "filter": {"team": other}, "stream": True},
                {
                    "question": question,
                    "filter": {"team": [team, other]},
                    "thread": "same",
                },
                {
                    "messages": [
                        {
                            "role": "user",
                            "content": "Who founded all projects in Leith?",
                        }
                    ]
                },
            ):
                yield (
                    "ask",
                    client.post("/api/ask", json=body, headers=headers).text.replace(
                        question, ""
                    ),
                )
            chat = {
                "model": "ras-agent",
                "messages": [{"role": "user", "content": question}],
                "stream": True,
            }
            yield (
                "chat",
                client.post(
                    "/v1/chat/completions",
                    json={**chat, "filter": {"team": other}},
                    headers=headers,
                ).text,
            )
            for path in (f"/api/retrieve?q={secret[other]}&k=50", "/api/retrieve?q=Leith&k=100", "/api/documents",
                         "/api/graph?nodes=1000", "/api/graph?entity=Leith&nodes=1000", "/api/entities?limit=1000",
                         f"/api/passages/{other}-1", f"/api/graph?entity={secret[team]}"):  # fmt: skip
                yield path, client.get(path, headers=headers).text
            yield "thread", client.get("/api/threads/same", headers=headers).text

        def tries(team: str) -> None:
            for other in (one for one in teams if one != team):
                if attack.times(10).stop < 10 and hash((team, other)) % 4:
                    continue
                for what, text in told(team, other):
                    mine = (
                        text.replace(secret[other] + "?", "")
                        .replace(f"/{other}-1", "")
                        .replace(f"'{other}-1'", "")
                    )
                    leaks = [
                        one
                        for one in teams
                        if one != team and f"{secret[one]}son" in mine
                    ]
                    attack.expect(
                        not leaks, f"{team} was told of {leaks} by {what}: {text[:200]}"
                    )

        threads = [threading.Thread(target=tries, args=(team,)) for team in teams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_tokens_that_are_guessed(attack: Attack) -> None:
    """Headers that hold no token, a part of one, or bytes: nobody is let in, and nothing breaks"""
    good = "right-0123456789abcdef"
    shown: list[bytes] = [
        b"",
        b"Bearer",
        b"Bearer ",
        b"bearer x",
        b"Basic " + good.encode(),
        good.encode(),
    ]
    shown += [b"Bearer " + good[:end].encode() for end in range(1, len(good))]
    shown += [
        b"Bearer " + good.encode() + b"x",
        b"Bearer\t" + b"\xff" * 50,
        b"Bearer " + b"a" * 60_000,
    ]
    shown += [f"Bearer sha256:{hashlib.sha256(good.encode()).hexdigest()}".encode()]
    shown += [
        b"Bearer " + attack.random.randbytes(20).hex().encode()
        for _ in attack.times(200)
    ]
    with (
        serving(Settings(), sample=True, tokens={good: None}) as address,
        _client(address) as client,
    ):
        for header in shown:
            try:
                told = client.get("/v1/models", headers=[(b"Authorization", header)])
            except (httpx.LocalProtocolError, httpx.RemoteProtocolError):
                continue
            attack.expect(
                told.status_code in (400, 401, 431),
                f"{header[:60]!r}: {told.status_code}",
            )
        right = client.get("/v1/models", headers={"Authorization": f"Bearer {good}"})
        attack.expect(right.status_code == 200, "the right token")


def _hostile_bodies() -> list[tuple[str, str, bytes]]:
    """Return paths, types of contents and bodies that cost much to parse, to check, or to find wrong."""
    many = [f"v{number}" for number in range(200_000)]
    turns = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "y"},
    ] * 45_000
    asked = {"role": "user", "content": QUESTION}
    chat: dict[str, object] = {"model": "ras-agent", "messages": [asked]}
    parts = [{"role": "user", "content": [1] * 999}] * 999
    task = (
        "### Task:\nGenerate a concise title of this chat.\n<chat_history>"
        + "\n" * 1_900_000
    )
    documents: list[tuple[str, object]] = [
        ("/api/ask", {"messages": [*turns, asked]}),
        (
            "/api/ask",
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "x"}] * 90_000,
                    }
                ]
            },
        ),
        ("/api/ask", {"messages": parts}),
        ("/api/ask", {"question": QUESTION, "filter": dict.fromkeys(many, "x")}),
        ("/api/ask", {"question": QUESTION, "filter": {"team": many}}),
        ("/api/ask", {"question": QUESTION, "filter": {"team": [1] * 1_900_000}}),
        ("/api/ask", dict.fromkeys(many, 1)),
        ("/v1/chat/completions", {"model": "ras-agent", "messages": [*turns, asked]}),
        ("/v1/chat/completions", {"model": "ras-agent", "messages": parts}),
        ("/v1/chat/completions", {**chat, "stop": many, "stream": True}),
        ("/v1/chat/completions", {**chat, "tools": [{}] * 1_300_000}),
        (
            "/v1/chat/completions",
            {**chat, "messages": [{"role": "user", "content": task}]},
        ),
        ("/v1/responses", {"input": parts}),
        ("/v1/responses", {"input": [1] * 1_900_000}),
        ("/retrieve", {"queries": [1] * 1_900_000}),
        ("/api/picture", {"graph": [[]] * 1_300_000}),
        ("/mcp", [{}] * 1_300_000),
    ]
    bodies = [
        (path, "application/json", json.dumps(document).encode()[:4_190_000])
        for path, document in documents
    ]
    form = "application/x-www-form-urlencoded"
    line = b'--edge\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
    for piece in (b"a=b&", b"&", b"a"):
        bodies.append(("/api/documents", form, piece * (8_000_000 // len(piece))))
    for piece in (b"\r\n", b"\r\n--edg", b"X-A: b\r\n"):
        bodies.append(
            (
                "/api/documents",
                "multipart/form-data; boundary=edge",
                line + piece * (8_000_000 // len(piece)),
            )
        )
    return bodies


def _processor_seconds(process: subprocess.Popen[str]) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _watched(process: subprocess.Popen[str], address: str) -> Iterator[list[float]]:
    """Yield the processor time of a server, request by request, before it said that it is there."""
    ended = threading.Event()
    waits: list[float] = []

    def watch() -> None:
        with _client(address) as client:
            while not ended.is_set():
                before = _processor_seconds(process)
                client.get("/health")
                waits.append(_processor_seconds(process) - before)
                time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield waits
    finally:
        ended.set()
        watcher.join()


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="needs Linux's /proc"
)


@needs_proc
def test_requests_that_are_much_work(attack: Attack) -> None:
    """Bodies that are much work, two at once: refused, or a title at most, and others wait for less than a second"""
    with (
        # which shares no interpreter with those who ask
        _process() as (
            process,
            address,
        ),
        _watched(process, address) as waits,
        ThreadPoolExecutor(2) as pool,
        _client(address) as client,
    ):
        for path, kind, body in _hostile_bodies():
            headers = {
                "Content-Type": kind,
                "Accept": "application/json, text/event-stream",
            }
            send = partial(client.post, path, content=body, headers=headers)
            waits.clear()
            for response in pool.map(lambda _, send=send: send(), attack.times(2)):
                is_title = (
                    response.status_code == 200 and b"New chat" in response.content
                )
                expected = response.status_code in (400, 403, 409, 413, 422) or is_title
                attack.expect(expected, f"{path} {body[:60]!r}: {response.status_code}")
            longest = max(waits, default=0.0)
            attack.expect(
                longest < 1,
                f"{path} {body[:60]!r}: another request waited {longest:.1f} s of work",
            )
        attack.expect(
            client.post("/api/ask", json={"question": QUESTION}).status_code == 200,
            "it went on",
        )


CHUNKED = "Transfer-Encoding: chunked\r\n"
ASKED = json.dumps({"question": QUESTION})
IN_ONE = f"{len(ASKED):x}\r\n{ASKED}\r\n"
# the fields of a request for an answer, the bytes behind them, and those that are sent after it for as long as it is taken
UNENDING = {
    "pieces of a letter": (CHUNKED, "", "1\r\n \r\n"),
    "pieces of 65 letters": (CHUNKED, "", f"41\r\n{' ' * 65}\r\n"),
    "pieces of 1,000 letters": (CHUNKED, "", f"3e8\r\n{' ' * 1_000}\r\n"),
    "the name of a piece": (CHUNKED, "1;", "x"),
    "a field behind the body": (CHUNKED, f"{IN_ONE}0\r\nX: ", "x"),
    "fields behind the body": (CHUNKED, f"{IN_ONE}0\r\n", "X: y\r\n"),
    "a field": ("X: ", "", "x"),
    "two lengths": (f"{CHUNKED}Content-Length: 2\r\n", IN_ONE, ""),
    "two other lengths": ("Content-Length: 2\r\nContent-Length: 3\r\n", "{}x", ""),
}


@needs_proc
@pytest.mark.parametrize("known", [True, False])
def test_requests_that_never_end(attack: Attack, tmp_path: Path, known: bool) -> None:
    """Requests without an end, or with two: refused and cut off, and others wait for less than a second"""
    token = "right-0123456789abcdef"
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({token: None}))
    secret = token if known else "another"
    head = f"POST /api/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n"
    with _process(f"--tokens={tokens}") as (process, address):
        port = int(address.rpartition(":")[2])
        with _watched(process, address) as waits:
            for name, (fields, beginning, unit) in UNENDING.items():
                waits.clear()
                ends = "" if fields == "X: " else "\r\n"
                connection = _connected(port, f"{head}{fields}{ends}{beginning}")
                taken = _seconds_taken(connection, unit)
                attack.expect(taken < 25, f"{name}: taken for {taken:.0f} s")
                longest = max(waits, default=0.0)
                attack.expect(longest < 1, f"{name}: others waited {longest:.1f} s")
        process.terminate()
        assert process.stderr is not None
        log = process.stderr.read()
        attack.expect("Traceback" not in log, log[-2_000:])


SAID = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
LIMITS = {"max_hops": 1, "k": 1, "max_facts": 1, "max_llm_calls": 1, "max_seconds": 1}
CHAT = {"model": "ras-agent", "messages": SAID, "filter": {"x": ["y"]}}
TOOL = {"name": "retrieve", "arguments": {"query": "x", "k": 3, "filter": {"x": "y"}}}
# the paths that take JSON, with a request of each
REQUESTS: list[tuple[str, str, object]] = [
    ("POST", "/api/ask", {"question": QUESTION, "thread": "t", "limits": LIMITS}),
    ("POST", "/api/ask", {"messages": SAID, "filter": {"x": 1}, "review": ["plan"]}),
    ("POST", "/api/threads/t/resume", {"decision": {"action": "approve"}}),
    ("PATCH", "/api/threads/t", {"name": "x", "right": False, "correct": "y"}),
    ("POST", "/retrieve", {"queries": ["x"], "topk": 3, "return_scores": True}),
    ("PATCH", "/api/graph", {"fact": ["a", "b", "c"], "correction": ["a", "b", "d"]}),
    ("POST", "/v1/chat/completions", {**CHAT, "stop": ["x"], "stream_options": {}}),
    ("POST", "/v1/chat/completions", {**CHAT, "n": 1, "response_format": {}}),
    ("POST", "/v1/responses", {"input": SAID, "text": {"format": {"type": "text"}}}),
    ("POST", "/v1/responses", {"input": "x", "previous_response_id": "resp_t_1"}),
    ("POST", "/api/picture", {"question": "x", "graph": {"facts": [{}]}, "steps": []}),
    (
        "POST",
        "/mcp",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": TOOL},
    ),
]
OTHERS = r"""null 1 -1 1e400 NaN -Infinity 18446744073709551616 "x" "" [] {} true [[]] {"a":1} [null]
    "a\u0000b" "a\ud800b" "a\u202eb" {"a\u0000":1} {"\ud800":"x"} [9223372036854775808] "resp_\u0000_1" """


def _places(
    value: object, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Yield the places of the values in a value of JSON."""
    yield path
    members: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    for name, member in members:
        yield from _places(member, (*path, name))


def _replaced(value: Any, path: tuple[str | int, ...], other: str) -> str:
    """Return a value of JSON as text, in which another text stands at a place."""
    if not path:
        return other
    changed = deepcopy(value)
    holder = changed
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = "@"
    return json.dumps(changed).replace('"@"', other)


@pytest.mark.timeout(900)
def test_values_of_other_kinds(attack: Attack, tmp_path: Path) -> None:
    """Another value in each place of each request: understood or refused, and no failure of the server"""
    index = tmp_path / "my.index"
    PassageIndex.create(index).add([Passage("p", "Bell was born.", "Bell", "bell.md")])
    kinds = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    tries = [
        (method, path, _replaced(body, place, other))
        for method, path, body in REQUESTS
        for place in _places(body)
        for other in OTHERS.split()
    ]
    attack.random.shuffle(tries)
    threads = f"sqlite:{tmp_path / 'threads.sqlite'}"
    settings = Settings(index=index, checkpoint=threads)
    with serving(settings) as address, _client(address) as client:
        for number in attack.times(len(tries)):
            method, path, body = tries[number]
            told = client.request(method, path, content=body, headers=kinds)
            failed = told.status_code >= 500 or "its log says why" in told.text
            attack.expect(not failed, f"{path} {body}: {told.status_code}")


def _seconds_taken(connection: socket.socket, unit: str) -> float:
    """Return how long a server takes a body without end, or, where nothing is, keeps the connection."""
    began = time.monotonic()
    data = (unit * (65_536 // len(unit or " "))).encode()
    with connection, suppress(OSError):
        while data and time.monotonic() - began < 30:
            connection.sendall(data)
        while connection.recv(65_536):
            pass
    return time.monotonic() - began


UNITS = (
    "word and ",
    "\n",
    "word\n",
    "水曜日の会議",
    "7",
    "12 34 ",
    "Mr. ",
    "J. K. ",
    ". ",
    "e\u0301",
    "<a ",
    "\n| a | b |",
    "x",
)


@needs_proc
def test_texts_without_the_end_of_a_sentence(attack: Attack, tmp_path: Path) -> None:
    """Uploads of 2 MB without the end of a sentence: indexed or refused, and others wait for less than a second"""
    index = tmp_path / "my.index"
    PassageIndex.create(index).add([Passage("p", "Bell was born.", "Bell", "bell.md")])
    size = len(attack.times(2_000_000))
    with (
        _process(f"--index={index}", sample=False) as (process, address),
        _watched(process, address) as waits,
        httpx.Client(base_url=address, trust_env=False, timeout=800) as client,
    ):
        for unit in UNITS:
            text = "He left. " + unit * (size // len(unit.encode()))
            waits.clear()
            told = client.post(
                "/api/documents", files={"files": ("long.txt", text.encode())}
            )
            attack.expect(
                told.status_code in (200, 422),
                f"{unit!r}: {told.status_code} {told.text[:100]}",
            )
            longest = max(waits, default=0.0)
            attack.expect(
                longest < 1, f"{unit!r}: another request waited {longest:.1f} s of work"
            )

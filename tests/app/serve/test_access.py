"""Who is let in: tokens and their part of the index, pages of elsewhere, sizes."""

import hashlib
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from ras_agent import Passage, PassageIndex, build_graph
from ras_agent.app.serve import bodies
from ras_agent.app.serve.access import Caller, access_of, read_access
from ras_agent.app.serve.app import create_app
from ras_agent.app.serve.service import open_service
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import SettingsError
from tests.app.serve.conftest import Served
from tests.messages import says

ROOT, SALES, LABS = (
    "root-0123456789abcdef",
    "sales-0123456789abcdef",
    "labs-0123456789abcdef",
)
BOTH, SINGLE = "both-0123456789abcdef", "single-0123456789abcdef"
PASSAGES = [
    Passage(
        "s1",
        "Velmora sells the sonar HX9 to Norway.",
        "Sales",
        "sales.md",
        {"team": "sales"},
    ),
    Passage(
        "l1",
        "Tadeusz Brandl builds the sonar QZ7 in Leith.",
        "Labs",
        "labs.md",
        {"team": "labs"},
    ),
]


@pytest.fixture(scope="module")
def shared_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two teams' passages, with its knowledge graph."""
    path = tmp_path_factory.mktemp("teams") / "my.index"
    PassageIndex.create(path).add(PASSAGES)
    build_graph(path)
    return path


@pytest.fixture
def teams(served: Served, shared_index: Path) -> httpx.Client:
    """A server whose tokens see all, the part of sales, and that of the labs."""
    hashed = f"sha256:{hashlib.sha256(LABS.encode()).hexdigest()}"
    return served(
        Settings(index=shared_index),
        {ROOT: None, SALES: {"team": "sales"}, hashed: {"team": "labs"}},
    )


def _as(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_server_that_other_machines_reach_starts_with_a_token_only(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        SettingsError, match=says("callers", "token", "RAS_AGENT_SERVE_TOKEN")
    ):
        read_access("0.0.0.0", None, {})
    assert not read_access("0.0.0.0", None, {"RAS_AGENT_SERVE_TOKEN": ROOT}).open
    assert all(
        read_access(host, None, {}).open
        for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")
    )


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ({"short": None}, "a token has 16 characters at least, and one has 5"),
        ({"sha256:12": None}, "followed by the 64 hexadecimal digits"),
        ({ROOT: {}}, "a token's value must be null, for the whole index, or a filter"),
        ({ROOT: "all"}, "a token's value must be null"),
        (
            {ROOT: {"team": {"nearly": "x"}}},
            "filter key 'team': unknown comparison 'nearly'",
        ),
        ({}, "expected a JSON object from tokens to filters"),
    ],
)
def test_a_wrong_file_of_tokens_is_an_error(
    tmp_path: Path, tokens: dict[str, Any], message: str
) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps(tokens))
    with pytest.raises(ValueError, match=message) as raised:
        read_access("127.0.0.1", file, {})
    assert ROOT not in str(raised.value)


def test_a_file_of_tokens_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=r"nowhere\.json: cannot be read as a file of tokens"
    ):
        read_access("127.0.0.1", tmp_path / "nowhere.json", {})


def test_a_token_is_the_same_caller_however_its_filter_is_ordered_and_another_with_another_filter() -> (
    None
):
    def name(bound: dict[str, Any] | None) -> str:
        caller = access_of({ROOT: bound}, "here").caller(f"Bearer {ROOT}")
        assert caller is not None
        return caller.name

    # threads are stored under these names, so they stay as they are
    assert name(None) == "86275a5db7ec6a9fa9d58d9d"
    assert (
        name({"team": "x", "year": 2024})
        == name({"year": 2024, "team": "x"})
        == "cdffce58abd18c7a8066dbf0"
    )
    assert len({name({"team": "x"}), name({"team": "y"}), name(None)}) == 3


def test_a_filter_of_a_request_is_joined_to_the_callers_own() -> None:
    sales, everybody = Caller("anna", {"team": "sales"}), Caller()
    assert (sales.sees_all, everybody.sees_all) == (False, True)
    assert sales.joined_filter(None) == sales.joined_filter({}) == {"team": "sales"}
    assert sales.joined_filter({"year": 2024}) == [{"team": "sales"}, {"year": 2024}]
    assert everybody.joined_filter({"year": 2024}) == {"year": 2024}
    assert everybody.joined_filter(None) is None


def test_nobody_is_let_in_without_a_token_that_is_known(teams: httpx.Client) -> None:
    for headers in (
        {},
        _as("guess-0123456789abcdef"),
        {"Authorization": ROOT},
        {"Authorization": f"Basic {ROOT}"},
    ):
        for path in (
            "/api/retrieve?q=sonar",
            "/v1/models",
            "/api/documents",
            "/nothing",
        ):
            refused = teams.get(path, headers=headers)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (
                401,
                "Bearer",
            )
            error = refused.json()["error"]
            assert (error["type"], error["code"]) == (
                "authentication_error",
                "invalid_api_key",
            )
    assert (
        teams.get("/health").status_code
        == teams.get("/").status_code
        == teams.get("/page/ask.js").status_code
        == 200
    )


def test_a_batch_of_queries_needs_a_token_and_finds_what_its_filter_admits(
    teams: httpx.Client,
) -> None:
    def found(token: str) -> list[list[str]]:
        told = teams.post(
            "/retrieve", json={"queries": ["sonar", "Norway"]}, headers=_as(token)
        )
        return [
            sorted(document["id"] for document in hits)
            for hits in told.json()["result"]
        ]

    assert teams.post("/retrieve", json={"queries": ["sonar"]}).status_code == 401
    assert found(ROOT) == [["l1", "s1"], ["s1"]]
    assert found(LABS) == [["l1"], []]


def test_a_token_sees_its_part_of_the_index_alone(teams: httpx.Client) -> None:
    def found(token: str, **more: str) -> list[str]:
        hits = teams.get(
            "/api/retrieve", params={"q": "sonar", **more}, headers=_as(token)
        ).json()["hits"]
        return sorted(hit["passage"]["id"] for hit in hits)

    assert (found(ROOT), found(SALES), found(LABS)) == (["l1", "s1"], ["s1"], ["l1"])
    assert found(SALES, filter='{"team": "labs"}') == []
    assert found(SALES, filter='{"team": {"not": "labs"}}') == ["s1"]
    assert found(SALES, filter='{"day": {"exists": true}}') == []
    assert found(SALES, filter='{"team": ["labs", "sales"]}') == ["s1"]
    assert teams.get("/api/passages/l1", headers=_as(SALES)).status_code == 404
    assert teams.get("/api/documents", headers=_as(SALES)).json() == {
        "documents": ["sales.md"],
        "files": [""],
        "total": 1,
    }
    names = teams.get("/api/entities", headers=_as(SALES)).json()["entities"]
    assert any("HX9" in name for name in names)
    assert not any("Brandl" in name or "QZ7" in name for name in names)
    shown = teams.get("/api/graph", headers=_as(SALES)).text
    assert "HX9" in shown
    assert "Brandl" not in shown
    assert "Brandl" in teams.get("/api/graph", headers=_as(ROOT)).text
    for asked in ({}, {"filter": {"team": "labs"}}):
        question = {"question": "Who builds the sonar QZ7?", **asked}
        out = teams.post("/api/ask", json=question, headers=_as(SALES)).text
        assert "Brandl" not in out
    chat = {
        "model": "ras-agent",
        "messages": [{"role": "user", "content": "Who builds the sonar QZ7?"}],
    }
    assert (
        "Brandl"
        not in teams.post("/v1/chat/completions", json=chat, headers=_as(SALES)).text
    )
    assert (
        "Brandl"
        in teams.post("/v1/chat/completions", json=chat, headers=_as(LABS)).text
    )


def _upload(
    client: httpx.Client, token: str, name: str, text: str, **form: str
) -> httpx.Response:
    return client.post(
        "/api/documents",
        files={"files": (name, text.encode())},
        data=form,
        headers=_as(token),
    )


@pytest.fixture
def changing(served: Served, tmp_path: Path) -> httpx.Client:
    """A server of an index of its own, with a token of each team, one of both, and one that sees single documents."""
    PassageIndex.create(tmp_path / "my.index").add(PASSAGES)
    bound = {BOTH: {"team": ["labs", "sales"]}, SINGLE: {"document_id": "sales.md"}}
    return served(
        Settings(index=tmp_path / "my.index"),
        {ROOT: None, SALES: {"team": "sales"}, LABS: {"team": "labs"}, **bound},
    )


def test_what_a_token_uploads_is_in_its_part_of_the_index(
    changing: httpx.Client,
) -> None:
    done = _upload(
        changing,
        SALES,
        "new.txt",
        "Velmora sells the sonar in Peru.",
        metadata='{"year": 2024}',
    ).json()
    assert (done["files"], done["passages_total"]) == (["new.txt"], None)
    (hit,) = changing.get("/api/retrieve?q=Peru", headers=_as(SALES)).json()["hits"]
    assert hit["passage"]["metadata"] | {"file": ""} == {
        "file": "",
        "team": "sales",
        "year": 2024,
    }
    assert not changing.get("/api/retrieve?q=Peru", headers=_as(LABS)).json()["hits"]
    # nor can the file itself say otherwise
    _upload(changing, SALES, "front.md", "---\nteam: labs\n---\nA mill in Chile.")
    _upload(
        changing,
        SALES,
        "rows.jsonl",
        '{"text": "A mill in Cuba.", "team": ["labs"], "id": "l1"}',
    )
    assert not changing.get("/api/retrieve?q=mill", headers=_as(LABS)).json()["hits"]
    assert (
        len(changing.get("/api/retrieve?q=mill", headers=_as(SALES)).json()["hits"])
        == 2
    )
    assert (
        changing.get("/api/passages/l1", headers=_as(LABS)).json()["text"]
        == PASSAGES[1].text
    )


@pytest.mark.parametrize(
    ("token", "metadata", "status", "message"),
    [
        (
            SALES,
            '{"team": "labs"}',
            403,
            "metadata: 'team' of what this token uploads is sales",
        ),
        (
            SALES,
            '{"team": ["sales", "labs"]}',
            403,
            "metadata: 'team' of what this token uploads is sales",
        ),
        (
            SALES,
            '{"team": null}',
            403,
            "metadata: 'team' of what this token uploads is sales",
        ),
        (BOTH, "{}", 422, "metadata: say whether team is labs or sales"),
        (
            BOTH,
            '{"team": "board"}',
            403,
            "metadata: 'team' of what this token uploads is labs or sales",
        ),
        (
            SINGLE,
            "{}",
            403,
            "only a part of the index is open here, by 'document_id': nothing is added to it",
        ),
        (
            SALES,
            '{"file": "sales.md"}',
            422,
            "metadata: 'file' is a field of the passage itself",
        ),
        (ROOT, '["team"]', 422, "metadata: Input should be a valid dictionary"),
        (
            ROOT,
            f'{{"team": "{"x" * 10_000}"}}',
            422,
            "metadata: String should have at most 10000 characters",
        ),
        (ROOT, "[" * 9_000, 422, "metadata: Invalid JSON: recursion limit exceeded"),
        (ROOT, "{", 422, "metadata: Invalid JSON"),
    ],
)
def test_metadata_outside_the_part_of_a_token_is_refused(
    changing: httpx.Client, token: str, metadata: str, status: int, message: str
) -> None:
    told = _upload(changing, token, "new.md", "A mill.", metadata=metadata)
    assert (told.status_code, message in told.json()["error"]["message"]) == (
        status,
        True,
    )
    assert changing.get("/api/documents", headers=_as(ROOT)).json()["total"] == 2


def test_a_token_gets_back_what_was_uploaded_with_its_filter_and_nothing_else(
    changing: httpx.Client,
) -> None:
    _upload(changing, SALES, "z.md", "A mill of the sales team.")

    def file(token: str, name: str) -> tuple[int, str]:
        reply = changing.get(
            "/api/documents/file", params={"id": name}, headers=_as(token)
        )
        return (
            reply.status_code,
            reply.text if reply.status_code == 200 else reply.json()["error"]["code"],
        )

    (name,) = (
        one
        for one in changing.get("/api/documents", headers=_as(SALES)).json()[
            "documents"
        ]
        if "/" in one
    )
    assert (
        file(SALES, "z.md")
        == file(SALES, name)
        == file(ROOT, name)
        == (200, "A mill of the sales team.")
    )
    for token, other in (
        (LABS, "z.md"),
        (LABS, name),
        (ROOT, "z.md"),
        (SALES, "sales.md"),
    ):
        assert file(token, other) == (404, "unknown_document")


def test_a_token_replaces_and_removes_what_it_uploaded_and_nothing_else(
    changing: httpx.Client,
) -> None:
    for token in (ROOT, SALES, LABS):
        assert _upload(changing, token, "z.md", f"A mill of {token}.", metadata='{"team": "sales"}'
                       if token == ROOT else "{}").status_code == 200  # fmt: skip
    assert (
        _upload(changing, SALES, "z.md", "A mill of nobody.").json()[
            "documents_written"
        ]
        == 1
    )
    found = changing.get("/api/retrieve?q=mill", headers=_as(ROOT)).json()["hits"]
    texts = {hit["passage"]["text"] for hit in found}
    assert texts == {f"A mill of {ROOT}.", "A mill of nobody.", f"A mill of {LABS}."}
    listed = changing.get("/api/documents", headers=_as(LABS)).json()["documents"]
    assert (listed[0], listed[1][:10], listed[1][-5:]) == (
        "labs.md",
        "team=labs~",
        "/z.md",
    )
    for name in ("sales.md", "labs.md", "l1", "../z.md", f"{listed[1]}/z.md"):
        assert (
            changing.delete(
                "/api/documents", params={"id": name}, headers=_as(SALES)
            ).status_code
            == 404
        )
    assert changing.delete("/api/documents?id=z.md", headers=_as(SALES)).json() == {
        "documents_removed": 1
    }
    assert (
        changing.delete("/api/documents?id=z.md", headers=_as(SALES)).status_code == 404
    )
    # who sees all names them as they are listed
    assert (
        changing.delete(
            "/api/documents", params={"id": listed[1]}, headers=_as(ROOT)
        ).status_code
        == 200
    )
    assert changing.get("/api/documents", headers=_as(ROOT)).json()["documents"] == [
        "sales.md",
        "labs.md",
        "z.md",
    ]


def test_what_of_an_upload_cannot_be_read_is_told_by_the_name_that_the_caller_gave(
    changing: httpx.Client,
) -> None:
    records = '{"text": "Ziegler tunes the sonar HX9."}\n[]'
    told = _upload(changing, SALES, "notes.jsonl", records).json()
    assert [skip["place"] for skip in told["skipped"]] == ["notes.jsonl line 2"]
    refused = _upload(changing, SALES, "one.md", "x" * 30_000).json()["error"][
        "message"
    ]
    assert says("no file of the upload could be indexed: one.md: no text").search(
        refused
    )


def test_threads_of_one_token_are_hidden_from_another(teams: httpx.Client) -> None:
    out = teams.post(
        "/api/ask",
        json={"question": "Who builds the QZ7?", "thread": "1"},
        headers=_as(LABS),
    ).json()
    assert out["thread"] == "1"
    assert (
        teams.get("/api/threads/1", headers=_as(LABS)).json()["answer"] == out["answer"]
    )
    for token in (SALES, ROOT):
        assert teams.get("/api/threads/1", headers=_as(token)).status_code == 404
        assert (
            teams.post("/api/threads/1/resume", json={}, headers=_as(token)).status_code
            == 404
        )


def test_pages_of_elsewhere_cannot_use_a_server_that_asks_for_no_token(
    client: httpx.Client,
) -> None:
    asked = {"question": "Who?"}
    evil = client.post(
        "/api/ask", json=asked, headers={"Origin": "https://evil.example"}
    )
    assert (evil.status_code, evil.json()["error"]["code"]) == (403, "wrong_origin")
    renamed = client.get("/api/documents", headers={"Host": "evil.example"})
    assert (renamed.status_code, renamed.json()["error"]["code"]) == (421, "wrong_host")
    own = str(client.base_url).rstrip("/")
    assert (
        client.post("/api/ask", json=asked, headers={"Origin": own}).status_code == 200
    )
    assert (
        "access-control-allow-origin"
        not in client.get("/health", headers={"Origin": "https://evil.example"}).headers
    )


def test_an_origin_that_is_named_may_ask(served: Served) -> None:
    client = served(Settings(cors="https://app.example"))
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    asked["Access-Control-Request-Headers"] = "content-type"
    assert (
        client.options("/api/ask", headers=asked).headers["access-control-allow-origin"]
        == "https://app.example"
    )
    done = client.post(
        "/api/ask", json={"question": "Who?"}, headers={"Origin": "https://app.example"}
    )
    assert (done.status_code, done.headers["access-control-allow-origin"]) == (
        200,
        "https://app.example",
    )


@pytest.mark.parametrize(
    ("body", "status", "wrong"),
    [
        (
            json.dumps({"question": "Who?", "filter": {"team": [[]] * 100_001}}),
            413,
            "lists, objects and",
        ),
        (
            json.dumps({"messages": [{"content": [1] * 200}] * 51}),
            422,
            "10,200 parts, and at most 10,000 are allowed",
        ),
        (
            json.dumps({"messages": [{"content": [1] * 999}] * 2}),
            422,
            "messages.0.content.str: Input should be",
        ),
        (
            json.dumps({f"key{number}": 1 for number in range(101)}),
            422,
            "101 keys, and at most 100 are allowed",
        ),
        (
            json.dumps({"question": "Who?", "filter": {"team": ["x"] * 30_000}}),
            422,
            "100,000 characters",
        ),
    ],
    ids=["values", "parts", "errors", "keys", "filter"],
)
def test_what_costs_the_loop_long_is_refused_by_its_first_wrong_part(
    client: httpx.Client, body: str, status: int, wrong: str
) -> None:
    told = client.post(
        "/api/ask", content=body, headers={"Content-Type": "application/json"}
    )
    assert (told.status_code, wrong in told.text) == (status, True), told.text


def test_large_bodies_are_parsed_in_a_thread_of_their_own(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def loads(text: bytes, **how: Any) -> object:
        parsed.append(threading.current_thread().name)
        return json.loads(text, **how)

    monkeypatch.setattr(bodies, "json", SimpleNamespace(loads=loads))
    for length in (10, 70_000):
        assert (
            client.post("/retrieve", json={"queries": ["x" * length]}).status_code
            == 200
        )
    small, large = parsed
    assert small != large


def test_a_body_that_is_too_large_is_refused_also_in_chunks(
    client: httpx.Client,
) -> None:
    large = json.dumps({"question": "x" * 5_000_000}).encode()
    told = client.post(
        "/api/ask", content=large, headers={"Content-Type": "application/json"}
    )
    assert (told.status_code, told.json()["error"]["code"]) == (413, "too_large")
    chunks = (large[start : start + 65536] for start in range(0, len(large), 65536))
    told = client.post(
        "/api/ask", content=chunks, headers={"Content-Type": "application/json"}
    )
    assert told.status_code == 413


def test_one_run_more_than_allowed_is_refused_and_told_to_come_again(
    served: Served, scripted_llm: Any
) -> None:
    scripted_llm.script({"hang": True})
    client = served(Settings(llm=scripted_llm.spec, max_runs=1))
    with client.stream("POST", "/api/ask", json={"question": "Who?", "stream": True}):
        refused = client.post("/api/ask", json={"question": "Who?"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert refused.json()["error"]["code"] == "busy"


async def test_an_application_that_mounts_the_server_says_who_asks(
    shared_index: Path,
) -> None:
    from fastapi import FastAPI

    site = FastAPI()

    @site.middleware("http")
    async def bind(request: Any, call_next: Any) -> Any:
        request.state.caller = Caller("anna", {"team": request.headers["team"]})
        return await call_next(request)

    async with open_service(Settings(index=shared_index)) as service:
        site.mount("/research", create_app(service))
        transport = httpx.ASGITransport(site)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://site.example"
        ) as client:
            for team in ("sales", "labs"):
                listed = await client.get(
                    "/research/api/documents", headers={"team": team}
                )
                assert listed.json()["documents"] == [f"{team}.md"]
            upload = {
                "files": ("new.md", b"# New"),
                "metadata": (None, '{"team": "sales"}'),
            }
            told = await client.post(
                "/research/api/documents", files=upload, headers={"team": "labs"}
            )
            assert told.status_code == 403


@pytest.mark.parametrize("header", [{"Host": "[::1"}, {"Origin": "http://[::1"}])
def test_a_host_or_an_origin_that_is_no_address_is_a_bad_request(
    client: httpx.Client, header: dict[str, str]
) -> None:
    response = client.get("/health", headers=header)
    assert (response.status_code, response.json()["error"]["code"]) == (
        400,
        "bad_request",
    )

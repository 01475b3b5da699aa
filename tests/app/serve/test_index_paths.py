"""The index over HTTP: searched, its graph looked at, documents uploaded and removed."""

import errno
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Semaphore
from typing import Any

import httpx
import pytest

from ras_agent import Passage, PassageIndex, build_graph
from ras_agent.app.serve import documents, service
from ras_agent.app.serve.access import Caller
from ras_agent.config.settings import Settings
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.store.journal import Journal, open_journal
from ras_agent.tools.store.sqlite import SqliteDatabase
from tests.app.serve.conftest import Served

PASSAGES = [
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh.",
        "Alexander Graham Bell",
        "bell.md",
    ),
    Passage(
        "leith",
        "The Water of Leith flows through Edinburgh.",
        "Water of Leith",
        "docs/leith.md",
    ),
]


@pytest.fixture
def short_turns() -> Iterator[None]:
    """Threads that take turns after a microsecond, so that one interrupts another inside a lookup."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index of two documents."""
    PassageIndex.create(tmp_path / "my.index").add(PASSAGES)
    return tmp_path / "my.index"


def _stored(index: Path) -> dict[str, bytes]:
    """The bytes of all uploaded files in an index, by their paths."""
    with closing(sqlite3.connect(index / "index.sqlite")) as file:
        rows = file.execute("SELECT path, data FROM uploads").fetchall()
    return {path.decode().removeprefix("upload:/"): data for path, data in rows}


def _upload(client: httpx.Client, *files: tuple[str, bytes]) -> httpx.Response:
    return client.post("/api/documents", files=[("files", file) for file in files])


def test_the_index_is_searched_as_the_agent_searches(client: httpx.Client) -> None:
    hits = client.get(
        "/api/retrieve", params={"q": "Who invented the telephone?", "k": 2}
    ).json()["hits"]
    assert hits[0]["passage"]["title"] == "Telephone"
    assert len(hits) == 2
    assert client.get("/api/retrieve", params={"q": " "}).status_code == 422
    for filter in ("{", "[" * 20_000):
        told = client.get("/api/retrieve", params={"q": "x", "filter": filter})
        assert told.status_code == 422
        assert told.json()["error"]["message"].startswith("filter: Invalid JSON: ")


def test_a_batch_of_queries_is_searched_in_the_form_of_search_r1s_server(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index))
    asked = {
        "queries": ["Where was Bell born?", " ", "Water of Leith"],
        "topk": 1,
        "return_scores": True,
    }
    ((bell,), blank, (leith,)) = client.post("/retrieve", json=asked).json()["result"]
    assert bell["document"] == {
        "id": "bell",
        "contents": '"Alexander Graham Bell"\nAlexander Graham Bell was born in Edinburgh.',
    }
    assert blank == []
    single = client.get("/api/retrieve", params={"q": "Water of Leith", "k": 1}).json()[
        "hits"
    ][0]
    assert (leith["document"]["id"], leith["score"]) == (
        single["passage"]["id"],
        single["score"],
    )


def test_a_batch_without_scores_has_the_documents_alone_and_three_of_them(
    served: Served, tmp_path: Path
) -> None:
    PassageIndex.create(tmp_path / "my.index").add(
        [Passage(f"p{n}", f"The mill of Leith, {n}.") for n in range(5)]
    )
    client = served(Settings(index=tmp_path / "my.index"))
    (found,) = client.post(
        "/retrieve", json={"queries": ["mill"], "topk": None}
    ).json()["result"]
    assert [document["id"] for document in found] == ["p0", "p1", "p2"]
    assert found[0]["contents"] == '""\nThe mill of Leith, 0.'


def test_of_a_query_as_long_as_a_policy_may_write_the_beginning_is_searched_for(
    client: httpx.Client,
) -> None:
    asked = {"queries": ["Leith " + "x" * 20_000, "Leith"], "topk": 1}
    long, short = client.post("/retrieve", json=asked).json()["result"]
    assert long == short


@pytest.mark.parametrize(
    "body",
    [{}, {"queries": "mill"}, {"queries": ["x"], "topk": 0}, {"queries": ["x"] * 4097}],
)
def test_a_batch_of_another_form_is_refused(
    client: httpx.Client, body: dict[str, Any]
) -> None:
    assert client.post("/retrieve", json=body).status_code == 422


def test_a_batch_that_takes_too_long_is_given_up(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_BATCH_SECONDS", 0.0)
    told = client.post("/retrieve", json={"queries": ["Bell"]})
    assert (told.status_code, told.json()["error"]["code"]) == (503, "timeout")


def test_a_neighbourhood_of_the_knowledge_graph(served: Served, index: Path) -> None:
    build_graph(index)
    client = served(Settings(index=index))
    assert client.get("/api/entities", params={"prefix": "water of"}).json() == {
        "entities": ["Water of Leith"]
    }
    near = client.get("/api/graph", params={"entity": "edinburgh", "nodes": 3}).json()
    assert near["entity"] == "Edinburgh"
    steps = {one["name"]: one["steps"] for one in near["entities"]}
    assert steps["Edinburgh"] == 0
    assert steps["Water of Leith"] == 1
    fact = next(fact for fact in near["facts"] if fact["subject"] == "Water of Leith")
    assert (fact["object"], fact["sources"][0]["passage_id"]) == ("Edinburgh", "leith")
    assert len(near["entities"]) <= 3
    assert client.get("/api/graph").json()["all_entities"] >= 3
    assert (
        client.get("/api/graph", params={"entity": "Paris"}).json()["error"]["code"]
        == "unknown_entity"
    )


def test_an_index_without_a_graph_says_how_to_make_one(client: httpx.Client) -> None:
    told = client.get("/api/graph")
    assert (told.status_code, told.json()["error"]["code"]) == (404, "no_graph")


def test_a_fact_of_an_index_without_a_graph_is_not_corrected(
    served: Served, index: Path
) -> None:
    told = served(Settings(index=index)).patch("/api/graph", json={"fact": list("abc")})
    assert (told.status_code, told.json()["error"]["code"]) == (404, "no_graph")


def test_an_uploaded_document_is_found_by_the_next_question(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index))
    before = client.get("/api/retrieve", params={"q": "Zyltor"}).json()["hits"]
    done = _upload(
        client,
        ("zyltor.md", b"# Zyltor\n\nZyltor was founded by Mara Quist."),
        ("x.txt", b"Nothing."),
    )
    assert done.json() == {
        "files": ["zyltor.md", "x.txt"],
        **{
            "documents_written": 2,
            "documents_unchanged": 0,
            "passages_written": 2,
            "passages_total": 4,
            "skipped": [],
        },
        "graph": None,
    }
    assert not before
    out = client.post("/api/ask", json={"question": "Who founded Zyltor?"}).json()
    assert "Mara Quist" in out["answer"]
    assert client.get("/api/documents", params={"containing": "ZYL"}).json() == {
        "documents": ["zyltor.md"],
        "files": ["zyltor.md"],
        "total": 1,
    }
    assert _stored(index) == {
        "zyltor.md": b"# Zyltor\n\nZyltor was founded by Mara Quist.",
        "x.txt": b"Nothing.",
    }
    assert [path.name for path in index.parent.iterdir()] == ["my.index"]


def test_an_upload_of_the_same_name_replaces_and_a_deleted_one_is_gone(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.md", b"Zyltor was founded by Mara Quist."))
    _upload(client, ("z.md", b"Zyltor was founded by Berta Olm."))
    assert [
        hit["passage"]["text"]
        for hit in client.get("/api/retrieve?q=Zyltor").json()["hits"]
    ] == ["Zyltor was founded by Berta Olm."]
    assert client.delete("/api/documents", params={"id": "z.md"}).json() == {
        "documents_removed": 1
    }
    assert client.get("/api/retrieve?q=Zyltor").json()["hits"] == []
    assert _stored(index) == {}
    assert client.delete("/api/documents", params={"id": "z.md"}).status_code == 404
    left = {
        path.name
        for path in index.rglob("*")
        if path.is_file() and b"Zyltor" in path.read_bytes()
    }
    assert left == set()
    # what came otherwise, as from Python, is removed too
    assert client.delete("/api/documents", params={"id": "docs/leith.md"}).json() == {
        "documents_removed": 1
    }
    assert client.get("/api/documents").json()["documents"] == ["bell.md"]


def test_an_uploaded_file_is_given_back_as_it_was_sent(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index))
    sent = "# Zyltor\r\n\r\nMara Quist, founder.".encode("utf-8-sig")
    assert _upload(client, ("Übersicht 1.md", sent)).status_code == 200
    reply = client.get("/api/documents/file", params={"id": "Übersicht 1.md"})
    assert (reply.status_code, reply.content) == (200, sent)
    # no page runs what somebody has uploaded
    assert reply.headers["content-type"] == "application/octet-stream"
    assert (
        reply.headers["content-disposition"]
        == "attachment; filename*=UTF-8''%C3%9Cbersicht%201.md"
    )
    assert PassageIndex.open(index).uploaded("Übersicht 1.md") == sent
    for other in (
        "bell.md",
        "docs/leith.md",
        "/etc/passwd",
        "../Übersicht 1.md",
        "./Übersicht 1.md",
    ):
        assert (
            client.get("/api/documents/file", params={"id": other}).json()["error"][
                "code"
            ]
            == "unknown_document"
        )
    client.delete("/api/documents", params={"id": "Übersicht 1.md"})
    assert (
        client.get("/api/documents/file", params={"id": "Übersicht 1.md"}).status_code
        == 404
    )
    assert PassageIndex.open(index).uploaded("Übersicht 1.md") is None


@pytest.mark.parametrize(
    "name",
    ["../evil.md", "..\\evil.md", "/etc/evil.md", "a/b.md", "C:evil.md", ".hidden.md", "..", "a\x00.md", " x.md",
     "n\u202ename.md", f"{'x' * 300}.md"],
)  # fmt: skip
def test_a_name_that_is_no_plain_name_is_refused_and_nothing_is_written(
    index: Path, name: str
) -> None:
    with pytest.raises(documents.ApiError) as raised:
        documents.safe_name(name)
    assert raised.value.status_code == 422


def test_a_path_in_an_upload_reaches_no_other_folder(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index))
    for name in ("../../evil.md", "/tmp/evil.md", "..%2Fevil.md/"):
        assert _upload(client, (name, b"# Evil")).status_code in (415, 422)
    assert _upload(client, ("run.exe", b"MZ")).status_code == 415
    assert sorted(path.name for path in index.parent.iterdir()) == ["my.index"]


@pytest.mark.parametrize(
    "unreadable", [b"\xff\xfe\x00", b"   "], ids=["no text", "blank"]
)
def test_what_cannot_be_read_leaves_everything_as_it_was(
    served: Served, index: Path, unreadable: bytes
) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.md", b"Zyltor was founded by Mara Quist."))
    told = _upload(client, ("z.md", unreadable))
    assert (told.status_code, told.json()["error"]["code"]) == (422, "unreadable")
    assert len(client.get("/api/retrieve?q=Zyltor").json()["hits"]) == 1
    assert _stored(index) == {"z.md": b"Zyltor was founded by Mara Quist."}


def test_an_unreadable_file_beside_a_good_one_replaces_nothing(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.md", b"Zyltor was founded by Mara Quist."))
    told = _upload(
        client,
        ("z.md", b"\xff\xfe\x00"),
        ("y.md", b"Grace Hopper was born in New York."),
    ).json()
    assert told["files"] == ["y.md"]
    unread, older = told["skipped"]
    assert (unread["place"], older["place"]) == ("z.md", "z.md")
    assert "a document that an earlier run read in it" in older["reason"]
    assert _stored(index) == {
        "y.md": b"Grace Hopper was born in New York.",
        "z.md": b"Zyltor was founded by Mara Quist.",
    }
    assert (
        client.get("/api/retrieve?q=Zyltor").json()["hits"][0]["passage"]["title"]
        == "z"
    )


def test_metadata_of_an_upload_is_stored_and_remembered(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index, metadata={"year": 2024}))
    form = {"metadata": '{"team": "sales"}'}
    client.post(
        "/api/documents", files={"files": ("z.txt", b"Zyltor is in Leith.")}, data=form
    )
    for text in (b"Zyltor is in Leith.", b"Zyltor is in Perth."):
        assert _upload(client, ("z.txt", text)).status_code == 200
        (hit,) = client.get(
            "/api/retrieve", params={"q": "Zyltor", "filter": '{"team": "sales"}'}
        ).json()["hits"]
        assert hit["passage"]["metadata"] == {
            "file": "z.txt",
            "team": "sales",
            "year": 2024,
        }
    client.delete("/api/documents?id=z.txt")
    _upload(client, ("z.txt", b"Zyltor is in Leith."))
    assert not client.get(
        "/api/retrieve", params={"q": "Zyltor", "filter": '{"team": "sales"}'}
    ).json()["hits"]


def test_an_upload_says_that_the_graph_does_not_know_it_yet(
    served: Served, index: Path
) -> None:
    build_graph(index)
    client = served(Settings(index=index))
    file = ("z.md", b"Zyltor was founded by Mara Quist.")
    assert [_upload(client, file).json()["graph"] for _ in range(2)] == ["stale", None]
    assert client.get("/api/graph", params={"entity": "Zyltor"}).status_code == 404
    build_graph(index)
    assert (
        client.get("/api/graph", params={"entity": "Zyltor"}).json()["entity"]
        == "Zyltor"
    )


def test_a_server_of_a_part_of_the_index_uploads_into_it(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index, filter={"team": "sales"}))
    assert _upload(client, ("z.txt", b"Zyltor is in Leith.")).status_code == 200
    assert len(client.get("/api/retrieve?q=Zyltor").json()["hits"]) == 1


def test_an_upload_waits_for_no_conversion_of_another_token(
    served: Served, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("markitdown")
    tokens = [f"token-{letter}-0123456789abcdef" for letter in "abcdef"]
    client = served(
        Settings(index=index), {token: {"team": token[6]} for token in tokens}
    )
    converting, go_on, convert = Semaphore(0), Event(), documents._converted

    def slow(files: Any) -> Any:
        converting.release()
        go_on.wait(60)
        return convert(files)

    def send(token: str, name: str, data: bytes) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return client.post(
            "/api/documents", files={"files": (name, data)}, headers=headers
        ).status_code

    monkeypatch.setattr(documents, "_converted", slow)
    with ThreadPoolExecutor(5) as pool:
        sent = [
            pool.submit(send, token, "m.html", b"<p>A mill stands in Leith.</p>")
            for token in tokens[:5]
        ]
        assert all(converting.acquire(timeout=60) for _ in sent)
        assert send(tokens[5], "m.md", b"A mill stands in Leith.") == 200
        go_on.set()
        assert [upload.result() for upload in sent] == [200] * 5


@pytest.mark.parametrize("moment", ["put_upload", "put_document", "commit"])
def test_an_upload_that_fails_changes_nothing(
    served: Served, index: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    client = served(Settings(index=index))
    first = {"files": ("z.md", b"Zyltor was founded by Mara Quist.")}
    client.post("/api/documents", files=first, data={"metadata": '{"team": "x"}'})

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, moment, full)
        new = [
            ("files", ("y.md", b"Bolmer was a miller.")),
            ("files", ("z.md", b"Bolmer built a mill.")),
        ]
        told = client.post(
            "/api/documents", files=new, data={"metadata": '{"team": "y", "year": 1}'}
        )
    assert (told.status_code, told.json()["error"]["code"]) == (507, "disk_full")
    assert client.get("/api/documents").json()["documents"] == [
        "bell.md",
        "docs/leith.md",
        "z.md",
    ]
    assert _stored(index) == {"z.md": b"Zyltor was founded by Mara Quist."}
    found = client.get("/api/retrieve?q=Zyltor").json()["hits"][0]["passage"]
    assert "Mara Quist" in found["text"]
    assert found["metadata"] == {"file": "z.md", "team": "x"}
    assert client.post("/api/documents", files=new).status_code == 200
    assert sorted(_stored(index)) == ["y.md", "z.md"]


def test_an_upload_that_is_too_large_is_refused(served: Served, index: Path) -> None:
    client = served(Settings(index=index, max_upload_mb=1))
    told = _upload(client, ("z.txt", b"x" * 1_100_000))
    assert (told.status_code, told.json()["error"]["code"]) == (413, "too_large")


def test_a_server_without_room_for_uploads_changes_no_document(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index, max_upload_mb=0))
    added = client.post(
        "/api/documents", files={"files": ("new.md", b"# New\n\nText.")}
    )
    removed = client.delete(
        "/api/documents",
        params={"id": client.get("/api/documents").json()["documents"][0]},
    )
    assert (added.status_code, removed.status_code) == (403, 403)
    assert (
        added.json()["error"]["code"] == removed.json()["error"]["code"] == "read_only"
    )


def test_the_sample_is_not_changed(client: httpx.Client) -> None:
    told = _upload(client, ("z.md", b"Zyltor"))
    assert (told.status_code, told.json()["error"]["code"]) == (409, "no_index")


def test_the_paths_are_described_without_a_script(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    page = client.get("/docs").text
    assert {"/api/ask", "/api/documents", "/v1/chat/completions"} <= paths.keys()
    assert all(f" {path}</code>" in page for path in paths)
    assert "<script" not in page
    assert "https://" not in page


def test_a_path_removes_nothing(
    served: Served, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.md", b"Zyltor was founded by Mara Quist."))
    monkeypatch.chdir(index.parent)
    Path("other.md").write_text("Bell was born.")
    ingest(["other.md"], index)
    for path in (
        ".",
        "..",
        "/z.md",
        "./z.md",
        "z.md/",
        "../z.md",
        "upload:/z.md",
        str(index.parent / "other.md"),
    ):
        assert client.delete("/api/documents", params={"id": path}).status_code == 404
    assert client.get("/api/documents").json()["total"] == 4


def test_a_removal_that_was_cut_off_before_its_end_is_ended_by_the_next(
    served: Served, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.jsonl", b'{"text": "Zyltor was founded by Mara Quist."}'))
    with monkeypatch.context() as killed:
        killed.setattr(
            SqliteDatabase,
            "compact",
            lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "killed")),
        )
        assert client.delete("/api/documents?id=z.jsonl").is_error
    assert _upload(client, ("y.md", b"A mill.")).status_code == 200
    assert client.delete("/api/documents?id=z.jsonl").status_code == 404
    left = {
        path.name
        for path in index.rglob("*")
        if path.is_file() and b"z.jsonl" in path.read_bytes()
    }
    assert left == set()


def test_a_record_that_is_removed_takes_the_bytes_of_its_file_with_it(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index))
    records = b'{"id": "a", "text": "Zyltor was founded by Mara Quist."}\n{"id": "b", "text": "Zyltor is in Leith."}\n'
    _upload(client, ("z.jsonl", records))
    assert client.delete("/api/documents", params={"id": "a"}).json() == {
        "documents_removed": 1
    }
    assert _stored(index) == {}
    assert [
        hit["passage"]["id"]
        for hit in client.get("/api/retrieve?q=Zyltor").json()["hits"]
    ] == ["b"]
    assert not any(
        b"Mara" in path.read_bytes() for path in index.rglob("*") if path.is_file()
    )
    assert _upload(client, ("z.jsonl", records)).json()["documents_written"] == 1
    assert client.delete("/api/documents", params={"id": "z.jsonl"}).json() == {
        "documents_removed": 2
    }


def test_files_that_are_indexed_beside_uploads_leave_them_as_they_are(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.md", b"Zyltor was founded by Mara Quist."))
    docs = index.parent / "docs"
    docs.mkdir()
    (docs / "z.md").write_text("A mill in Leith.")
    report = ingest([docs], index, prune=True)
    assert (
        report.vanished,
        report.stranded,
        report.moved,
        report.documents_removed,
    ) == ((), (), (), 0)
    (docs / "z.md").unlink()
    (docs / "y.md").write_text("A mill in Perth.")
    assert ingest([docs], index, prune=True).documents_removed == 1
    assert _stored(index) == {"z.md": b"Zyltor was founded by Mara Quist."}
    assert client.get("/api/documents").json()["documents"] == [
        "bell.md",
        "docs/leith.md",
        "z.md",
        "docs/y.md",
    ]
    assert ingest([], index, forget=["z.md"]).documents_removed == 1
    assert _stored(index) == {}


def test_an_upload_has_another_name_than_a_file_that_was_indexed_before(
    served: Served, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = served(Settings(index=index))
    monkeypatch.chdir(index.parent)
    Path("z.md").write_text("A mill in Leith.")
    ingest(["z.md"], index)
    assert (
        _upload(client, ("z.md", b"A mill in Perth.")).json()["documents_written"] == 1
    )
    first, second = client.get("/api/documents?containing=z").json()["documents"]
    assert (first, second[:2], second[-3:]) == ("z.md", "z~", ".md")
    assert client.delete("/api/documents", params={"id": second}).status_code == 200
    assert _stored(index) == {}
    texts = [
        hit["passage"]["text"]
        for hit in client.get("/api/retrieve?q=mill").json()["hits"]
    ]
    assert texts == ["A mill in Leith."]


def test_while_another_process_writes_the_index_a_change_is_told_to_come_again(
    served: Served, index: Path
) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.jsonl", b'{"text": "Zyltor was founded by Mara Quist."}'))
    with open_journal(PassageIndex.open(index).database):
        for told in (
            _upload(client, ("y.md", b"A mill.")),
            client.delete("/api/documents?id=z.jsonl"),
        ):
            assert (told.status_code, told.json()["error"]["code"]) == (
                409,
                "index_busy",
            )
            assert "my.index" not in told.text
    assert client.delete("/api/documents?id=z.jsonl").json() == {"documents_removed": 1}


def test_a_file_of_records_is_removed_whole(served: Served, index: Path) -> None:
    client = served(Settings(index=index))
    records = b'{"text": "Zyltor was founded by Mara Quist."}\n{"text": "Zyltor is in Leith."}\n'
    assert _upload(client, ("z.jsonl", records)).json()["documents_written"] == 2
    assert client.delete("/api/documents", params={"id": "z.jsonl"}).json() == {
        "documents_removed": 2
    }
    assert client.get("/api/documents").json()["total"] == 2


async def test_many_threads_see_the_graphs_of_more_tenants_than_are_kept_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_turns: None
) -> None:
    monkeypatch.setattr(service, "_GRAPHS", 1)
    teams = [f"team {number}" for number in range(4)]
    passages = [
        Passage(
            team, f"{team.title()} Works was founded in Paris.", metadata={"team": team}
        )
        for team in teams
    ]
    PassageIndex.create(tmp_path / "my.index").add(passages)
    build_graph(tmp_path / "my.index")
    async with service.open_service(Settings(index=tmp_path / "my.index")) as opened:

        def names(team: str) -> set[str]:
            return set(opened.graph(Caller(team, {"team": team})).entities) - {"Paris"}

        with ThreadPoolExecutor(16) as pool:
            seen = list(pool.map(names, teams * 400))
    assert seen == [{f"{team.title()} Works"} for team in teams] * 400


def test_an_index_that_is_gone_is_unavailable_and_no_message_says_where_it_was(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "my.index"
    PassageIndex.create(place).add(
        [Passage("bell", "Bell was born in Edinburgh.", "Bell")]
    )
    client = served(Settings(index=place))
    assert client.get("/api/retrieve?q=Bell").status_code == 200
    place.rename(tmp_path / "elsewhere.index")
    asked = {"question": "Where was Bell born?"}
    chat = {
        "model": "ras-agent",
        "messages": [{"role": "user", "content": "Where was Bell born?"}],
    }
    responses = [
        client.get("/api/retrieve?q=Bell"),
        client.get("/api/documents"),
        client.post("/api/ask", json=asked),
        client.post("/v1/chat/completions", json=chat),
    ]
    streamed = client.post("/api/ask", json={**asked, "stream": True}).text
    assert [response.status_code for response in responses] == [503] * 4
    assert {response.json()["error"]["code"] for response in responses} == {
        "index_unavailable"
    }
    assert "IndexNotFound: my.index holds no index" in streamed
    assert (
        str(tmp_path) not in "".join(response.text for response in responses) + streamed
    )
    assert str(place) in caplog.text


def test_a_fact_of_the_graph_is_corrected_and_removed_by_who_sees_all(
    served: Served, index: Path
) -> None:
    build_graph(index)
    part = "token-of-a-part-0123456789"
    client = served(
        Settings(index=index), {"token-of-all-0123456789": None, part: {"team": "x"}}
    )
    client.headers["Authorization"] = "Bearer token-of-all-0123456789"
    flows = ["Water of Leith", "flows through", "Edinburgh"]
    right = ["Water of Leith", "flows through", "Leith"]

    def facts() -> list[list[str]]:
        found = client.get("/api/graph").json()["facts"]
        return [[fact["subject"], fact["predicate"], fact["object"]] for fact in found]

    assert (
        client.patch(
            "/api/graph", json={"fact": flows, "correction": right}
        ).status_code
        == 200
    )
    assert right in facts()
    assert flows not in facts()
    unknown = client.patch("/api/graph", json={"fact": ["Nobody", "is", "here"]})
    assert (unknown.status_code, "Nobody" in unknown.json()["error"]["message"]) == (
        422,
        True,
    )
    assert client.patch("/api/graph", json={"fact": right}).status_code == 200
    assert right not in facts()
    other = client.patch(
        "/api/graph", json={"fact": right}, headers={"Authorization": f"Bearer {part}"}
    )
    assert (other.status_code, other.json()["error"]["code"]) == (403, "read_only")


def test_a_page_is_told_what_is_asked_and_what_may_be_changed(
    served: Served, index: Path
) -> None:
    about = served(Settings(index=index)).get("/api/about").json()
    assert about | {"version": ""} == {
        **{
            "version": "",
            "collection": "my.index",
            "models": {},
            "graph": False,
            "changes": True,
            "corrects": False,
        },
        "examples": ["Where was Alexander Graham Bell born?"],
    }
    fixed = served(Settings(index=index, max_upload_mb=0)).get("/api/about").json()
    assert (fixed["changes"], fixed["corrects"]) == (False, False)

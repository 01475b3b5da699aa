"""The index over HTTP: searched, its graph looked at, documents uploaded and removed."""

import errno
from pathlib import Path
from typing import Any

import httpx
import pytest

from ras_agent import Passage, PassageIndex, build_graph
from ras_agent.app.serve import documents
from ras_agent.settings import Settings
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.journal import open_journal
from tests.app.serve.conftest import Served

PASSAGES = [
    Passage("bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell", "bell.md"),
    Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith", "docs/leith.md"),
]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index of two documents."""
    PassageIndex.create(tmp_path / "my.index").add(PASSAGES)
    return tmp_path / "my.index"


def _upload(client: httpx.Client, *files: tuple[str, bytes]) -> httpx.Response:
    return client.post("/api/documents", files=[("files", file) for file in files])


def test_the_index_is_searched_as_the_agent_searches(client: httpx.Client) -> None:
    hits = client.get("/api/retrieve", params={"q": "Who invented the telephone?", "k": 2}).json()["hits"]
    assert hits[0]["passage"]["title"] == "Telephone"
    assert len(hits) == 2
    assert client.get("/api/retrieve", params={"q": " "}).status_code == 422
    for filter in ("{", "[" * 20_000):
        told = client.get("/api/retrieve", params={"q": "x", "filter": filter})
        assert told.status_code == 422
        assert told.json()["error"]["message"].startswith("filter: n")


def test_a_neighbourhood_of_the_knowledge_graph(served: Served, index: Path) -> None:
    build_graph(index)
    client = served(Settings(index=index))
    assert client.get("/api/entities", params={"prefix": "water of"}).json() == {"entities": ["Water of Leith"]}
    near = client.get("/api/graph", params={"entity": "edinburgh", "nodes": 3}).json()
    assert near["entity"] == "Edinburgh"
    steps = {one["name"]: one["steps"] for one in near["entities"]}
    assert steps["Edinburgh"] == 0
    assert steps["Water of Leith"] == 1
    fact = next(fact for fact in near["facts"] if fact["subject"] == "Water of Leith")
    assert (fact["object"], fact["sources"][0]["passage_id"]) == ("Edinburgh", "leith")
    assert len(near["entities"]) <= 3
    assert client.get("/api/graph").json()["all_entities"] >= 3
    assert client.get("/api/graph", params={"entity": "Paris"}).json()["error"]["code"] == "unknown_entity"


def test_an_index_without_a_graph_says_how_to_make_one(client: httpx.Client) -> None:
    told = client.get("/api/graph")
    assert (told.status_code, told.json()["error"]["code"]) == (404, "no_graph")


def test_an_uploaded_document_is_found_by_the_next_question(served: Served, index: Path) -> None:
    client = served(Settings(index=index))
    before = client.get("/api/retrieve", params={"q": "Zyltor"}).json()["hits"]
    done = _upload(client, ("zyltor.md", b"# Zyltor\n\nZyltor was founded by Mara Quist."), ("x.txt", b"Nothing."))
    assert done.json() == {
        "files": ["zyltor.md", "x.txt"],
        **{"documents_written": 2, "documents_unchanged": 0, "passages_written": 2, "passages_total": 4, "skipped": []},
        "graph": None,
    }
    assert not before
    out = client.post("/api/ask", json={"question": "Who founded Zyltor?"}).json()
    assert "Mara Quist" in out["answer"]
    assert client.get("/api/documents", params={"containing": "ZYL"}).json() == {"documents": ["zyltor.md"], "total": 1}
    assert (index.parent / "my.index.uploads" / "zyltor.md").is_file()


def test_an_upload_of_the_same_name_replaces_and_a_deleted_one_is_gone(served: Served, index: Path) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.md", b"Zyltor was founded by Mara Quist."))
    _upload(client, ("z.md", b"Zyltor was founded by Berta Olm."))
    assert [hit["passage"]["text"] for hit in client.get("/api/retrieve?q=Zyltor").json()["hits"]] == [
        "Zyltor was founded by Berta Olm."
    ]
    assert client.delete("/api/documents", params={"id": "z.md"}).json() == {"documents_removed": 1}
    assert client.get("/api/retrieve?q=Zyltor").json() == {"hits": []}
    assert not (index.parent / "my.index.uploads" / "z.md").exists()
    assert client.delete("/api/documents", params={"id": "z.md"}).status_code == 404
    # what came otherwise, as from Python, is removed too
    assert client.delete("/api/documents", params={"id": "docs/leith.md"}).json() == {"documents_removed": 1}
    assert client.get("/api/documents").json()["documents"] == ["bell.md"]


@pytest.mark.parametrize(
    "name",
    ["../evil.md", "..\\evil.md", "/etc/evil.md", "a/b.md", "C:evil.md", ".hidden.md", "..", "a\x00.md", " x.md",
     "n\u202ename.md", f"{'x' * 300}.md"],
)  # fmt: skip
def test_a_name_that_is_no_plain_name_is_refused_and_nothing_is_written(index: Path, name: str) -> None:
    with pytest.raises(documents.ApiError) as raised:
        documents.safe_name(name)
    assert raised.value.status == 422


def test_a_path_in_an_upload_reaches_no_other_folder(served: Served, index: Path) -> None:
    client = served(Settings(index=index))
    for name in ("../../evil.md", "/tmp/evil.md", "..%2Fevil.md/"):
        assert _upload(client, (name, b"# Evil")).status_code in (415, 422)
    assert _upload(client, ("run.exe", b"MZ")).status_code == 415
    assert sorted(path.name for path in index.parent.iterdir()) == ["my.index"]


@pytest.mark.parametrize("unreadable", [b"\xff\xfe\x00", b"   "], ids=["no text", "blank"])
def test_what_cannot_be_read_leaves_everything_as_it_was(served: Served, index: Path, unreadable: bytes) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.md", b"Zyltor was founded by Mara Quist."))
    told = _upload(client, ("z.md", unreadable))
    assert (told.status_code, told.json()["error"]["code"]) == (422, "unreadable")
    assert len(client.get("/api/retrieve?q=Zyltor").json()["hits"]) == 1
    assert (index.parent / "my.index.uploads" / "z.md").read_bytes() == b"Zyltor was founded by Mara Quist."
    assert sorted(path.name for path in (index.parent / "my.index.uploads").iterdir()) == ["z.md"]


def test_an_unreadable_file_beside_a_good_one_replaces_nothing(served: Served, index: Path) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.md", b"Zyltor was founded by Mara Quist."))
    told = _upload(client, ("z.md", b"\xff\xfe\x00"), ("y.md", b"Grace Hopper was born in New York.")).json()
    assert (told["files"], [item["place"] for item in told["skipped"]]) == (["y.md"], ["z.md"])
    stored = {path.name: path.read_bytes() for path in (index.parent / "my.index.uploads").iterdir()}
    assert stored == {"y.md": b"Grace Hopper was born in New York.", "z.md": b"Zyltor was founded by Mara Quist."}
    assert client.get("/api/retrieve?q=Zyltor").json()["hits"][0]["passage"]["title"] == "z"


def test_metadata_of_an_upload_is_stored_and_remembered(served: Served, index: Path) -> None:
    client = served(Settings(index=index, metadata={"year": 2024}))
    form = {"metadata": '{"team": "sales"}'}
    client.post("/api/documents", files={"files": ("z.txt", b"Zyltor is in Leith.")}, data=form)
    for text in (b"Zyltor is in Leith.", b"Zyltor is in Perth."):
        assert _upload(client, ("z.txt", text)).status_code == 200
        (hit,) = client.get("/api/retrieve", params={"q": "Zyltor", "filter": '{"team": "sales"}'}).json()["hits"]
        assert hit["passage"]["metadata"] == {"file": "z.txt", "team": "sales", "year": 2024}
    client.delete("/api/documents?id=z.txt")
    _upload(client, ("z.txt", b"Zyltor is in Leith."))
    assert not client.get("/api/retrieve", params={"q": "Zyltor", "filter": '{"team": "sales"}'}).json()["hits"]


def test_an_upload_says_that_the_graph_does_not_know_it_yet(served: Served, index: Path) -> None:
    build_graph(index)
    client = served(Settings(index=index))
    file = ("z.md", b"Zyltor was founded by Mara Quist.")
    assert [_upload(client, file).json()["graph"] for _ in range(2)] == ["stale", None]
    assert client.get("/api/graph", params={"entity": "Zyltor"}).status_code == 404
    build_graph(index)
    assert client.get("/api/graph", params={"entity": "Zyltor"}).json()["entity"] == "Zyltor"


def test_a_server_of_a_part_of_the_index_uploads_into_it(served: Served, index: Path) -> None:
    client = served(Settings(index=index, filter={"team": "sales"}))
    assert _upload(client, ("z.txt", b"Zyltor is in Leith.")).status_code == 200
    assert len(client.get("/api/retrieve?q=Zyltor").json()["hits"]) == 1


def test_an_upload_that_fails_late_is_taken_out_of_the_index_again(
    served: Served, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = served(Settings(index=index))
    first = {"files": ("z.md", b"Zyltor was founded by Mara Quist.")}
    client.post("/api/documents", files=first, data={"metadata": '{"team": "x"}'})

    def indexed_and_failed(*args: Any, **options: Any) -> None:
        patch.undo()
        documents.ingest(*args, **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(documents, "ingest", indexed_and_failed)
        new = [("files", ("z.md", b"Bolmer built a mill.")), ("files", ("y.md", b"Bolmer was a miller."))]
        told = client.post("/api/documents", files=new, data={"metadata": '{"team": "y", "year": 1}'})
    assert told.status_code == 507
    assert client.get("/api/documents").json()["documents"] == ["bell.md", "docs/leith.md", "z.md"]
    found = client.get("/api/retrieve?q=Zyltor").json()["hits"][0]["passage"]
    assert "Mara Quist" in found["text"]
    assert found["metadata"] == {"file": "z.md", "team": "x"}


def test_a_full_disk_keeps_the_good_index(served: Served, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = served(Settings(index=index))

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(documents.shutil, "copyfileobj", full)
        told = _upload(client, ("z.md", b"Zyltor was founded by Mara Quist."))
    assert (told.status_code, told.json()["error"]["code"]) == (507, "disk_full")
    assert list((index.parent / "my.index.uploads").iterdir()) == []
    assert client.get("/api/documents").json()["documents"] == ["bell.md", "docs/leith.md"]
    assert _upload(client, ("z.md", b"Zyltor was founded by Mara Quist.")).status_code == 200


def test_an_upload_that_is_too_large_is_refused(served: Served, index: Path) -> None:
    client = served(Settings(index=index, max_upload_mb=1))
    told = _upload(client, ("z.txt", b"x" * 1_100_000))
    assert (told.status_code, told.json()["error"]["code"]) == (413, "too_large")


def test_a_server_without_room_for_uploads_changes_no_document(served: Served, index: Path) -> None:
    client = served(Settings(index=index, max_upload_mb=0))
    added = client.post("/api/documents", files={"files": ("new.md", b"# New\n\nText.")})
    removed = client.delete("/api/documents", params={"id": client.get("/api/documents").json()["documents"][0]})
    assert (added.status_code, removed.status_code) == (403, 403)
    assert added.json()["error"]["code"] == removed.json()["error"]["code"] == "read_only"


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


def test_a_path_removes_nothing(served: Served, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.md", b"Zyltor was founded by Mara Quist."))
    monkeypatch.chdir(index.parent)
    uploads = index.parent / "my.index.uploads"
    for path in (
        ".",
        "..",
        "/z.md",
        "./z.md",
        "my.index.uploads",
        "my.index.uploads/z.md",
        str(uploads),
        str(uploads / "z.md"),
    ):
        assert client.delete("/api/documents", params={"id": path}).status_code == 404
    assert client.get("/api/documents").json()["total"] == 3


def test_a_removal_that_was_cut_off_before_its_end_is_ended_by_the_next(served: Served, index: Path) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.jsonl", b'{"text": "Zyltor was founded by Mara Quist."}'))
    stored = index.parent / "my.index.uploads" / "z.jsonl"
    ingest([], index, forget=[str(stored)])  # a kill here would leave the file
    assert client.delete("/api/documents?id=z.jsonl").json() == {"documents_removed": 0}
    assert not stored.exists()


@pytest.mark.parametrize("clearing_away", [False, True])
def test_an_upload_that_was_killed_leaves_nothing_behind(
    served: Served, index: Path, monkeypatch: pytest.MonkeyPatch, clearing_away: bool
) -> None:
    client, uploads = served(Settings(index=index)), index.parent / "my.index.uploads"
    (uploads / ".git").mkdir(parents=True)
    (uploads / ".git" / ".lock").touch()  # a folder of somebody else's
    _upload(client, ("z.md", b"Zyltor was founded by Mara Quist."))

    def die(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "killed")

    with monkeypatch.context() as killed:  # one that is killed puts nothing back and clears nothing away
        killed.setattr(documents, "ingest", die)
        killed.setattr(documents, "_put_back", lambda *_: None)
        killed.setattr(documents.shutil, "rmtree", lambda *_, **__: None)
        assert _upload(client, ("z.md", b"Zyltor was founded by Ada Nettle.")).is_error
    assert {path.name for path in uploads.glob("**/z.md*")} == {"z.md", "z.md.old"}
    (lock,) = (path for path in uploads.glob(".*/.lock") if path.parent.name != ".git")
    if clearing_away:
        lock.unlink()
    assert _upload(client, ("y.md", b"A mill.")).status_code == 200
    assert (uploads / ".git" / ".lock").exists()
    assert {path.name: path.read_bytes() for path in uploads.iterdir() if path.name != ".git"} == {
        "y.md": b"A mill.",
        "z.md": b"Zyltor was founded by Mara Quist.",
    }
    assert "Mara Quist" in client.get("/api/retrieve?q=Who founded Zyltor?&k=1").text


def test_while_another_process_writes_the_index_a_change_is_told_to_come_again(served: Served, index: Path) -> None:
    client = served(Settings(index=index))
    _upload(client, ("z.jsonl", b'{"text": "Zyltor was founded by Mara Quist."}'))
    with open_journal(PassageIndex.open(index).database):
        for told in (_upload(client, ("y.md", b"A mill.")), client.delete("/api/documents?id=z.jsonl")):
            assert (told.status_code, told.json()["error"]["code"]) == (409, "index_busy")
            assert "my.index" not in told.text
    assert client.delete("/api/documents?id=z.jsonl").json() == {"documents_removed": 1}


def test_a_file_of_records_is_removed_whole(served: Served, index: Path) -> None:
    client = served(Settings(index=index))
    records = b'{"text": "Zyltor was founded by Mara Quist."}\n{"text": "Zyltor is in Leith."}\n'
    assert _upload(client, ("z.jsonl", records)).json()["documents_written"] == 2
    assert client.delete("/api/documents", params={"id": "z.jsonl"}).json() == {"documents_removed": 2}
    assert client.get("/api/documents").json()["total"] == 2

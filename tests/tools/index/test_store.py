"""The passage index: what writes change, what a reader sees, what survives an interruption."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.errors import IndexExists, IndexMismatch, IndexNotFound, MissingExtra, UnknownName
from ras_agent.records import Passage
from ras_agent.tools.index import checksums
from ras_agent.tools.index import snapshot as snapshot_module
from ras_agent.tools.index import store as store_module
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.logs import FilePassageLog
from ras_agent.tools.index.manifest import Files
from ras_agent.tools.index.row_table import indexed_text
from ras_agent.tools.index.store import Changes, PassageIndex
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_index import VectorSettings
from ras_agent.tools.retrieve.registered import retriever_over
from tests.messages import says

BELL = Passage("bell#0", "Bell was born in Edinburgh.", "Alexander Graham Bell", "bell", {"page": 3})
BELL_2 = Passage("bell#1", "He patented the telephone.", "Alexander Graham Bell", "bell")
LEITH = Passage("leith#0", "The Water of Leith flows through Edinburgh.", "Water of Leith", "leith")
TOKYO = Passage("tokyo", "東京 is a city.\n“Quoted” \ud800 and \u2028 odd.", "東京")


@pytest.fixture(params=["memory", "disk"])
def index(request: pytest.FixtureRequest, tmp_path: Path, hash_embedder: Any) -> PassageIndex:
    """An empty index with vectors."""
    if request.param == "memory":
        return PassageIndex.in_memory(embedder=hash_embedder)
    return PassageIndex.create(tmp_path / "index", hash_embedder)


def ids(index: PassageIndex) -> list[str]:
    return [passage.id for passage in index.passages]


def found(index: PassageIndex, query: str, name: str = "bm25") -> list[str]:
    return [hit.passage.id for hit in retriever_over(index, name).retrieve(query, 10)]


def files_with(content: bytes, folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and content in path.read_bytes())


def test_passages_come_back_as_they_were_given_in_order(index: PassageIndex) -> None:
    assert index.add([BELL, BELL_2, TOKYO]) == Changes(added=3, embedded=3)
    assert list(index.passages) == [BELL, BELL_2, TOKYO]
    assert len(index) == 3
    assert index.passages[-1] == TOKYO
    assert list(index.passages[1:]) == [BELL_2, TOKYO]
    with pytest.raises(IndexError):
        index.passages[3]


def test_a_passage_is_found_by_its_id(index: PassageIndex) -> None:
    index.add([BELL, LEITH])
    assert index.get("leith#0") == LEITH
    assert index.get("nothing") is None


def test_adding_an_id_that_is_there_changes_nothing(index: PassageIndex) -> None:
    index.add([BELL])
    with pytest.raises(ValueError, match=r"'bell#0' is already in the index: `upsert`"):
        index.add([LEITH, BELL])
    assert ids(index) == ["bell#0"]


def test_an_id_given_twice_is_refused(index: PassageIndex) -> None:
    with pytest.raises(ValueError, match="'bell#0' is given twice"):
        index.upsert([BELL, LEITH, BELL])


def test_metadata_that_json_cannot_hold_is_refused_by_an_index_on_disk(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "index")
    with pytest.raises(ValueError, match="passage 'p': its metadata is not JSON"):
        index.add([Passage("p", "text", metadata={"when": object()})])
    assert len(PassageIndex.open(tmp_path / "index")) == 0


def test_upsert_replaces_in_place_and_counts(index: PassageIndex) -> None:
    index.add([BELL, LEITH])
    changed = Passage("bell#0", "Bell was born in 1847.", "Alexander Graham Bell", "bell")
    assert index.upsert([changed, LEITH, TOKYO]) == Changes(added=1, replaced=1, unchanged=1, embedded=2)
    assert list(index.passages) == [changed, LEITH, TOKYO]
    assert found(index, "1847") == ["bell#0"]


def test_upserting_what_is_there_embeds_nothing(index: PassageIndex, hash_embedder: Any) -> None:
    index.add([BELL, LEITH])
    hash_embedder.texts.clear()
    assert index.upsert([LEITH, BELL]) == Changes(unchanged=2)
    assert hash_embedder.texts == []


def test_a_text_seen_before_keeps_its_vector_under_another_id_and_other_metadata(
    index: PassageIndex, hash_embedder: Any
) -> None:
    index.add([BELL])
    hash_embedder.texts.clear()
    moved = Passage("bell#9", BELL.text, BELL.title, "elsewhere")
    described = Passage("bell#0", BELL.text, BELL.title, "bell", {"page": 4})
    assert index.upsert([moved, described]) == Changes(added=1, replaced=1)
    assert hash_embedder.texts == []
    assert index.get("bell#0") == described
    assert sorted(found(index, "born in Edinburgh", "dense")[:2]) == ["bell#0", "bell#9"]


def test_deleting_a_document_deletes_its_passages_alone(index: PassageIndex) -> None:
    index.add([BELL, LEITH, BELL_2, TOKYO])
    assert index.delete_document("bell") == Changes(deleted=2)
    assert ids(index) == ["leith#0", "tokyo"]
    assert found(index, "Edinburgh") == ["leith#0"]
    assert set(found(index, "Edinburgh", "dense")) == {"leith#0", "tokyo"}
    assert index.delete_document("bell") == Changes()


def test_passages_without_a_document_belong_to_none(index: PassageIndex) -> None:
    index.add([BELL, TOKYO])
    assert index.delete_document("") == Changes()
    assert index.document_ids() == ("bell",)


def test_document_ids_are_distinct_in_corpus_order(index: PassageIndex) -> None:
    index.add([LEITH, BELL, BELL_2])
    assert index.document_ids() == ("leith", "bell")


def test_upserting_whole_documents_deletes_what_they_no_longer_hold(index: PassageIndex) -> None:
    index.add([BELL, BELL_2, LEITH])
    assert index.upsert([BELL], whole_documents=True) == Changes(unchanged=1, deleted=1)
    assert ids(index) == ["bell#0", "leith#0"]


def test_a_retriever_searches_what_was_there_when_it_was_made(index: PassageIndex) -> None:
    index.add([BELL, LEITH])
    before = retriever_over(index, "hybrid")
    index.delete_document("bell")
    index.add([Passage("new", "Bell rang in Edinburgh.")])
    assert {hit.passage.id for hit in before.retrieve("Bell Edinburgh")} == {"bell#0", "leith#0"}
    assert set(found(index, "Bell Edinburgh", "hybrid")) == {"leith#0", "new"}


def test_an_index_without_vectors_says_how_to_get_them() -> None:
    index = PassageIndex.in_memory([BELL])
    with pytest.raises(IndexMismatch, match=says("no vectors", "make another with an embedder", "retrieve by bm25")):
        retriever_over(index, "dense")


def test_an_embedder_that_gives_vectors_of_another_width_is_named(hash_embedder: Any) -> None:
    index = PassageIndex.in_memory([BELL], hash_embedder)
    hash_embedder.embed = lambda texts: np.ones((len(texts), 3), dtype=np.float32)
    with pytest.raises(IndexMismatch, match=says("'hash'", "shape (1, 3)", "1 texts")):
        index.add([LEITH])
    with pytest.raises(IndexMismatch, match=r"shape \(3,\), the index holds vectors of 64"):
        retriever_over(index, "dense").retrieve("Leith")


# On disk


def test_reopened_it_is_the_same(tmp_path: Path, hash_embedder: Any) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH, TOKYO])
    hash_embedder.texts.clear()
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert list(again.passages) == [BELL, LEITH, TOKYO]
    for name in ("bm25", "dense", "hybrid"):
        before, after = (retriever_over(one, name).retrieve("Edinburgh city") for one in (index, again))
        assert after == before
    assert hash_embedder.texts == ["Edinburgh city"] * 4  # dense and hybrid, each before and after: no passage


def test_nothing_in_it_is_pickled(tmp_path: Path, hash_embedder: Any) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder).add([BELL, LEITH])
    files = {path.name for path in (tmp_path / "index").rglob("*") if path.is_file()}
    assert files == {
        "index.json",
        "passages-0.jsonl",
        "rows-1.npy",
        "starts.npy",
        "rows.npy",
        "weights.npy",
        "vocabulary.json",
        "vectors-0.f32",
        "vectors-1.faiss",
        "writer.lock",
    }
    for path in (tmp_path / "index").rglob("*.npy"):
        np.load(path, allow_pickle=False)


def test_settings_stay(tmp_path: Path) -> None:
    settings = {"tokeniser": Tokeniser("german"), "bm25": BM25Parameters(k1=0.9, b=0.4, method="atire")}
    PassageIndex.create(tmp_path / "index", **settings).add([BELL, Passage("p", "Die Häuser am Fluss")])
    index = PassageIndex.open(tmp_path / "index")
    assert found(index, "das Haus") == ["p"]
    assert index.snapshot.manifest.bm25 == BM25Parameters(k1=0.9, b=0.4, method="atire")


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
def test_each_kind_of_vector_index_finds_a_passage_again(tmp_path: Path, hash_embedder: Any, kind: Any) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder, vectors=VectorSettings(kind, probes=8))
    index.add(Passage(str(number), f"word{number} and word{number + 1}") for number in range(1500))
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert found(again, "word700 and word701", "dense")[0] == "700"


def test_an_unknown_kind_of_vector_index_is_refused() -> None:
    with pytest.raises(ValueError, match="'tree'; known: flat, hnsw, ivf"):
        VectorSettings("tree")  # type: ignore[arg-type]


def test_there_must_be_an_index_to_open(tmp_path: Path) -> None:
    assert not PassageIndex.exists(tmp_path / "none")
    with pytest.raises(IndexNotFound, match=says("no index", "none", "make one with `ras-agent index`")):
        PassageIndex.open(tmp_path / "none")


def test_an_index_is_not_created_over_another(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index")
    assert PassageIndex.exists(tmp_path / "index")
    with pytest.raises(IndexExists, match="holds an index already"):
        PassageIndex.create(tmp_path / "index")


def test_an_index_is_not_created_among_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(IndexExists, match=says("something else", "'notes.txt'", "choose another place")):
        PassageIndex.create(tmp_path)


def test_an_index_is_not_created_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(IndexExists, match=says("notes.txt", "is a file", "choose another place")):
        PassageIndex.create(tmp_path / "notes.txt")


def test_another_embedder_is_refused_with_both_names(tmp_path: Path, hash_embedder: Any) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder)

    class Other(type(hash_embedder)):  # type: ignore[misc]
        name = "other"

    with pytest.raises(
        IndexMismatch,
        match=says("built with embedder 'hash' (64 dimensions)", "not with 'other' (64 dimensions)", "open it with"),
    ):
        PassageIndex.open(tmp_path / "index", Other())
    Other.name, Other.dimension = "hash", 32
    with pytest.raises(IndexMismatch, match=says("(64 dimensions)", "not with 'hash' (32 dimensions)")):
        PassageIndex.open(tmp_path / "index", Other())


def test_an_embedder_for_an_index_without_vectors_is_refused(tmp_path: Path, hash_embedder: Any) -> None:
    PassageIndex.create(tmp_path / "index")
    with pytest.raises(IndexMismatch, match="holds no vectors, embedder 'hash' cannot search it"):
        PassageIndex.open(tmp_path / "index", hash_embedder)


def test_an_embedder_that_no_name_brings_back_has_to_be_given(tmp_path: Path, hash_embedder: Any) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder).add([BELL])
    index = PassageIndex.open(tmp_path / "index")
    assert found(index, "Bell") == ["bell#0"]
    with pytest.raises(IndexMismatch, match=says("built with embedder 'hash'", "give it", "PassageIndex.open")):
        retriever_over(index, "dense")


def test_a_layout_of_another_version_is_refused(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index")
    path = tmp_path / "index" / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 99}))
    with pytest.raises(IndexMismatch, match=says("version 99", "version 2", "delete the folder")):
        PassageIndex.open(tmp_path / "index")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "something else"}'])
def test_a_damaged_manifest_is_refused(tmp_path: Path, content: str) -> None:
    PassageIndex.create(tmp_path / "index")
    (tmp_path / "index" / "index.json").write_text(content)
    with pytest.raises(IndexMismatch, match=says("index.json", "delete the folder", "index its files again")):
        PassageIndex.open(tmp_path / "index")


def test_a_manifest_that_says_something_else_is_refused(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index")
    path = tmp_path / "index" / "index.json"
    path.write_text(path.read_text().replace('"k1": 1.5', '"k1": 9.5'))
    with pytest.raises(IndexMismatch, match=says("index.json", "damaged", "not say what was written")):
        PassageIndex.open(tmp_path / "index")


def test_a_manifest_cannot_name_files_outside(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="leads out of the index's folder"):
        Files(passages="../elsewhere.jsonl")


def test_a_log_cut_short_is_noticed(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index").add([BELL, LEITH])
    log = tmp_path / "index" / "passages-0.jsonl"
    log.write_bytes(log.read_bytes()[:-20])
    with pytest.raises(IndexMismatch, match=says("passages-0.jsonl", "damaged", "end is missing")):
        PassageIndex.open(tmp_path / "index")


def test_a_damaged_search_structure_is_noticed_when_it_is_needed(tmp_path: Path, hash_embedder: Any) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder).add([BELL])
    (tmp_path / "index" / "bm25-1" / "weights.npy").write_bytes(b"damaged")
    (tmp_path / "index" / "vectors-1.faiss").write_bytes(b"damaged")
    index = PassageIndex.open(tmp_path / "index", hash_embedder)
    for name, place, part in (("bm25", "weights.npy", "bm25-1"), ("dense", "vectors-1.faiss", "vectors-1.faiss")):
        with pytest.raises(IndexMismatch, match=says(place, "damaged", "delete", part)):
            retriever_over(index, name)


def test_a_search_structure_that_was_deleted_is_made_from_what_the_index_holds(
    tmp_path: Path, hash_embedder: Any
) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder).add([BELL, LEITH])
    shutil.rmtree(tmp_path / "index" / "bm25-1")
    (tmp_path / "index" / "vectors-1.faiss").unlink()
    index = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert found(index, "Bell") == ["bell#0"]
    assert retriever_over(index, "dense").retrieve(BELL.text, 1)[0].passage == BELL


def test_a_damaged_passage_is_noticed_when_it_is_read(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index").add([BELL, LEITH])
    log = tmp_path / "index" / "passages-0.jsonl"
    log.write_bytes(log.read_bytes().replace(b"Leith", b"Lyith"))
    index = PassageIndex.open(tmp_path / "index")
    assert index.passages[0] == BELL
    with pytest.raises(IndexMismatch, match=says("passages-0.jsonl", "damaged", "passage at byte")):
        index.passages[1]


def test_a_damaged_vector_is_noticed_when_the_vectors_are_put_in_order(tmp_path: Path, hash_embedder: Any) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder).add([BELL, LEITH])
    (tmp_path / "index" / "vectors-1.faiss").unlink()
    log = tmp_path / "index" / "vectors-0.f32"
    log.write_bytes(log.read_bytes()[:-2] + b"xx")
    with pytest.raises(IndexMismatch, match=says("vectors-0.f32", "damaged", "vector 1")):
        retriever_over(PassageIndex.open(tmp_path / "index", hash_embedder), "dense")


def test_a_large_file_is_compared_by_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "SMALL", 0)
    PassageIndex.create(tmp_path / "index").add([BELL])
    rows = tmp_path / "index" / "bm25-1" / "rows.npy"
    whole = rows.read_bytes()
    rows.write_bytes(whole[:-4] + b"\xff\xff\xff\x7f")
    with pytest.raises(IndexMismatch, match=r"`ras-agent doctor --index INDEX` names the file"):
        found(PassageIndex.open(tmp_path / "index"), BELL.text)
    rows.write_bytes(whole + b"more")
    with pytest.raises(IndexMismatch, match=says("rows.npy", "damaged", "bytes")):
        found(PassageIndex.open(tmp_path / "index"), BELL.text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index").add([BELL])
    (tmp_path / "index" / "rows-1.npy").unlink()
    with pytest.raises(IndexMismatch, match=r"rows-1.npy is missing: delete the folder"):
        PassageIndex.open(tmp_path / "index")


@pytest.mark.parametrize("step", ["write_manifest", "np"])
def test_an_interrupted_write_leaves_the_index_as_it_was(
    tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL])
    with monkeypatch.context() as broken:
        broken.setattr(snapshot_module, step, None)  # calling it is where the write dies
        with pytest.raises((TypeError, AttributeError)):
            index.add([LEITH])
    assert ids(PassageIndex.open(tmp_path / "index")) == ["bell#0"]
    assert index.add([LEITH]).added == 1
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert list(again.passages) == [BELL, LEITH]
    assert found(again, "Water of Leith", "dense")[0] == "leith#0"


def test_a_generation_is_on_the_disk_before_it_becomes_the_index(
    tmp_path: Path, hash_embedder: Any, disk_order: list[str]
) -> None:
    index = PassageIndex.create(tmp_path / "i", hash_embedder)
    disk_order.clear()
    index.add([BELL])
    before = disk_order[: disk_order.index("index.json replaced")]
    assert {name.removeprefix("i/") for name in before} >= {
        *("passages-0.jsonl", "vectors-0.f32", "rows-1.npy", "vectors-1.faiss"),
        *("bm25-1/starts.npy", "bm25-1/rows.npy", "bm25-1/weights.npy", "bm25-1/vocabulary.json", "bm25-1"),
    }
    assert before[-2:] == ["i", "i/index.json.new"]  # the names of the new files, then what refers to them


def test_what_an_interrupted_write_left_at_the_end_of_the_logs_is_never_read(
    tmp_path: Path, hash_embedder: Any
) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder).add([BELL])
    for name in ("passages-0.jsonl", "vectors-0.f32"):
        with (tmp_path / "index" / name).open("ab") as log:
            log.write(b'{"id": "torn')
    index = PassageIndex.open(tmp_path / "index", hash_embedder)
    index.add([LEITH])
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert list(again.passages) == [BELL, LEITH]
    assert found(again, LEITH.text, "dense") == ["leith#0", "bell#0"]


def test_a_batch_keeps_each_write_and_builds_once_at_its_end(tmp_path: Path, hash_embedder: Any) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    with index.batch():
        index.add([BELL])
        index.add([LEITH])
        unbuilt = PassageIndex.open(tmp_path / "index", hash_embedder)
        assert unbuilt.snapshot.manifest.files.bm25 == ""
        assert found(unbuilt, "Edinburgh", "hybrid") == found(index, "Edinburgh", "hybrid") == ["bell#0", "leith#0"]
    built = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert built.snapshot.manifest.files.bm25 == "bm25-3"
    assert found(built, "Edinburgh", "hybrid") == ["bell#0", "leith#0"]


def test_a_batch_that_fails_keeps_what_was_written_and_the_next_one_builds(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "index")

    def add_in_a_batch() -> None:
        with index.batch():
            index.add([BELL])
            index.add([LEITH, LEITH])

    with pytest.raises(ValueError, match="given twice"):
        add_in_a_batch()
    assert PassageIndex.open(tmp_path / "index").snapshot.manifest.files.bm25 == ""
    with PassageIndex.open(tmp_path / "index").batch():
        pass
    again = PassageIndex.open(tmp_path / "index")
    assert again.snapshot.manifest.files.bm25 == "bm25-2"
    assert found(again, "Bell") == ["bell#0"]


def test_readers_go_on_with_the_generation_they_opened(tmp_path: Path, hash_embedder: Any) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH])
    reader = PassageIndex.open(tmp_path / "index", hash_embedder)
    index.delete_document("bell")
    index.upsert([Passage("leith#0", "changed")])
    assert list(reader.passages) == [BELL, LEITH]
    assert found(reader, "Edinburgh", "hybrid") == ["bell#0", "leith#0"]  # its files are gone: built from the logs


def test_a_second_writer_adds_to_what_the_first_wrote(tmp_path: Path) -> None:
    first = PassageIndex.create(tmp_path / "index")
    second = PassageIndex.open(tmp_path / "index")
    first.add([BELL])
    second.add([LEITH])
    first.add([TOKYO])
    assert ids(first) == ids(PassageIndex.open(tmp_path / "index")) == ["bell#0", "leith#0", "tokyo"]


WRITER = """
import sys
from ras_agent.records import Passage
from ras_agent.tools.index.store import PassageIndex

path, name = sys.argv[1:]
index = PassageIndex.open(path)
for number in range(5):
    index.add([Passage(f"{name}-{number}", f"text of {name}")])
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index")
    commands = [[sys.executable, "-P", "-c", WRITER, str(tmp_path / "index"), name] for name in ("a", "b")]
    for writer in [subprocess.Popen(command) for command in commands]:
        assert writer.wait() == 0
    index = PassageIndex.open(tmp_path / "index")
    assert sorted(ids(index)) == [f"{name}-{number}" for name in "ab" for number in range(5)]
    assert index.snapshot.manifest.generation == 10


def test_a_replaced_text_and_its_vector_are_gone_from_every_file(tmp_path: Path, hash_embedder: Any) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([LEITH, BELL])
    old = hash_embedder.embed([indexed_text(BELL)])[0].tobytes()
    assert files_with(old, tmp_path) == ["vectors-0.f32", "vectors-1.faiss"]
    index.upsert([replace(BELL, text="Bell rang.")])
    assert files_with(BELL.text.encode(), tmp_path) == files_with(old, tmp_path) == []
    assert len((tmp_path / "index" / index.snapshot.manifest.files.passages).read_bytes().splitlines()) == 2


def test_adding_writes_no_passage_twice(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.add([BELL])
    index.add([LEITH])
    assert index.snapshot.manifest.files.passages == "passages-0.jsonl"


def test_logs_that_were_written_anew_are_written_to(tmp_path: Path, hash_embedder: Any) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH])
    index.delete_document("bell")
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    again.add([TOKYO])
    assert list(again.passages) == [LEITH, TOKYO]
    assert found(again, LEITH.text, "dense")[0] == "leith#0"


def test_a_deleted_documents_text_and_vectors_are_gone_from_every_file(tmp_path: Path, hash_embedder: Any) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([LEITH, BELL, TOKYO])
    index.upsert([replace(BELL, text="Quaternary rang.")])
    index.delete_document("bell")
    files = [path for path in (tmp_path / "index").rglob("*") if path.is_file()]
    for text in (BELL.text, "Quaternary"):
        assert not [path.name for path in files if text.encode() in path.read_bytes()]
    vectors = tmp_path / "index" / index.snapshot.manifest.files.vectors
    assert vectors.stat().st_size == 2 * 4 * hash_embedder.dimension
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert list(again.passages) == [LEITH, TOKYO]
    assert set(found(again, "Edinburgh", "dense")) == {"leith#0", "tokyo"}


def test_a_vector_that_texts_share_stays_while_one_of_them_does(tmp_path: Path, hash_embedder: Any) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    for name in ("one", "two", "three"):
        index.add([Passage(name, TOKYO.text, document_id=name)])
    index.add([BELL])
    size = 4 * hash_embedder.dimension
    for name, left in (("bell", 1), ("one", 1), ("two", 1)):
        index.delete_document(name)
        vectors = tmp_path / "index" / index.snapshot.manifest.files.vectors
        assert vectors.stat().st_size == left * size
    assert found(PassageIndex.open(tmp_path / "index", hash_embedder), TOKYO.text, "dense") == ["three"]


def test_a_batch_erases_once_at_its_end(tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH, TOKYO])
    written: list[int] = []
    copy = FilePassageLog.copy

    def counted(log: FilePassageLog, places: Any, path: Path) -> Any:
        written.append(len(places.starts))
        return copy(log, places, path)

    monkeypatch.setattr(FilePassageLog, "copy", counted)
    with index.batch():
        index.delete_document("bell")
        index.delete_document("leith")
        assert not written
    assert written == [1]
    assert files_with(BELL.text.encode(), tmp_path) == []


class Killed(BaseException):
    """Ends a write where it is raised."""


def kill(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.parametrize(
    "at", ["FilePassageLog.copy", "BM25Matrix.save", "VectorIndex.save", "write_manifest", "clear_away"]
)
def test_a_killed_deletion_ends_when_called_again(
    at: str, tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH])
    with monkeypatch.context() as patch:
        patch.setattr(f"{snapshot_module.__name__}.{at}", kill)
        with pytest.raises(Killed):
            index.delete_document("bell")
    PassageIndex.open(tmp_path / "index", hash_embedder).delete_document("bell")
    assert files_with(BELL.text.encode(), tmp_path) == files_with(b"graham", tmp_path) == []
    files = [re.sub(r"-\d+", "-N", path.name) for path in sorted((tmp_path / "index").iterdir())]
    of_vectors = ["vectors-N.f32", "vectors-N.faiss"]
    assert files == ["bm25-N", "index.json", "passages-N.jsonl", "rows-N.npy", *of_vectors, "writer.lock"]


def test_what_was_deleted_in_a_killed_batch_is_erased_by_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.add([BELL, LEITH])
    with monkeypatch.context() as patch:
        patch.setattr(PassageIndex, "finish", kill)
        with pytest.raises(Killed), index.batch():
            index.delete_document("bell")
    assert files_with(BELL.text.encode(), tmp_path) == ["passages-0.jsonl"]
    PassageIndex.open(tmp_path / "index").add([TOKYO])
    assert files_with(BELL.text.encode(), tmp_path) == []


def test_what_a_killed_write_appended_is_erased_by_a_write_that_changes_nothing(
    tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL])
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "write_folder", kill)
        with pytest.raises(Killed):
            index.add([LEITH])
    assert files_with(LEITH.text.encode(), tmp_path) == ["passages-0.jsonl"]
    PassageIndex.open(tmp_path / "index", hash_embedder).upsert([BELL])
    assert files_with(LEITH.text.encode(), tmp_path) == []
    assert list(PassageIndex.open(tmp_path / "index").passages) == [BELL]


def test_a_write_that_changes_nothing_of_a_whole_index_writes_nothing(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.add([BELL])
    index.upsert([BELL])
    index.finish()
    assert index.snapshot.manifest.generation == 1


def test_an_index_in_a_folder_nobody_may_write_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "index"
    PassageIndex.create(path).add([BELL])
    for item in [*path.rglob("*"), path]:
        item.chmod(0o555 if item.is_dir() else 0o444)
    try:
        assert found(PassageIndex.open(path), "Edinburgh") == ["bell#0"]
    finally:
        for item in [path, *path.rglob("*")]:
            item.chmod(0o755 if item.is_dir() else 0o644)


def test_the_next_write_makes_a_damaged_search_structure_anew(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.add([BELL])
    (tmp_path / "index" / "bm25-1" / "weights.npy").write_bytes(b"")
    with PassageIndex.open(tmp_path / "index").batch():
        pass
    assert found(PassageIndex.open(tmp_path / "index"), "Bell") == ["bell#0"]


def test_what_json_turns_into_a_list_is_no_change(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "index")
    assert index.add([BELL]) == Changes(added=1, embedded=0)
    tagged = replace(BELL, metadata={"tags": ("inventor", "Scot")})
    assert index.upsert([tagged]) == Changes(replaced=1)
    assert index.upsert([tagged]) == Changes(unchanged=1)


def test_an_option_that_a_retriever_does_not_take_is_refused_with_those_it_takes() -> None:
    with pytest.raises(UnknownName, match="depht"):
        retriever_over(PassageIndex.in_memory([BELL]), "bm25", depht=3)


def test_adding_a_passage_leaves_the_others_of_its_document_alone(index: PassageIndex) -> None:
    index.add([BELL])
    assert index.add([BELL_2]) == Changes(added=1, embedded=1)
    assert list(index.passages) == [BELL, BELL_2]


def test_documents_are_counted_without_the_passages_that_belong_to_none(index: PassageIndex) -> None:
    index.add([BELL, BELL_2, LEITH, TOKYO])
    assert index.snapshot.manifest.documents == 2


def test_an_index_is_finished_when_nothing_is_left_to_build(tmp_path: Path) -> None:
    assert PassageIndex.in_memory([BELL]).is_finished()
    index = PassageIndex.create(tmp_path / "index")
    with index.batch():
        index.add([BELL])
        assert not index.is_finished()
    assert index.is_finished()


def test_without_faiss_no_text_is_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Never:
        name, dimension = "never", 2

        def embed(self, texts: Any) -> Any:
            raise AssertionError("embedded in vain")

    index = PassageIndex.in_memory(embedder=Never())
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match="faiss"):
        index.add([BELL])


def test_an_embedder_that_has_changed_under_its_name_is_refused(
    tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wider:
        name, dimension = hash_embedder.name, hash_embedder.dimension + 1

    PassageIndex.create(tmp_path / "index", hash_embedder).add([BELL])
    monkeypatch.setattr(store_module, "resolve_embedder", lambda name: Wider())
    with pytest.raises(IndexMismatch, match="was built with embedder"):
        _ = PassageIndex.open(tmp_path / "index").embedder

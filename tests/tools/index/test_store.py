"""The passage index: the changes of writes, the view of a reader, and the state after an interruption."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.contracts.errors import (
    ErasedPassage,
    IndexExists,
    IndexMismatch,
    IndexNotFound,
    MissingExtra,
    UnknownName,
)
from ras_agent.contracts.records import Passage
from ras_agent.tools.index import manifest, segment
from ras_agent.tools.index import store as store_module
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.changes import Changes
from ras_agent.tools.index.passages import hash_of, indexed_text
from ras_agent.tools.index.segment import Segment
from ras_agent.tools.index.snapshot import Snapshot
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_index import VectorIndex, VectorSettings
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.store import array_file
from ras_agent.tools.store import sqlite as sqlite_module
from ras_agent.tools.store.passages import IndexState, PassageRows
from ras_agent.tools.store.schema import VERSION
from ras_agent.tools.store.sqlite import SqliteDatabase
from tests.messages import says

BELL = Passage(
    "bell#0",
    "Bell was born in Edinburgh.",
    "Alexander Graham Bell",
    "bell",
    {"page": 3},
)
BELL_2 = Passage(
    "bell#1", "He patented the telephone.", "Alexander Graham Bell", "bell"
)
LEITH = Passage(
    "leith#0", "The Water of Leith flows through Edinburgh.", "Water of Leith", "leith"
)
TOKYO = Passage("tokyo", "東京 is a city.\n“Quoted” and \u2028 odd.", "東京")


@pytest.fixture(params=["memory", "disk", "postgres"])
def index(
    request: pytest.FixtureRequest, tmp_path: Path, hash_embedder: Any
) -> Iterator[PassageIndex]:
    """An empty index with vectors."""
    if request.param == "memory":
        made = PassageIndex.in_memory(embedder=hash_embedder)
    else:
        place = (
            tmp_path / "index"
            if request.param == "disk"
            else request.getfixturevalue("address")
        )
        made = PassageIndex.create(place, hash_embedder)
    yield made
    made.close()


def ids(index: PassageIndex) -> list[str]:
    return [passage.id for passage in index.passages]


def found(index: PassageIndex, query: str, name: str = "bm25") -> list[str]:
    return [hit.passage.id for hit in retriever_over(index, name).retrieve(query, 10)]


def files_with(content: bytes, folder: Path) -> list[str]:
    return sorted(
        path.name
        for path in folder.rglob("*")
        if path.is_file() and content in path.read_bytes()
    )


def rows_of(folder: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection:
        return connection.execute(query).fetchall()


def change(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection, connection:
        assert connection.execute(statement, values).rowcount


def segments_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("cache/*/*"))


@pytest.fixture
def every_segment_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save segments of one passage, too, as if they were large."""
    monkeypatch.setattr(segment, "SAVED_FROM", 1)


saving = pytest.mark.usefixtures("every_segment_is_saved")


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
    with pytest.raises(ValueError, match="two passages have the id 'bell#0'"):
        index.upsert([BELL, LEITH, BELL])


def test_metadata_that_json_cannot_hold_is_refused(index: PassageIndex) -> None:
    with pytest.raises(ValueError, match="passage 'p': its metadata is not JSON"):
        index.add([LEITH, Passage("p", "text", metadata={"when": object()})])
    assert ids(index) == []


def test_upsert_replaces_in_place_and_counts(index: PassageIndex) -> None:
    index.add([BELL, LEITH])
    changed = Passage(
        "bell#0", "Bell was born in 1847.", "Alexander Graham Bell", "bell"
    )
    assert index.upsert([changed, LEITH, TOKYO]) == Changes(
        added=1, replaced=1, unchanged=1, embedded=2
    )
    assert list(index.passages) == [changed, LEITH, TOKYO]
    assert found(index, "1847") == ["bell#0"]


def test_upserting_what_is_there_embeds_nothing(
    index: PassageIndex, hash_embedder: Any
) -> None:
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
    best, *_ = retriever_over(index, "dense").retrieve("born in Edinburgh", 2)
    assert best.passage.id == "bell#0"
    assert best.why[-1] == "the same text: bell#9"


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


def test_upserting_whole_documents_deletes_what_they_no_longer_hold(
    index: PassageIndex,
) -> None:
    index.add([BELL, BELL_2, LEITH])
    assert index.upsert([BELL], whole_documents=True) == Changes(unchanged=1, deleted=1)
    assert ids(index) == ["bell#0", "leith#0"]


def test_a_retriever_searches_what_was_there_when_it_was_made(
    index: PassageIndex,
) -> None:
    index.add([BELL, LEITH])
    before = retriever_over(index, "hybrid")
    index.delete_document("bell")
    index.add([Passage("new", "Bell rang in Edinburgh.")])
    # without the erased ones: no text of it is left to show
    assert {hit.passage.id for hit in before.retrieve("Bell Edinburgh")} == {"leith#0"}
    assert set(found(index, "Bell Edinburgh", "hybrid")) == {"leith#0", "new"}


def test_an_index_without_vectors_says_how_to_get_them() -> None:
    index = PassageIndex.in_memory([BELL])
    with pytest.raises(
        IndexMismatch,
        match=says("no vectors", "make another with an embedder", "retrieve by bm25"),
    ):
        retriever_over(index, "dense")


def test_an_embedder_that_gives_vectors_of_another_width_is_named(
    hash_embedder: Any,
) -> None:
    index = PassageIndex.in_memory([BELL], hash_embedder)
    hash_embedder.embed = lambda texts: np.ones((len(texts), 3), dtype=np.float32)
    with pytest.raises(IndexMismatch, match=says("'hash'", "shape (1, 3)", "1 texts")):
        index.add([LEITH])
    with pytest.raises(
        IndexMismatch, match=r"shape \(3,\), the index holds vectors of 64"
    ):
        retriever_over(index, "dense").retrieve("Leith")


# On disk


@saving
def test_reopened_it_is_the_same(tmp_path: Path, hash_embedder: Any) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH, TOKYO])
    hash_embedder.texts.clear()
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert list(again.passages) == [BELL, LEITH, TOKYO]
    for name in ("bm25", "dense", "hybrid"):
        before, after = (
            retriever_over(one, name).retrieve("Edinburgh city")
            for one in (index, again)
        )
        assert after == before
    # dense and hybrid, each before and after: no passage
    assert hash_embedder.texts == ["Edinburgh city"] * 4


@saving
def test_nothing_in_it_is_pickled(tmp_path: Path, hash_embedder: Any) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH])
    index.close()
    epoch = index.snapshot.state.epoch
    files = {
        str(path.relative_to(tmp_path / "index"))
        for path in (tmp_path / "index").rglob("*")
        if path.is_file()
    }
    of_segment = {
        f"cache/{epoch}/cells-0-2/{name}"
        for name in ("arrays", "arrays.sum", "vectors")
    }
    assert files - {f"cache/{epoch}/cells-0-2/vectors.sum"} == {
        "index.sqlite",
        *of_segment,
    }
    assert (
        b"pickle"
        not in (
            tmp_path / "index" / "cache" / str(epoch) / "cells-0-2" / "arrays"
        ).read_bytes()
    )


def test_a_small_index_is_one_file(tmp_path: Path, hash_embedder: Any) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH])
    index.delete_document("bell")
    index.close()
    assert [path.name for path in (tmp_path / "index").iterdir()] == ["index.sqlite"]
    assert list(index.passages) == [LEITH]  # it is opened again when it is used again
    assert index.add([TOKYO]).added == 1


def test_settings_stay(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "tokeniser": Tokeniser("german"),
        "bm25": BM25Parameters(k1=0.9, b=0.4, method="atire"),
    }
    PassageIndex.create(tmp_path / "index", **settings).add(
        [BELL, Passage("p", "Die Häuser am Fluss")]
    )
    index = PassageIndex.open(tmp_path / "index")
    assert found(index, "das Haus") == ["p"]
    assert index.snapshot.manifest.bm25 == BM25Parameters(k1=0.9, b=0.4, method="atire")


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
def test_each_kind_of_vector_index_finds_a_passage_again(
    tmp_path: Path, hash_embedder: Any, kind: Any
) -> None:
    index = PassageIndex.create(
        tmp_path / "index", hash_embedder, vectors=VectorSettings(kind, probes=8)
    )
    index.add(
        Passage(str(number), f"word{number} and word{number + 1}")
        for number in range(1500)
    )
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert found(again, "word700 and word701", "dense")[0] == "700"


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
def test_each_kind_of_vector_index_forgets_what_is_deleted(
    tmp_path: Path, hash_embedder: Any, kind: Any
) -> None:
    settings = VectorSettings(kind, lists=4, probes=4)
    index = PassageIndex.create(tmp_path / "index", hash_embedder, vectors=settings)
    index.add(
        Passage(f"{n}", f"word{n} and word{n + 1}", document_id=f"{n}")
        for n in range(1100)
    )
    gone = hash_embedder.embed(["word700 and word701"])[0].tobytes()
    # as clusters, vectors do not lie in the order of the passages
    assert files_with(gone, tmp_path / "index" / "cache") == ["vectors"]
    index.delete_document("700")
    assert files_with(gone, tmp_path) == []
    for one in (index, PassageIndex.open(tmp_path / "index", hash_embedder)):
        assert "700" not in found(one, "word700 and word701", "dense")
        assert found(one, "word300 and word301", "dense")[0] == "300"


def test_an_unknown_kind_of_vector_index_is_refused() -> None:
    with pytest.raises(ValueError, match="'tree'; known: flat, hnsw, ivf"):
        VectorSettings("tree")  # type: ignore[arg-type]


def test_there_must_be_an_index_to_open(tmp_path: Path) -> None:
    assert not PassageIndex.exists(tmp_path / "none")
    with pytest.raises(
        IndexNotFound, match=says("no index", "none", "make one with `ras-agent index`")
    ):
        PassageIndex.open(tmp_path / "none")


def test_an_index_that_is_gone_is_noticed_at_the_next_look(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.refresh()
    shutil.rmtree(tmp_path / "index")
    with pytest.raises(
        IndexNotFound, match=says("index", "holds no index any more", "ras-agent index")
    ):
        index.refresh()


def test_an_index_that_was_made_anew_in_its_place_is_taken_at_the_next_look(
    tmp_path: Path,
) -> None:
    reader = PassageIndex.create(tmp_path / "index")
    reader.add([BELL])
    before = reader.commit
    shutil.rmtree(tmp_path / "index")
    PassageIndex.create(tmp_path / "index").add([LEITH])
    reader.refresh()
    assert (ids(reader), found(reader, "Edinburgh")) == (["leith#0"], ["leith#0"])
    assert reader.commit != before


def test_an_index_is_not_created_over_another(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index")
    assert PassageIndex.exists(tmp_path / "index")
    with pytest.raises(IndexExists, match="holds an index already"):
        PassageIndex.create(tmp_path / "index")


def test_an_index_is_not_created_among_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(
        IndexExists, match=says("something else", "'notes.txt'", "choose another place")
    ):
        PassageIndex.create(tmp_path)


def test_an_index_is_not_created_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(
        IndexExists, match=says("notes.txt", "is a file", "choose another place")
    ):
        PassageIndex.create(tmp_path / "notes.txt")


def test_an_index_that_was_killed_while_it_was_made_is_made_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "index.sqlite.new").write_bytes(b"half of it")
    PassageIndex.create(tmp_path).add([BELL])
    assert ids(PassageIndex.open(tmp_path)) == ["bell#0"]


def test_what_a_killed_writer_logged_is_not_read_into_an_index_that_is_made_anew(
    tmp_path: Path,
) -> None:
    index = PassageIndex.create(tmp_path / "killed")
    index.add([BELL])
    (tmp_path / "index").mkdir()
    shutil.copy(
        tmp_path / "killed" / "index.sqlite-wal",
        tmp_path / "index" / "index.sqlite-wal",
    )
    fresh = PassageIndex.create(tmp_path / "index")
    assert ids(fresh) == ids(PassageIndex.open(tmp_path / "index")) == []


def test_another_embedder_is_refused_with_both_names(
    tmp_path: Path, hash_embedder: Any
) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder)

    class Other(type(hash_embedder)):  # type: ignore[misc]
        name = "other"

    with pytest.raises(
        IndexMismatch,
        match=says(
            "built with embedder 'hash' (64 dimensions)",
            "not with 'other' (64 dimensions)",
            "open it with",
        ),
    ):
        PassageIndex.open(tmp_path / "index", Other())
    Other.name, Other.dimension = "hash", 32
    with pytest.raises(
        IndexMismatch, match=says("(64 dimensions)", "not with 'hash' (32 dimensions)")
    ):
        PassageIndex.open(tmp_path / "index", Other())


def test_an_embedder_for_an_index_without_vectors_is_refused(
    tmp_path: Path, hash_embedder: Any
) -> None:
    PassageIndex.create(tmp_path / "index")
    with pytest.raises(
        IndexMismatch,
        match="holds no vectors, so that embedder 'hash' cannot search it",
    ):
        PassageIndex.open(tmp_path / "index", hash_embedder)


def test_an_embedder_that_no_name_brings_back_has_to_be_given(
    tmp_path: Path, hash_embedder: Any
) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder).add([BELL])
    index = PassageIndex.open(tmp_path / "index")
    assert found(index, "Bell") == ["bell#0"]
    with pytest.raises(
        IndexMismatch,
        match=says(
            "built with embedder 'hash'", "with that embedder", "PassageIndex.open"
        ),
    ):
        retriever_over(index, "dense")


# Damage


def test_an_index_of_another_version_is_refused(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index")
    change(tmp_path / "index", "UPDATE index_state SET version = 99")
    with pytest.raises(
        IndexMismatch,
        match=says(
            str(tmp_path / "index"), "version 99", f"version {VERSION}", "delete the"
        ),
    ):
        PassageIndex.open(tmp_path / "index")


def test_another_version_is_told_also_where_its_tables_are_others(
    tmp_path: Path,
) -> None:
    PassageIndex.create(tmp_path / "index")
    change(tmp_path / "index", "UPDATE index_state SET version = 99")
    with closing(sqlite3.connect(tmp_path / "index" / "index.sqlite")) as connection:
        connection.execute("ALTER TABLE index_state DROP COLUMN erasures")
    with pytest.raises(
        IndexMismatch,
        match=says("version 99", f"version {VERSION}", "delete the folder"),
    ):
        PassageIndex.open(tmp_path / "index")


def test_an_index_of_an_earlier_version_is_refused_and_not_written_over(
    tmp_path: Path,
) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "index.json").write_text(
        '{"format": "ras-agent index", "version": 2}'
    )
    with pytest.raises(
        IndexMismatch,
        match=says(
            "earlier version",
            f"version {VERSION}",
            "delete the folder",
            "ras-agent index",
        ),
    ):
        PassageIndex.open(tmp_path / "index")
    with pytest.raises(IndexExists, match="holds an index already"):
        PassageIndex.create(tmp_path / "index")


def many(count: int, first: int = 0) -> list[Passage]:
    return [
        Passage(f"{n}", f"word{n} of the city", document_id=f"doc{n}")
        for n in range(first, first + count)
    ]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """The file of an index of forty passages, which nobody has open."""
    index = PassageIndex.create(tmp_path / "index")
    index.add(many(40))
    index.close()
    del index
    return tmp_path / "index" / "index.sqlite"


DAMAGES: dict[str, Any] = {
    "nothing": lambda data: b"",
    "garbage": lambda data: b"\x9c" * len(data),
    "half": lambda data: data[: len(data) // 2],
    "other pages": lambda data: data[:4096] + b"\xff" * (len(data) - 4096),
    "empty pages": lambda data: data[:4096] + bytes(len(data) - 4096),
    "another file": lambda data: b'{"format": "something else"}',
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_database_is_refused_with_the_remedy(
    whole: Path, damage: str
) -> None:
    whole.write_bytes(DAMAGES[damage](whole.read_bytes()))
    told = says(
        str(whole.parent),
        "damaged",
        "delete the folder",
        "index its files again with `ras-agent index",
    )
    with pytest.raises(IndexMismatch, match=told):
        list(PassageIndex.open(whole.parent).passages)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"embedder": null}', '{"embedder": {"name": "x"}}']
)
def test_a_damaged_manifest_is_refused(whole: Path, text: str) -> None:
    change(whole.parent, "UPDATE index_state SET manifest = ?", text)
    with pytest.raises(
        IndexMismatch,
        match=says(
            str(whole.parent), "damaged", "delete the folder", "index its files"
        ),
    ):
        PassageIndex.open(whole.parent)


def test_an_index_without_its_state_is_damaged(whole: Path) -> None:
    change(whole.parent, "DELETE FROM index_state")
    with pytest.raises(
        IndexMismatch, match=says(str(whole.parent), "no state", "delete the folder")
    ):
        PassageIndex.open(whole.parent)


def test_a_missing_database_is_told_where_its_cache_is_there(tmp_path: Path) -> None:
    (tmp_path / "index" / "cache").mkdir(parents=True)
    with pytest.raises(
        IndexMismatch, match=says("index.sqlite", "is missing", "delete the folder")
    ):
        PassageIndex.create(tmp_path / "index")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("metadata", "{"),
        ("metadata", "[]"),
        ("keys", b"seven.."),
        ("terms", b"seven.."),
    ],
)
def test_a_row_that_cannot_be_read_is_damaged(
    tmp_path: Path, column: str, value: object
) -> None:
    PassageIndex.create(tmp_path / "index").add([BELL, LEITH])
    change(
        tmp_path / "index", f"UPDATE passages SET {column} = ? WHERE cell = 1", value
    )
    told = says(str(tmp_path / "index"), "damaged", "delete the folder")
    with pytest.raises(IndexMismatch, match=told):
        list(PassageIndex.open(tmp_path / "index").passages)


def test_a_missing_passage_is_noticed(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index").add([BELL, LEITH])
    change(tmp_path / "index", "DELETE FROM passages WHERE cell = 1")
    told = says("damaged", "holds 1 passages", "2 were written", "delete the folder")
    with pytest.raises(IndexMismatch, match=told):
        PassageIndex.open(tmp_path / "index")


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE vectors SET data = x'00' WHERE cell = 1", "has another size"),
        ("DELETE FROM vectors WHERE cell = 1", "is missing"),
    ],
)
def test_a_vector_that_cannot_be_read_is_damaged(
    tmp_path: Path, hash_embedder: Any, statement: str, problem: str
) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder).add([BELL, LEITH])
    change(tmp_path / "index", statement)
    with pytest.raises(
        IndexMismatch,
        match=says("damaged", "vector of cell 1", problem, "delete the folder"),
    ):
        retriever_over(PassageIndex.open(tmp_path / "index", hash_embedder), "dense")


@pytest.fixture
def cached(tmp_path: Path, hash_embedder: Any, every_segment_is_saved: None) -> Path:
    """The folder of the one segment of an index of BELL and LEITH."""
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH])
    return tmp_path / "index" / "cache" / str(index.snapshot.state.epoch) / "cells-0-2"


FILE_DAMAGES: dict[str, Any] = {
    "nothing": lambda data: b"",
    "garbage": lambda data: b"damaged",
    "one byte": lambda data: (
        data[: len(data) // 2]
        + bytes([data[len(data) // 2] ^ 255])
        + data[len(data) // 2 + 1 :]
    ),
    "the end": lambda data: data[:-1] + bytes([data[-1] ^ 255]),
    "half": lambda data: data[: len(data) // 2],
    "more": lambda data: data + b"more",
}


def check_healed(folder: Path, embedder: Any) -> None:
    embedder.texts.clear()
    index = PassageIndex.open(folder, embedder)
    assert list(index.passages) == [BELL, LEITH]
    assert found(index, "Bell") == ["bell#0"]
    assert found(index, "Leith") == ["leith#0"]
    best = retriever_over(index, "dense").retrieve(indexed_text(BELL), 2)
    assert [hit.passage for hit in best] == [BELL, LEITH]
    # the direction of the same text, in float32
    assert best[0].score == pytest.approx(1, abs=1e-6)
    assert embedder.texts == [indexed_text(BELL)]  # the query: no passage
    assert index.add([TOKYO]).added == 1
    assert found(PassageIndex.open(folder, embedder), "Bell city") == [
        "bell#0",
        "tokyo",
    ]
    assert index.delete_document("leith").deleted == 1
    assert files_with(LEITH.text.encode(), folder) == []
    assert ids(PassageIndex.open(folder, embedder)) == ["bell#0", "tokyo"]


@pytest.mark.parametrize("damage", FILE_DAMAGES)
@pytest.mark.parametrize("file", ["arrays", "arrays.sum", "vectors"])
def test_a_damaged_segment_is_made_anew(
    cached: Path, file: str, damage: str, hash_embedder: Any
) -> None:
    (cached / file).write_bytes(FILE_DAMAGES[damage]((cached / file).read_bytes()))
    check_healed(cached.parents[2], hash_embedder)


@pytest.mark.parametrize("file", ["arrays", "arrays.sum", "vectors", "", ".."])
def test_a_segment_of_which_something_is_missing_is_made_anew(
    cached: Path, file: str, hash_embedder: Any
) -> None:
    gone = cached.parent if file == ".." else cached / file
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    check_healed(cached.parents[2], hash_embedder)


@pytest.mark.parametrize("damage", FILE_DAMAGES)
@pytest.mark.parametrize("file", ["arrays", "arrays.sum", "vectors"])
def test_a_write_that_joins_a_damaged_segment_makes_it_anew(
    cached: Path, file: str, damage: str, hash_embedder: Any
) -> None:
    (cached / file).write_bytes(FILE_DAMAGES[damage]((cached / file).read_bytes()))
    folder = cached.parents[2]
    PassageIndex.open(folder, hash_embedder).add([TOKYO])
    assert segments_in(folder) == ["cells-0-3"]
    again = PassageIndex.open(folder, hash_embedder)
    assert list(again.passages) == [BELL, LEITH, TOKYO]
    for passage in (BELL, LEITH, TOKYO):
        (best,) = retriever_over(again, "dense").retrieve(indexed_text(passage), 1)
        assert best.passage == passage
        # the direction of the same text, in float32
        assert best.score == pytest.approx(1, abs=1e-6)
        assert found(again, passage.title)[0] == passage.id


def test_the_cache_can_be_deleted_while_the_index_is_open(
    cached: Path, hash_embedder: Any
) -> None:
    folder = cached.parents[2]
    index = PassageIndex.open(folder, hash_embedder)
    assert {*found(index, "Edinburgh", "hybrid")} == {"leith#0", "bell#0"}
    shutil.rmtree(folder / "cache")
    assert index.delete_document("bell") == Changes(deleted=1)
    assert index.add([TOKYO]).added == 1
    assert index.is_finished()
    assert (
        ids(index)
        == ids(PassageIndex.open(folder, hash_embedder))
        == ["leith#0", "tokyo"]
    )


def test_a_segment_that_another_process_made_anew_loses_what_is_deleted_and_nothing_else(
    tmp_path: Path, every_segment_is_saved: None
) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.add(many(8))
    index.delete_document("doc1")
    shutil.rmtree(tmp_path / "index" / "cache")
    # its segment has no slot for passages that were deleted before
    other = PassageIndex.open(tmp_path / "index")
    other.finish()
    assert segments_in(tmp_path / "index") == ["cells-0-8"]
    index.delete_document("doc4")
    again = PassageIndex.open(tmp_path / "index")
    assert ids(again) == ["0", "2", "3", "5", "6", "7"]
    assert [again.get(name) is not None for name in ("4", "5", "6")] == [
        False,
        True,
        True,
    ]
    assert [f"{n}" in found(again, f"word{n}") for n in (4, 5, 6)] == [
        False,
        True,
        True,
    ]


def test_a_large_segment_is_not_compared_whole(
    cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_file, "SMALL", 0)
    arrays, folder = cached / "arrays", cached.parents[2]
    data = arrays.read_bytes()
    column = PassageIndex.open(folder).snapshot.segments[0].terms.slots.tobytes()
    arrays.write_bytes(data.replace(column, b"\xff\xff\xff\x7f" * (len(column) // 4)))
    with pytest.raises(
        IndexMismatch, match=r"`ras-agent doctor --index INDEX` names the file"
    ):
        found(PassageIndex.open(folder), BELL.text)
    for other in (
        data[:-8],
        b"\x02\0\0\0\0\0\0\0[]" + data,
        b"\x02\0\0\0\0\0\0\0{}" + data,
    ):
        arrays.write_bytes(other)
        assert found(PassageIndex.open(folder), "Bell") == ["bell#0"]


# Interruptions


class Killed(BaseException):
    """Ends a write where it is raised."""


def kill(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.parametrize(
    "step",
    [
        (PassageRows, "add_vectors"),
        (PassageRows, "add"),
        (PassageRows, "forget"),
        (IndexState, "advance"),
    ],
    ids=lambda step: step[1],
)
def test_an_interrupted_write_leaves_the_index_as_it_was(
    index: PassageIndex, monkeypatch: pytest.MonkeyPatch, step: tuple[type, str]
) -> None:
    index.add([BELL])
    commit = index.commit
    with monkeypatch.context() as broken:
        broken.setattr(*step, kill)
        with pytest.raises(Killed):
            index.upsert([replace(BELL, text="Bell rang."), LEITH])
    assert index.commit == commit
    assert list(index.passages) == [BELL]
    assert found(index, "Leith rang") == []
    assert index.add([LEITH]).added == 1
    assert list(index.passages) == [BELL, LEITH]
    assert found(index, "Water of Leith", "dense")[0] == "leith#0"


def test_what_was_taken_back_shows_nowhere_after_another_commit(
    tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    other = PassageIndex.open(tmp_path / "index", hash_embedder)
    index.add([BELL])
    with monkeypatch.context() as broken:
        broken.setattr(IndexState, "advance", kill)
        with pytest.raises(Killed):
            index.add([LEITH])
    other.add([TOKYO])  # in the cell and with the vector that Leith was to have
    index.add([BELL_2])
    for one in (index, PassageIndex.open(tmp_path / "index", hash_embedder)):
        assert list(one.passages) == [BELL, TOKYO, BELL_2]
        assert found(one, "Leith") == []
        assert found(one, indexed_text(TOKYO), "dense")[0] == "tokyo"


class TakenBack(Exception):
    """Ends a transaction that is not to be stored."""


def take_back(index: PassageIndex, *, add: list[Passage], delete: str = "") -> None:
    """Write within a transaction of the database, which ends with an error."""

    def write() -> None:
        with index.database.writing():
            index.add(add)
            index.delete_document(delete)
            raise TakenBack

    with pytest.raises(TakenBack):
        write()


def test_a_transaction_around_several_writes_is_taken_back_whole(
    index: PassageIndex,
) -> None:
    index.add([BELL])
    index.refresh()
    take_back(index, add=[LEITH, TOKYO], delete="bell")
    index.refresh()
    assert list(index.passages) == [BELL]
    assert (
        found(index, "Leith", "hybrid") == found(index, "Bell", "hybrid") == ["bell#0"]
    )
    index.add([BELL_2])
    assert list(index.passages) == [BELL, BELL_2]


def test_a_transaction_after_one_that_was_taken_back_has_nothing_of_it(
    index: PassageIndex,
) -> None:
    index.add([BELL])
    take_back(index, add=[LEITH, TOKYO], delete="bell")
    with index.database.writing():
        # as many, in the same cells
        index.add([BELL_2, Passage("new", "A bell rang.")])
        index.delete_document("nothing")
    index.committed()
    index.finish()
    assert ids(index) == ["bell#0", "bell#1", "new"]
    assert found(index, "Leith") == []
    assert sorted(found(index, "Bell")) == ["bell#0", "bell#1", "new"]


@saving
@pytest.mark.parametrize(
    "at",
    [
        (segment, "clear_away"),
        (Snapshot, "joined"),
        (Segment, "save"),
        (array_file, "write_arrays"),
        (SqliteDatabase, "compact"),
        (PassageIndex, "_tidy"),
        (PassageIndex, "finish"),
    ],
    ids=lambda at: at[1],
)
@pytest.mark.parametrize("again", ["the same", "another write"])
def test_a_killed_deletion_ends_when_called_again(
    at: tuple[Any, str],
    again: str,
    tmp_path: Path,
    hash_embedder: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH])
    vector = hash_embedder.embed([indexed_text(BELL)])[0].tobytes()
    with monkeypatch.context() as patch:
        patch.setattr(*at, kill)
        with pytest.raises(Killed):
            index.delete_document("bell")
    reopened = PassageIndex.open(tmp_path / "index", hash_embedder)
    # nobody finds it, whatever is left to overwrite
    assert ids(reopened) == ["leith#0"]
    assert not reopened.is_finished()
    if again == "the same":
        assert reopened.delete_document("bell") == Changes()
    else:
        reopened.upsert([LEITH])
    assert reopened.is_finished()
    for left in (BELL.text.encode(), b"graham", vector, *hashes_of(BELL)):
        assert files_with(left, tmp_path) == []
    files = {path.name for path in (tmp_path / "index").rglob("*")}
    epoch = str(index.snapshot.state.epoch)
    of_segment = (
        {"cells-0-2", "arrays", "arrays.sum", "vectors"}
        if segments_in(tmp_path / "index")
        else set()
    )
    lasting = {
        "index.sqlite",
        "index.sqlite-wal",
        "index.sqlite-shm",
        "cache",
        epoch,
        *of_segment,
    }
    assert files - {"vectors.sum"} == lasting


def hashes_of(passage: Passage) -> list[bytes]:
    """The hashes of a passage's id, document and text, and of a term that it alone has, as files hold them."""
    terms = [
        term
        for term in Tokeniser().terms(indexed_text(passage))
        if term in ("graham", "telephon")
    ]
    texts = [passage.id, passage.document_id, indexed_text(passage), *terms]
    return [
        hash_of(text).to_bytes(8, order)
        for text in texts
        for order in ("little", "big")
    ]


@saving
@pytest.mark.parametrize(
    "at", [(array_file, "write_arrays"), (VectorIndex, "save"), (Snapshot, "joined")]
)
def test_a_killed_addition_is_there_and_the_next_write_saves_its_segment(
    at: tuple[Any, str],
    tmp_path: Path,
    hash_embedder: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL])
    with monkeypatch.context() as patch:
        patch.setattr(*at, kill)
        with pytest.raises(Killed):
            index.add([LEITH])
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert list(again.passages) == [BELL, LEITH]
    assert found(again, "Edinburgh", "hybrid") == ["bell#0", "leith#0"]
    again.add([TOKYO])
    assert segments_in(tmp_path / "index") == ["cells-0-3"]
    assert list(PassageIndex.open(tmp_path / "index").passages) == [BELL, LEITH, TOKYO]


def test_what_was_deleted_in_a_killed_batch_is_erased_by_the_next_write(
    tmp_path: Path, every_segment_is_saved: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.add([BELL, LEITH])
    with monkeypatch.context() as patch:
        patch.setattr(PassageIndex, "finish", kill)
        with pytest.raises(Killed), index.batch():
            index.delete_document("bell")
    document = hash_of("bell").to_bytes(8, "little")
    assert "arrays" in files_with(document, tmp_path)
    PassageIndex.open(tmp_path / "index").add([TOKYO])
    assert (
        files_with(document, tmp_path) == files_with(BELL.text.encode(), tmp_path) == []
    )


def test_erasing_waits_for_readers_and_is_ended_by_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_module, "_LOG_WAITS", 0)
    index = PassageIndex.create(tmp_path / "index")
    index.add([BELL, LEITH])
    reader = PassageIndex.open(tmp_path / "index")
    with reader.database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM dead").fetchone() == (0,)
        assert index.delete_document("bell") == Changes(deleted=1)
        assert not index.is_finished()
    index.finish()
    assert index.is_finished()
    assert files_with(BELL.text.encode(), tmp_path) == []


def test_a_segment_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path,
    hash_embedder: Any,
    every_segment_is_saved: None,
    disk_order: list[str],
) -> None:
    index = PassageIndex.create(tmp_path / "i", hash_embedder)
    assert disk_order == ["i/index.sqlite.new", "index.sqlite replaced", "i"]
    disk_order.clear()
    index.add([BELL])
    cache = f"i/cache/{index.snapshot.state.epoch}"
    named = disk_order.index("cells-0-1 replaced")
    fresh = f"{cache}/cells-0-1.new"
    assert {*disk_order[:named]} >= {
        f"{fresh}/arrays",
        f"{fresh}/arrays.sum",
        f"{fresh}/vectors",
        fresh,
    }
    # the names of the files in it come after the files
    assert disk_order[named - 1] == fresh
    assert disk_order[named + 1 :] == [cache]


# Batches


@saving
def test_a_batch_keeps_each_write_and_saves_segments_once_at_its_end(
    tmp_path: Path, hash_embedder: Any
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    with index.batch():
        index.add([BELL])
        index.add([LEITH])
        unsaved = PassageIndex.open(tmp_path / "index", hash_embedder)
        assert segments_in(tmp_path / "index") == []
        assert (
            found(unsaved, "Edinburgh", "hybrid")
            == found(index, "Edinburgh", "hybrid")
            == ["bell#0", "leith#0"]
        )
    assert segments_in(tmp_path / "index") == ["cells-0-2"]
    saved = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert saved.snapshot.segments[0].folder is not None
    assert found(saved, "Edinburgh", "hybrid") == ["bell#0", "leith#0"]


@saving
def test_a_batch_that_fails_keeps_what_was_written_and_the_next_one_saves_it(
    tmp_path: Path,
) -> None:
    index = PassageIndex.create(tmp_path / "index")

    def add_in_a_batch() -> None:
        with index.batch():
            index.add([BELL])
            index.add([LEITH, LEITH])

    with pytest.raises(ValueError, match="two passages have the id"):
        add_in_a_batch()
    assert segments_in(tmp_path / "index") == []
    with PassageIndex.open(tmp_path / "index").batch():
        pass
    assert segments_in(tmp_path / "index") == ["cells-0-1"]
    assert found(PassageIndex.open(tmp_path / "index"), "Bell") == ["bell#0"]


@saving
def test_a_batch_erases_once_at_its_end(
    tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH, TOKYO])
    compacted = []
    compact = SqliteDatabase.compact

    def counted(database: SqliteDatabase) -> bool:
        compacted.append(database)
        return compact(database)

    monkeypatch.setattr(SqliteDatabase, "compact", counted)
    with index.batch():
        index.delete_document("bell")
        index.delete_document("leith")
        assert not compacted
        assert not index.is_finished()
    assert compacted == [index.database]
    assert index.is_finished()
    assert (
        files_with(BELL.text.encode(), tmp_path)
        == files_with(b"graham", tmp_path)
        == []
    )


def test_an_index_is_finished_when_nothing_is_left_to_erase(
    index: PassageIndex,
) -> None:
    assert index.is_finished()
    with index.batch():
        index.add([BELL])
        assert index.is_finished()
        index.delete_document("bell")
        assert not index.is_finished()
    assert index.is_finished()


# Readers and writers


def test_an_earlier_snapshot_shows_what_was_there_without_what_was_erased(
    tmp_path: Path, hash_embedder: Any
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH, TOKYO])
    reader = PassageIndex.open(tmp_path / "index", hash_embedder)
    changed = Passage("leith#0", "changed")
    index.delete_document("bell")
    index.upsert([changed])
    index.add([BELL_2])
    assert len(reader) == 3
    assert reader.snapshot.passages.take(np.arange(3)) == [None, None, TOKYO]
    assert list(reader.passages) == [TOKYO]
    for row in (0, 1):
        with pytest.raises(
            ErasedPassage,
            match=says(str(tmp_path / "index"), "deleted or replaced", "search again"),
        ):
            reader.passages[row]
    assert reader.get("bell#0") is reader.get("leith#0") is None
    assert found(reader, "Edinburgh") == []
    assert found(reader, "Edinburgh city", "hybrid") == ["tokyo"]
    reader.refresh()
    assert list(reader.passages) == [changed, TOKYO, BELL_2]


@pytest.mark.parametrize("retriever", ["bm25", "dense", "hybrid"])
def test_a_search_of_an_earlier_snapshot_has_as_many_hits_where_the_best_were_erased(
    tmp_path: Path, hash_embedder: Any, retriever: str
) -> None:
    texts = [f"{'Leith ' * (9 - number)}place{number}" for number in range(9)]
    passages = [
        Passage(f"p{number}", text, document_id=f"d{number}")
        for number, text in enumerate(texts)
    ]
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add(passages)
    before = retriever_over(
        PassageIndex.open(tmp_path / "index", hash_embedder), retriever
    )
    ranked = [hit.passage for hit in before.retrieve("Leith", 9)]
    index.delete_documents([passage.document_id for passage in ranked[:5]])
    assert [hit.passage for hit in before.retrieve("Leith", 2)] == ranked[5:7]
    assert [hit.passage for hit in before.retrieve("Leith", 5)] == ranked[5:]


def test_an_earlier_snapshot_weighed_otherwise_finds_the_passages_that_are_left(
    tmp_path: Path,
) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.add([BELL, LEITH, TOKYO])
    reader = PassageIndex.open(tmp_path / "index")
    index.delete_document("bell")
    found = retriever_over(reader, "bm25", parameters=BM25Parameters(k1=0.9)).retrieve(
        "Leith", 3
    )
    assert [hit.passage.id for hit in found] == ["leith#0"]


def test_an_earlier_snapshot_is_searched_after_compaction(
    tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_RENUMBER_FROM", 1)
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, BELL_2, LEITH])
    reader = PassageIndex.open(tmp_path / "index", hash_embedder)
    index.delete_document("bell")
    assert rows_of(tmp_path / "index", "SELECT cell FROM passages") == [(2,)]
    for name in ("bm25", "dense", "hybrid"):
        assert found(reader, "Edinburgh", name) == ["leith#0"]
    assert list(reader.passages) == [LEITH]


def test_a_second_writer_adds_to_what_the_first_wrote(tmp_path: Path) -> None:
    first = PassageIndex.create(tmp_path / "index")
    second = PassageIndex.open(tmp_path / "index")
    first.add([BELL])
    second.add([LEITH])
    first.add([TOKYO])
    assert (
        ids(first)
        == ids(PassageIndex.open(tmp_path / "index"))
        == ["bell#0", "leith#0", "tokyo"]
    )


WRITER = """
import sys
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.store import PassageIndex

path, name = sys.argv[1:]
index = PassageIndex.open(path)
for number in range(5):
    index.add([Passage(f"{name}-{number}", f"text of {name}")])
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index")
    commands = [
        [sys.executable, "-P", "-c", WRITER, str(tmp_path / "index"), name]
        for name in ("a", "b")
    ]
    for writer in [subprocess.Popen(command) for command in commands]:
        assert writer.wait() == 0
    index = PassageIndex.open(tmp_path / "index")
    assert sorted(ids(index)) == [
        f"{name}-{number}" for name in "ab" for number in range(5)
    ]
    assert index.snapshot.state.revision == 10


def test_a_commit_is_named_anew_by_each_write_and_by_nothing_else(
    tmp_path: Path,
) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.refresh()
    commits = [index.commit]
    writes: list[Callable[[], Changes]] = [
        *(
            lambda: index.add([BELL, LEITH]),
            lambda: index.upsert([LEITH]),
            lambda: index.delete_document("x"),
        )
    ]
    for write in writes:
        write()
        index.refresh()
        commits.append(index.commit)
    assert len({*commits}) == 2
    assert commits[1:] == [commits[1]] * 3


# Erased texts


@pytest.mark.parametrize("saved_from", [1, 256])
def test_a_replaced_text_and_its_vector_are_gone_from_every_file(
    tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch, saved_from: int
) -> None:
    monkeypatch.setattr(segment, "SAVED_FROM", saved_from)
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([LEITH, BELL])
    old = hash_embedder.embed([indexed_text(BELL)])[0].tobytes()
    assert {*files_with(old, tmp_path)} > ({"vectors"} if saved_from == 1 else set())
    index.upsert([replace(BELL, text="Bell rang.")])
    assert files_with(BELL.text.encode(), tmp_path) == files_with(old, tmp_path) == []
    assert rows_of(tmp_path / "index", "SELECT count(*) FROM passages") == [(2,)]


@pytest.mark.parametrize("saved_from", [1, 2, 256])
@pytest.mark.parametrize("sizes", ["short", "long"])
def test_a_deleted_documents_text_and_vectors_are_gone_from_every_file(
    tmp_path: Path,
    hash_embedder: Any,
    monkeypatch: pytest.MonkeyPatch,
    saved_from: int,
    sizes: str,
) -> None:
    monkeypatch.setattr(segment, "SAVED_FROM", saved_from)
    # more than a page of the database
    long = "".join(f"secret{n} " for n in range(2000)) if sizes == "long" else ""
    gone = replace(BELL, text=f"{BELL.text} {long}", metadata={"team": "Quaternary"})
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([LEITH, gone, TOKYO])
    vectors = [hash_embedder.embed([indexed_text(gone)])[0].tobytes()]
    index.upsert([replace(gone, text=f"Quinquereme rang. {long}")])
    index.delete_document("bell")
    left = [
        BELL.text.encode(),
        b"Quinquereme",
        b"Quaternary",
        b"secret",
        b"bell#0",
        b"Graham",
        *vectors,
    ]
    left += [
        hash_of("team\0Quaternary").to_bytes(8, order) for order in ("little", "big")
    ]
    for content in (*left, *hashes_of(gone)):
        assert files_with(content, tmp_path) == []
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert list(again.passages) == [LEITH, TOKYO]
    assert set(found(again, "Edinburgh", "dense")) == {"leith#0", "tokyo"}


def test_a_term_is_gone_when_the_last_passage_that_had_it_is_deleted(
    tmp_path: Path, every_segment_is_saved: None
) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.add(
        [
            Passage("a", "zebra", document_id="a"),
            Passage("b", "zebra", document_id="b"),
            LEITH,
        ]
    )
    term = hash_of("zebra").to_bytes(8, "little")
    index.delete_document("a")
    assert files_with(term, tmp_path)
    assert found(PassageIndex.open(tmp_path / "index"), "zebra") == ["b"]
    index.delete_document("b")
    assert files_with(term, tmp_path) == []
    assert found(PassageIndex.open(tmp_path / "index"), "Leith") == ["leith#0"]


def test_a_text_that_is_there_already_is_not_embedded_again(
    tmp_path: Path, hash_embedder: Any
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    twice = [Passage(name, TOKYO.text, document_id=name) for name in ("one", "two")]
    assert index.add(twice).embedded == 1
    assert index.add([Passage("three", TOKYO.text)]).embedded == 0
    index.delete_documents(["one", "two"])
    assert rows_of(tmp_path / "index", "SELECT cell FROM vectors") == [(2,)]
    best = retriever_over(
        PassageIndex.open(tmp_path / "index", hash_embedder), "dense"
    ).retrieve(TOKYO.text, 1)
    # the direction of the same text, in float32
    assert [hit.score for hit in best] == [pytest.approx(1, abs=1e-6)]


def test_deletion_that_is_compacted_later_is_found_by_nobody_at_once(
    tmp_path: Path, hash_embedder: Any, every_segment_is_saved: None
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH])
    vector = hash_embedder.embed([indexed_text(BELL)])[0].tobytes()
    assert index.delete_documents(["bell"], compact="later") == Changes(deleted=1)
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert ids(again) == found(again, "Edinburgh", "hybrid") == ["leith#0"]
    assert files_with(vector, tmp_path)
    assert not again.is_finished()
    with again.batch(compact="later"):
        again.add([TOKYO])
    assert files_with(vector, tmp_path)
    again.finish()
    assert again.is_finished()
    for left in (BELL.text.encode(), vector, *hashes_of(BELL)):
        assert files_with(left, tmp_path) == []


def test_halves_of_characters_are_replaced_when_they_come_in(
    index: PassageIndex,
) -> None:
    odd = Passage("a\ud800", "b\ud800", "c\ud800", "d\0", {"key": "e\ud800"})
    plain = Passage("a\ufffd", "b\ufffd", "c\ufffd", "d\ufffd", {"key": "e\ufffd"})
    assert index.add([odd]).added == 1
    assert list(index.passages) == [plain]
    assert index.get("a\ud800") == index.get("a\ufffd") == plain
    assert index.upsert([odd]).unchanged == 1
    with pytest.raises(ValueError, match="already in the index"):
        index.add([plain])
    assert index.delete_document("d\0").deleted == 1


def test_rows_are_plain_columns(index: PassageIndex) -> None:
    index.add([replace(BELL, metadata={"team": "x", "pages": [3, 4]}), LEITH])
    index.delete_document("leith")
    query = "SELECT id, document, title, text, metadata FROM passages"
    with index.database.reading() as connection:
        (row,) = connection.execute(query).fetchall()
    assert row == (
        "bell#0",
        "bell",
        BELL.title,
        BELL.text,
        '{"team": "x", "pages": [3, 4]}',
    )


def test_a_text_that_replaces_itself_keeps_its_vector(
    tmp_path: Path, hash_embedder: Any
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH])
    index.upsert([replace(BELL, metadata={"page": 4})])
    index.upsert([replace(BELL, id="other", document_id="bell")], whole_documents=True)
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    assert ids(again) == ["leith#0", "other"]
    assert retriever_over(again, "dense").retrieve(indexed_text(BELL), 1)[
        0
    ].score == pytest.approx(1, abs=1e-6)
    # the last: the query
    assert hash_embedder.texts == [
        indexed_text(BELL),
        indexed_text(LEITH),
        indexed_text(BELL),
    ]


def test_cells_of_deleted_passages_are_forgotten_once_they_are_many_and_hits_stay(
    tmp_path: Path,
    hash_embedder: Any,
    monkeypatch: pytest.MonkeyPatch,
    every_segment_is_saved: None,
) -> None:
    monkeypatch.setattr(store_module, "_RENUMBER_FROM", 3)
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add(many(8))
    index.upsert([Passage("6", "word6 was replaced in the city", document_id="doc6")])
    epoch, commit = index.snapshot.state.epoch, index.commit
    # four cells are dead, and five passages live
    index.delete_documents(["doc0", "doc3", "doc4"])
    assert rows_of(tmp_path / "index", "SELECT count(*) FROM dead") == [(4,)]
    names = ["1", "2", "5", "6", "7"]
    for document, left in (("doc1", names[1:]), ("doc7", names[1:4])):
        index.delete_document(document)
        for one in (index, PassageIndex.open(tmp_path / "index", hash_embedder)):
            assert ids(one) == left
            # the longest passage
            assert found(one, "city") == [name for name in left if name != "6"] + ["6"]
            assert found(one, "word5 of the city", "dense")[0] == "5"
            assert {*found(one, "word0 word1 word3 word4")} <= set(left)
    # the fifth death was one more than the passages that were left, the sixth is the first since
    assert rows_of(tmp_path / "index", "SELECT cell FROM passages ORDER BY cell") == [
        (2,),
        (5,),
        (8,),
    ]
    assert rows_of(tmp_path / "index", "SELECT cell FROM dead") == [(7,)]
    assert rows_of(tmp_path / "index", "SELECT count(*) FROM vectors") == [(3,)]
    assert index.snapshot.state.epoch != epoch
    assert index.commit != commit
    assert [path.name for path in (tmp_path / "index" / "cache").iterdir()] == [
        str(index.snapshot.state.epoch)
    ]
    assert files_with(b"word0", tmp_path) == files_with(b"word7", tmp_path) == []
    assert index.add([BELL]).added == 1
    assert ids(PassageIndex.open(tmp_path / "index", hash_embedder)) == [
        "2",
        "5",
        "6",
        "bell#0",
    ]


def test_a_compaction_that_was_killed_is_ended_by_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every_segment_is_saved: None
) -> None:
    monkeypatch.setattr(store_module, "_RENUMBER_FROM", 1)
    index = PassageIndex.create(tmp_path / "index")
    index.add(many(4))
    with monkeypatch.context() as patch:
        patch.setattr(SqliteDatabase, "compact", kill)
        with pytest.raises(Killed):
            index.delete_documents(["doc0", "doc1", "doc2"])
    again = PassageIndex.open(tmp_path / "index")
    assert ids(again) == ["3"]
    assert not again.is_finished()
    again.finish()
    assert again.is_finished()
    assert (
        files_with(b"word0", tmp_path)
        == files_with(hash_of("doc0").to_bytes(8, "little"), tmp_path)
        == []
    )
    assert segments_in(tmp_path / "index") == ["cells-0-4"]


@saving
def test_a_segment_joined_over_dead_cells_has_the_others_alone(
    tmp_path: Path, hash_embedder: Any
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    with index.batch():
        for first in range(0, 6, 2):
            index.add(many(2, first))
        index.delete_documents(["doc1", "doc2"])
    assert segments_in(tmp_path / "index") == ["cells-0-6"]
    again = PassageIndex.open(tmp_path / "index", hash_embedder)
    (one,) = again.snapshot.segments
    assert one.columns["cell"].tolist() == [0, 3, 4, 5]
    assert found(again, "city") == ids(again) == ["0", "3", "4", "5"]
    assert {*found(again, "word1 word2")} <= {"0", "3", "4", "5"}
    for n in (0, 3, 4, 5):
        assert found(again, f"word{n} of the city", "dense")[0] == f"{n}"


@saving
def test_adding_a_little_does_not_write_a_large_segment_again(
    tmp_path: Path, hash_embedder: Any
) -> None:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add(many(12))
    (folder,) = (tmp_path / "index").glob("cache/*/*")
    before = os.stat(folder / "arrays")
    index.add(many(2, 12))
    assert segments_in(tmp_path / "index") == ["cells-0-12", "cells-12-14"]
    assert (
        os.stat(folder / "arrays").st_ino,
        os.stat(folder / "arrays").st_mtime_ns,
    ) == (
        before.st_ino,
        before.st_mtime_ns,
    )
    index.add(many(2, 14))  # four are no more than a quarter of twelve: all are joined
    assert segments_in(tmp_path / "index") == ["cells-0-16"]
    assert (
        found(PassageIndex.open(tmp_path / "index", hash_embedder), "city")
        == ids(index)[:10]
    )


def test_a_write_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.add([BELL])
    commit, before = (
        index.commit,
        {
            path: path.read_bytes()
            for path in (tmp_path / "index").glob("index.sqlite*")
        },
    )
    index.upsert([BELL])
    index.delete_document("leith")
    index.finish()
    assert index.snapshot.state.revision == 1
    assert index.commit == commit
    assert {path for path in before if path.read_bytes() != before[path]} <= {
        tmp_path / "index" / "index.sqlite-shm"
    }


def test_an_index_in_a_folder_nobody_may_write_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index"
    index = PassageIndex.create(path)
    index.add([BELL])
    index.close()
    del index
    for item in [*path.rglob("*"), path]:
        item.chmod(0o555 if item.is_dir() else 0o444)
    # the superuser may write all the same
    monkeypatch.setattr(os, "access", lambda place, mode: mode != os.W_OK)
    try:
        assert found(PassageIndex.open(path), "Edinburgh") == ["bell#0"]
        assert [item.name for item in path.iterdir()] == ["index.sqlite"]
    finally:
        for item in [path, *path.rglob("*")]:
            item.chmod(0o755 if item.is_dir() else 0o644)


def test_what_json_turns_into_a_list_is_no_change(index: PassageIndex) -> None:
    assert index.add([BELL]).added == 1
    tagged = replace(BELL, metadata={"tags": ("inventor", "Scot")})
    assert index.upsert([tagged]) == Changes(replaced=1)
    assert index.upsert([tagged]) == Changes(unchanged=1)


def test_an_option_that_a_retriever_does_not_take_is_refused_with_those_it_takes() -> (
    None
):
    with pytest.raises(UnknownName, match="depht"):
        retriever_over(PassageIndex.in_memory([BELL]), "bm25", depht=3)


def test_adding_a_passage_leaves_the_others_of_its_document_alone(
    index: PassageIndex,
) -> None:
    index.add([BELL])
    assert index.add([BELL_2]) == Changes(added=1, embedded=1)
    assert list(index.passages) == [BELL, BELL_2]


def test_documents_are_counted_without_the_passages_that_belong_to_none(
    index: PassageIndex,
) -> None:
    index.add([BELL, BELL_2, LEITH, TOKYO])
    assert index.snapshot.documents == 2


def test_indexes_of_the_same_corpus_have_the_same_fingerprint(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "index")
    index.add([LEITH])
    index.add([replace(BELL, text="Bell rang."), TOKYO])
    index.upsert([BELL])
    index.delete_document("leith")
    assert index.fingerprint == PassageIndex.in_memory([BELL, TOKYO]).fingerprint
    assert index.fingerprint != PassageIndex.in_memory([TOKYO, BELL]).fingerprint


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
    monkeypatch.setattr(manifest, "reopened_embedder", lambda *_: Wider())
    with pytest.raises(IndexMismatch, match="was built with embedder"):
        _ = PassageIndex.open(tmp_path / "index").embedder


def test_where_there_is_no_index_the_error_says_how_to_get_on(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "a.md").write_text("A text.")
    with pytest.raises(
        IndexNotFound,
        match=says(
            "a folder of other files", "`ras-agent index", "--out documents.index`"
        ),
    ):
        PassageIndex.open(documents)
    (tmp_path / "my.index").mkdir()
    with pytest.raises(
        IndexNotFound, match=says("no index at", "did you mean", "my.index?")
    ):
        PassageIndex.open(tmp_path / "my.indx")
    with pytest.raises(IndexNotFound, match="make one with `ras-agent index`"):
        PassageIndex.open(tmp_path / "else")

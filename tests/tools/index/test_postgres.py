"""An index in a real PostgreSQL server: the promises of every index in test_store.py, and those of PostgreSQL."""

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from weakref import ref

import psycopg
import pytest
from typer.testing import CliRunner

from ras_agent.app.cli import build_program
from ras_agent.app.sample import sample_passages
from ras_agent.config.address import Address, as_argument
from ras_agent.config.filters import Filter
from ras_agent.contracts.errors import (
    IndexExists,
    IndexMismatch,
    IndexNotFound,
    IngestError,
    SettingsError,
    StoreError,
)
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.changes import Changes
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.retrieve.resolve import resolve_retriever
from ras_agent.tools.store.postgres import PostgresDatabase
from tests.messages import says


@pytest.fixture
def reopen(
    address: Address, hash_embedder: Any
) -> Iterator[Callable[[], PassageIndex]]:
    """The opener of an index with vectors, which is empty at first, as another process would."""
    opened = [PassageIndex.create(address, hash_embedder)]

    def another() -> PassageIndex:
        opened.append(PassageIndex.open(address, hash_embedder))
        return opened[-1]

    yield another
    for index in opened:
        index.close()


@pytest.fixture
def index(reopen: Callable[[], PassageIndex]) -> PassageIndex:
    return reopen()


def _execute(address: Address, statement: str) -> list[Any]:
    with psycopg.connect(address.url, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {address.schema}".encode())
        rows = connection.execute(statement.encode())
        return rows.fetchall() if rows.description else []


@pytest.mark.parametrize("name", ["bm25", "dense", "hybrid", "bm25+dense"])
def test_hits_and_scores_are_those_of_an_index_in_memory(
    index: PassageIndex, hash_embedder: Any, name: str
) -> None:
    passages = sample_passages()
    index.add(passages)
    here, there = (
        retriever_over(index, name),
        retriever_over(PassageIndex.in_memory(passages, hash_embedder), name),
    )
    for passage in passages[::8]:
        assert here.retrieve(passage.text[:80], 7) == there.retrieve(
            passage.text[:80], 7
        )


def test_a_search_sees_the_last_write_of_anybody(
    index: PassageIndex, reopen: Callable[[], PassageIndex]
) -> None:
    retriever, other = resolve_retriever("bm25", index), reopen()
    assert retriever.retrieve("telephone") == []
    other.add(
        [
            Passage("a", "The telephone."),
            Passage("b", "A telephone and a telegraph.", document_id="d"),
        ]
    )
    assert {hit.passage.id for hit in retriever.retrieve("telephone")} == {"a", "b"}
    assert other.delete_document("d") == Changes(deleted=1)
    assert [hit.passage.id for hit in retriever.retrieve("telephone telegraph")] == [
        "a"
    ]
    assert (len(index), index.document_ids()) == (1, ())


def test_a_reader_of_many_writes_joins_what_they_made(
    index: PassageIndex, reopen: Callable[[], PassageIndex]
) -> None:
    other = reopen()
    for number in range(20):
        other.add([Passage(str(number), f"river {number}")])
        index.refresh()
        assert len(index.snapshot.segments) <= 3
    assert [hit.passage.id for hit in retriever_over(index).retrieve("river 7", 1)] == [
        "7"
    ]
    assert [
        hit.passage.id for hit in retriever_over(index, "dense").retrieve("river 7", 1)
    ] == ["7"]


def test_every_character_of_a_passage_comes_back(
    index: PassageIndex, reopen: Callable[[], PassageIndex]
) -> None:
    metadata = {
        "year": 1921,
        "tags": ["a", {"b": None}],
        "ratio": 0.1,
        "name": "東京",
        "k\x01": ["\uffff"],
    }
    whole = Passage(
        "it's 100% \\'quoted'",
        "नई दिल्ली 🦉\n\t' \\ \" ?",
        "Title's",
        "docs/ä.txt",
        metadata,
    )
    index.add([whole])
    assert list(reopen().passages) == [whole]
    assert index.upsert([whole]) == Changes(unchanged=1)


def test_nothing_of_what_was_deleted_is_left_in_a_row(
    index: PassageIndex, address: Address
) -> None:
    index.add(
        [Passage("a", "secret", document_id="a"), Passage("b", "open", document_id="b")]
    )
    index.delete_document("a")
    assert _execute(address, "SELECT id, text FROM passages") == [("b", "open")]
    assert _execute(address, "SELECT cell FROM vectors") == [(1,)]
    assert index.is_finished()


def test_cells_of_what_was_deleted_are_forgotten_once_they_are_many(
    index: PassageIndex,
    address: Address,
    reopen: Callable[[], PassageIndex],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ras_agent.tools.index.store._RENUMBER_FROM", 2)
    reader = reopen()
    index.add(
        [
            Passage(str(number), f"river {number}", document_id=str(number))
            for number in range(6)
        ]
    )
    reader.refresh()
    index.delete_documents("01234")
    assert _execute(address, "SELECT count(*) FROM passages") == [(1,)]
    reader.refresh()
    for one in (index, reader, reopen()):
        assert [
            hit.passage.id
            for hit in retriever_over(one, "dense").retrieve("river 5", 3)
        ] == ["5"]


def test_writers_wait_for_each_other_and_lose_nothing(
    index: PassageIndex, reopen: Callable[[], PassageIndex]
) -> None:
    def write(number: int) -> None:
        other = reopen()
        for part in range(3):
            other.add(
                [
                    Passage(
                        f"{number}.{part}.{piece}", f"river {number} {part} {piece}"
                    )
                    for piece in range(5)
                ]
            )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    index.refresh()
    assert len(index) == 60
    assert len(retriever_over(index).retrieve("river", 100)) == 60


WRITER = """
import sys
from ras_agent import Passage, PassageIndex
index = PassageIndex.open(sys.argv[1])
for number in range(10):
    index.add([Passage(f"{sys.argv[2]}{number}", "river")])
"""


def test_two_processes_write_one_index(address: Address) -> None:
    PassageIndex.create(address).close()
    place = f"{address.url}?schema={address.schema}"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, place, name]) for name in "ab"
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    assert sorted(PassageIndex.open(address).passages, key=lambda one: one.id) == [
        Passage(f"{name}{number}", "river") for name in "ab" for number in range(10)
    ]


def test_connections_that_a_restart_has_ended_are_replaced(
    index: PassageIndex, address: Address
) -> None:
    index.add([Passage("a", "river")])
    for number in range(2):
        _execute(
            address,
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
        )
        index.add([Passage(f"{number}", f"river {number}")])
    assert [hit.passage.id for hit in retriever_over(index).retrieve("river")] == [
        "a",
        "0",
        "1",
    ]


def test_an_index_that_nobody_holds_any_more_ends_and_its_connections_with_it(
    address: Address,
) -> None:
    index = PassageIndex.create(address)
    index.add([Passage("1", "Bell was born in Edinburgh.")])
    assert len(PassageIndex.open(address).passages) == 1
    database = ref(index.database)
    del index
    gc.collect()
    assert database() is None


def test_a_write_whose_connection_ends_is_taken_back_and_can_be_made_again(
    index: PassageIndex, address: Address
) -> None:
    index.add([Passage("a", "river")])

    def write_until_the_connection_ends() -> None:
        with index.database.writing() as connection:
            index.add([Passage("b", "river")])
            (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone()
            _execute(address, f"SELECT pg_terminate_backend({pid}, 30000)")
            index.add([Passage("c", "river")])

    with pytest.raises(StoreError, match="is the server running"):
        write_until_the_connection_ends()
    index.refresh()
    assert [passage.id for passage in index.passages] == ["a"]
    index.add([Passage("b", "river bank")])
    assert [hit.passage.id for hit in retriever_over(index).retrieve("bank")] == ["b"]


def test_an_index_is_opened_with_its_own_embedder_only(
    address: Address, hash_embedder: Any
) -> None:
    PassageIndex.create(address, hash_embedder)
    with pytest.raises(IndexExists, match="holds an index already"):
        PassageIndex.create(address)
    with pytest.raises(IndexMismatch, match=r"PassageIndex\.open"):
        _ = PassageIndex.open(address).embedder
    other = Address(address.url, f"{address.schema}_other")
    assert not PassageIndex.exists(other)
    with pytest.raises(IndexNotFound, match="ras-agent index FILES --out"):
        PassageIndex.open(other)
    PassageIndex.create(other)
    assert PassageIndex.exists(other)
    with pytest.raises(IndexMismatch, match="holds no vectors"):
        retriever_over(PassageIndex.open(other), "dense")


def test_tables_of_somebody_else_are_left_alone(address: Address) -> None:
    with psycopg.connect(address.url, autocommit=True) as connection:
        connection.execute(
            f"CREATE SCHEMA {address.schema}; CREATE TABLE {address.schema}.theirs (a int)".encode()
        )
    with pytest.raises(IndexExists, match="holds other tables"):
        PassageIndex.create(address)


def test_an_index_that_is_gone_is_named_and_one_that_is_made_anew_is_read_anew(
    index: PassageIndex, address: Address, hash_embedder: Any
) -> None:
    index.add([Passage("a", "old")])
    _execute(address, f"DROP SCHEMA {address.schema} CASCADE")
    with pytest.raises(
        IndexNotFound,
        match=says(f"no index at {address}", "ras-agent index FILES --out"),
    ):
        index.refresh()
    PassageIndex.create(address, hash_embedder).add([Passage("b", "new")])
    index.refresh()
    assert [passage.id for passage in index.passages] == ["b"]


def test_another_version_and_a_damaged_row_say_what_to_do(
    index: PassageIndex, address: Address
) -> None:
    index.add([Passage("a", "river")])
    _execute(address, "UPDATE passages SET metadata = 'x'")
    with pytest.raises(
        IndexMismatch,
        match=says("is damaged", "into another schema, such as ?schema=handbook"),
    ):
        list(index.passages)
    _execute(address, "UPDATE index_state SET version = 1")
    with pytest.raises(
        IndexMismatch,
        match=says("has version 1", "into another schema, such as ?schema=handbook"),
    ):
        PassageIndex.open(address)


@pytest.mark.parametrize("name", ["ppr", "pcst", "graph"])
def test_what_searches_a_knowledge_graph_says_that_there_is_none(
    index: PassageIndex, name: str
) -> None:
    told = says(
        "postgresql://",
        "has no knowledge graph",
        "make it with `ras-agent kg build 'postgresql://",
    )
    with pytest.raises(IndexMismatch, match=told):
        retriever_over(index, name)


@pytest.mark.parametrize(
    "filter",
    [
        {"team": "x"},
        {"it's": "50% \\ \" ' $1"},
        {"x' OR true --": "x"},
        {"team": "x\x00"},
        {"id": "%*"},
    ],
    ids=str,
)
def test_a_filter_that_holds_sql_admits_what_it_says(
    index: PassageIndex, filter: dict[str, Any]
) -> None:
    values: list[dict[str, Any]] = [
        {"team": "x"},
        {"it's": "50% \\ \" ' $1"},
        {"team": "x\x00"},
        {},
    ]
    passages = [
        Passage(
            f"%{number}" if number % 2 else str(number), f"river {number}", "", "", one
        )
        for number, one in enumerate(values)
    ]
    index.add(passages)
    hits = resolve_retriever("bm25", index).retrieve("river", 9, filter=filter)  # type: ignore[call-arg]
    expected = [
        passage.id for passage in passages if Filter.of(filter).matches(passage)
    ]
    assert sorted(hit.passage.id for hit in hits) == sorted(expected)


# ---- from files


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("The Water of Leith flows through Edinburgh.")
    (folder / "b.txt").write_text("Alexander Graham Bell was born in Edinburgh.")
    (folder / "c.jsonl").write_text(
        '{"id": "Q1", "text": "one"}\n{"id": "Q2", "text": "two"}\n'
    )
    return folder


def test_files_are_indexed_kept_up_to_date_pruned_and_forgotten(
    docs: Path, address: Address
) -> None:
    assert ingest([docs], address).passages_written == 4
    again = ingest([docs], address)
    assert (again.files_unchanged, again.passages_written, again.passages_total) == (
        3,
        0,
        4,
    )
    (docs / "a.txt").unlink()
    (docs / "b.txt").write_text("Bell was born in 1847.")
    changed = ingest([docs], address, prune=True)
    assert (
        changed.documents_removed,
        changed.passages_written,
        changed.passages_total,
    ) == (1, 1, 3)
    assert ingest([], address, forget=["Q1"]).passages_total == 2
    assert PassageIndex.open(address).document_ids() == ("docs/b.txt", "Q2")


def test_metadata_is_remembered(docs: Path, address: Address) -> None:
    ingest([docs], address, metadata={"team": "sales"})
    ingest([docs / "a.txt"], address, metadata={"team": "hr"})
    (docs / "d.txt").write_text("New.")
    assert ingest([docs], address).files_unchanged == 3
    index = PassageIndex.open(address)
    assert index.within({"team": "sales"}).document_ids() == (
        "docs/b.txt",
        "Q1",
        "Q2",
        "docs/d.txt",
    )
    assert index.within({"team": "hr"}).document_ids() == ("docs/a.txt",)


def test_a_moved_folder_keeps_its_names(docs: Path, address: Address) -> None:
    ingest([docs], address)
    moved = docs.parent / "elsewhere" / "docs"
    moved.parent.mkdir()
    docs.rename(moved)
    report = ingest([moved], address)
    assert report.moved == ((str(docs), str(moved)),)
    assert (report.files_unchanged, report.passages_total) == (3, 4)


def test_a_run_waits_for_no_other_but_says_that_there_is_one(
    docs: Path, address: Address
) -> None:
    ingest([docs], address)
    alone = PostgresDatabase(address).alone()
    with alone, pytest.raises(IngestError, match="another run is writing this index"):
        ingest([docs], address)


def test_a_killed_run_is_taken_up_again(
    docs: Path, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ras_agent.tools.index.ingest.FIRST_BATCH", 1)

    def stop(progress: Any) -> None:
        if progress.passages:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest([docs], address, on_progress=stop)
    report = ingest([docs], address)
    assert (report.passages_total, report.passages_written) == (4, 3)


# ---- the command line, and values that are too long


def test_doctor_opens_an_index_in_a_database(address: Address) -> None:
    PassageIndex.create(address).add([Passage("a", "one")])
    place = f"{address.url}?schema={address.schema}"
    result = CliRunner().invoke(build_program(), ["doctor", "--index", place])
    assert "1 passage, no vectors: bm25 only" in " ".join(result.stdout.split())


def test_a_passage_of_many_words_is_stored(index: PassageIndex) -> None:
    index.add(
        [Passage("long", " ".join(f"word{number:x}" for number in range(120_000)))]
    )
    assert [hit.passage.id for hit in retriever_over(index).retrieve("word1d4bf")] == [
        "long"
    ]


def test_a_name_that_is_too_long_for_the_database_says_so(
    docs: Path, address: Address
) -> None:
    name = "".join(f"{number:x}" for number in range(4000))
    (docs / "d.jsonl").write_text(json.dumps({"id": name, "text": "one"}))
    with pytest.raises(StoreError, match="too long for a database"):
        ingest([docs], address)


# ---- addresses


@pytest.mark.parametrize(
    ("text", "shown", "schema"),
    [
        (
            "postgresql://u:pw@h:5/d?schema=s&password=pw",
            "postgresql://u@h:5/d?schema=s",
            "s",
        ),
        (
            "postgres:///d?host=/run/pg&sslpassword=pw",
            "postgres:///d?host=/run/pg",
            "ras_agent",
        ),
        ("postgresql://h/d", "postgresql://h/d", "ras_agent"),
    ],
)
def test_an_address_shows_no_password(text: str, shown: str, schema: str) -> None:
    address = Address.parse(text)
    assert (str(address), address.schema) == (shown, schema)
    assert "pw" not in repr(address)


@pytest.mark.parametrize("schema", ["Ras", "pg_catalog", "a b", "", "a&schema=b"])
def test_a_schema_is_a_plain_name(schema: str) -> None:
    with pytest.raises(SettingsError, match="one name of lower-case letters") as raised:
        Address.parse(f"postgresql://u:secret@h/d?schema={schema}")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "postgresql://u:secret@127.0.0.1:1/d",
            "Connection refused.* is the server running",
        ),
        (
            "postgresql://u:secret@127.0.0.1:1/d?secret=x",
            "is not the address of a PostgreSQL database",
        ),
        ("postgresql://u:secret@127.0.0.1:secret/d", "127.0.0.1:\\S*"),
    ],
)
def test_a_database_that_cannot_be_reached_is_named_without_its_password(
    text: str, problem: str
) -> None:
    with pytest.raises(StoreError, match=problem) as raised:
        PassageIndex.open(text)
    assert "secret@" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("place", "argument"),
    [
        (
            Address.parse("postgresql://me@host/texts?schema=notes"),
            "'postgresql://me@host/texts?schema=notes'",
        ),
        (Address.parse("postgresql://me@host/texts"), "postgresql://me@host/texts"),
        (Path("my texts"), "'my texts'"),
    ],
)
def test_a_message_gives_a_place_as_a_shell_takes_it(
    place: Address | Path, argument: str
) -> None:
    assert as_argument(place) == argument

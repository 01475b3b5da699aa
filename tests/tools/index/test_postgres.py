"""An index in a real PostgreSQL server: one that has pgvector, and one that has not."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from ras_agent.address import Address
from ras_agent.app.cli import build_program
from ras_agent.app.sample import sample_passages
from ras_agent.errors import IndexExists, IndexMismatch, IndexNotFound, IngestError, SettingsError, StoreError
from ras_agent.eval.bench.retrieval import synthetic_passages, synthetic_queries
from ras_agent.filters import Filter
from ras_agent.records import Passage
from ras_agent.tools.index.changes import Changes
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.postgres import PostgresIndex
from ras_agent.tools.index.postgres.search import _promising
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over
from tests.conftest import HashEmbedder
from tests.messages import says

_numbers = count()


@pytest.fixture
def address(pgvector: str) -> Address:
    """An address at which there is no index yet."""
    return Address(pgvector, f"test_{next(_numbers)}")


@pytest.fixture
def index(address: Address, hash_embedder: Any) -> Iterator[PostgresIndex]:
    """An empty index with vectors."""
    made = PostgresIndex.create(address, hash_embedder)
    yield made
    made.close()


def _ids(index: PostgresIndex | PassageIndex, query: str, retriever: str = "bm25", k: int = 5) -> list[str]:
    return [hit.passage.id for hit in retriever_over(index, retriever).retrieve(query, k)]


@pytest.mark.parametrize("name", ["bm25", "dense", "hybrid"])
def test_hits_and_scores_are_those_of_an_index_in_files(index: PostgresIndex, hash_embedder: Any, name: str) -> None:
    passages = sample_passages()
    index.add(passages)
    here, there = retriever_over(index, name), retriever_over(PassageIndex.in_memory(passages, hash_embedder), name)
    for passage in passages[::8]:
        found, expected = here.retrieve(passage.text[:80], 7), there.retrieve(passage.text[:80], 7)
        assert [hit.passage for hit in found] == [hit.passage for hit in expected]
        # single precision, added up in another order
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], rel=1e-5)


def test_a_common_word_counts_where_rare_ones_leave_room(index: PostgresIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ras_agent.tools.index.postgres.search._FEW", 1)
    index.add([Passage(str(number), f"river {number}") for number in range(9)] + [Passage("z", "zebra river river")])
    assert _ids(index, "zebra river", k=3) == ["z", "0", "1"]
    assert _ids(index, "zebra river", k=1) == ["z"]


@pytest.fixture(scope="module")
def synthetic(pgvector: str) -> Iterator[tuple[PostgresIndex, PassageIndex]]:
    """A thousand passages here and in files."""
    passages = list(synthetic_passages(1000))
    made = PostgresIndex.create(Address(pgvector, f"test_{next(_numbers)}"))
    made.add(passages)
    yield made, PassageIndex.in_memory(passages)
    made.close()


@pytest.mark.parametrize(("few", "sets"), [(1, 300), (40, 300), (40, 5), (40, 0)])
def test_passages_that_are_not_scored_could_not_be_among_the_best(
    synthetic: tuple[PostgresIndex, PassageIndex], few: int, sets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ras_agent.tools.index.postgres.search._FEW", few)
    monkeypatch.setattr("ras_agent.tools.index.postgres.search._SETS", sets)
    here, there = (retriever_over(index) for index in synthetic)
    for number, query in enumerate(synthetic_queries(12)):
        found, expected = here.retrieve(query, 1 + number), there.retrieve(query, 1 + number)
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], rel=1e-5)


def test_a_passage_is_scored_if_its_terms_have_enough_weight_together() -> None:
    terms, weights = ["a", "b", "c", "d"], [5.0, 4.0, 2.0, 1.0]
    assert _promising(terms, weights, 4.5) == "a | b & (c | d)"
    assert _promising(terms, weights, 11.5) == "a & (b & (c & (d)))"
    assert _promising(terms, weights, 0.0) == "a | b | c | d"


def test_a_term_counts_as_often_as_it_occurs(index: PostgresIndex) -> None:
    passages = [Passage("one", "river " + "word " * 299), Passage("many", "river " * 200 + "word " * 100)]
    index.add(passages)
    found = retriever_over(index).retrieve("river", 2)
    expected = retriever_over(PassageIndex.in_memory(passages)).retrieve("river", 2)
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], rel=1e-5)


def test_a_search_sees_the_passages_of_the_last_write(index: PostgresIndex) -> None:
    retriever = retriever_over(index)
    assert retriever.retrieve("telephone") == []
    index.add([Passage("a", "The telephone."), Passage("b", "A telephone and a telegraph.", document_id="d")])
    assert {hit.passage.id for hit in retriever.retrieve("telephone")} == {"a", "b"}
    assert index.delete_document("d") == Changes(deleted=1)
    assert [hit.passage.id for hit in retriever.retrieve("telephone telegraph")] == ["a"]
    assert (len(index), index.document_ids()) == (1, ())


def test_scores_count_only_what_is_there_after_replacing_and_deleting(index: PostgresIndex) -> None:
    index.add(
        [Passage("a", "old words", document_id="x"), Passage("b", "river bank"), Passage("c", "gone", document_id="y")]
    )
    changes = index.upsert([Passage("a", "river", document_id="x"), Passage("b", "river bank")])
    index.delete_document("y")
    assert changes == Changes(replaced=1, unchanged=1, embedded=1)
    expected = retriever_over(PassageIndex.in_memory([Passage("a", "river"), Passage("b", "river bank")]))
    for query in ("river", "old gone", "bank"):
        found = retriever_over(index).retrieve(query)
        assert [(hit.passage.id, pytest.approx(hit.score, rel=1e-5)) for hit in found] == [
            (hit.passage.id, hit.score) for hit in expected.retrieve(query)
        ]


def test_what_a_document_no_longer_has_is_deleted(index: PostgresIndex) -> None:
    index.add([Passage("d#1", "one", document_id="d"), Passage("d#2", "two", document_id="d"), Passage("e", "three")])
    changes = index.upsert([Passage("d#1", "one", document_id="d")], whole_documents=True)
    assert changes == Changes(unchanged=1, deleted=1)
    assert [index.get(name) is not None for name in ("d#1", "d#2", "e")] == [True, False, True]


def test_no_text_is_embedded_twice(index: PostgresIndex) -> None:
    assert index.add([Passage("a", "same"), Passage("b", "same"), Passage("c", "other")]).embedded == 2
    assert index.upsert([Passage("d", "same"), Passage("a", "other")]).embedded == 0
    assert set(_ids(index, "same", "dense", 2)) == {"b", "d"}


def test_nothing_is_added_if_one_id_is_there_or_given_twice(index: PostgresIndex) -> None:
    index.add([Passage("a", "first")])
    with pytest.raises(ValueError, match="'a' is already in the index"):
        index.add([Passage("b", "second"), Passage("a", "again")])
    with pytest.raises(ValueError, match="'c' is given twice"):
        index.add([Passage("c", "one"), Passage("c", "two")])
    assert len(index) == 1


def test_passages_come_back_whole_but_for_what_the_database_cannot_hold(index: PostgresIndex) -> None:
    metadata = {"year": 1921, "tags": ["a", {"b": None}], "ratio": 0.1, "name": "東京"}
    whole = Passage("it's 100% \\'quoted'", "नई दिल्ली 🦉\n\t' \\ \"", "Title's", "docs/ä.txt", metadata)
    index.add([whole, Passage("odd\x00", "nul \x00 and \ud800", metadata={"k\x00": ["\udfff"]})])
    assert index.get(whole.id) == whole
    assert index.get("odd\x00") == Passage("odd\ufffd", "nul \ufffd and \ufffd", metadata={"k\ufffd": ["\ufffd"]})
    assert index.upsert([whole]) == Changes(unchanged=1)


def test_writers_wait_for_each_other_and_lose_nothing(index: PostgresIndex, hash_embedder: Any) -> None:
    def write(number: int) -> None:
        other = PostgresIndex.open(index.database.address, hash_embedder)
        for part in range(3):
            other.add([Passage(f"{number}.{part}.{piece}", f"river {number} {piece}") for piece in range(5)])
        other.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(index) == 60
    assert len(_ids(index, "river", k=100)) == 60
    assert index.about().generation == 12


def test_many_vectors_are_searched_by_a_graph(index: PostgresIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ras_agent.tools.index.postgres.about.EXACT_UP_TO", 50)
    passages = [Passage(str(number), f"passage about subject {number}") for number in range(200)]
    with index.batch():
        index.add(passages[:150])
        index.add(passages[150:])
    with index.database.reading() as connection:
        assert connection.execute("SELECT to_regclass('passages_vector')::text").fetchone() == ("passages_vector",)
    assert _ids(index, "passage about subject 77", "dense", 1) == ["77"]
    assert len(_ids(index, "subject", "dense", 150)) == 150


def test_an_index_is_opened_with_its_own_embedder_only(address: Address, hash_embedder: Any) -> None:
    PostgresIndex.create(address, hash_embedder)
    with pytest.raises(IndexExists, match="holds an index already"):
        PostgresIndex.create(address)
    with pytest.raises(IndexMismatch, match=r"PostgresIndex\.open"):
        _ = PostgresIndex.open(address).embedder
    other = Address(address.url, f"{address.schema}_other")
    with pytest.raises(IndexNotFound, match="ras-agent index FILES --out"):
        PostgresIndex.open(other)
    PostgresIndex.create(other)
    with pytest.raises(IndexMismatch, match="holds no vectors"):
        retriever_over(PostgresIndex.open(other), "dense")


def test_tables_of_somebody_else_are_left_alone(address: Address) -> None:
    with psycopg.connect(address.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {address.schema}; CREATE TABLE {address.schema}.theirs (a int)".encode())
    with pytest.raises(IndexExists, match="holds something else"):
        PostgresIndex.create(address)


@pytest.mark.parametrize("name", ["ppr", "pcst", "bm25+dense"])
def test_what_reads_files_says_so(index: PostgresIndex, name: str) -> None:
    with pytest.raises(IndexMismatch, match=says("index in files", "ras-agent index FILES --out FOLDER")):
        retriever_over(index, name)


# ---- filters

_VALUES = [
    {"team": "x"},
    {"team": ["x", "y"]},
    {"team": [["x"]]},
    {"team": {"x": 1}},
    {"team": None},
    {},
    {"year": 2019},
    {"year": "2019"},
    {"year": 2019.0},
    {"year": 2019.5},
    {"done": True},
    {"done": 1},
    {"done": "true"},
    {"it's": "50% \\ \" ' $1"},
    {"": "x"},
]


@pytest.mark.parametrize(
    "filter",
    [
        {"team": "x"},
        {"team": ["y", "z"]},
        {"year": 2019},
        {"year": "2019.0"},
        {"year": 2019.5},
        {"done": True},
        {"done": 1},
        {"team": "x", "id": "1*"},
        {"id": ["0", "3*", "%", "_*"]},
        {"document_id": "folder/*"},
        {"document_id": "folder/1"},
        {"title": "Title 2"},
        {"title": "Title*"},
        {"it's": "50% \\ \" ' $1"},
        {"nothing": "x' OR true --"},
        {"x' OR true --": "x"},
        {"team": "x\x00"},
    ],
    ids=str,
)
def test_a_filter_admits_what_it_admits_elsewhere(filtered: PostgresIndex, filter: dict[str, Any]) -> None:
    chosen = Filter.of(filter)
    for name in ("bm25", "dense"):
        found = retriever_over(filtered, name).retrieve("river", 100, filter=chosen)  # type: ignore[call-arg]
        expected = [passage.id for passage in _filtered_passages() if chosen.matches(passage)]
        assert sorted(hit.passage.id for hit in found) == sorted(expected)


def test_documents_are_listed_within_a_filter(filtered: PostgresIndex) -> None:
    assert filtered.document_ids({"team": "x"}) == ("folder/1",)
    assert filtered.document_ids({"year": [2019, 2019.5], "document_id": "folder/*"}) == ("folder/7", "folder/9")


def _filtered_passages() -> list[Passage]:
    return [
        Passage(str(number), f"river {number}", f"Title {number}", f"folder/{number}" if number % 2 else "", metadata)
        for number, metadata in enumerate(_VALUES)
    ]


@pytest.fixture(scope="module")
def filtered(pgvector: str) -> Iterator[PostgresIndex]:
    """An index whose passages have all sorts of metadata."""
    made = PostgresIndex.create(Address(pgvector, f"test_{next(_numbers)}"), HashEmbedder())
    made.add(_filtered_passages())
    yield made
    made.close()


def test_a_filter_that_admits_few_finds_the_nearest_of_them_beside_a_graph(
    index: PostgresIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ras_agent.tools.index.postgres.about.EXACT_UP_TO", 10)
    passages = [Passage(str(n), f"subject number {n}", metadata={"part": n % 100}) for n in range(600)]
    with index.batch():
        index.add(passages)
    dense: Any = retriever_over(index, "dense")
    exact: Any = retriever_over(PassageIndex.in_memory(passages, index.embedder).within({"part": 7}), "dense")
    # six passages are fewer than are compared one by one, 40 more, as the graph searches them
    for found, wanted in (
        (dense.retrieve("subject number 7", 6, filter={"part": 7}), exact.retrieve("subject number 7", 6)),
        (dense.retrieve("subject number 7", 3, filter={"part": 7}), exact.retrieve("subject number 7", 3)),
    ):
        assert [hit.passage.id for hit in found] == [hit.passage.id for hit in wanted]
    many = dense.retrieve("subject number 7", 50, filter={"part": list(range(20))})
    assert len(many) == 50
    assert all(hit.passage.metadata["part"] < 20 for hit in many)


# ---- from files


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("The Water of Leith flows through Edinburgh.")
    (folder / "b.txt").write_text("Alexander Graham Bell was born in Edinburgh.")
    (folder / "c.jsonl").write_text('{"id": "Q1", "text": "one"}\n{"id": "Q2", "text": "two"}\n')
    return folder


def test_files_are_indexed_kept_up_to_date_pruned_and_forgotten(docs: Path, address: Address) -> None:
    assert ingest([docs], address).passages_written == 4
    again = ingest([docs], address)
    assert (again.files_unchanged, again.passages_written, again.passages_total) == (3, 0, 4)
    (docs / "a.txt").unlink()
    (docs / "b.txt").write_text("Bell was born in 1847.")
    changed = ingest([docs], address, prune=True)
    assert (changed.documents_removed, changed.passages_written, changed.passages_total) == (1, 1, 3)
    assert ingest([], address, forget=["Q1"]).passages_total == 2
    assert PostgresIndex.open(address).document_ids() == ("docs/b.txt", "Q2")


def test_metadata_is_remembered(docs: Path, address: Address) -> None:
    ingest([docs], address, metadata={"team": "sales"})
    ingest([docs / "a.txt"], address, metadata={"team": "hr"})
    (docs / "d.txt").write_text("New.")
    assert ingest([docs], address).files_unchanged == 3
    index = PostgresIndex.open(address)
    assert index.document_ids({"team": "sales"}) == ("docs/b.txt", "Q1", "Q2", "docs/d.txt")
    assert index.document_ids({"team": "hr"}) == ("docs/a.txt",)


def test_a_moved_folder_keeps_its_names(docs: Path, address: Address) -> None:
    ingest([docs], address)
    moved = docs.parent / "elsewhere" / "docs"
    moved.parent.mkdir()
    docs.rename(moved)
    report = ingest([moved], address)
    assert report.moved == ((str(docs), str(moved)),)
    assert (report.files_unchanged, report.passages_total) == (3, 4)


def test_a_run_waits_for_no_other_but_says_that_there_is_one(docs: Path, address: Address) -> None:
    from ras_agent.tools.index.postgres.journal import open_postgres_journal

    ingest([docs], address)
    with open_postgres_journal(address), pytest.raises(IngestError, match="another run is writing the index"):
        ingest([docs], address)


def test_a_killed_run_is_taken_up_again(docs: Path, address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ras_agent.tools.index.ingest.FIRST_BATCH", 1)

    def stop(progress: Any) -> None:
        if progress.passages:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest([docs], address, on_progress=stop)
    report = ingest([docs], address)
    assert (report.passages_total, report.passages_written) == (4, 3)


# ---- without pgvector


def test_full_text_needs_no_extension_and_vectors_say_which_one(postgres: str, hash_embedder: Any) -> None:
    address = Address(postgres, f"test_{next(_numbers)}")
    with pytest.raises(IndexMismatch, match=says("server", "lacks the extension 'vector'", "install pgvector")):
        PostgresIndex.create(address, hash_embedder)
    index = PostgresIndex.create(address)
    index.add([Passage("a", "The Water of Leith."), Passage("b", "Another river.")])
    assert _ids(index, "water") == ["a"]
    index.close()


def test_doctor_opens_an_index_in_a_database(address: Address) -> None:
    PostgresIndex.create(address).add([Passage("a", "one")])
    place = f"{address.url}&schema={address.schema}"
    result = CliRunner().invoke(build_program(), ["doctor", "--index", place])
    assert "1 passage, no vectors: bm25 only" in " ".join(result.stdout.split())


def test_a_text_that_is_too_long_for_the_database_says_what_to_do(index: PostgresIndex) -> None:
    with pytest.raises(StoreError, match="cut the texts, --chunk-size 1000"):
        index.add([Passage("long", " ".join(f"word{number:x}" for number in range(120_000)))])
    assert len(index) == 0


# ---- addresses


@pytest.mark.parametrize(
    ("text", "shown", "schema"),
    [
        ("postgresql://u:pw@h:5/d?schema=s&password=pw", "postgresql://u@h:5/d?schema=s", "s"),
        ("postgres:///d?host=/run/pg&sslpassword=pw", "postgres:///d?host=/run/pg", "ras_agent"),
        ("postgresql://h/d", "postgresql://h/d", "ras_agent"),
    ],
)
def test_an_address_shows_no_password(text: str, shown: str, schema: str) -> None:
    address = Address.parse(text)
    assert (str(address), address.schema) == (shown, schema)
    assert "pw" not in repr(address)


@pytest.mark.parametrize("schema", ["Ras", "pg_catalog", "a b", "", "a&schema=b"])
def test_a_schema_is_a_plain_name(schema: str) -> None:
    with pytest.raises(SettingsError, match="one name of small letters") as raised:
        Address.parse(f"postgresql://u:secret@h/d?schema={schema}")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("postgresql://u:secret@127.0.0.1:1/d", "Connection refused.* is the server running"),
        ("postgresql://u:secret@127.0.0.1:1/d?secret=x", "is no address of a PostgreSQL database"),
        ("postgresql://u:secret@127.0.0.1:secret/d", "127.0.0.1:\\S*"),
    ],
)
def test_a_database_that_cannot_be_reached_is_named_without_its_password(text: str, problem: str) -> None:
    with pytest.raises(StoreError, match=problem) as raised:
        PostgresIndex.open(text)
    assert "secret@" not in str(raised.value)
    assert raised.value.__cause__ is None

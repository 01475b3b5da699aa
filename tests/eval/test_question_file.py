"""Records of question files in every format, and the errors that name a place in them."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.errors import IngestError
from ras_agent.eval.question_file import KEY, QuestionRecord, read_records
from tests.messages import says


def _file(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


def test_lines_are_numbered_as_an_editor_numbers_them(tmp_path: Path) -> None:
    records = list(
        read_records(_file(tmp_path, "q.jsonl", '\ufeff{"a": 1}\n\n{"a": 2}\n'))
    )
    assert [(record.data["a"], record.number) for record in records] == [(1, 1), (2, 3)]
    assert records[1].where.endswith("q.jsonl line 3")


def test_an_array_is_numbered_by_record(tmp_path: Path) -> None:
    records = list(read_records(_file(tmp_path, "q.json", '[{"a": 1}, {"a": 2}]')))
    assert [record.where.rpartition("/")[2] for record in records] == [
        "q.json record 1",
        "q.json record 2",
    ]


def test_an_array_may_lie_under_a_key(tmp_path: Path) -> None:
    file = _file(tmp_path, "q.json", '{"Version": 1, "Data": [{"a": 1}]}')
    assert [record.data for record in read_records(file, "Data")] == [{"a": 1}]


def test_json_lines_under_the_name_of_json_are_read(tmp_path: Path) -> None:
    assert [
        record.data["a"]
        for record in read_records(_file(tmp_path, "q.json", '{"a": 1}\n{"a": 2}\n'))
    ] == [1, 2]


def test_a_table_has_a_header_and_may_have_quoted_fields(tmp_path: Path) -> None:
    file = _file(tmp_path, "q.tsv", 'claim\tlabel\n"two\tparts"\ttrue\n')
    assert [dict(record.data) for record in read_records(file)] == [
        {"claim": "two\tparts", "label": "true"}
    ]


def test_a_row_of_another_length_tells_so_when_it_is_used(tmp_path: Path) -> None:
    good, short = read_records(_file(tmp_path, "q.csv", "a,b\n1,2\n3\n"))
    assert good.text("b") == "2"
    assert "b" not in short
    with pytest.raises(
        IngestError,
        match=says("q.csv line 3", "expected 2 fields (a, b)", "found 1", "'b'"),
    ):
        short.text("b")


def test_lines_without_a_header_have_the_benchmarks_columns(tmp_path: Path) -> None:
    file = _file(tmp_path, "q.txt", 'who "was\tOrr\r\n\nwhere\tBlair\n')
    assert [
        dict(record.data)
        for record in read_records(file, columns=("question", "answer"))
    ] == [
        {"question": 'who "was', "answer": "Orr"},
        {"question": "where", "answer": "Blair"},
    ]


def test_objects_by_key_know_their_key(tmp_path: Path) -> None:
    file = _file(tmp_path, "q.json", '{"7": {"a": 1}, "8": {"a": 2}}')
    assert [
        (record.data[KEY], record.data["a"], record.number)
        for record in read_records(file)
    ] == [
        ("7", 1, 1),
        ("8", 2, 2),
    ]


def test_parquet_is_read_by_row(tmp_path: Path) -> None:
    arrow, parquet = (
        pytest.importorskip("pyarrow"),
        pytest.importorskip("pyarrow.parquet"),
    )
    parquet.write_table(
        arrow.table({"id": ["a", "b"], "graph": [[["x", "r", "y"]], []]}),
        tmp_path / "q.parquet",
    )
    first, second = read_records(tmp_path / "q.parquet")
    assert first.triples("graph") == [["x", "r", "y"]]
    assert (second.text("id"), second.items("graph"), second.number) == ("b", [], 2)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(
        IngestError, match=says("bad.parquet", "not a Parquet file", "get it again")
    ):
        list(read_records(tmp_path / "bad.parquet"))


def test_a_compressed_file_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n'))
    assert [record.data for record in read_records(tmp_path / "q.jsonl.gz")] == [
        {"a": 1}
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.jsonl", '{"a": 1}\n{"a"', "q.jsonl line 2: not JSON"),
        ("q.jsonl", '{"a":' * 9000, "q.jsonl line 1: nested too deeply to be read"),
        ("q.jsonl", "[1]", "line 1: expected a JSON object, found list"),
        (
            "q.json",
            '[{"a": 1}, 2]',
            "q.json record 2: expected a JSON object, found int",
        ),
        ("q.json", "[", "q.json: not JSON"),
        ("q.json", "[" * 9000, "q.json: not JSON"),
        ("q.json", "3", "expected an array of objects, found int"),
        ("q.xlsx", "", "unknown format '.xlsx'; known: .json, .jsonl"),
        ("q.txt", "a\tb", "this benchmark has no .txt files"),
        ("q", "", "unknown format ''"),
    ],
)
def test_what_cannot_be_read_is_located(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(IngestError, match=message):
        list(read_records(_file(tmp_path, name, text)))


def test_a_broken_archive_says_so(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n' * 1000)[:-20])
    with pytest.raises(
        IngestError, match=r"cannot be read to its end .*get the file again"
    ):
        list(read_records(tmp_path / "q.jsonl.gz"))


def test_another_encoding_says_so(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_bytes('{"a": "é"}'.encode("latin-1"))
    with pytest.raises(IngestError, match="not UTF-8"):
        list(read_records(tmp_path / "q.jsonl"))


def test_no_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match="no such file"):
        list(read_records(tmp_path / "q.jsonl"))
    with pytest.raises(IngestError, match="a folder"):
        list(read_records(tmp_path))


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda record: record.text("missing"), "no key 'missing'; found a, b, none"),
        (lambda record: record.text("none", "other"), "no key 'none' or 'other'"),
        (lambda record: record.text("b"), r"'b' should be text, found \[1\]"),
        (lambda record: record.texts("a"), "'a' should be a list of texts, found {}"),
        (lambda record: record.items("a"), "'a' should be a list, found {}"),
        (lambda record: record.objects("b"), "b 1 should be an object, found 1"),
        (
            lambda record: record.triples("b"),
            r"'b' should hold \[subject, predicate, object\], found 1",
        ),
    ],
)
def test_a_field_of_another_shape_is_named(read: object, message: str) -> None:
    record = QuestionRecord({"a": {}, "b": [1], "none": None}, "q.jsonl line 7")
    with pytest.raises(IngestError, match=f"^q.jsonl line 7: {message}"):
        read(record)  # type: ignore[operator]


def test_an_inner_object_names_its_own_place() -> None:
    record = QuestionRecord({"hops": [{"q": "?"}, {}]}, "q.jsonl line 7")
    with pytest.raises(IngestError, match=r"^q.jsonl line 7, hops 2: no key 'q'"):
        [hop.text("q") for hop in record.objects("hops")]


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none())))
def test_lines_and_array_hold_the_same_records(
    tmp_path_factory: pytest.TempPathFactory, objects: list[object]
) -> None:
    folder = tmp_path_factory.mktemp("same")
    lines = _file(
        folder, "q.jsonl", "".join(json.dumps(item) + "\n" for item in objects)
    )
    array = _file(folder, "q.json", json.dumps(objects))
    assert (
        [record.data for record in read_records(lines)]
        == objects
        == [record.data for record in read_records(array)]
    )

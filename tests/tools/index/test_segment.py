"""Segments: arrays of consecutive cells, saved, opened, and joined without what was deleted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.contracts.records import Passage
from ras_agent.tools.index.bm25_matrix import BM25Matrix, TermPart
from ras_agent.tools.index.passages import (
    field_hash,
    hash_of,
    row_of,
    term_hash,
)
from ras_agent.tools.index.segment import (
    Segment,
    check_saved,
    clear_away,
    from_rows,
    joined,
    load,
    saved_segments,
    too_small,
)
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_index import VectorIndex, VectorSettings
from ras_agent.tools.store import array_file
from ras_agent.tools.store.passages import SearchedColumns
from ras_agent.tools.store.sqlite import SqliteDatabase

pytest.importorskip("faiss")

PLAIN = Tokeniser(None)
FLAT = VectorSettings()
TEXTS = ["red fish", "blue fish blue", "whale", "red sky", "sky"]


VECTORS = np.random.default_rng(0).normal(size=(1300, 8)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)


def vector(cell: int) -> Any:
    return VECTORS[cell]


def read(cells: Any) -> Any:
    """The vectors of some cells."""
    return VECTORS[cells]


def never(numbers: Any) -> Any:
    raise AssertionError("vectors were read from the database")


def made(first: int, texts: list[str], gone: tuple[int, ...] = ()) -> Segment:
    """A segment of the cells from `first` on; the passage in cell 7 is called p7, of document d1."""
    rows = SearchedColumns([], [], [], [])
    for cell, text in enumerate(texts, start=first):
        passage = Passage(
            f"p{cell}", text, document_id=f"d{cell % 3}", metadata={"n": cell}
        )
        if cell not in gone:
            row = row_of(passage, cell, 100 + cell, PLAIN)
            rows.cells.append(cell)
            rows.places.append(row.place)
            rows.keys.append(row.keys)
            rows.terms.append(row.terms)
    return from_rows(first, first + len(texts), rows, SqliteDatabase())


def having(one: Segment, term: str) -> dict[int, int]:
    """The cells that have a term, and how often."""
    slots, counts = one.terms.having(term_hash(term))
    return dict(zip(one.columns["cell"][slots].tolist(), counts.tolist(), strict=True))


def with_field(one: Segment, key: str, text: str) -> list[int]:
    return list(
        one.columns["cell"][one.fields.having(field_hash(key, text))[0]].tolist()
    )


def scores(one: Segment, terms: list[str]) -> list[float]:
    lengths = np.asarray(one.columns["length"])
    return list(
        BM25Matrix([TermPart(0, one.terms)], lengths, None).scores(terms).tolist()
    )


@pytest.fixture
def saved(tmp_path: Path) -> Segment:
    """A segment of the cells 4 to 8, saved with its vectors."""
    one = made(4, TEXTS)
    one.vectors(FLAT, read)
    one.save(tmp_path)
    return one


def check(one: Segment | None) -> Segment:
    """Check that a segment is that of `saved`."""
    assert one is not None
    assert (one.first, one.end, len(one)) == (4, 9, 5)
    assert one.columns["cell"].tolist() == [4, 5, 6, 7, 8]
    assert one.columns["place"].tolist() == [104, 105, 106, 107, 108]
    assert one.columns["id"].tolist() == [hash_of(f"p{cell}") for cell in range(4, 9)]
    assert one.columns["document"].tolist() == [
        hash_of(name) for name in ("d1", "d2", "d0", "d1", "d2")
    ]
    assert one.columns["text"].tolist() == [hash_of(text) for text in TEXTS]
    assert one.columns["length"].tolist() == [2, 3, 1, 2, 1]
    assert having(one, "blue") == {5: 2}
    assert having(one, "red") == {4: 1, 7: 1}
    assert having(one, "green") == {}
    assert with_field(one, "n", "6") == [6]
    return one


def test_a_segment_has_what_the_rows_of_its_cells_have() -> None:
    check(made(4, TEXTS))


def test_a_cell_that_is_gone_has_no_slot() -> None:
    one = made(4, TEXTS, gone=(5, 8))
    assert one.columns["cell"].tolist() == [4, 6, 7]
    assert having(one, "blue") == {}
    among = one.is_among(np.array([0, 3, 4, 5, 7, 8, 9, 12]))
    assert among.tolist() == [True, False, True]


def test_saved_and_opened_it_is_the_same(saved: Segment, tmp_path: Path) -> None:
    one = check(load(tmp_path, 4, 9))
    assert saved.folder == one.folder == tmp_path / "cells-4-9"
    assert sorted({path.name for path in tmp_path.rglob("*")} - {"vectors.sum"}) == [
        *("arrays", "arrays.sum", "cells-4-9", "vectors")
    ]
    assert not one.columns["cell"].flags.owndata  # mapped, not read
    numbers, products = one.vectors(FLAT, never).search(vector(6), 1)
    # float32
    assert (numbers.tolist(), products.tolist()) == (
        [2],
        [pytest.approx(1, abs=1e-6)],
    )
    assert {path for path, problem in check_saved(tmp_path) if not problem} == {
        tmp_path / "cells-4-9" / name for name in ("arrays", "vectors")
    }


def test_saved_and_opened_it_scores_the_same(saved: Segment, tmp_path: Path) -> None:
    opened = load(tmp_path, 4, 9)
    assert opened
    for terms in (["fish"], ["blue", "sky"], ["green"]):
        assert scores(opened, terms) == scores(saved, terms)


def test_a_segment_without_passages_is_saved_too(tmp_path: Path) -> None:
    made(4, TEXTS, gone=(4, 5, 6, 7, 8)).save(tmp_path)
    opened = load(tmp_path, 4, 9)
    assert opened is not None
    assert (len(opened), having(opened, "red")) == (0, {})


def test_what_cannot_be_found_is_none(tmp_path: Path) -> None:
    assert load(tmp_path, 0, 4) is None
    assert saved_segments(tmp_path / "nothing") == {}


def test_saved_segments_are_listed_by_their_beginning_the_longest_first(
    tmp_path: Path,
) -> None:
    for name in ("cells-0-4", "cells-0-12", "cells-4-9", "cells-4-9.new", "other"):
        (tmp_path / name).mkdir()
    assert saved_segments(tmp_path) == {0: [12, 4], 4: [9]}


def test_what_is_saved_under_another_name_is_not_taken(
    saved: Segment, tmp_path: Path
) -> None:
    (tmp_path / "cells-4-9").rename(tmp_path / "cells-5-9")
    assert load(tmp_path, 5, 9) is None
    (tmp_path / "cells-5-9").rename(tmp_path / "cells-4-8")
    assert load(tmp_path, 4, 8) is None


@pytest.mark.parametrize("moved", [1, -1])
@pytest.mark.parametrize("name", ["terms", "fields"])
def test_postings_of_slots_that_do_not_exist_are_no_segment(
    tmp_path: Path, name: str, moved: int
) -> None:
    one = made(4, TEXTS)
    postings = {"terms": one.terms, "fields": one.fields}
    slots = postings[name].slots
    postings[name] = postings[name]._replace(slots=slots + moved)
    Segment(4, 9, one.columns, postings["terms"], postings["fields"]).save(tmp_path)
    assert load(tmp_path, 4, 9) is None


def damage(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("part", range(8))
def test_a_flipped_bit_is_noticed_wherever_it_is(
    saved: Segment, tmp_path: Path, part: int
) -> None:
    for name in ("arrays", "vectors"):
        path = tmp_path / "cells-4-9" / name
        whole = path.read_bytes()
        path.write_bytes(damage(whole, part * (len(whole) - 1) // 7))
        assert [broken for broken, problem in check_saved(tmp_path) if problem] == [
            path
        ]
        opened = load(tmp_path, 4, 9)
        if name == "arrays":
            assert opened is None
        else:
            assert opened is not None
            numbers, products = opened.vectors(FLAT, read).search(vector(6), 1)
            # float32
            assert (numbers.tolist(), products.tolist()) == (
                [2],
                [pytest.approx(1, abs=1e-6)],
            )
        path.write_bytes(whole)
    check(load(tmp_path, 4, 9))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x",
        b"\xff" * 8,
        b"\2\0\0\0\0\0\0\0[]",
        b"\2\0\0\0\0\0\0\0{}",
        b"\1" * 4096,
    ],
)
def test_what_is_no_segment_is_none(
    saved: Segment, tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cells-4-9" / "arrays").write_bytes(content)
    for largest in (array_file.SMALL, -1):  # also where it is not compared whole
        monkeypatch.setattr(array_file, "SMALL", largest)
        assert load(tmp_path, 4, 9) is None


def test_a_segment_whose_vectors_are_damaged_is_joined_with_what_the_database_has(
    saved: Segment, tmp_path: Path
) -> None:
    (tmp_path / "cells-4-9" / "vectors").write_bytes(b"damaged")
    opened, other = load(tmp_path, 4, 9), made(9, ["whale", "fish"])
    assert opened
    other.vectors(FLAT, read)
    whole = joined([opened, other], np.array([], np.int64), FLAT, read)
    numbers, _ = whole.vectors(FLAT, read).search(vector(6), 1)
    assert numbers.tolist() == [2]


# Joining


def test_joined_segments_are_as_if_they_were_made_at_once() -> None:
    whole = joined(
        [made(4, TEXTS[:2]), made(6, TEXTS[2:4]), made(8, TEXTS[4:])],
        np.array([], np.int64),
        None,
        never,
    )
    check(whole)
    assert whole.folder is None


def test_joined_over_dead_cells_the_others_keep_their_order() -> None:
    parts = [made(4, TEXTS[:3]), made(7, TEXTS[3:])]
    whole = joined(parts, np.array([3, 4, 8, 20]), None, never)
    assert (whole.first, whole.end) == (4, 9)
    assert whole.columns["cell"].tolist() == [5, 6, 7]
    assert (having(whole, "red"), having(whole, "fish"), having(whole, "sky")) == (
        {7: 1},
        {5: 1},
        {7: 1},
    )
    assert with_field(whole, "n", "7") == [7]
    assert with_field(whole, "n", "8") == []
    assert term_hash("whale") in whole.terms.keys
    assert hash_of("p4") not in whole.columns["id"]


def test_joined_where_nothing_is_left_it_is_empty() -> None:
    parts = [made(4, TEXTS[:1]), made(5, TEXTS[1:2])]
    for one in parts:
        one.vectors(FLAT, read)
    whole = joined(parts, np.array([4, 5]), FLAT, read)
    assert (whole.first, whole.end, len(whole)) == (4, 6, 0)
    assert len(whole.terms.keys) == 0


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_joined_segments_bring_their_vectors(tmp_path: Path, kind: Any) -> None:
    settings = VectorSettings(kind)
    parts = [made(0, TEXTS[:3]), made(3, TEXTS[3:])]
    for one in parts:
        one.vectors(settings, read)
    parts[0].save(tmp_path)
    opened = load(tmp_path, 0, 3)
    assert opened
    whole = joined([opened, parts[1]], np.array([1]), settings, never)
    vectors = whole.vectors(settings, never)
    assert vectors.count == 4
    assert [vectors.search(vector(cell), 1)[0].tolist() for cell in (0, 2, 3, 4)] == [
        [0],
        [1],
        [2],
        [3],
    ]


def test_vectors_that_are_not_at_hand_are_read_to_be_joined_and_none_where_no_part_has_them(
    tmp_path: Path,
) -> None:
    parts, numbers = [made(0, TEXTS[:3]), made(3, TEXTS[3:])], list[Any]()

    def counted(of: Any) -> Any:
        numbers.append(of.tolist())
        return read(of)

    joined(parts, np.array([], np.int64), FLAT, counted)
    assert numbers == []
    parts[0].vectors(FLAT, read)
    whole = joined(parts, np.array([4]), FLAT, counted)
    assert len(numbers) == 1
    assert numbers[0] == [parts[1].columns["cell"][0]]
    assert whole.vectors(FLAT, never).search(vector(3), 1)[0].tolist() == [3]


@pytest.mark.parametrize(
    ("sizes", "start"),
    [
        ([], 0),
        ([3], 1),
        ([3, 3], 0),
        ([40, 10], 2),
        ([39, 10], 0),
        ([100, 10, 3], 1),
        ([40, 10, 0], 3),
        ([100, 3, 0], 1),
    ],
)
def test_a_segment_is_joined_with_those_that_are_less_than_four_times_as_large(
    sizes: list[int], start: int
) -> None:
    segments, first = [], 0
    for size in sizes:
        segments.append(made(first, ["text"] * size))
        first += size
    assert too_small(segments) == start


# Deleting


def test_joined_without_a_deleted_passage_it_has_no_hash_that_was_its_own(
    saved: Segment, tmp_path: Path
) -> None:
    joined([saved], np.array([5, 30]), FLAT, never).save(tmp_path)
    data = (tmp_path / "cells-4-9" / "arrays").read_bytes()
    own = [hash_of(name) for name in ("p5", "blue fish blue", "blue")] + [
        field_hash("n", "5")
    ]
    assert [value for value in own if value.to_bytes(8, "little") in data] == []
    assert vector(5).tobytes() not in (tmp_path / "cells-4-9" / "vectors").read_bytes()
    opened = load(tmp_path, 4, 9)
    assert opened is not None
    assert opened.columns["cell"].tolist() == [4, 6, 7, 8]
    assert having(opened, "red") == {4: 1, 7: 1}
    assert opened.vectors(FLAT, never).count == 4


def test_segments_that_are_not_to_be_kept_are_cleared_away(
    saved: Segment, tmp_path: Path
) -> None:
    made(9, ["text"]).save(tmp_path)
    (tmp_path / "cells-0-4.new").mkdir()
    clear_away(tmp_path, [saved, made(10, ["text"])])
    assert [path.name for path in tmp_path.iterdir()] == ["cells-4-9"]
    clear_away(tmp_path / "nothing", [])


def test_vectors_saved_for_other_passages_are_not_taken(
    saved: Segment, tmp_path: Path
) -> None:
    VectorIndex.build(np.eye(8, dtype=np.float32), FLAT).save(
        tmp_path / "cells-4-9" / "vectors"
    )
    opened = load(tmp_path, 4, 9)
    assert opened
    assert opened.vectors(FLAT, read).count == 5

"""Views of an index: which passages a filter admits, and that they are searched as they are in the whole."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from ras_agent.config.filters import Filter
from ras_agent.contracts.errors import FilterError
from ras_agent.contracts.records import Passage
from ras_agent.tools.index import passages as passages_module
from ras_agent.tools.index import snapshot as snapshot_module
from ras_agent.tools.index.snapshot import PartOfSnapshot, Snapshot
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.vector_index import VectorSettings
from ras_agent.tools.retrieve.registered import retriever_over

PASSAGES = [
    Passage(
        f"{number}",
        f"river number{number} city",
        f"T{number % 3}",
        f"docs/{number // 4}.md",
        {"n": number % 5},
    )
    for number in range(12)
]


def rows(index: PassageIndex, filter: object) -> list[int]:
    return [int(passage.id) for passage in index.within(filter).passages]


@pytest.fixture(params=["memory", "disk", "postgres"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PassageIndex]:
    if request.param == "memory":
        made = PassageIndex.in_memory(PASSAGES)
    else:
        made = PassageIndex.create(
            tmp_path / "i"
            if request.param == "disk"
            else request.getfixturevalue("address")
        )
        made.add(PASSAGES)
    yield made
    made.close()


class Shared(PassageIndex):
    """An index that another thread uses as well, which takes an earlier commit right after this one was looked at."""

    earlier: Snapshot | None = None
    _held: Snapshot

    @property
    def snapshot(self) -> Snapshot:
        held, self._held = self._held, self.earlier or self._held
        return held

    @snapshot.setter
    def snapshot(self, taken: Snapshot) -> None:
        self._held = taken


def test_a_view_is_chosen_by_its_own_commit_whatever_another_thread_looks_at() -> None:
    index = Shared.in_memory(PASSAGES[:3])
    earlier = index.snapshot
    index.upsert(PASSAGES)
    index.earlier = earlier
    assert rows(index, {"n": 2}) == [2, 7]


def test_a_view_holds_the_passages_that_the_filter_admits_in_their_order(
    index: PassageIndex,
) -> None:
    assert rows(index, None) == list(range(12))
    assert rows(index, {"n": 2}) == [2, 7]
    assert rows(index, {"n": [0, "2"]}) == [0, 2, 5, 7, 10]
    assert rows(index, {"n": 2, "title": "T1"}) == [7]
    assert rows(index, {"document_id": "docs/1.md"}) == [4, 5, 6, 7]
    assert rows(index, {"document_id": "docs/*", "id": ["1", "11"]}) == [1, 11]
    assert rows(index, {"id": "1*"}) == [1, 10, 11]
    assert rows(index, {"nobody": "has this"}) == []
    assert rows(index, {"n": {"before": 2}}) == [0, 1, 5, 6, 10, 11]
    assert rows(index, {"n": {"after": "1", "before": 3}}) == [2, 7]
    assert rows(index, {"n": {"not": [0, 1, 2, 3]}}) == [4, 9]
    assert rows(index, {"n": {"in": [0, 4], "not": 4}}) == [0, 5, 10]
    assert rows(index, {"id": {"not": "1*"}, "n": {"exists": True}}) == [
        0,
        *range(2, 10),
    ]
    assert rows(index, {"n": {"exists": False}}) == []
    assert rows(index, {"nobody": {"exists": False}, "n": 4}) == [4, 9]
    late = Passage("12", "city", metadata={"day": "2024-05-01", "n": 4})
    index.upsert([late, Passage("4", "city", metadata={"day": "2023-05-01", "n": 7})])
    assert rows(index, {"day": {"after": "2024"}}) == [12]
    assert rows(index, {"day": {"exists": True}}) == [4, 12]
    assert rows(index, {"n": {"after": 3}}) == [4, 9, 12]


def test_a_view_of_a_view_admits_what_both_admit(index: PassageIndex) -> None:
    view = index.within({"n": [2, 3]})
    assert rows(view, {"title": "T1"}) == [7]
    assert str(view.within({"title": "T1"}).filter) == "n = 2 or 3, title = T1"
    assert (len(view), view.get("7"), view.get("4")) == (4, PASSAGES[7], None)
    assert view.document_ids() == ("docs/0.md", "docs/1.md", "docs/2.md")


def test_a_view_does_not_change_and_cannot_be_written_to(index: PassageIndex) -> None:
    view = index.within({"n": 2})
    index.add([Passage("new", "text", metadata={"n": 2})])
    assert [passage.id for passage in view.passages] == ["2", "7"]
    with pytest.raises(TypeError, match="a view of an index cannot be written to"):
        view.add([Passage("x", "text")])
    with pytest.raises(FilterError):
        index.within("n=2")


def test_passages_weigh_in_a_view_what_they_weigh_in_the_whole(
    index: PassageIndex,
) -> None:
    whole, view = (
        retriever_over(index, "bm25"),
        retriever_over(index.within({"n": [1, 2]}), "bm25"),
    )
    scores = {hit.passage.id: hit.score for hit in whole.retrieve("number7 city", 12)}
    assert [
        (hit.passage.id, hit.score) for hit in view.retrieve("number7 city", 12)
    ] == [(name, scores[name]) for name in ("7", "1", "2", "6", "11")]
    assert view.retrieve("3", 5) == []
    assert retriever_over(index.within({"n": 9}), "bm25").retrieve("river", 5) == []


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The cells of the passages that are read, as they come."""
    cells: list[int] = []
    read = passages_module.read_passages

    def listed(database: Any, wanted: Any) -> Any:
        cells.extend(wanted)
        return read(database, wanted)

    monkeypatch.setattr(snapshot_module, "read_passages", listed)
    return cells


def test_the_search_for_a_value_reads_no_passage(
    index: PassageIndex, reads: list[int]
) -> None:
    for filter, count in (
        ({"n": 2}, 2),
        ({"n": [0, "2"]}, 5),
        ({"no passage": "has this key"}, 0),
        ({"title": "T1"}, 4),
        ({"document_id": ["docs/1.md", "docs/2.md"]}, 8),
        ({"id": "7"}, 1),
    ):
        assert len(index.within(filter)) == count
    assert reads == []


def test_the_search_for_a_beginning_reads_each_passage_once_and_after_a_write_only_new_ones(
    index: PassageIndex, reads: list[int]
) -> None:
    assert (len(index.within({"id": "1*"})), len(reads)) == (3, 12)
    assert (len(index.within({"document_id": "docs/2*"})), len(reads)) == (4, 12)
    index.upsert(
        [
            Passage("12", "text", metadata={"n": 2}),
            Passage("7", "changed", metadata={"n": 3}),
        ]
    )
    index.delete_document("docs/0.md")
    reads.clear()
    assert len(index.within({"id": "1*"})) == 3  # 10, 11 and 12: 1 was deleted
    assert len(index.within({"id": "7*"})) == 1
    assert sorted(reads) == [12, 13]  # the cells of the two that were written


def test_beginnings_are_those_of_what_was_written_in_the_end(
    index: PassageIndex,
) -> None:
    def write_and_fail() -> None:
        with index.database.writing():
            index.add([Passage("ghost", "text")])
            assert len(index.within({"id": "gh*"})) == 1
            raise KeyError

    with pytest.raises(KeyError):
        write_and_fail()
    with index.database.writing():
        index.add([Passage("new", "text")])
        assert len(index.within({"id": "gh*"})) == 0
        assert len(index.within({"id": "ne*"})) == 1


def test_a_search_in_another_thread_while_a_passage_is_written_does_not_hide_it_later(
    tmp_path: Path,
) -> None:
    index = PassageIndex.create(tmp_path / "shared")
    with index.database.writing():
        index.add(PASSAGES)
        thread = Thread(target=lambda: index.within({"id": "1*"}))
        thread.start()
        thread.join()
    index.committed()
    assert rows(index, {"id": "1*"}) == [1, 10, 11]


def test_values_are_found_as_a_filter_compares_them(index: PassageIndex) -> None:
    values: list[Any] = [
        2019,
        "2019",
        True,
        1,
        ["a", "b"],
        None,
        {"a": 1},
        1.5,
        "",
        [],
        "日本",
    ]
    index.add(
        [
            Passage(f"{100 + n}", "text", metadata={"v": value})
            for n, value in enumerate(values)
        ]
    )
    for asked, expected in (
        (2019, [100, 101]),
        (True, [102]),
        (1, [103]),
        ("b", [104]),
        (["a", "日本"], [104, 110]),
        (1.5, [107]),
        ("", [108]),
    ):
        assert rows(index, {"v": asked}) == expected
        matching = [
            int(passage.id)
            for passage in index.passages
            if Filter.of({"v": asked}).matches(passage)
        ]
        assert matching == expected


def test_a_passages_own_fields_are_meant_whatever_its_metadata_has_under_their_names(
    index: PassageIndex,
) -> None:
    index.add(
        [
            Passage(
                "20",
                "text",
                "T20",
                "own",
                {"title": "T0", "id": "1", "document_id": "docs/1.md"},
            )
        ]
    )
    assert (
        rows(index, {"title": "T20"})
        == rows(index, {"id": "2*", "document_id": "own"})
        == [20]
    )
    assert 20 not in rows(index, {"title": "T0"}) + rows(index, {"id": "1"}) + rows(
        index, {"document_id": "docs/1.md"}
    )


def test_a_view_after_deletions_holds_what_it_holds_of_the_passages_that_are_left(
    index: PassageIndex,
) -> None:
    index.delete_document("docs/1.md")
    index.upsert([Passage("1", "changed", metadata={"n": 4})])
    assert rows(index, {"n": [1, 4]}) == [1, 9, 11]
    assert rows(index, {"title": "T1"}) == [10]
    assert rows(index, {"document_id": "docs/*"}) == [0, 2, 3, 8, 9, 10, 11]


def test_a_view_shows_no_passage_that_was_erased_meanwhile(index: PassageIndex) -> None:
    view = index.within({"n": [2, 3]})
    retriever = retriever_over(view, "bm25")
    index.delete_document("docs/0.md")
    assert [passage.id for passage in view.passages] == ["7", "8"]
    assert [hit.passage.id for hit in retriever.retrieve("river", 4)] == ["7", "8"]
    assert view.get("2") is None


@pytest.mark.parametrize("kind", ["flat", "ivf", "hnsw"])
def test_vectors_of_a_view_are_found_as_an_index_of_them_alone_finds_them(
    kind: Any, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = [
        Passage(
            f"{n}", f"word{n % 97} word{n % 89} word{n % 7}", metadata={"n": n % 60}
        )
        for n in range(1200)
    ]
    settings = VectorSettings(kind, lists=8, probes=8)
    index = PassageIndex.in_memory(passages, hash_embedder, vectors=settings)
    alone = PassageIndex.in_memory(
        [p for p in passages if p.metadata["n"] in (3, 9)], hash_embedder
    )
    wanted = [
        hit.passage.id
        for hit in retriever_over(alone, "dense").retrieve("word3 word9", 7)
    ]
    filter = {"n": [3, 9]}
    assert [
        hit.passage.id
        for hit in retriever_over(index, "dense").retrieve("word3 word9", 7, filter)
    ] == wanted  # type: ignore[call-arg]
    # as for a large part, which is not copied
    monkeypatch.setattr("ras_agent.tools.index.snapshot._FEW", 0)
    found = retriever_over(index.within(filter), "dense").retrieve("word3 word9", 7)
    assert all(Filter.of(filter).matches(hit.passage) for hit in found)
    if kind != "hnsw":
        assert [hit.passage.id for hit in found] == wanted


def test_no_rows_have_no_vectors(hash_embedder: Any) -> None:
    index = PassageIndex.in_memory(PASSAGES, hash_embedder)
    view = PartOfSnapshot(index.snapshot, np.empty(0, np.int64))
    query = hash_embedder.embed(["a"])[0]
    numbers, products = view.vectors().search(query, 3)
    assert (len(numbers), len(products)) == (0, 0)

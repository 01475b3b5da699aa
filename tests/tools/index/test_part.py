"""Views of an index: which passages a filter admits, and that they are searched as they are in the whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.errors import FilterError
from ras_agent.filters import Filter
from ras_agent.records import Passage
from ras_agent.tools.index.part import Columns
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.vector_index import VectorSettings
from ras_agent.tools.retrieve.registered import retriever_over

PASSAGES = [
    Passage(f"{number}", f"river number{number} city", f"T{number % 3}", f"docs/{number // 4}.md", {"n": number % 5})
    for number in range(12)
]


def rows(index: PassageIndex, filter: object) -> list[int]:
    return [int(passage.id) for passage in index.within(filter).passages]


@pytest.fixture(params=["memory", "disk"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> PassageIndex:
    if request.param == "memory":
        return PassageIndex.in_memory(PASSAGES)
    made = PassageIndex.create(tmp_path / "i")
    made.add(PASSAGES)
    return made


class Shared(PassageIndex):
    """An index that another thread uses as well, which looks at an earlier commit right after this one has."""

    earlier: Columns | None = None
    _held: Columns | None = None

    @property
    def _columns(self) -> Columns | None:
        return self._held

    @_columns.setter
    def _columns(self, made: Columns | None) -> None:
        self._held = self.earlier or made


def test_a_view_is_chosen_by_its_own_commit_whatever_another_thread_looks_at() -> None:
    index = Shared.in_memory(PASSAGES[:3])
    index.earlier = Columns(index.snapshot)
    index.upsert(PASSAGES)
    assert rows(index, {"n": 2}) == [2, 7]


def test_a_view_holds_the_passages_that_the_filter_admits_in_their_order(index: PassageIndex) -> None:
    assert rows(index, None) == list(range(12))
    assert rows(index, {"n": 2}) == [2, 7]
    assert rows(index, {"n": [0, "2"]}) == [0, 2, 5, 7, 10]
    assert rows(index, {"n": 2, "title": "T1"}) == [7]
    assert rows(index, {"document_id": "docs/1.md"}) == [4, 5, 6, 7]
    assert rows(index, {"document_id": "docs/*", "id": ["1", "11"]}) == [1, 11]
    assert rows(index, {"id": "1*"}) == [1, 10, 11]
    assert rows(index, {"nobody": "has this"}) == []


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


def test_passages_weigh_in_a_view_what_they_weigh_in_the_whole(index: PassageIndex) -> None:
    whole, view = retriever_over(index, "bm25"), retriever_over(index.within({"n": [1, 2]}), "bm25")
    scores = {hit.passage.id: hit.score for hit in whole.retrieve("number7 city", 12)}
    assert [(hit.passage.id, hit.score) for hit in view.retrieve("number7 city", 12)] == [
        (name, scores[name]) for name in ("7", "1", "2", "6", "11")
    ]
    assert view.retrieve("number3", 5) == []
    assert retriever_over(index.within({"n": 9}), "bm25").retrieve("river", 5) == []


def test_the_search_for_a_key_reads_each_passage_once_and_after_a_write_only_new_ones(
    index: PassageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    reading = Columns._read
    monkeypatch.setattr(
        Columns, "_read", lambda self, key, rows: reading(self, key, [read.append(r) or r for r in rows])
    )
    assert (rows(index, {"n": 2}), len(read)) == ([2, 7], 12)
    assert (rows(index, {"n": 3}), len(read)) == ([3, 8], 12)
    assert (rows(index, {"no passage": "has this key"}), len(read)) == ([], 12)
    index.upsert([Passage("12", "text", metadata={"n": 2}), Passage("7", "changed", metadata={"n": 3})])
    index.delete_document("docs/0.md")
    assert rows(index, {"n": 2}) == [12]
    assert sorted(rows(index, {"n": 3})) == [7, 8]
    assert len(read) <= 12 + 2 + 2  # the first view after both writes reads what is new to it


@pytest.mark.parametrize("kind", ["flat", "ivf", "hnsw"])
def test_vectors_of_a_view_are_found_as_an_index_of_them_alone_finds_them(
    kind: Any, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = [Passage(f"{n}", f"word{n % 97} word{n % 89} word{n % 7}", metadata={"n": n % 60}) for n in range(1200)]
    settings = VectorSettings(kind, lists=8, probes=8)
    index = PassageIndex.in_memory(passages, hash_embedder, vectors=settings)
    alone = PassageIndex.in_memory([p for p in passages if p.metadata["n"] in (3, 9)], hash_embedder)
    wanted = [hit.passage.id for hit in retriever_over(alone, "dense").retrieve("word3 word9", 7)]
    filter = {"n": [3, 9]}
    assert [hit.passage.id for hit in retriever_over(index, "dense").retrieve("word3 word9", 7, filter)] == wanted  # type: ignore[call-arg]
    monkeypatch.setattr("ras_agent.tools.index.part._FEW", 0)  # as for a large part, which is not copied
    found = retriever_over(index.within(filter), "dense").retrieve("word3 word9", 7)
    assert all(Filter.of(filter).matches(hit.passage) for hit in found)
    if kind != "hnsw":
        assert [hit.passage.id for hit in found] == wanted


def test_no_rows_have_no_vectors(hash_embedder: Any) -> None:
    index = PassageIndex.in_memory(PASSAGES, hash_embedder)
    numbers, products = index.snapshot.vectors().of_rows(np.empty(0, np.int64)).search(hash_embedder.embed(["a"])[0], 3)
    assert (len(numbers), len(products)) == (0, 0)

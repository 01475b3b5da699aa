"""Any sequence of writes leaves an index that is searched as one that was made at once of the rest."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ras_agent.contracts.records import Passage
from ras_agent.tools.index import segment
from ras_agent.tools.index import store as store_module
from ras_agent.tools.index.store import PassageIndex

pytest.importorskip("faiss")

WORDS = ["river", "city", "bell", "fish", "日本"]

passages = st.builds(
    lambda name, words, document, team: Passage(
        f"p{name}",
        " ".join(words),
        "Title" * (name % 2),
        f"d{document}" if document else "",
        {"team": team},
    ),
    st.integers(0, 9),
    st.lists(st.sampled_from(WORDS), max_size=5),
    st.integers(0, 3),
    st.sampled_from(["x", "y", 2]),
)
batches = st.lists(passages, max_size=6, unique_by=lambda passage: passage.id)
writes = st.one_of(
    st.tuples(st.just("add"), batches),
    st.tuples(st.just("upsert"), batches),
    st.tuples(st.just("whole documents"), batches),
    st.tuples(st.just("a transaction"), batches, batches, st.booleans()),
    st.tuples(
        st.just("delete"),
        st.lists(st.sampled_from(["d1", "d2", "d3", "", "d9"]), max_size=2),
    ),
    st.tuples(
        st.sampled_from(
            [
                "reopen",
                "begin a batch",
                "end the batch",
                "delete the cache",
                "search",
                "taken back",
            ]
        )
    ),
)


class Model:
    """The passages as a list, in corpus order."""

    def __init__(self) -> None:
        self.passages: dict[str, Passage] = {}

    def add(self, batch: list[Passage]) -> list[Passage]:
        fresh = [passage for passage in batch if passage.id not in self.passages]
        self.upsert(fresh)
        return fresh

    def upsert(self, batch: list[Passage], *, whole_documents: bool = False) -> None:
        documents = (
            {passage.document_id for passage in batch} - {""}
            if whole_documents
            else set()
        )
        given = {passage.id for passage in batch}
        left_over = [
            one.id
            for one in self.passages.values()
            if one.document_id in documents and one.id not in given
        ]
        for name in left_over:
            del self.passages[name]
        # a replacement keeps its place
        self.passages |= {passage.id: passage for passage in batch}

    def delete(self, documents: list[str]) -> None:
        gone = {*documents} - {""}
        self.passages = {
            name: one
            for name, one in self.passages.items()
            if one.document_id not in gone
        }


class Written:
    """An index in a folder, to which writes are made one after another."""

    def __init__(self, folder: Path, embedder: Any) -> None:
        self.folder, self.embedder, self.model = folder, embedder, Model()
        self.index = PassageIndex.create(folder, embedder)
        self.batch = ExitStack()

    def run(self, write: tuple[Any, ...]) -> None:
        match write:
            case ("add", batch):
                fresh = self.model.add(batch)
                assert self.index.add(fresh).added == len(fresh)
            case ("upsert", batch):
                self.model.upsert(batch)
                self.index.upsert(batch)
            case ("whole documents", batch):
                self.model.upsert(batch, whole_documents=True)
                self.index.upsert(batch, whole_documents=True)
            case ("a transaction", first, second, after_another):
                if after_another:
                    self.take_back()
                with self.index.database.writing():
                    for batch in (first, second):
                        self.model.upsert(batch)
                        self.index.upsert(batch)
                self.index.committed()
            case ("delete", documents):
                self.model.delete(documents)
                self.index.delete_documents(documents)
            case ("reopen",):
                # as if the process had been killed within a batch
                self.batch = ExitStack()
                self.index = PassageIndex.open(self.folder, self.embedder)
            case ("begin a batch",):
                self.batch.close()
                self.batch.enter_context(self.index.batch())
            case ("end the batch",):
                self.batch.close()
            case ("delete the cache",):
                for path in self.folder.glob("cache/*/*/*"):
                    path.unlink()
            case ("search",):
                self.check()
            case ("taken back",):
                self.take_back()

    def take_back(self) -> None:
        try:
            with self.index.database.writing():
                self.index.add([Passage("ghost", "river ghost")])
                self.index.delete_documents(["d1", "d2"])
                raise KeyError
        except KeyError:
            pass

    def check(self) -> None:
        expected = PassageIndex.in_memory(self.model.passages.values(), self.embedder)
        for index in (self.index, PassageIndex.open(self.folder, self.embedder)):
            index.refresh()
            compare(index, expected)


def compare(index: PassageIndex, expected: PassageIndex) -> None:
    assert list(index.passages) == list(expected.passages)
    assert index.fingerprint == expected.fingerprint
    assert index.document_ids() == expected.document_ids()
    for terms in (["river"], ["citi", "bell"], ["日本", "titl"], ["ghost"]):
        ours, theirs = (one.snapshot.bm25() for one in (index, expected))
        # sums of the same float32 weights in another order
        np.testing.assert_allclose(ours.scores(terms), theirs.scores(terms), atol=1e-6)
        assert ours.having(terms[0]).tolist() == theirs.having(terms[0]).tolist()
    for filter in (
        {"team": "x"},
        {"team": [2, "y"]},
        {"document_id": "d1"},
        {"id": "p*"},
        {"title": "Title"},
    ):
        assert [one.id for one in index.within(filter).passages] == [
            one.id for one in expected.within(filter).passages
        ]
    if len(expected):
        query = np.full(64, 1 / 8, dtype=np.float32)
        numbers, products = index.snapshot.vectors().search(query, 5)
        same, at_once = expected.snapshot.vectors().search(query, 5)
        # float32, in parts and at once
        np.testing.assert_allclose(products, at_once, atol=1e-5)
        assert numbers.tolist() == same.tolist()


@pytest.fixture(autouse=True)
def small_numbers() -> Iterator[None]:
    """Save segments of two passages, and compact from two dead rows on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "SAVED_FROM", 2)
        patch.setattr(store_module, "_RENUMBER_FROM", 2)
        yield


@settings(max_examples=50)
@given(st.lists(writes, max_size=12))
def test_writes_in_any_order_leave_what_an_index_of_the_same_passages_has(
    written: list[Any],
) -> None:
    from tests.conftest import HashEmbedder

    with TemporaryDirectory() as folder:
        one = Written(Path(folder) / "index", HashEmbedder())
        for write in written:
            one.run(write)
        one.batch.close()
        one.check()
        one.index.finish()
        assert one.index.is_finished()
        one.check()

"""The vectors of a graph's texts are made once, and kept in its database."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import StoreError
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.text_vectors import stored_vectors
from ras_agent.tools.store.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return PassageIndex.create(tmp_path / "i").database


def test_each_text_is_embedded_once(database: Database, hash_embedder: Any) -> None:
    first = stored_vectors(
        database, "inverse", hash_embedder, ["born in", "flows through", "born in"]
    )
    again = stored_vectors(
        database, "inverse", hash_embedder, ["born in", "flows through", "born in"]
    )
    assert hash_embedder.texts == ["born in", "flows through"]
    assert first.shape == (3, 64)
    assert first.dtype == np.float32
    assert np.array_equal(first, again)
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(first[1], hash_embedder.embed(["flows through"])[0])


def test_a_new_text_is_added_and_one_that_is_gone_is_removed(
    database: Database, hash_embedder: Any
) -> None:
    stored_vectors(database, "inverse", hash_embedder, ["old", "both"])
    stored_vectors(database, "inverse", hash_embedder, ["both", "new"])
    assert hash_embedder.texts == ["old", "both", "new"]
    stored_vectors(database, "inverse", hash_embedder, ["old"])
    assert hash_embedder.texts == ["old", "both", "new", "old"]


def test_uses_and_embedders_have_vectors_of_their_own(
    database: Database, hash_embedder: Any
) -> None:
    stored_vectors(database, "inverse", hash_embedder, ["one"])
    stored_vectors(database, "nodes", hash_embedder, ["one"])
    hash_embedder.name = "another"
    stored_vectors(database, "nodes", hash_embedder, ["one"])
    assert hash_embedder.texts == ["one"] * 3


def test_a_graph_in_memory_stores_nothing(hash_embedder: Any) -> None:
    assert stored_vectors(None, "inverse", hash_embedder, ["one"]).shape == (1, 64)
    assert stored_vectors(None, "inverse", hash_embedder, []).shape == (0, 64)


def test_what_is_about_a_part_leaves_the_vectors_of_the_whole(
    database: Database, hash_embedder: Any
) -> None:
    stored_vectors(database, "nodes", hash_embedder, ["one", "two"])
    stored_vectors(database, "nodes", hash_embedder, ["two"], part=True)
    stored_vectors(database, "nodes", hash_embedder, ["one", "two"])
    assert hash_embedder.texts == ["one", "two"]


def test_vectors_are_erased_with_what_they_are_about(
    database: Database, tmp_path: Path, hash_embedder: Any
) -> None:
    first, _ = stored_vectors(
        database, "nodes", hash_embedder, ["text of a", "text of b"], ["a", "b"]
    )
    with database.writing() as connection:
        connection.vectors.forget_texts_of(["a"])
    PassageIndex.open(tmp_path / "i").finish()
    assert first.tobytes() not in b"".join(
        path.read_bytes() for path in (tmp_path / "i").iterdir()
    )
    stored_vectors(
        database, "nodes", hash_embedder, ["text of a", "text of b"], ["a", "b"]
    )
    assert hash_embedder.texts == ["text of a", "text of b", "text of a"]


def test_vectors_of_another_width_under_the_same_name_are_made_again(
    database: Database, hash_embedder: Any
) -> None:
    stored_vectors(database, "inverse", hash_embedder, ["one"])
    hash_embedder.dimension = 128
    assert stored_vectors(database, "inverse", hash_embedder, ["one", "two"]).shape == (
        2,
        128,
    )
    assert hash_embedder.texts == ["one", "one", "two"]


def test_what_is_embedded_before_an_interrupt_is_kept(
    database: Database, hash_embedder: Any
) -> None:
    texts = [f"text {number}" for number in range(2050)]

    class Interrupted:
        name, dimension, calls = "hash", 64, 0

        def embed(self, texts: list[str]) -> Floats:
            self.calls += 1
            if self.calls == 3:
                raise KeyboardInterrupt
            found: Floats = hash_embedder.embed(texts)
            return found

    with pytest.raises(KeyboardInterrupt):
        stored_vectors(database, "nodes", Interrupted(), texts, seconds=0)
    assert len(hash_embedder.texts) == 2048
    assert stored_vectors(database, "nodes", hash_embedder, texts).shape == (2050, 64)
    assert hash_embedder.texts[2048:] == texts[2048:]


def test_where_nothing_can_be_written_a_warning_says_so(
    database: Database, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(database, "writing", full)
    with pytest.warns(RuntimeWarning, match="vectors of texts cannot be stored"):
        assert stored_vectors(database, "nodes", hash_embedder, ["one"]).shape == (
            1,
            64,
        )

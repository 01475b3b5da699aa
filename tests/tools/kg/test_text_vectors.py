"""The vectors of a graph's texts are made once, and kept beside it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.arrays import Floats
from ras_agent.tools.kg.text_vectors import stored_vectors


def test_each_text_is_embedded_once(tmp_path: Path, hash_embedder: Any) -> None:
    first = stored_vectors(tmp_path, "inverse", hash_embedder, ["born in", "flows through", "born in"])
    again = stored_vectors(tmp_path, "inverse", hash_embedder, ["born in", "flows through", "born in"])
    assert hash_embedder.texts == ["born in", "flows through"]
    assert first.shape == (3, 64)
    assert first.dtype == np.float32
    assert np.array_equal(first, again)
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(first[1], hash_embedder.embed(["flows through"])[0])


def test_a_new_text_is_added_and_one_that_is_gone_is_removed(tmp_path: Path, hash_embedder: Any) -> None:
    stored_vectors(tmp_path, "inverse", hash_embedder, ["old", "both"])
    stored_vectors(tmp_path, "inverse", hash_embedder, ["both", "new"])
    assert hash_embedder.texts == ["old", "both", "new"]
    stored_vectors(tmp_path, "inverse", hash_embedder, ["old"])
    assert hash_embedder.texts == ["old", "both", "new", "old"]


def test_uses_and_embedders_have_files_of_their_own(tmp_path: Path, hash_embedder: Any) -> None:
    stored_vectors(tmp_path, "inverse", hash_embedder, ["one"])
    stored_vectors(tmp_path, "nodes", hash_embedder, ["one"])
    hash_embedder.name = "another"
    stored_vectors(tmp_path, "nodes", hash_embedder, ["one"])
    assert hash_embedder.texts == ["one"] * 3
    assert len(list(tmp_path.iterdir())) == 3


def test_a_graph_in_memory_stores_nothing(hash_embedder: Any) -> None:
    assert stored_vectors(None, "inverse", hash_embedder, ["one"]).shape == (1, 64)
    assert stored_vectors(None, "inverse", hash_embedder, []).shape == (0, 64)


def test_a_damaged_row_is_embedded_again(tmp_path: Path, hash_embedder: Any) -> None:
    vectors = stored_vectors(tmp_path, "inverse", hash_embedder, ["one", "two"])
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    content[-3] ^= 0xFF  # within the last row's vector
    file.write_bytes(content)
    assert np.array_equal(stored_vectors(tmp_path, "inverse", hash_embedder, ["one", "two"]), vectors)
    assert hash_embedder.texts == ["one", "two", "two"]


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_a_file_that_is_no_array_is_replaced(tmp_path: Path, hash_embedder: Any, content: bytes) -> None:
    vectors = stored_vectors(tmp_path, "inverse", hash_embedder, ["one"])
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    assert np.array_equal(stored_vectors(tmp_path, "inverse", hash_embedder, ["one"]), vectors)
    assert np.array_equal(stored_vectors(tmp_path, "inverse", hash_embedder, ["one"]), vectors)
    assert hash_embedder.texts == ["one", "one"]


def test_vectors_of_another_width_under_the_same_name_are_made_again(tmp_path: Path, hash_embedder: Any) -> None:
    stored_vectors(tmp_path, "inverse", hash_embedder, ["one"])
    hash_embedder.dimension = 128
    assert stored_vectors(tmp_path, "inverse", hash_embedder, ["one", "two"]).shape == (2, 128)
    assert hash_embedder.texts == ["one", "one", "two"]


def test_what_is_embedded_before_an_interrupt_is_kept(tmp_path: Path, hash_embedder: Any) -> None:
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
        stored_vectors(tmp_path, "nodes", Interrupted(), texts, seconds=0)
    assert len(hash_embedder.texts) == 2048
    assert stored_vectors(tmp_path, "nodes", hash_embedder, texts).shape == (2050, 64)
    assert hash_embedder.texts[2048:] == texts[2048:]


def test_where_nothing_can_be_written_a_warning_says_so(tmp_path: Path, hash_embedder: Any) -> None:
    with pytest.warns(RuntimeWarning, match="vectors are not stored"):
        assert stored_vectors(tmp_path / "absent", "nodes", hash_embedder, ["one"]).shape == (1, 64)

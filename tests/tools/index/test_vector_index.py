"""Searches of vectors that are moved to graphics processors, with a stand-in for the move."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

faiss: Any = pytest.importorskip("faiss")

from ras_agent.contracts.errors import MissingExtra
from ras_agent.tools.index.vector_index import (
    VectorIndex,
    VectorSettings,
    require_faiss,
)

VECTORS = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)


class Moved:
    """A copy of an index, as if on a graphics processor: it searches no deeper than FAISS does there."""

    def __init__(self, index: Any) -> None:
        self.index, self.depths = faiss.clone_index(index), list[int]()

    def search(self, queries: Any, depth: int) -> Any:
        assert depth <= 2048
        self.depths.append(depth)
        return self.index.search(queries, depth)


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[Moved]:
    """The indexes that were moved; FAISS says that there is one graphics processor."""
    moved: list[Moved] = []

    def move(index: Any, options: Any) -> Moved:
        # each processor has a part: all of Wikipedia's passages fit no single one
        assert options.shard is True
        moved.append(Moved(index))
        return moved[-1]

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    of_gpus = SimpleNamespace
    monkeypatch.setattr(faiss, "GpuMultipleClonerOptions", of_gpus, raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", move, raising=False)
    return moved


@pytest.mark.parametrize("kind", ["flat", "ivf"])
def test_an_index_is_moved_once_and_finds_there_what_it_finds_here(
    kind: Any, moves: list[Moved], tmp_path: Path
) -> None:
    here = VectorIndex.build(VECTORS, VectorSettings(kind))
    here.save(tmp_path / "vectors")
    loaded = VectorIndex.load(tmp_path / "vectors")
    assert not moves  # a part that is not searched stays where it is
    for query in VECTORS[:3]:
        numbers, products = loaded.search(query, 5)
        expected = np.argsort(-(VECTORS @ query), kind="stable")[:5]
        if kind == "flat":
            assert numbers.tolist() == expected.tolist()
        assert products.tolist() == pytest.approx(
            (VECTORS @ query)[numbers].tolist(), abs=1e-4
        )
    assert len(moves) == 1
    assert len(moves[0].depths) == 3


def test_deep_searches_and_parts_stay_in_the_processors_memory(
    moves: list[Moved],
) -> None:
    index = VectorIndex.build(VECTORS, VectorSettings())
    assert len(index.search(VECTORS[0], 2500)[0]) == 2500
    part = index.of_rows(np.array([4, 7, 9]))
    assert sorted(part.search(VECTORS[0], 5)[0].tolist()) == [0, 1, 2]
    assert all(not one.depths for one in moves)


def test_hnsw_which_no_graphics_processor_has_is_searched_here(
    moves: list[Moved],
) -> None:
    index = VectorIndex.build(np.eye(8, dtype=np.float32), VectorSettings("hnsw"))
    assert index.search(np.eye(8, dtype=np.float32)[3], 1)[0].tolist() == [3]
    assert not moves


def test_an_index_that_does_not_fit_is_searched_here_with_a_warning(
    moves: list[Moved], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(index: Any, options: Any) -> Any:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", refuse, raising=False)
    index = VectorIndex.build(np.eye(8, dtype=np.float32), VectorSettings())
    with pytest.warns(
        RuntimeWarning, match="without a graphics processor: out of memory"
    ):
        assert index.search(np.eye(8, dtype=np.float32)[3], 1)[0].tolist() == [3]


def test_without_faiss_both_extras_that_bring_it_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"ras-agent\[faiss\]'.*ras-agent\[gpu\]"):
        require_faiss()

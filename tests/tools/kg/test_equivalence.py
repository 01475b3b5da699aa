"""Equivalence edges: which entities count as the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.arrays import offsets_of
from ras_agent.tools.kg import near_pairs
from ras_agent.tools.kg.arrays import SparseRows
from ras_agent.tools.kg.equivalence import (
    Equivalence,
    comparable,
    mutual,
    near_lists,
    near_lists_after,
)


def unit(count: int, seed: int, width: int = 8) -> npt.NDArray[np.float32]:
    """Unit vectors around a few centres, so that many are near each other."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(1 + count // 6, width))
    vectors = (
        centres[random.integers(len(centres), size=count)]
        + random.normal(size=(count, width)) / 4
    )
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def pairs(
    vectors: npt.NDArray[np.float32], how: Equivalence, names: list[str] | None = None
) -> list[list[int]]:
    classes = comparable(names or ["name"] * len(vectors))
    return mutual(near_lists(vectors, classes, how)).entities.tolist()


def test_pairs_above_the_threshold_are_found_once_with_their_cosine() -> None:
    vectors = np.array([[1, 0], [0.6, 0.8], [0.8, 0.6], [-1, 0]], dtype=np.float32)
    found = mutual(near_lists(vectors, comparable("abcd"), Equivalence(0.8)))
    assert found.entities.tolist() == [[0, 2], [1, 2]]
    assert found.similarities.tolist() == pytest.approx([0.8, 0.96], abs=1e-3)


def test_names_that_differ_in_a_figure_are_not_equivalent() -> None:
    same = np.ones((4, 1), dtype=np.float32)
    names = [
        "2016 World Series",
        "2017 World Series",
        "World Series 2017",
        "World Series",
    ]
    assert pairs(same, Equivalence(0.8), names) == [[1, 2]]


def test_dates_are_equivalent_in_any_order_and_not_across_months() -> None:
    names = ["8 May 2011", "May 8, 2011", "8 June 2011"]
    assert pairs(np.ones((3, 1), dtype=np.float32), Equivalence(0.8), names) == [[0, 1]]


def test_names_without_a_letter_are_equivalent_to_nothing() -> None:
    assert (
        pairs(
            np.ones((4, 1), dtype=np.float32),
            Equivalence(0.8),
            ["1876", "1,876", "!", "?"],
        )
        == []
    )


def test_no_entity_has_more_equivalences_than_allowed() -> None:
    found = pairs(unit(300, 1), Equivalence(0.5, neighbours=3))
    assert np.bincount(np.ravel(found)).max() == 3


def test_the_nearest_stay() -> None:
    angles = np.array([0.0, 0.1, 0.15, 0.3])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert pairs(vectors, Equivalence(0.8, neighbours=1)) == [[1, 2]]


def test_no_neighbours_means_no_equivalences() -> None:
    assert (
        pairs(np.ones((3, 1), dtype=np.float32), Equivalence(0.8, neighbours=0)) == []
    )


@given(
    st.integers(2, 60),
    st.integers(0, 9),
    st.integers(1, 4),
    st.integers(1, 70),
    st.integers(1, 70),
)
def test_blocks_of_products_find_what_all_pairs_hold(
    count: int, seed: int, longest: int, rows: int, columns: int
) -> None:
    random = np.random.default_rng(seed)
    signs = np.where(random.random((count, 16)) < 0.1, -1, 1) * np.repeat(
        random.choice([-1, 1], (count, 2)), 8, axis=1
    )
    # unit vectors whose products are exact, with many ties
    vectors = (signs / 4).astype(np.float32)
    cosines = vectors @ vectors.T
    expected = []
    for row in range(count):
        near = [
            (-cosines[row, column], column)
            for column in range(count)
            if column != row and cosines[row, column] >= 0.7
        ]
        expected.append({column for _, column in sorted(near)[:longest]})
    wanted = [
        [a, b]
        for a in range(count)
        for b in range(a + 1, count)
        if b in expected[a] and a in expected[b]
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_pairs, "ROWS", rows)
        patch.setattr(near_pairs, "COLUMNS", columns)
        assert pairs(vectors, Equivalence(0.7, longest)) == wanted


@given(st.data())
def test_adding_and_removing_gives_what_a_fresh_search_gives(
    data: st.DataObject,
) -> None:
    vectors = unit(40, data.draw(st.integers(0, 20)))
    how = Equivalence(0.6, neighbours=data.draw(st.integers(1, 4)))
    before = np.array(sorted(data.draw(st.sets(st.integers(0, 39), min_size=2))))
    after = np.array(sorted(data.draw(st.sets(st.integers(0, 39), min_size=2))))
    classes = np.zeros(40, dtype=np.int64)
    lists = near_lists(vectors[before], classes[before], how)
    # the same lists by the numbers in `after`
    place = np.full(40, -1, np.int32)
    place[after] = np.arange(len(after))
    is_new = ~np.isin(after, before)
    rows = np.searchsorted(before, after[~is_new])
    sizes = np.zeros(len(after), np.int64)
    sizes[~is_new] = lists.row_sizes()[rows]
    left = SparseRows(
        offsets_of(sizes),
        place[before[np.concatenate([lists.columns[:0], *map(lists.row, rows)])]],
        np.concatenate([lists.values[:0], *map(lists.row_values, rows)]),
        len(after),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_pairs, "COLUMNS", data.draw(st.integers(1, 50)))
        updated = near_lists_after(left, is_new, vectors[after], classes[after], how)
    assert rows_of(updated) == rows_of(near_lists(vectors[after], classes[after], how))


def test_a_search_in_clusters_finds_nearly_all() -> None:
    vectors = unit(2000, 3, width=16)
    exact = {tuple(pair) for pair in pairs(vectors, Equivalence(0.9, 5))}
    found = {tuple(pair) for pair in pairs(vectors, Equivalence(0.9, 5, "ivf"))}
    assert len(exact) > 1000
    assert len(found & exact) > 0.95 * len(exact)


def test_a_search_in_all_clusters_finds_all() -> None:
    vectors, classes = (
        unit(300, 3, width=16),
        comparable([f"name {number % 3}" for number in range(300)]),
    )
    exact, clustered = (
        {
            frozenset(pair)
            for cells in found
            for pair in zip(cells.rows.tolist(), cells.columns.tolist(), strict=True)
        }
        for found in (
            near_pairs.all_pairs(vectors, classes, np.arange(300), 0.9),
            near_pairs.clustered_pairs(vectors, classes, 0.9, probes=300),
        )
    )
    assert len(exact) > 100
    assert clustered == exact


def test_many_entities_without_a_comparable_name_have_no_pairs() -> None:
    assert (
        pairs(
            np.ones((3, 4), dtype=np.float32),
            Equivalence(0.8, kind="ivf"),
            ["1", "2", "3"],
        )
        == []
    )


@pytest.mark.parametrize("few", [True, False], ids=["of some", "of all"])
def test_shortened_vectors_rule_no_pair_out(
    few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_pairs, "_SHORT", 5)
    monkeypatch.setattr(near_pairs, "_MANY", 100)
    vectors, classes = unit(300, 5, width=24), np.zeros(300, dtype=np.int64)
    fresh = np.arange(0, 300, 2 if few else 1)
    found = sorted(
        (min(pair), max(pair))
        for cells in near_pairs.all_pairs(vectors, classes, fresh, 0.8)
        for pair in zip(cells.rows.tolist(), cells.columns.tolist(), strict=True)
    )
    # in the steps in which cosines are compared
    near = np.round(vectors @ vectors.T * 1024) >= np.round(0.8 * 1024)
    rows, columns = np.nonzero(np.triu(near, 1))
    touched = np.isin(rows, fresh) | np.isin(columns, fresh)
    assert len(found) > 100
    assert found == sorted(
        zip(rows[touched].tolist(), columns[touched].tolist(), strict=True)
    )


def rows_of(lists: SparseRows) -> list[list[int]]:
    return [lists.row(number).tolist() for number in range(lists.shape[0])]

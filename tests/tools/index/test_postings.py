"""Postings: which slots have a key, and how often."""

import numpy as np
import pytest

from ras_agent.tools.index.postings import Postings

A, B, C = 1 << 62 | 5, 1 << 62 | 7, 1 << 62 | 9
MISSING = [0, 4, 1 << 62, 1 << 62 | 6, 1 << 62 | 10, (1 << 63) - 1]


def row(**counts: int) -> bytes:
    names = {"a": A, "b": B, "c": C}
    keys = np.array([names[name] for name in counts], np.uint64)
    return keys.tobytes() + np.array([*counts.values()], np.uint32).tobytes()


def held(postings: Postings) -> dict[int, dict[int, int]]:
    """The counts of each key by slots."""
    having = {int(key): postings.having(int(key)) for key in postings.keys}
    return {
        key: dict(zip(slots.tolist(), counts.tolist(), strict=True))
        for key, (slots, counts) in having.items()
    }


@pytest.fixture
def postings() -> Postings:
    return Postings.of_terms([row(b=2, a=1), row(), row(b=1), row(c=4, b=3)])


def test_each_key_has_its_slots_in_order_with_their_counts(postings: Postings) -> None:
    assert held(postings) == {A: {0: 1}, B: {0: 2, 2: 1, 3: 3}, C: {3: 4}}
    assert postings.keys.tolist() == [A, B, C]
    assert postings.starts.tolist() == [0, 1, 4, 5]
    assert postings.having(B)[0].tolist() == [0, 2, 3]
    assert [array.dtype for array in postings] == [
        np.uint64,
        np.int64,
        np.int32,
        np.uint32,
    ]


def test_a_key_that_is_not_there_has_no_slots(postings: Postings) -> None:
    for key in MISSING:
        slots, counts = postings.having(key)
        assert (len(slots), len(counts)) == (0, 0)


@pytest.mark.parametrize("rows", [[], [row()], [row(), row()]])
def test_rows_without_keys_are_no_error(rows: list[bytes]) -> None:
    postings = Postings.of_terms(rows)
    assert held(postings) == {}
    assert len(postings.having(A)[0]) == 0
    assert (
        held(Postings.joined([(postings, np.arange(len(rows), dtype=np.int32))])) == {}
    )


def test_keys_without_counts_are_there_once() -> None:
    postings = Postings.of_keys(
        [np.array([A, C], np.uint64).tobytes(), b"", np.array([C], np.uint64).tobytes()]
    )
    assert held(postings) == {A: {0: 1}, C: {0: 1, 2: 1}}


def test_joined_they_have_the_slots_of_both_where_those_moved_to(
    postings: Postings,
) -> None:
    other = Postings.of_terms([row(a=7), row(c=1)])
    whole = Postings.joined(
        [
            (postings, np.array([0, 1, 2, 3], np.int32)),
            (other, np.array([4, 5], np.int32)),
        ]
    )
    assert held(whole) == {A: {0: 1, 4: 7}, B: {0: 2, 2: 1, 3: 3}, C: {3: 4, 5: 1}}


def test_slots_that_moved_nowhere_are_left_out_with_the_keys_that_they_alone_had(
    postings: Postings,
) -> None:
    assert held(Postings.joined([(postings, np.array([-1, 0, 1, -1], np.int32))])) == {
        B: {1: 1}
    }


def test_joining_none_gives_none() -> None:
    assert held(Postings.joined([])) == {}


@pytest.mark.parametrize(
    "last_bits", [0, 3], ids=["far-apart", "alike-but-for-their-last-bits"]
)
def test_slots_ascend_for_each_key_whatever_the_keys(last_bits: int) -> None:
    drawn = np.random.default_rng(0)
    keys = drawn.integers(1, 1 << 63, 50, dtype=np.uint64)
    keys = np.concatenate([keys, keys + np.uint64(last_bits)])[
        drawn.integers(0, 100, 1000)
    ]
    counts = np.arange(1000, dtype=np.uint32)
    expected: dict[int, dict[int, int]] = {key: {} for key in sorted(keys.tolist())}
    for slot, (key, count) in enumerate(
        zip(keys.tolist(), counts.tolist(), strict=True)
    ):
        expected[key][slot] = count
    postings = Postings.of(keys, np.arange(1000, dtype=np.int32), counts)
    assert held(postings) == expected
    assert [list(slots) for slots in held(postings).values()] == [
        list(slots) for slots in expected.values()
    ]

"""Messages added up in segments of bounded length."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.tools.gfm.segments import plan_segments


def test_a_long_sum_is_cut_and_its_segments_are_added_up_at_the_next_level() -> None:
    found = plan_segments(np.array([0, 0, 5, 6]), 0, 3, 2)
    # entity 1's five messages make three sums, rows 3 to 5, which make two, rows 6 and 7, which make its row
    assert [(level.begin.tolist(), level.end.tolist(), level.target.tolist()) for level in found.levels] == [
        ([0, 2, 4, 5, 0], [2, 4, 5, 6, 0], [3, 4, 5, 2, 0]),
        ([3, 5], [5, 6], [6, 7]),
        ([6], [8], [1]),
    ]
    assert found.rows == 8
    assert [level.longer_than for level in found.levels] == [[4, 2], [2, 1], [1, 1]]


@given(st.lists(st.integers(0, 300), max_size=12), st.integers(2, 9), st.data())
def test_every_message_is_counted_once_for_its_target(lengths: list[int], longest: int, data: st.DataObject) -> None:
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    low = data.draw(st.integers(0, len(lengths)))
    high = data.draw(st.integers(low, len(lengths)))
    found = plan_segments(indptr, low, high, longest)
    summed: dict[int, list[int]] = {}
    for number, level in enumerate(found.levels):
        assert (level.end - level.begin <= longest).all()
        written = {}
        for begin, end, target in zip(level.begin, level.end, level.target, strict=True):
            terms = range(begin, end)
            written[int(target)] = [one for term in terms for one in summed[term]] if number else list(terms)
        assert len(written) == len(level.target)
        assert not written.keys() & summed.keys()
        summed |= written
    expected = {entity: list(range(indptr[entity], indptr[entity + 1])) for entity in range(low, high)}
    assert {low + row: summed[row] for row in range(high - low)} == expected

"""The layout: boxes that do not overlap, the same every time."""

import numpy as np
import pytest

from ras_agent.page import box_centres

WIDE, LABEL, DOT = (130.0, 30.0), (80.0, 17.0), (12.0, 12.0)
STAR = [(0, leaf) for leaf in range(1, 16)]
CHAIN = [(index, index + 1) for index in range(11)]


def overlapping(centres: np.ndarray, sizes: list[tuple[float, float]]) -> list[tuple[int, int]]:
    boxes = np.array(sizes)
    return [
        (one, other)
        for one in range(len(sizes))
        for other in range(one)
        if (np.abs(centres[one] - centres[other]) < (boxes[one] + boxes[other]) / 2).all()
    ]


@pytest.mark.parametrize(
    ("sizes", "links"),
    [
        ([WIDE] * 16, STAR),
        ([WIDE] * 12, CHAIN),
        ([WIDE] * 8 + [LABEL] * 4, [(0, 8), (8, 1), (2, 9), (9, 3), (4, 10), (10, 5)]),
        ([DOT] * 60, [(index // 7, index) for index in range(1, 60)]),
        ([WIDE, WIDE, LABEL, LABEL], [(0, 2), (2, 1), (0, 3), (3, 1)]),
        ([WIDE, LABEL], [(0, 1), (1, 0)]),
    ],
    ids=["star", "chain", "pairs", "tree", "two facts of one pair", "a fact about itself"],
)
def test_boxes_do_not_overlap(sizes: list[tuple[float, float]], links: list[tuple[int, int]]) -> None:
    assert overlapping(box_centres(sizes, links), sizes) == []


def test_the_same_graph_is_placed_the_same() -> None:
    np.testing.assert_array_equal(box_centres([WIDE] * 16, STAR), box_centres([WIDE] * 16, STAR))


def test_linked_boxes_are_nearer_than_others() -> None:
    centres = box_centres([WIDE] * 12, CHAIN)
    distances = np.linalg.norm(centres[0] - centres, axis=1)
    assert distances[1] < distances[4] < distances[11]


def test_it_begins_at_the_origin_and_fills_a_frame_somewhat_wider_than_high() -> None:
    sizes = [WIDE] * 40
    centres = box_centres(sizes, [(index // 6, index) for index in range(1, 40)])
    corner, far = (centres - np.array(WIDE) / 2).min(0), (centres + np.array(WIDE) / 2).max(0)
    np.testing.assert_allclose(corner, 0, atol=1e-6)
    assert 0.8 < far[0] / far[1] < 2.2


def test_unlinked_boxes_are_set_side_by_side() -> None:
    assert overlapping(box_centres([WIDE] * 9, []), [WIDE] * 9) == []


def test_nothing_to_place() -> None:
    assert box_centres([], []).shape == (0, 2)

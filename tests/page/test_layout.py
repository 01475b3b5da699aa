"""The layout, in a browser: boxes that do not overlap, the same every time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ras_agent.page import page_file

Browser = Any  # the class of tests/conftest.py
Boxes = list[tuple[float, float]]
Links = list[tuple[int, int]]
WIDE, LABEL, DOT = (130.0, 30.0), (80.0, 17.0), (12.0, 12.0)
STAR = [(0, leaf) for leaf in range(1, 16)]
CHAIN = [(index, index + 1) for index in range(11)]


@pytest.fixture(scope="module")
def layout(browser: Browser) -> Browser:
    """A page with the layout's functions."""
    browser.open("about:blank")
    browser.ask(
        f"{page_file('layout.js')}; Object.assign(window, {{ boxCentres, layOut }}); 0"
    )
    return browser


def centres_of(page: Browser, sizes: Boxes, links: Links) -> np.ndarray:
    return np.array(page.ask(f"boxCentres({json.dumps(sizes)}, {json.dumps(links)})"))


def overlapping(centres: np.ndarray, sizes: Boxes) -> list[tuple[int, int]]:
    boxes = np.array(sizes)
    return [
        (one, other)
        for one in range(len(sizes))
        for other in range(one)
        if (
            np.abs(centres[one] - centres[other]) < (boxes[one] + boxes[other]) / 2
        ).all()
    ]


@pytest.mark.parametrize(
    ("sizes", "links"),
    [
        ([WIDE] * 16, STAR),
        ([WIDE] * 12, CHAIN),
        ([WIDE] * 8 + [LABEL] * 4, [(0, 8), (8, 1), (2, 9), (9, 3), (4, 10), (10, 5)]),
        ([DOT] * 60, [(index // 7, index) for index in range(1, 60)]),
        (
            [WIDE] * 40,
            [
                (one, other)
                for one in range(40)
                for other in range(one)
                if (one * other) % 3 == 1
            ],
        ),
        ([WIDE, WIDE, LABEL, LABEL], [(0, 2), (2, 1), (0, 3), (3, 1)]),
        ([WIDE, LABEL], [(0, 1), (1, 0)]),
        ([WIDE] * 9, []),
    ],
    ids=[
        "star",
        "chain",
        "pairs",
        "tree",
        "dense",
        "two facts of one pair",
        "a fact about itself",
        "unlinked",
    ],
)
def test_boxes_do_not_overlap(layout: Browser, sizes: Boxes, links: Links) -> None:
    assert overlapping(centres_of(layout, sizes, links), sizes) == []


def test_the_same_graph_is_placed_the_same(layout: Browser) -> None:
    once, again = (centres_of(layout, [WIDE] * 16, STAR) for _ in range(2))
    np.testing.assert_array_equal(once, again)


def test_linked_boxes_are_nearer_than_others(layout: Browser) -> None:
    centres = centres_of(layout, [WIDE] * 12, CHAIN)
    distances = np.linalg.norm(centres[0] - centres, axis=1)
    assert distances[1] < distances[4] < distances[11]


def test_it_begins_at_the_origin_and_fills_a_frame_somewhat_wider_than_high(
    layout: Browser,
) -> None:
    centres = centres_of(
        layout, [WIDE] * 40, [(index // 6, index) for index in range(1, 40)]
    )
    corner, far = (
        (centres - np.array(WIDE) / 2).min(0),
        (centres + np.array(WIDE) / 2).max(0),
    )
    np.testing.assert_allclose(corner, 0, atol=1e-6)
    assert 0.8 < far[0] / far[1] < 2.2


def test_distances_on_the_page_come_close_to_lengths_of_paths(layout: Browser) -> None:
    """Of a grid, whose shortest paths a plane can hold nearly as they are."""
    grid = [(at, at + 1) for at in range(35) if at % 6 < 5] + [
        (at, at + 6) for at in range(30)
    ]
    lengths = f"Array.from(shortestPaths(neighbours({json.dumps([DOT] * 36)}, {json.dumps(grid)}), [...Array(36).keys()]))"
    paths = np.array(
        layout.ask(f"(() => {{ {page_file('layout.js')}; return {lengths} }})()")
    ).reshape(36, 36)
    points = f"descend(shortestPaths(neighbours({json.dumps([DOT] * 36)}, {json.dumps(grid)}), [...Array(36).keys()]))"
    places = np.array(
        layout.ask(f"(() => {{ {page_file('layout.js')}; return {points} }})()")
    )
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    pairs = np.triu_indices(36, 1)
    stress = (((apart - paths)[pairs] / paths[pairs]) ** 2).mean()
    assert stress < 0.05  # 0.02; of points at random 0.4


def test_nothing_to_place(layout: Browser) -> None:
    assert centres_of(layout, [], []).tolist() == []


def test_facts_between_the_same_two_entities_fan_out_where_their_labels_are_no_boxes(
    layout: Browser,
) -> None:
    nodes = [{"w": 12, "h": 12}, {"w": 12, "h": 12}]
    edges = [{"from": 0, "to": 1, "shown": False}, {"from": 1, "to": 0, "shown": False}]
    drawn = layout.ask(
        f"layOut({json.dumps({'nodes': nodes, 'edges': edges, 'joins': []})})"
    )
    first, second = drawn["edges"]
    assert (second["x"] - first["x"], second["y"] - first["y"]) == pytest.approx(
        (9, -14)
    )

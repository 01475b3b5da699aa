import pytest

from ras_agent.graphs.given import given_passages
from ras_agent.records import Passage


def ids(inputs):
    return [[passage["id"] for passage in hop] for hop in given_passages(inputs)]


def test_seeds_belong_to_the_first_hop():
    assert ids({"question": "Q?", "seed_passages": ["a", Passage("p", "b"), {"id": "d", "text": "c"}]}) == [
        ["given-1", "p", "d"]
    ]


def test_five_static_passages_are_five_iterations():
    assert ids({"question": "Q?", "static_passages": list("abcde")}) == [[f"given-{n}"] for n in range(1, 6)]


def test_static_passages_are_spread_evenly_in_order():
    assert ids({"question": "Q?", "static_passages": list("abcdefg"), "static_iterations": 3}) == [
        ["given-1", "given-2"],
        ["given-3", "given-4"],
        ["given-5", "given-6", "given-7"],
    ]


def test_there_are_no_more_iterations_than_passages():
    assert ids({"question": "Q?", "static_passages": ["a"], "static_iterations": 5}) == [["given-1"]]


@pytest.mark.parametrize("wrong", [{"title": "no text"}, 7, None])
def test_what_is_no_passage_is_said_with_its_place(wrong):
    with pytest.raises(ValueError, match="given passage 2 is no text"):
        given_passages({"question": "Q?", "seed_passages": ["fine", wrong]})


def test_nothing_given_is_nothing():
    assert given_passages({"question": "Q?"}) == []

"""The questions about two things are whole, and its halves are alike."""

from collections import Counter

from lab.two_things import KINDS, questions


def test_each_half_has_as_many_of_each_kind_and_as_many_yes_as_no() -> None:
    for half in ("first", "second"):
        asked = questions(half)
        assert [Counter(one["kind"] for one in asked)[kind] for kind in KINDS] == [
            60,
            30,
            30,
        ]
        assert Counter(
            one["answers"][0] for one in asked if one["kind"] == "yesno"
        ) == {"yes": 30, "no": 30}


def test_no_two_things_are_asked_about_twice() -> None:
    pairs = [
        frozenset(one["titles"])
        for half in ("first", "second")
        for one in questions(half)
    ]
    assert len(set(pairs)) == len(pairs) == 240
    assert all(len(pair) == 2 for pair in pairs)

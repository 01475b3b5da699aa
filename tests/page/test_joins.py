"""Which names stand for one thing."""

import pytest

from ras_agent.page.joins import joins_of, same_thing


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Dorve", "river Dorve", True),
        ("Quenne at Mittenau", "Quenne", True),
        ("the Quenne", "Quenne at Mittenau", True),
        ("Paris", "Paris, France", True),
        ("France", "capital of France", False),
        ("Bell", "Bell Telephone Company", False),
        ("Bell", "Alexander Graham Bell", False),
        ("city", "capital city", False),
        ("Dorve", "Dorve", False),
        ("", "Dorve", False),
    ],
)
def test_a_name_with_a_description_beside_it_is_the_same_thing(
    one: str, other: str, same: bool
) -> None:
    assert same_thing(one, other) is same
    assert same_thing(other, one) is same


def test_a_name_that_is_part_of_two_others_joins_neither() -> None:
    assert joins_of({0: "Dorve", 1: "river Dorve"}) == [(0, 1)]
    assert joins_of({0: "Dorve", 1: "river Dorve", 2: "Dorve at Hull"}) == []

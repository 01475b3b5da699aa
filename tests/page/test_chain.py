"""The chain of an answer, and which names stand for one thing."""

import pytest

from ras_agent.page.chain import Link, chain_of, joins_of, same_thing


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
def test_a_name_with_a_description_beside_it_is_the_same_thing(one: str, other: str, same: bool) -> None:
    assert same_thing(one, other) is same
    assert same_thing(other, one) is same


def test_a_name_that_is_part_of_two_others_joins_neither() -> None:
    assert joins_of({0: "Dorve", 1: "river Dorve"}) == [(0, 1)]
    assert joins_of({0: "Dorve", 1: "river Dorve", 2: "Dorve at Hull"}) == []


def test_a_chain_leads_from_the_question_to_the_answer_through_facts_and_joins() -> None:
    facts = [Link(0, 1, "founded", 1), Link(2, 1, "born", 2), Link(3, 4, "flows", 3), Link(1, 9, "is", 2)]
    assert chain_of(facts, [(2, 3)], starts_from=[0], answers=[4]) == [
        Link(0, 1, "founded", 1),
        Link(1, 2, "born", 2),
        Link(2, 3),
        Link(3, 4, "flows", 3),
    ]


def test_the_chain_with_most_citations_is_preferred_then_the_shortest() -> None:
    facts = [Link(0, 1, "a", 1), Link(1, 2, "b", 2), Link(5, 2, "c", 2), Link(6, 0, "d", 1)]
    assert [link.fact for link in chain_of(facts, [], starts_from=[0, 5, 6], answers=[2])] == ["a", "b"]


def test_without_a_way_there_is_no_chain() -> None:
    assert chain_of([Link(0, 1, "a", 1)], [], starts_from=[0], answers=[2]) == []
    assert chain_of([], [], starts_from=[], answers=[]) == []

"""Ready facts and the passages that state them."""

from __future__ import annotations

import pytest

from ras_agent.records import Passage, Source, Triple
from ras_agent.tools.kg.passage_facts import Given, PassageFacts, place_facts


def test_facts_go_to_the_one_passage_of_a_title() -> None:
    passages = [Passage("1", "A.", "One"), Passage("2", "B.", "Two"), Passage("3", "C.", "Two")]
    given = [
        Given(PassageFacts(title, (Triple("a", "b", "c", (Source(title, 0, 2),)),)), "g") for title in ("One", "Two")
    ]
    placed = place_facts(given, passages)
    assert placed.facts == [PassageFacts("1", (Triple("a", "b", "c", (Source("1", 0, 2),)),))]
    assert [str(item) for item in placed.skipped] == [
        "g: facts of 'Two', the title of 2 passages of the index: give the id of one"
    ]


@pytest.mark.parametrize("place", [(0, 3), (2, 1), (10**22, 10**22)])
def test_a_fact_that_stands_outside_of_its_text_is_told(place: tuple[int, int]) -> None:
    facts = (Triple("a", "b", "c", (Source("1", *place),)), Triple("d", "e", "f", (Source("1", 0, 2),)))
    placed = place_facts([Given(PassageFacts("1", facts), "g")], [Passage("1", "A.")])
    assert placed.facts == [PassageFacts("1", facts[1:])]
    assert [item.reason for item in placed.skipped] == [
        "1 of the facts of '1' stand outside of its text: (S> a | P> b | O> c)"
    ]


def test_a_passage_whose_facts_all_stand_outside_of_its_text_is_given_nothing() -> None:
    outside = Triple("a", "b", "c", (Source("1", 5, 9),))
    passages = [Passage("1", "A.")]
    placed = place_facts([Given(PassageFacts("1", (outside,)), "g")], passages)
    assert (placed.facts, placed.passages, len(placed.skipped)) == ([], {}, 1)
    assert place_facts([Given(PassageFacts("1", (outside,), ("a",)), "g")], passages).facts == [
        PassageFacts("1", (), ("a",))
    ]
    assert place_facts([Given(PassageFacts("1"), "g")], passages).facts == [PassageFacts("1")]


def test_what_is_given_twice_counts_as_often_as_where_it_is_more_often() -> None:
    fact, other = (Triple(name, "b", "c", (Source("1", 0, 2),)) for name in "ad")
    given = [
        Given(PassageFacts("1", (fact,), ("a", "e")), "f"),
        Given(PassageFacts("1", (other, fact), ("e", "e")), "g"),
    ]
    assert place_facts(given, [Passage("1", "A.")]).facts == [PassageFacts("1", (fact, other), ("a", "e", "e"))]


def test_facts_that_a_passage_is_given_by_id_and_by_title_are_put_together() -> None:
    given = [Given(PassageFacts(name, (), (f"of {name}",)), "g") for name in ("1", "One")]
    assert place_facts(given, [Passage("1", "A.", "One")]).facts == [PassageFacts("1", (), ("of 1", "of One"))]

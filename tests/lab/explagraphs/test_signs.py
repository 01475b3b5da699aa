"""Negations of arguments and graphs, counted and multiplied."""

from __future__ import annotations

import pytest

from lab.explagraphs.examples import StanceExample
from lab.explagraphs.signs import RELATIONS, negations, relation_bag, reverses, scopes, sign_features

REPEATED = StanceExample("Cars should not be banned.", "Cars move people.", (("cars", "not desires", "banned"),))
DENIED = StanceExample("Cars should be banned.", "Cars move people.", (("cars", "not desires", "banned"),))


@pytest.mark.parametrize(
    ("text", "count"),
    [("It isn't so.", 1), ("It isn’t so.", 1), ("nothing, NEVER", 2), ("a knot", 0), ("cannot", 1), ("", 0)],
)
def test_negating_words_are_counted_as_whole_words(text: str, count: int) -> None:
    assert negations(text) == count


def test_relations_with_not_and_antonyms_deny() -> None:
    denying = [relation for relation in RELATIONS if reverses(relation)]
    assert denying[:3] == ["antonym of", "not at location", "not capable of"]
    assert len(denying) == 14


def test_a_scope_has_the_stems_of_the_content_words_behind_the_negation() -> None:
    assert scopes("They do not want the banning of any kind of big cars") == [{"want", "banni", "any", "kind"}]


def test_the_signs_of_two_negations_cancel() -> None:
    repeated, denied = sign_features([REPEATED, DENIED])
    # counts and whether there are any: first argument, second one, concepts, relations
    assert repeated[:8].tolist() == [1, 0, 0, 1, 1, 0, 0, 1]
    assert denied[:8].tolist() == [0, 0, 0, 1, 0, 0, 0, 1]
    # the last product is that of all four signs
    assert (repeated[22], denied[22]) == (1, -1)


def test_a_negation_that_the_graph_repeats_is_told_from_one_that_it_does_not() -> None:
    elsewhere = StanceExample("Cars should not be free.", "Cars move people.", REPEATED.facts)
    repeated, other = sign_features([REPEATED, elsewhere])[:, 23:]
    # of the first argument: repeated, not repeated; of the second; relations that point to the first argument, the
    # second, both, neither; relations that meet no negation
    assert repeated.tolist() == [1, 0, 0, 0, 1, 0, 0, 0, 0]
    assert other.tolist() == [0, 1, 0, 0, 0, 0, 0, 1, 1]


def test_a_bag_counts_each_relation_type() -> None:
    facts = (("a", "causes", "b"), ("b", "causes", "c"), ("c", "unheard of", "d"))
    bag = relation_bag([StanceExample("", "", facts)])[0]
    assert bag[RELATIONS.index("causes")] == 2
    assert bag.sum() == 2

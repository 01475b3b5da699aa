"""Conflicts: dates and quantities on which passages disagree, and nothing else."""

import pytest

from ras_agent.contracts.records import Source, Triple
from ras_agent.question_graph.conflicts import conflicts_of


def fact(subject: str, predicate: str, object_: str, *passage_ids: str) -> Triple:
    return Triple(
        subject,
        predicate,
        object_,
        tuple(Source(passage_id) for passage_id in passage_ids),
    )


def test_two_passages_with_two_years_disagree() -> None:
    one, other = (
        fact("Bell", "was born in", "1847", "p1"),
        fact("Bell", "was born in", "1850", "p2"),
    )
    assert conflicts_of([one, other]) == ((one, other),)


def test_two_quantities_of_one_unit_disagree() -> None:
    one, other = (
        fact("The Leith", "is", "35 km long", "p1"),
        fact("The Leith", "is", "28 km long", "p2"),
    )
    assert conflicts_of([one, other]) == ((one, other),)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1960", "January 1960"),
        ("about 1,000 people", "1,047 people"),
        ("300 km", "186 miles"),
        ("the 1920s", "1924"),
    ],
)
def test_a_value_that_refines_or_rounds_another_agrees(one: str, other: str) -> None:
    assert (
        conflicts_of([fact("Bell", "had", one, "p1"), fact("Bell", "had", other, "p2")])
        == ()
    )


@pytest.mark.parametrize(
    "predicate", ["was born in", "born in", "had been born on", "was born"]
)
def test_auxiliaries_and_the_final_preposition_do_not_matter(predicate: str) -> None:
    assert conflicts_of(
        [
            fact("Bell", "was born on", "3 March 1847", "p1"),
            fact("Bell", predicate, "1850", "p2"),
        ]
    )


def test_a_negation_is_a_different_predicate() -> None:
    assert (
        conflicts_of(
            [
                fact("Bell", "left in", "1870", "p1"),
                fact("Bell", "had not left in", "1850", "p2"),
            ]
        )
        == ()
    )


def test_only_facts_that_disagree_are_in_the_group() -> None:
    facts = [
        fact("Bell", "left in", year, f"p{n}")
        for n, year in enumerate(["1870", "March 1871", "1871"])
    ]
    vague = fact("Bell", "left in", "the 1870s", "p9")
    assert conflicts_of([*facts, vague]) == (tuple(facts),)


@pytest.mark.parametrize(
    "objects",
    [
        ("Edinburgh", "Scotland"),
        ("Tom Hanks", "Meg Ryan"),
        ("1936 Olympics", "1940 Games"),
    ],
)
def test_names_never_conflict(objects: tuple[str, str]) -> None:
    assert (
        conflicts_of(
            [
                fact("Bell", "was in", objects[0], "p1"),
                fact("Bell", "was in", objects[1], "p2"),
            ]
        )
        == ()
    )


def test_other_subjects_and_other_predicates_do_not_disagree() -> None:
    facts = [
        fact("Bell", "was born in", "1847", "p1"),
        fact("Bell", "left in", "1870", "p2"),
    ]
    assert conflicts_of([*facts, fact("Mabel", "was born in", "1857", "p3")]) == ()


def test_two_values_in_one_passage_are_no_conflict() -> None:
    brazil = [
        fact("Brazil", "won in", "1958", "p1"),
        fact("Brazil", "won in", "1962", "p1"),
    ]
    assert conflicts_of([*brazil, fact("Brazil", "won in", "1970", "p2")]) == ()


def test_a_predicate_that_takes_several_values_once_has_no_conflicts() -> None:
    brazil = [
        fact("Brazil", "won in", "1958", "p1"),
        fact("Brazil", "won in", "1962", "p1"),
    ]
    italy = [
        fact("Italy", "won in", "1934", "p2"),
        fact("Italy", "won in", "1982", "p3"),
    ]
    assert conflicts_of(italy) == (tuple(italy),)
    assert conflicts_of([*brazil, *italy]) == ()


@pytest.mark.parametrize(
    "subject", ["post office", "The post office", "The office", "population"]
)
def test_a_common_noun_names_a_different_thing_in_each_passage(subject: str) -> None:
    assert (
        conflicts_of(
            [
                fact(subject, "has code", "24738", "p1"),
                fact(subject, "has code", "24934", "p2"),
            ]
        )
        == ()
    )


@pytest.mark.parametrize("subject", ["Bell", "The Water of Leith", "東京", "Apollo 11"])
def test_a_name_means_the_same_in_every_passage(subject: str) -> None:
    assert conflicts_of(
        [
            fact(subject, "began in", "1900", "p1"),
            fact(subject, "began in", "1950", "p2"),
        ]
    )


def test_facts_without_a_source_never_conflict() -> None:
    assert (
        conflicts_of(
            [
                fact("Bell", "was born in", "1847"),
                fact("Bell", "was born in", "1850", "p2"),
            ]
        )
        == ()
    )


def test_a_predicate_with_more_than_fifty_values_of_one_subject_takes_several() -> None:
    won = [
        fact("Bell", "won in", str(1900 + number), f"p{number}") for number in range(51)
    ]
    assert len(conflicts_of(won[:50])) == 1
    assert conflicts_of(won) == ()

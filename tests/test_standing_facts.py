"""Facts of any extractor are kept where they stand in their passage; the others are counted and named."""

from __future__ import annotations

from ras_agent.contracts.records import (
    Extraction,
    Passage,
    RefusedFacts,
    Source,
    Triple,
)
from ras_agent.running.standing_facts import keep_standing

NORA = Passage("p1", "Nora Quill is a potter who lives in Harlow.", "Nora Quill")
CURIE = Passage("p2", "居里夫人出生于华沙。")


def _fact(
    subject: str, predicate: str, object_: str, *passages: str, extractor: str = "mine"
) -> Triple:
    sources = tuple(Source(name, 0, 5, extractor=extractor) for name in passages)
    return Triple(subject, predicate, object_, sources)


LIVES = _fact("Nora Quill", "lives in", "Harlow", "p1")
WORKED = _fact("Nora Quill", "worked with", "Bruce Heezen", "p1")


def test_facts_that_do_not_stand_are_one_failure_a_passage_which_names_them() -> None:
    died = _fact("Nora Quill", "died in", "2006", "p1")
    kept = keep_standing(Extraction((LIVES, WORKED, died)), [NORA], hop=2)
    assert kept.triples == (LIVES,)
    (failure,) = kept.failures
    assert isinstance(failure, RefusedFacts)
    assert (failure.role, failure.hop) == ("extractor", 2)
    assert failure.message == (
        "2 facts are left out, because their words are not in passage p1, such as “Nora Quill worked with Bruce "
        "Heezen” (missing: 'Bruce Heezen')"
    )
    assert (
        failure.detail.splitlines()[1] == "“Nora Quill died in 2006” (missing: '2006')"
    )


def test_a_fact_of_which_nobody_can_tell_is_kept_and_marked() -> None:
    kept = keep_standing(
        Extraction((_fact("Marie Curie", "was born in", "Warsaw", "p2"),)), [CURIE]
    )
    assert [
        source.unchecked for triple in kept.triples for source in triple.sources
    ] == [True]
    assert kept.failures == ()


def test_a_fact_keeps_the_sources_that_hold_it() -> None:
    other = Passage("p3", "Harlow is a town in Essex.")
    kept = keep_standing(
        Extraction((_fact("Nora Quill", "lives in", "Harlow", "p1", "p3"),)),
        [NORA, other],
    )
    assert [source.passage_id for source in kept.triples[0].sources] == ["p1"]
    assert kept.failures == ()


def test_a_fact_that_a_record_came_with_is_never_left_out() -> None:
    stated = _fact(
        "Nora Quill",
        "worked with",
        "Bruce Heezen",
        "p1",
        extractor="stated: facts.csv line 3",
    )
    kept = keep_standing(Extraction((stated,)), [NORA])
    assert [source.unchecked for source in kept.triples[0].sources] == [True]


def test_a_mark_is_in_the_json_of_a_source_only_where_it_is_set() -> None:
    assert "unchecked" not in Source("p1").to_dict()
    assert Source.from_dict(Source("p1", unchecked=True).to_dict()).unchecked

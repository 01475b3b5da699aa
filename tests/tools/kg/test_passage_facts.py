"""Facts as passages, facts that passages carry, and imported facts matched to the passages that state them."""

from __future__ import annotations

from typing import Any

import pytest

from ras_agent.records import Passage, Source, Triple
from ras_agent.tools.kg.formats.triples import PlacedTriple
from ras_agent.tools.kg.passage_facts import (
    ImportedFacts,
    PassageFacts,
    knowledge_passages,
    match_facts,
    stated_facts,
)

FACTS = [
    PlacedTriple("Bell", "born in", "Edinburgh", "a.nt line 1"),
    PlacedTriple("Leith", "flows through", "Edinburgh", "a.nt line 2"),
    PlacedTriple("bell", "patented", "telephone", "a.nt line 3"),
    PlacedTriple("Bell", "Born in", "Edinburgh", "a.nt line 4"),
]


def test_an_entity_s_facts_are_one_passage() -> None:
    bell, leith = knowledge_passages(FACTS, "a.nt")
    assert (bell.id, bell.title, bell.document_id) == ("a.nt#bell", "Bell", "a.nt")
    assert bell.text == "Bell born in Edinburgh.\nbell patented telephone."
    assert leith.text == "Leith flows through Edinburgh."


def test_facts_have_the_span_of_their_sentence_and_their_line() -> None:
    bell, _ = knowledge_passages(FACTS, "a.nt")
    assert stated_facts(bell) == (
        Triple("Bell", "born in", "Edinburgh", (Source("a.nt#bell", 0, 23, extractor="a.nt line 1"),)),
        Triple("bell", "patented", "telephone", (Source("a.nt#bell", 24, 48, extractor="a.nt line 3"),)),
    )


def test_many_facts_are_several_passages() -> None:
    facts = [PlacedTriple("Bell", "knew", f"Person {number}", "a") for number in range(5)]
    passages = knowledge_passages(facts, "a", size=50)
    assert [passage.id for passage in passages] == ["a#bell", "a#bell#2", "a#bell#3"]
    assert sum(len(stated_facts(passage) or ()) for passage in passages) == 5


def test_a_piece_of_a_passage_states_the_facts_whose_sentences_it_has() -> None:
    bell, _ = knowledge_passages(FACTS, "a.nt")
    piece = Passage("piece", bell.text[24:], metadata=bell.metadata)
    assert [fact.object for fact in stated_facts(piece) or ()] == ["telephone"]


@pytest.mark.parametrize("metadata", [{}, {"facts": "x"}, {"facts": []}, {"facts": [["a", "b"]]}, {"facts": {"a": 1}}])
def test_other_metadata_states_nothing(metadata: dict[str, Any]) -> None:
    assert stated_facts(Passage("p", "text", metadata=metadata)) is None


def test_facts_go_to_the_one_passage_of_a_title() -> None:
    passages = [Passage("1", "A.", "One"), Passage("2", "B.", "Two"), Passage("3", "C.", "Two")]
    imported = [
        ImportedFacts(PassageFacts(title, (Triple("a", "b", "c", (Source(title, 0, 2),)),)), "g")
        for title in ("One", "Two")
    ]
    matched = match_facts(imported, passages)
    assert matched.facts == [PassageFacts("1", (Triple("a", "b", "c", (Source("1", 0, 2),)),))]
    assert [str(item) for item in matched.skipped] == [
        "g: facts of 'Two', the title of 2 passages of the index: give the id of one"
    ]


@pytest.mark.parametrize("place", [(0, 3), (2, 1), (10**22, 10**22)])
def test_a_fact_outside_the_text_of_its_passage_is_skipped_and_reported(place: tuple[int, int]) -> None:
    facts = (Triple("a", "b", "c", (Source("1", *place),)), Triple("d", "e", "f", (Source("1", 0, 2),)))
    matched = match_facts([ImportedFacts(PassageFacts("1", facts), "g")], [Passage("1", "A.")])
    assert matched.facts == [PassageFacts("1", facts[1:])]
    assert [item.reason for item in matched.skipped] == [
        "1 of the facts of '1' have places outside its text: (S> a | P> b | O> c)"
    ]


def test_a_passage_whose_facts_are_all_outside_its_text_gets_none() -> None:
    outside = Triple("a", "b", "c", (Source("1", 5, 9),))
    passages = [Passage("1", "A.")]
    matched = match_facts([ImportedFacts(PassageFacts("1", (outside,)), "g")], passages)
    assert (matched.facts, matched.passages, len(matched.skipped)) == ([], {}, 1)
    assert match_facts([ImportedFacts(PassageFacts("1", (outside,), ("a",)), "g")], passages).facts == [
        PassageFacts("1", (), ("a",))
    ]
    assert match_facts([ImportedFacts(PassageFacts("1"), "g")], passages).facts == [PassageFacts("1")]


def test_a_fact_in_two_files_counts_as_often_as_in_the_one_that_has_it_more_often() -> None:
    fact, other = (Triple(name, "b", "c", (Source("1", 0, 2),)) for name in "ad")
    imported = [
        ImportedFacts(PassageFacts("1", (fact,), ("a", "e")), "f"),
        ImportedFacts(PassageFacts("1", (other, fact), ("e", "e")), "g"),
    ]
    assert match_facts(imported, [Passage("1", "A.")]).facts == [PassageFacts("1", (fact, other), ("a", "e", "e"))]


def test_facts_matched_by_id_and_by_title_are_united() -> None:
    imported = [ImportedFacts(PassageFacts(name, (), (f"of {name}",)), "g") for name in ("1", "One")]
    assert match_facts(imported, [Passage("1", "A.", "One")]).facts == [PassageFacts("1", (), ("of 1", "of One"))]

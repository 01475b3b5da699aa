"""Passages that say what a knowledge graph holds, and come with their facts."""

from __future__ import annotations

from typing import Any

import pytest

from ras_agent.records import Passage, Source, Triple
from ras_agent.tools.kg.formats.triples import PlacedTriple
from ras_agent.tools.kg.passage_facts import knowledge_passages, stated_facts

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


def test_facts_keep_their_sentence_and_their_line() -> None:
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


def test_a_piece_of_a_passage_states_what_stands_in_it() -> None:
    bell, _ = knowledge_passages(FACTS, "a.nt")
    piece = Passage("piece", bell.text[24:], metadata=bell.metadata)
    assert [fact.object for fact in stated_facts(piece) or ()] == ["telephone"]


@pytest.mark.parametrize("metadata", [{}, {"facts": "x"}, {"facts": []}, {"facts": [["a", "b"]]}, {"facts": {"a": 1}}])
def test_other_metadata_states_nothing(metadata: dict[str, Any]) -> None:
    assert stated_facts(Passage("p", "text", metadata=metadata)) is None

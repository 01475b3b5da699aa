"""Facts as passages, facts that passages carry, and imported facts matched to the passages that state them."""

from __future__ import annotations

import pytest

from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.tools.index.chunk import Chunking, passages_of
from ras_agent.tools.index.documents import Document
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.kg.passage_facts import (
    ImportedFacts,
    PassageFacts,
    knowledge_passages,
    match_facts,
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


def test_many_facts_are_several_passages() -> None:
    facts = [
        PlacedTriple("Bell", "knew", f"Person {number}", "a") for number in range(5)
    ]
    passages = knowledge_passages(facts, "a", size=50)
    assert [passage.id for passage in passages] == ["a#bell", "a#bell#2", "a#bell#3"]
    assert sum(len(passage.metadata["facts"]) for passage in passages) == 5


def test_facts_go_to_the_one_passage_of_a_title() -> None:
    passages = [
        Passage("1", "A.", "One"),
        Passage("2", "B.", "Two"),
        Passage("3", "C.", "Two"),
    ]
    imported = [
        ImportedFacts(
            PassageFacts(title, (Triple("a", "b", "c", (Source(title, 0, 2),)),)), "g"
        )
        for title in ("One", "Two")
    ]
    matched = match_facts(imported, passages)
    assert matched.facts == [
        PassageFacts("1", (Triple("a", "b", "c", (Source("1", 0, 2),)),))
    ]
    assert [str(item) for item in matched.skipped] == [
        "g: facts of 'Two', the title of 2 passages of the index: give the id of one"
    ]


LONG = "Bell was born in Edinburgh. He moved to Canada. He patented the telephone."
PIECES = list(passages_of(Document("bell", LONG, "Bell"), Chunking(50, 0)))


def imported(
    *triples: Triple, text: str | None = LONG, entities: tuple[str, ...] = ()
) -> ImportedFacts:
    return ImportedFacts(PassageFacts("bell", triples, entities), "f", text)


class TestDocumentsThatWereCut:
    def test_a_fact_goes_to_the_piece_that_holds_its_place(self) -> None:
        born = Triple("Bell", "born in", "Edinburgh", (Source("bell", 0, 27),))
        phone = Triple("He", "patented", "telephone", (Source("bell", 48, 74),))
        matched = match_facts([imported(born, phone)], PIECES)
        first, second = matched.facts
        assert first == PassageFacts(
            PIECES[0].id,
            (Triple("Bell", "born in", "Edinburgh", (Source(PIECES[0].id, 0, 27),)),),
        )
        assert second == PassageFacts(
            PIECES[1].id,
            (Triple("He", "patented", "telephone", (Source(PIECES[1].id, 0, 26),)),),
        )
        assert (list(matched.passages), matched.skipped) == (
            [piece.id for piece in PIECES],
            [],
        )

    @pytest.mark.parametrize("text", [LONG, None])
    def test_a_fact_without_a_place_goes_to_the_pieces_that_name_both_ends_else_to_the_first(
        self, text: str | None
    ) -> None:
        named = Triple(
            "he", "invented", "the Telephone", (Source("bell", 0, len(LONG)),)
        )
        neither = Triple("Watson", "assisted", "Bell")
        (first, second) = match_facts(
            [imported(named, neither, text=text)], PIECES
        ).facts
        assert [str(triple) for triple in first.triples] == [
            "(S> Watson | P> assisted | O> Bell)"
        ]
        assert [str(triple) for triple in second.triples] == [
            "(S> he | P> invented | O> the Telephone)"
        ]

    def test_in_the_overlap_a_fact_is_read_twice(self) -> None:
        pieces = list(passages_of(Document("bell", LONG), Chunking(50, 20)))
        moved = Triple("He", "moved to", "Canada", (Source("bell", 28, 47),))
        facts = match_facts([imported(moved)], pieces).facts
        assert [
            [source.start for triple in one.triples for source in triple.sources]
            for one in facts
        ] == [[28], [0]]

    def test_each_piece_has_the_title_as_an_entity_and_the_others_that_it_names(
        self,
    ) -> None:
        (first, second) = match_facts(
            [imported(entities=("Bell", "Canada", "telephone", "radio"))], PIECES
        ).facts
        assert (first.entities, second.entities) == (
            ("Bell", "Canada", "radio"),
            ("Bell", "telephone"),
        )

    def test_facts_of_the_one_document_of_a_title_go_to_its_pieces(self) -> None:
        by_title = ImportedFacts(
            PassageFacts("Bell", (Triple("He", "patented", "telephone"),)), "g"
        )
        assert [len(one.triples) for one in match_facts([by_title], PIECES).facts] == [
            0,
            1,
        ]

    @pytest.mark.parametrize(
        "text", [f"{LONG} More.", LONG.replace(" He moved", " Then. He moved"), "Bell."]
    )
    def test_facts_of_another_text_are_skipped(self, text: str) -> None:
        matched = match_facts([imported(Triple("a", "b", "c"), text=text)], PIECES)
        assert [item.reason for item in matched.skipped] == [
            "facts of 'bell', which has another text in the index"
        ]
        assert matched.facts == []

    def test_impossible_places_are_reported_once(self) -> None:
        bad = Triple("a", "b", "c", (Source("bell", 5, 900),))
        matched = match_facts([imported(bad, entities=("Bell",))], PIECES)
        assert [item.reason for item in matched.skipped] == [
            "1 of the facts of 'bell' have places outside its text: (S> a | P> b | O> c)"
        ]


@pytest.mark.parametrize("place", [(0, 3), (2, 1), (10**22, 10**22)])
def test_a_fact_outside_the_text_of_its_passage_is_skipped_and_reported(
    place: tuple[int, int],
) -> None:
    facts = (
        Triple("a", "b", "c", (Source("1", *place),)),
        Triple("d", "e", "f", (Source("1", 0, 2),)),
    )
    matched = match_facts(
        [ImportedFacts(PassageFacts("1", facts), "g")], [Passage("1", "A.")]
    )
    assert matched.facts == [PassageFacts("1", facts[1:])]
    assert [item.reason for item in matched.skipped] == [
        "1 of the facts of '1' have places outside its text: (S> a | P> b | O> c)"
    ]


def test_a_passage_whose_facts_are_all_outside_its_text_gets_none() -> None:
    outside = Triple("a", "b", "c", (Source("1", 5, 9),))
    passages = [Passage("1", "A.")]
    matched = match_facts([ImportedFacts(PassageFacts("1", (outside,)), "g")], passages)
    assert (matched.facts, matched.passages, len(matched.skipped)) == ([], {}, 1)
    assert match_facts(
        [ImportedFacts(PassageFacts("1", (outside,), ("a",)), "g")], passages
    ).facts == [PassageFacts("1", (), ("a",))]
    assert match_facts([ImportedFacts(PassageFacts("1"), "g")], passages).facts == [
        PassageFacts("1")
    ]


def test_a_fact_in_two_files_counts_as_often_as_in_the_one_that_has_it_more_often() -> (
    None
):
    fact, other = (Triple(name, "b", "c", (Source("1", 0, 2),)) for name in "ad")
    imported = [
        ImportedFacts(PassageFacts("1", (fact,), ("a", "e")), "f"),
        ImportedFacts(PassageFacts("1", (other, fact), ("e", "e")), "g"),
    ]
    assert match_facts(imported, [Passage("1", "A.")]).facts == [
        PassageFacts("1", (fact, other), ("a", "e", "e"))
    ]


def test_facts_matched_by_id_and_by_title_are_united() -> None:
    imported = [
        ImportedFacts(PassageFacts(name, (), (f"of {name}",)), "g")
        for name in ("1", "One")
    ]
    assert match_facts(imported, [Passage("1", "A.", "One")]).facts == [
        PassageFacts("1", (), ("of 1", "of One"))
    ]

"""Facts that records come with: found in the text, marked as stated, and kept by the pieces of a record that is cut."""

from __future__ import annotations

from typing import Any

import pytest

from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.tools.index.chunk import Chunking, passages_of
from ras_agent.tools.index.documents import Document
from ras_agent.tools.index.stated_facts import PiecesByWord, stated_facts
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.kg.passage_facts import knowledge_passages

FACTS = [
    PlacedTriple("Bell", "born in", "Edinburgh", "a.nt line 1"),
    PlacedTriple("bell", "patented", "telephone", "a.nt line 3"),
]
TEXT = "Bell was born in Edinburgh. He moved to Canada. He patented the telephone."


def test_facts_have_the_span_of_their_sentence_and_their_line() -> None:
    (bell,) = knowledge_passages(FACTS, "a.nt")
    assert stated_facts(bell) == (
        Triple(
            "Bell",
            "born in",
            "Edinburgh",
            (Source("a.nt#bell", 0, 23, extractor="stated: a.nt line 1"),),
        ),
        Triple(
            "bell",
            "patented",
            "telephone",
            (Source("a.nt#bell", 24, 48, extractor="stated: a.nt line 3"),),
        ),
    )


def test_a_fact_in_other_words_has_the_span_of_the_sentence_that_is_most_like_it() -> (
    None
):
    facts = [["He", "patented", "telephone", "x"], ["no", "such", "thing", "x"]]
    (patent, unlike) = stated_facts(Passage("p", TEXT, metadata={"facts": facts})) or ()
    assert (
        TEXT[patent.sources[0].start : patent.sources[0].end]
        == "He patented the telephone."
    )
    assert (unlike.sources[0].start, unlike.sources[0].end) == (0, len(TEXT))


def test_a_record_cannot_choose_the_extractor_of_its_facts() -> None:
    passage = Passage(
        "p",
        "Moon is made of cheese.",
        metadata={"facts": [["Moon", "is made of", "cheese", "NASA"]]},
    )
    (fact,) = stated_facts(passage) or ()
    assert fact.sources[0].extractor == "stated: NASA"


@pytest.mark.parametrize(
    "metadata",
    [{}, {"facts": "x"}, {"facts": []}, {"facts": [["a", "b"]]}, {"facts": {"a": 1}}],
)
def test_other_metadata_states_nothing(metadata: dict[str, Any]) -> None:
    assert stated_facts(Passage("p", "text", metadata=metadata)) is None


def test_the_pieces_of_a_record_state_its_facts_each_where_it_is_about_them() -> None:
    facts = [
        ["Bell", "was born in", "Edinburgh", "1"],  # a sentence of the first piece
        ["He", "invented", "the telephone", "2"],  # both names are in the second
        ["Watson", "assisted", "Bell", "3"],  # one name is missing everywhere
    ]
    document = Document("d", TEXT, metadata={"facts": facts, "year": 1876})
    first, second = passages_of(document, Chunking(50, 0))
    assert first.metadata == {"year": 1876, "facts": [facts[0], facts[2]]}
    assert second.metadata == {"year": 1876, "facts": [facts[1]]}


def test_a_piece_without_a_fact_states_none() -> None:
    document = Document(
        "d", TEXT, metadata={"facts": [["Bell", "was born in", "Edinburgh", "1"]]}
    )
    assert [piece.metadata for piece in passages_of(document, Chunking(50, 0))][1] == {}


@pytest.mark.parametrize(
    ("fact", "pieces"),
    [
        (("Bell", "was born in", "Edinburgh"), [1]),
        (("Bell", "lived in", "The Edinburgh"), [1, 2]),
        (("Ada", "met", "Bell"), [0]),
        (("ベル", "発明", "電話"), [3]),
        (("mill", "of", "mill"), [4, 5, 6, 7]),
    ],
)
def test_a_fact_belongs_to_the_first_few_pieces_that_say_it(
    fact: tuple[str, str, str], pieces: list[int]
) -> None:
    texts = [
        "A life.",
        "Bell was born in Edinburgh.",
        "bell left EDINBURGH",
        "ベルは電話を作った",
        *["mill"] * 9,
    ]
    assert PiecesByWord(texts).about(fact) == pieces

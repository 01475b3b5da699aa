"""Cutting documents into passages."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.tools.index.chunk import Chunking, chunk_spans, passages_of
from ras_agent.tools.index.documents import Document
from tests.messages import says

TEXT = "Bell was born in Edinburgh. He moved to Canada. He patented the telephone. It made him rich."


def texts(document: Document, size: int, overlap: int) -> list[str]:
    return [passage.text for passage in passages_of(document, Chunking(size, overlap))]


def test_chunks_end_where_sentences_do() -> None:
    assert texts(Document("d", TEXT), 50, 0) == [
        "Bell was born in Edinburgh. He moved to Canada.",
        "He patented the telephone. It made him rich.",
    ]


def test_the_overlap_repeats_whole_sentences_that_fit_it() -> None:
    assert texts(Document("d", TEXT), 50, 20) == [
        "Bell was born in Edinburgh. He moved to Canada.",
        "He moved to Canada. He patented the telephone.",
        "It made him rich.",
    ]


def test_a_sentence_longer_than_a_chunk_is_cut_between_words() -> None:
    assert texts(Document("d", "one two three four five six"), 13, 0) == [
        "one two three",
        "four five six",
    ]


def test_text_without_spaces_is_cut_at_sentence_marks_then_commas_then_anywhere() -> (
    None
):
    assert texts(
        Document("d", "贝尔生于爱丁堡。他发明了电话，又搬到加拿大。"), 10, 0
    ) == [
        "贝尔生于爱丁堡。",
        "他发明了电话，",
        "又搬到加拿大。",
    ]
    assert texts(Document("d", "贝尔生于爱丁堡他发明了电话"), 7, 0) == [
        "贝尔生于爱丁堡",
        "他发明了电话",
    ]


def test_a_letter_is_never_parted_from_its_accents() -> None:
    accented = "e\N{COMBINING ACUTE ACCENT}"
    assert texts(Document("d", accented * 4), 3, 0) == [accented] * 4


def test_a_document_that_fits_keeps_its_id_and_every_character() -> None:
    document = Document(
        "wiki-7", "  Bell.\r\nﬁne\ufeff text \n", "Bell", {"year": 1876}
    )
    (passage,) = passages_of(document)
    assert (passage.id, passage.text) == ("wiki-7", "  Bell.\r\nﬁne\ufeff text \n")
    assert (passage.title, passage.document_id, passage.metadata) == (
        "Bell",
        "wiki-7",
        {"year": 1876},
    )


def test_ids_of_chunks_say_document_number_and_content() -> None:
    names = [
        passage.id for passage in passages_of(Document("d", TEXT), Chunking(50, 0))
    ]
    assert [re.sub("[0-9a-f]{8}$", "HASH", name) for name in names] == [
        "d#1-HASH",
        "d#2-HASH",
    ]
    changed = [
        passage.id
        for passage in passages_of(
            Document("d", TEXT.replace("rich", "poor")), Chunking(50, 0)
        )
    ]
    assert names[0] == changed[0]
    assert names[1] != changed[1]


def test_every_chunk_carries_title_metadata_and_document_id() -> None:
    for passage in passages_of(
        Document("d", TEXT, "Bell", {"lang": "en"}), Chunking(50, 0)
    ):
        assert (passage.title, passage.document_id, passage.metadata) == (
            "Bell",
            "d",
            {"lang": "en"},
        )


def test_a_record_with_an_id_stays_whole_unless_records_are_cut() -> None:
    record = Document("d", TEXT, record=True)
    assert [passage.text for passage in passages_of(record, Chunking(50, 0))] == [TEXT]
    assert [
        passage.document_id
        for passage in passages_of(record, Chunking(50, 0, cut_records=True))
    ] == ["d", "d"]


def test_no_passage_is_on_two_pages_and_each_says_on_which_it_is() -> None:
    document = Document(
        "d", "One. More of it.\nThree, the blank second left out.\n", pages=(0, 17, 17)
    )
    found = [
        (passage.text, passage.page)
        for passage in passages_of(document, Chunking(1000, 200))
    ]
    assert found == [("One. More of it.", 1), ("Three, the blank second left out.", 3)]
    assert [passage.page for passage in passages_of(document, Chunking(14, 0))] == [
        1,
        1,
        3,
        3,
        3,
    ]


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (100, 100), (100, -1)])
def test_sizes_that_make_no_sense_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(
        ValueError, match=says("chunk size", "positive", "overlap", "less than it")
    ):
        Chunking(size, overlap)


@given(
    st.text(st.sampled_from("ab. \n?,語。é\u0301\u200dA1")),
    st.integers(1, 30),
    st.integers(0, 29),
)
def test_chunks_are_short_enough_move_on_and_lose_no_word(
    text: str, size: int, overlap: int
) -> None:
    spans = chunk_spans(text, Chunking(size, min(overlap, size - 1)))
    covered = {at for start, end in spans for at in range(start, end)}
    assert all(0 < end - start <= size for start, end in spans)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(spans))
    assert all(char.isspace() for at, char in enumerate(text) if at not in covered)


def test_marks_without_end_are_cut_at_the_size_of_a_chunk() -> None:
    spans = chunk_spans("a" + "\u0301" * 250, Chunking(size=100, overlap=0))
    assert spans == [(0, 100), (100, 200), (200, 251)]


def test_records_are_cut_too_where_a_size_is_asked_for() -> None:
    assert Chunking.of(None, 200) == Chunking()
    assert Chunking.of(500, 20) == Chunking(500, 20, cut_records=True)

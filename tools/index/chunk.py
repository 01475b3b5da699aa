"""Cuts documents into passages between sentences, with overlap, without changing a character."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from ras_agent.records import Passage
from ras_agent.text.sentences import sentence_spans
from ras_agent.tools.index.load import Document
from ras_agent.tools.index.stated_facts import metadata_of_pieces

Span = tuple[int, int]

PIECE = re.compile(r"(.+)#(\d+)-[0-9a-f]{8}", re.DOTALL)
"""The id of a passage that was cut from a document: the document's id, and the number."""

_AFTER_WORD = re.compile(r"(?<=\S)(?=\s)")
_AFTER_CLAUSE = re.compile(r"(?<=[,;:、，；：])")
_JOINERS = "\u200d\ufe0e\ufe0f"
_LONGEST_CHARACTER = 64  # code points of a letter with its marks, or of an emoji made of others


@dataclass(frozen=True, slots=True)
class Chunking:
    """Sets how long passages are, in characters, a unit that all scripts have (1,000 are about 170 English words).

    size: the most characters of a passage. overlap: how many characters a passage may repeat from the one before, in
    whole sentences. cut_records: whether to cut also the records of JSON Lines and tables that come with an id, as the
    passages of a corpus do that was cut already.
    """

    size: int = 1000
    overlap: int = 200
    cut_records: bool = False

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.overlap < self.size:
            raise ValueError(
                f"chunk size must be positive and overlap from 0 to less than it, got {self.size} and {self.overlap}"
            )

    @classmethod
    def of(cls, size: int | None, overlap: int) -> Self:
        """Return the chunking of a setting `chunk_size`, which cuts records too where it is given."""
        return cls(cls().size if size is None else size, overlap, cut_records=size is not None)


DEFAULT_CHUNKING = Chunking()


def passages_of(document: Document, chunking: Chunking = DEFAULT_CHUNKING) -> Iterator[Passage]:
    """Yield the document's passages. A document that fits in one passage gives it its own id and its whole text.

    One of several pages has a passage a page at least. Other passages are called `document#number-hash`: the same text
    always gets the same ids, another text others. Facts that the document states go to the passages that they are
    about.
    """
    text = document.text
    one_page = len(set(document.pages)) <= 1
    whole = (len(text) <= chunking.size and one_page) or (document.record and not chunking.cut_records)
    spans = [(0, len(text))] if whole else _spans_of_pages(document, chunking)
    if len(spans) == 1:
        yield _passage(document, spans[0], document.id, document.metadata)
        return
    metadata = metadata_of_pieces(document.metadata, [text[start:end] for start, end in spans])
    for number, (start, end) in enumerate(spans, start=1):
        digest = hashlib.blake2b(text[start:end].encode(), digest_size=4).hexdigest()
        yield _passage(document, (start, end), f"{document.id}#{number}-{digest}", metadata[number - 1])


def _spans_of_pages(document: Document, chunking: Chunking) -> list[Span]:
    """Return the spans of a document; none is on two pages, so that each can be cited by its own."""
    text, starts = document.text, document.pages or (0,)
    return [
        (begin + start, begin + end)
        for begin, after in zip(starts, (*starts[1:], len(text)), strict=True)
        for start, end in chunk_spans(text[begin:after], chunking)
    ]


def piece_number(passage: Passage) -> int:
    """Return which piece of its document a passage is, from 1; 0 for one that was not cut by `passages_of`."""
    found = PIECE.fullmatch(passage.id)
    return int(found[2]) if found and found[1] == passage.document_id else 0


def chunk_spans(text: str, chunking: Chunking = DEFAULT_CHUNKING) -> list[Span]:
    """Return half-open character spans, none longer than `chunking.size`, that together hold every word of `text`.

    They begin and end where sentences do; a sentence longer than a whole span is cut between words, or between
    characters in scripts without spaces.
    """
    pieces = [piece for span in sentence_spans(text) for piece in _pieces(text, span, chunking.size)]
    spans: list[Span] = []
    first = last = 0
    while last < len(pieces):
        while last + 1 < len(pieces) and pieces[last + 1][1] - pieces[first][0] <= chunking.size:
            last += 1
        spans.append((pieces[first][0], pieces[last][1]))
        end, last = pieces[last][1], last + 1
        if last == len(pieces):
            break
        # the next chunk starts with the most pieces of this one that fit the overlap and leave room for a new one
        earliest = max(end - chunking.overlap, pieces[last][1] - chunking.size, pieces[first][0] + 1)
        first = last
        while pieces[first - 1][0] >= earliest:
            first -= 1
    return spans


def _pieces(text: str, span: Span, size: int) -> Iterator[Span]:
    """Yield a sentence whole, or in pieces that fit."""
    start, end = span
    while end - start > size:
        cut = _cut(text, start, size)
        yield start, cut
        start = cut
        while text[start].isspace():
            start += 1
    yield start, end


def _cut(text: str, start: int, size: int) -> int:
    """Return the best cut within `size` characters: after a word, after a comma, else between two characters."""
    window = text[start : start + size + 1]
    for pattern in (_AFTER_WORD, _AFTER_CLAUSE):
        places = [match.start() for match in pattern.finditer(window) if match.start() <= size]
        if places:
            return start + places[-1]
    for cut in range(size, max(size - _LONGEST_CHARACTER, 0), -1):
        if not (unicodedata.combining(window[cut]) or window[cut] in _JOINERS or window[cut - 1] == "\u200d"):
            return start + cut
    return start + size


def _passage(document: Document, span: Span, name: str, about: Mapping[str, Any]) -> Passage:
    metadata = dict(about)
    if document.pages:
        metadata["page"] = bisect_right(document.pages, span[0])
    return Passage(name, document.text[span[0] : span[1]], document.title, document.id, metadata)

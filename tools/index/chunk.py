"""Cuts documents into passages between sentences, with overlap, without changing a character."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

from ras_agent.contracts.records import Passage
from ras_agent.text.canonical import canonical_key
from ras_agent.text.sentences import sentence_spans
from ras_agent.tools.index.documents import Document
from ras_agent.tools.index.markdown import Outline, headings_of
from ras_agent.tools.index.stated_facts import STATED, metadata_of_pieces
from ras_agent.tools.index.text_tables import (
    TABLE,
    Record,
    TextRow,
    TextTable,
    headings_above,
    records_of,
    tables_in,
)

Span = tuple[int, int]

PIECE = re.compile(r"(.+)#(\d+)-[0-9a-f]{8}", re.DOTALL)
"""The id of a passage that was cut from a document: the document's id, the passage's number, and a hash of its text."""

_AFTER_WORD = re.compile(r"(?<=\S)(?=\s)")
_AFTER_CLAUSE = re.compile(r"(?<=[,;:、，；：])")
_JOINERS = "\u200d\ufe0e\ufe0f"
# code points of a letter with its marks, or of an emoji made of others
_LONGEST_CHARACTER = 64


@dataclass(frozen=True, slots=True)
class Chunking:
    """Sets how long passages are, in characters, a unit that all scripts have (1,000 are about 170 English words)."""

    size: int = 1000
    """The maximum number of characters in a passage."""
    overlap: int = 200
    """How many characters a passage may repeat from the one before, in whole sentences."""
    cut_records: bool = False
    """Whether to cut records of JSON Lines and tables even if they have an id, as the passages of a corpus that is
    already cut do.
    """

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.overlap < self.size:
            raise ValueError(
                f"chunk size must be positive and overlap from 0 to less than it, got {self.size} and {self.overlap}"
            )

    @classmethod
    def of(cls, size: int | None, overlap: int) -> Self:
        """Return the chunking for a chunk size and an overlap, both in characters.

        Without a size it is the default, and records of JSON Lines and rows of tables stay whole. With a size they are
        cut too.
        """
        return cls(
            cls().size if size is None else size, overlap, cut_records=size is not None
        )


DEFAULT_CHUNKING = Chunking()


def passages_of(
    document: Document, chunking: Chunking = DEFAULT_CHUNKING
) -> Iterator[Passage]:
    """Cut a document into passages.

    A document that fits into one passage becomes a passage with the document's id. A document of several pages has
    at least one passage for each page. Other passages are called `document#number-hash`: the same text always gets
    the same ids, and another text gets others. Facts that the document states go to the passages that they are
    about. A table is separated from the text around it, and each of its rows also becomes a passage that states it
    in a sentence, unless it is a document already.
    """
    text = document.text
    stays = document.record and not chunking.cut_records
    has_facts = STATED in document.metadata
    tables = [] if stays or has_facts else tables_in(text)
    if tables:
        pieces = _pieces_with_tables(document, tables, chunking)
        yield from _numbered(document, pieces)
        return
    one_page = len(set(document.pages)) <= 1
    whole = (len(text) <= chunking.size and one_page) or stays
    spans = [(0, len(text))]
    if not whole:
        spans = list(_spans_of_prose(document, 0, len(text), chunking))
    if len(spans) == 1:
        start, end = spans[0]
        piece = _Piece(start, text[start:end], document.metadata)
        yield _passage(document, piece, document.id)
        return
    texts = [text[start:end] for start, end in spans]
    metadata = metadata_of_pieces(document.metadata, texts)
    starts = [start for start, _ in spans]
    yield from _numbered(document, map(_Piece, starts, texts, metadata))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Holds a part of a document that becomes a passage."""

    start: int
    """Where it begins in the document's text."""
    text: str
    about: Mapping[str, Any]
    """Its metadata."""
    headings: tuple[str, ...] = ()
    """The headings above the piece, the highest first."""


def _numbered(document: Document, pieces: Iterable[_Piece]) -> Iterator[Passage]:
    if document.is_markdown:
        pieces = _below_headings(document, pieces)
    for number, piece in enumerate(pieces, start=1):
        digest = hashlib.blake2b(piece.text.encode(), digest_size=4).hexdigest()
        name = f"{document.id}#{number}-{digest}"
        yield _passage(document, piece, name)


def _below_headings(document: Document, pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    """Yield the pieces with the headings above each of them, except the document's title."""
    outline = Outline(headings_of(document.text))
    title = canonical_key(document.title)
    for piece in pieces:
        above = outline.above(piece.start)
        others = [name for name in above if canonical_key(name) != title]
        yield replace(piece, headings=tuple(others))


def _pieces_with_tables(
    document: Document, tables: Sequence[TextTable], chunking: Chunking
) -> Iterator[_Piece]:
    """Yield the text around tables and the tables in their written form, and after these each row separately."""

    def prose(first: int, last: int) -> Iterator[_Piece]:
        for start, end in _spans_of_prose(document, first, last, chunking):
            yield _Piece(start, document.text[start:end], document.metadata)

    rows: list[_Piece] = []
    end = 0
    for number, table in enumerate(tables, start=1):
        start = headings_above(document.text, end, table.start)
        yield from prose(end, start)
        table = replace(table, start=start)
        cut = _CutTable(document, table, number, chunking.size)
        for part in cut.parts():
            if isinstance(part, _Piece):
                yield part
            else:
                yield from prose(*part)
        rows.extend(cut.rows())
        end = table.end
    yield from prose(end, len(document.text))
    yield from rows


class _CutTable:
    """Cuts a table into pieces of whole rows, and states each row in a sentence; a row with much text is cut like
    prose."""

    def __init__(
        self, document: Document, table: TextTable, number: int, size: int
    ) -> None:
        self._document = document
        self._table = table
        self._head = document.text[table.start : table.head_end]
        self._room = size - len(self._head)
        self._records: dict[int, Record] = {}
        self._facts: dict[int, Sequence[Sequence[str]]] = {}
        if document.facts_of_rows:
            self._named = document.metadata[TABLE]
            self._facts.update(enumerate(document.facts_of_rows))
        else:
            place = f"{document.place or document.id} table {number}"
            self._named = self._read_records(place)

    def _read_records(self, place: str) -> dict[str, Any]:
        """Read the rows that become passages; return the description of the table for the metadata of each."""
        cells = [row.cells for row in self._table.rows]
        records = records_of(self._table.columns, cells)
        key_column = ""
        for record in records:
            key_column = record.key_column
            number = record.number - 1
            row = self._table.rows[number]
            if self._fits(row):
                facts = record.facts(f"{place} row {record.number}")
                self._records[number] = record
                self._facts[number] = facts
        return {
            "place": place,
            "key": key_column,
            "rows": len(records),
        }

    def parts(self) -> Iterator[_Piece | Span]:
        """Yield the pieces in order, each with the header on top, and the spans of rows that are cut like prose."""
        together: list[int] = []
        for number, row in enumerate(self._table.rows):
            if together and not self._fit([*together, number]):
                yield self._piece(together)
                together = []
            if self._fits(row):
                together.append(number)
            else:
                yield row.start, row.end
        if together:
            yield self._piece(together)

    def rows(self) -> Iterator[_Piece]:
        """Yield each row as a sentence, with its written form in the metadata."""
        for number, record in self._records.items():
            row = self._table.rows[number]
            about = self._about([number])
            written = self._document.text[row.start : row.end]
            about[TABLE] = {**about.get(TABLE, {}), "written": written}
            yield _Piece(start=row.start, text=record.sentence, about=about)

    def _fits(self, row: TextRow) -> bool:
        return row.end - row.start < self._room

    def _fit(self, numbers: Sequence[int]) -> bool:
        rows = self._table.rows
        first = rows[numbers[0]]
        last = rows[numbers[-1]]
        return last.end - first.start < self._room

    def _piece(self, numbers: Sequence[int]) -> _Piece:
        lines = [self._head]
        for number in numbers:
            row = self._table.rows[number]
            lines.append(self._document.text[row.start : row.end])
        first = numbers[0]
        start = self._table.start
        if first > 0:
            start = self._table.rows[first].start
        return _Piece(start, "\n".join(lines), self._about(numbers))

    def _about(self, numbers: Sequence[int]) -> dict[str, Any]:
        """Return the metadata of some rows: the facts that they state, and the table that they belong to."""
        about = dict(self._document.metadata)
        facts: list[Sequence[str]] = []
        for number in numbers:
            own = self._facts.get(number, ())
            facts.extend(own)
        if facts:
            about[STATED] = facts
            about[TABLE] = dict(self._named)
        return about


def _spans_of_prose(
    document: Document, first: int, last: int, chunking: Chunking
) -> Iterator[Span]:
    """Yield the spans of the pieces of a part of a document, each within one page, so that it can be cited by that
    page."""
    pages = sorted(set(document.pages))
    within = [page for page in pages if first < page < last]
    for begin, after in pairwise([first, *within, last]):
        for start, end in chunk_spans(document.text[begin:after], chunking):
            yield begin + start, begin + end


def piece_number(passage: Passage) -> int:
    """Return the number of a passage among the pieces of its document, from 1; 0 if it was not cut by `passages_of`."""
    found = PIECE.fullmatch(passage.id)
    if found and found[1] == passage.document_id:
        return int(found[2])
    return 0


def chunk_spans(text: str, chunking: Chunking = DEFAULT_CHUNKING) -> list[Span]:
    """Return the spans (start, end) of passages in a text, each at most `chunking.size` long. Together they contain
    every word.

    They begin and end with sentences. A sentence longer than a whole span is cut between words or, in scripts
    without spaces, between characters.
    """
    pieces = [
        piece
        for span in sentence_spans(text)
        for piece in _pieces(text, span, chunking.size)
    ]
    spans: list[Span] = []
    first = last = 0
    while last < len(pieces):
        while (
            last + 1 < len(pieces)
            and pieces[last + 1][1] - pieces[first][0] <= chunking.size
        ):
            last += 1
        spans.append((pieces[first][0], pieces[last][1]))
        end = pieces[last][1]
        last = last + 1
        if last == len(pieces):
            break
        # the next chunk repeats as many pieces of this one as fit into the overlap and leave room for a new piece
        earliest = max(
            end - chunking.overlap,
            pieces[last][1] - chunking.size,
            pieces[first][0] + 1,
        )
        first = last
        while pieces[first - 1][0] >= earliest:
            first -= 1
    return spans


def _pieces(text: str, span: Span, size: int) -> Iterator[Span]:
    """Yield a sentence as a whole, or in pieces that fit."""
    start, end = span
    while end - start > size:
        cut = _cut(text, start, size)
        yield start, cut
        start = cut
        while text[start].isspace():
            start += 1
    yield start, end


def _cut(text: str, start: int, size: int) -> int:
    """Return the best place to cut within `size` characters: after a word, after a comma, or between two characters."""
    window = text[start : start + size + 1]
    for pattern in (_AFTER_WORD, _AFTER_CLAUSE):
        places = [
            match.start() for match in pattern.finditer(window) if match.start() <= size
        ]
        if places:
            return start + places[-1]
    for cut in range(size, max(size - _LONGEST_CHARACTER, 0), -1):
        if not (
            unicodedata.combining(window[cut])
            or window[cut] in _JOINERS
            or window[cut - 1] == "\u200d"
        ):
            return start + cut
    return start + size


def _passage(document: Document, piece: _Piece, name: str) -> Passage:
    metadata = dict(piece.about)
    if piece.headings:
        metadata["headings"] = list(piece.headings)
    if document.pages:
        metadata["page"] = bisect_right(document.pages, piece.start)
    return Passage(name, piece.text, document.title, document.id, metadata)

"""Answers from the rows of tables and from forms in the passages: a cell, a comparison of cells, or yes or no.

A row answers only if everything that the question names is in the row, or in the names of its columns or its table, so
that a row about another thing or another number answers nothing. Nothing is added up: a question for a sum has no
answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import is_name
from ras_agent.text.overlap import holds
from ras_agent.text.values import figures_in
from ras_agent.text.words import stem_set, stems, word_set
from ras_agent.tools.offline import english
from ras_agent.tools.offline.question import ORDERS, analyse, fits
from ras_agent.tools.offline.reading import ReadPassage, Sentence, tokens_of

_ASKS_FOR_SUM = re.compile(
    r"(?i)\b(?:sum|total|totals|altogether|combined|average|mean|median|difference|in all|together|per cent|percentage"
    r"|how many times|how much (?:more|less|longer|older|higher))\b"
)
_UNIT = re.compile(r"(?<!\s)\s*+[(\[][^()\[\]]*[)\]]\s*$")
_MEASURES = {
    word: stem_set(" ".join(columns))
    for word, columns in english.words("measures").items()
}
"""Maps words of questions to the stems of the columns that they ask for."""
_POSITIVES = {
    form: word for word, forms in english.words("degrees").items() for form in forms
}
_LIGHT = stem_set(
    "give take cost get use work number name called many much last time year date answer say tell list show find"
    " located"
)
"""Stems of words that a question may contain although the row does not, since they do not change its meaning."""


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a row of a table."""

    table: str
    key: str
    cells: Mapping[str, str]
    """The text under each column, beginning with the column that names the row."""
    about: frozenset[str]
    """Stems of the passage's title, and of the headings above the table."""
    all_rows: int
    """The number of rows of the table; 0 if unknown."""
    sentence: Sentence
    lines: Mapping[str, Sentence] = field(default_factory=dict)
    """The line of each column, for a form.

    A form that is the only one of its kind can be asked about without its name.
    """

    @property
    def key_column(self) -> str:
        """Return the column that names the row."""
        return next(iter(self.cells))


@dataclass(frozen=True, slots=True)
class Said:
    """Holds an answer, and the sentences of the rows that give it."""

    text: str
    sentences: tuple[Sentence, ...]


_Anchors = Mapping[str, frozenset[str]]
"""Maps the columns of a row whose cells a question names to the stems that it shares with them."""


def look_up(question: str, passages: Iterable[ReadPassage]) -> Said | None:
    """Return the answer from the rows of tables in the passages; None if there is no answer, or if tables disagree."""
    tables = _tables(passages)
    if not tables or _ASKS_FOR_SUM.search(question):
        return None
    asked = _Asked(question)
    found: list[Said] = []
    for rows in tables:
        said = _compared(asked, rows) or _cell(asked, rows)
        if said is not None:
            found.append(said)
    answers = {canonical_key(one.text) for one in found}
    if len(answers) != 1:
        return None
    return found[0]


def _tables(passages: Iterable[ReadPassage]) -> list[list[Row]]:
    """Return the rows of each table, each row once; if two passages have it, the passage with fewer rows counts."""
    tables: dict[str, dict[str, Row]] = {}
    ordered = sorted(passages, key=lambda passage: len(passage.records))
    rows = map(_rows_of, ordered)
    for row in chain.from_iterable(rows):
        table = tables.setdefault(row.table, {})
        name = canonical_key(row.key)
        known = table.setdefault(name, row)
        if row.all_rows > known.all_rows:
            table[name] = replace(known, all_rows=row.all_rows)
    return [list(rows.values()) for rows in tables.values()]


def _are_all(rows: Sequence[Row]) -> bool:
    """Return whether these rows of a table are all its rows, by the number that their passages state."""
    count = max(row.all_rows for row in rows)
    return count == len(rows)


def _rows_of(passage: ReadPassage) -> Iterator[Row]:
    about = passage.title_stems
    for key, cells in passage.records.items():
        yield Row(
            table=passage.table,
            key=key,
            cells={**_named_cells(passage.key_column, key), **cells},
            about=about,
            all_rows=passage.rows_of_table,
            sentence=_sentence_of(passage, key),
        )
    for number, record in enumerate(passage.forms):
        lines = {}
        for label, (start, text) in record.lines.items():
            lines[label] = Sentence(passage, 0, start, text)
        heading = " ".join(record.headings)
        yield Row(
            table=f"form {passage.id} {number}",
            key=heading,
            cells={"": heading, **record.fields},
            about=about | stem_set(heading),
            all_rows=0,
            sentence=passage.sentences[0],
            lines=lines,
        )


def _named_cells(column: str, key: str) -> dict[str, str]:
    """Return the cells that name a row, each under its column: "Site, Depth" has two."""
    columns = column.split(", ")
    cells = key.split(", ")
    if len(columns) != len(cells):
        return {column: key}
    return dict(zip(columns, cells, strict=True))


def _sentence_of(passage: ReadPassage, key: str) -> Sentence:
    """Return the sentence of a passage for a row; the whole passage, if it has no other row."""
    if len(passage.records) == 1:
        return Sentence(passage, 0, 0, passage.text)
    for sentence in passage.sentences:
        if holds(sentence.text, key):
            return sentence
    return passage.sentences[0]


class _Asked:
    """Holds a question, parsed to be answered from tables."""

    def __init__(self, question: str) -> None:
        self.text = question
        self.analysis = analyse(question)
        self.kind = self.analysis.kind
        self.tokens = tokens_of(question)
        self.words = [token.word for token in self.tokens]
        self.stems = stem_set(question)

    @cached_property
    def named(self) -> frozenset[str]:
        """Return the stems of the words written as names or with digits, which a row must contain."""
        found: set[str] = set()
        for token in self.tokens:
            written = self.text[token.start : token.end]
            is_name = token.start > 0 and written[0].isupper()
            has_digits = any(map(str.isdigit, written))
            if token.stem and (is_name or has_digits):
                found.add(token.stem)
        return frozenset(found)

    @cached_property
    def measured(self) -> frozenset[str]:
        """Return the stems of the columns that the question's words for measures, times and places ask for."""
        asked_by = map(columns_asked_by, self.words)
        return frozenset().union(*asked_by)

    @cached_property
    def noun(self) -> frozenset[str]:
        """Return the stems of the noun for the answer, as in "which bridge" and "what is the fare"."""
        noun = set(self.analysis.answer_noun)
        noun -= _MEASURES.keys()
        return stem_set(" ".join(noun))

    @cached_property
    def order(self) -> tuple[bool, int] | None:
        """Return how the question orders things: whether by dates, not numbers, and 1 for the most or -1 for the least.

        Return None if it does not order things.
        """
        for listed, by_dates, sign in ORDERS:
            if not listed.isdisjoint(self.words):
                return by_dates, sign
        return None

    def words_for(self, column: frozenset[str]) -> frozenset[str]:
        """Return the stems of the question's words that ask for a column with these stems."""
        found: set[str] = set()
        for word in self.words:
            if columns_asked_by(word) & column:
                found |= stem_set(word)
        return frozenset(found)


def columns_asked_by(word: str) -> frozenset[str]:
    """Return the stems of the columns that a word of a question asks for, such as those of heights for "taller".

    The sentences about two things are searched for the same stems.
    """
    positive = _POSITIVES.get(word, word)
    return _MEASURES.get(positive, frozenset())


def _column_stems(column: str) -> frozenset[str]:
    """Return the stems of a column's name, without its unit."""
    bare = _UNIT.sub("", column)
    return stem_set(bare or column)


def _anchors(asked: _Asked, row: Row) -> dict[str, frozenset[str]]:
    """Return the columns whose cells the question names, each with the stems that it shares with the cell.

    A question names a cell if it contains the whole cell, or a name in it.
    """
    found: dict[str, frozenset[str]] = {}
    for column, cell in row.cells.items():
        stems = stem_set(cell)
        if holds(asked.text, cell) or _in_order(cell, asked):
            found[column] = stems
            continue
        part = asked.named & stems
        has_digits = any(map(str.isdigit, cell))
        is_in_another_order = stems <= asked.stems
        if part and not has_digits and not is_in_another_order:
            found[column] = part
    return found


def _in_order(cell: str, asked: _Asked) -> bool:
    """Return whether a question contains all words of a cell in their order: "from Orvena to Pellis"."""
    words = stems(cell)
    following = iter(stems(asked.text))
    return len(words) > 1 and all(word in following for word in words)


def _cell(asked: _Asked, rows: Sequence[Row]) -> Said | None:
    """Return the cell that is asked for, from the rows that the question names best, or None."""
    if asked.kind == "choice":
        return None
    chosen: list[tuple[str, Row]] = []
    best = (0, False)
    for row in rows:
        anchors = _anchors(asked, row)
        column = _asked_column(asked, row, anchors)
        if not column:
            continue
        stems = frozenset().union(*anchors.values())
        strength = (len(stems), row.key_column in anchors)
        if strength > best:
            best = strength
            chosen = []
        if strength == best:
            chosen.append((column, row))
    if not chosen:
        return None
    sentences = [row.lines.get(column, row.sentence) for column, row in chosen]
    if asked.kind == "yes_no":
        return Said("yes", tuple(sentences[:1]))
    cells = dict.fromkeys(row.cells[column] for column, row in chosen)
    if len(cells) > 1 and not _are_all(rows):
        return None
    return Said(", ".join(cells), tuple(sentences))


def _left(
    asked: _Asked, row: Row, said: Iterable[frozenset[str]], columns: Iterable[str]
) -> frozenset[str]:
    """Return the stems of a question that are neither in `said`, nor in names of columns or of the table."""
    left = asked.stems.difference(row.about, _LIGHT, *said)
    for column in columns:
        stems = _column_stems(column)
        left = left.difference(stems, asked.words_for(stems))
    return left


def _asked_column(asked: _Asked, row: Row, anchors: _Anchors) -> str:
    """Return the column that is asked for; "" if none is, or if the question says more than the row."""
    left = _left(asked, row, anchors.values(), row.cells)
    if left & asked.named:
        return ""
    if not anchors and (left or not row.lines):
        return ""
    if asked.kind == "yes_no":
        return _affirmed(row, anchors, left)
    worth = _worth_of_columns(asked, row, anchors)
    best = max(worth.values(), default=None)
    if best is None:
        return ""
    columns = [column for column, of_column in worth.items() if of_column == best]
    has_noun = best[0]
    is_known = asked.noun <= (row.about | asked.measured | _LIGHT)
    if not has_noun and not is_known:
        return ""
    # a verb may be left over if the noun tells which column is meant: "the river that the bridge crosses"
    if len(columns) > 1 or len(left) > int(has_noun):
        return ""
    return columns[0]


def _worth_of_columns(
    asked: _Asked, row: Row, anchors: _Anchors
) -> dict[str, tuple[bool, float, int]]:
    """Return, for each column that may be asked for: (whether it has the noun, share of its words, their number)."""
    worth: dict[str, tuple[bool, float, int]] = {}
    for column, cell in row.cells.items():
        if column in anchors:
            continue
        stems = _column_stems(column)
        # if so, the words of the question need not tell the answer's type: "child fare"
        is_named_by_noun = bool(asked.noun) and asked.noun <= stems
        if not is_named_by_noun and not fits(asked.text, cell):
            continue
        shared = stems & (asked.stems | asked.measured)
        if not shared:
            continue
        if row.lines and not _is_form_value(asked, stems, cell):
            continue
        has_noun = bool(stems & asked.noun)
        share = len(shared) / len(stems)
        worth[column] = (has_noun, share, len(shared))
    return worth


def _is_form_value(asked: _Asked, label: frozenset[str], value: str) -> bool:
    """Return whether the value in a line such as "Clerk: Bo Tellis" may be the answer.

    The question must contain all words of the label: "Previous tenant" is not the tenant. And "Arne: on the ferry" does
    not tell who Arne is.
    """
    if not label - _LIGHT <= asked.stems | asked.measured:
        return False
    if asked.analysis.answer_type != "person":
        return True
    return is_name(value.split(",")[0]) and not label <= asked.named


def _affirmed(row: Row, anchors: _Anchors, left: frozenset[str]) -> str:
    """Return a column with which a row says all that a yes-or-no question asks; "" if there is none."""
    if left or row.key_column not in anchors:
        return ""
    for column in anchors:
        if column != row.key_column:
            return column
    return ""


def _compared(asked: _Asked, rows: Sequence[Row]) -> Said | None:
    """Return the answer from the row with the most or the least, of all rows or of the two that are named."""
    if asked.order is None:
        return None
    by_dates, sign = asked.order
    of_all = asked.kind == "open"
    named = [row for row in rows if holds(asked.text, row.key)]
    if of_all:
        is_superlative = not _SUPERLATIVES.isdisjoint(asked.words)
        if named or not is_superlative or not _are_all(rows):
            return None
        named = list(rows)
    elif len(named) != 2:
        return None
    column = _measured_column(asked, named, by_dates)
    if not column:
        return None
    best = _row_with_most(named, column, sign)
    if best is None:
        return None
    if of_all:
        return Said(best.key, (best.sentence,))
    text = best.key
    if asked.kind == "yes_no":
        first = min(named, key=lambda row: asked.text.find(row.key))
        text = "yes" if best is first else "no"
    return Said(text, tuple(row.sentence for row in named))


_SUPERLATIVES = word_set(
    "most least fewest first last earliest latest newest oldest youngest greatest"
) | {form for form in _POSITIVES if form.endswith("est")}


def _measured_column(asked: _Asked, rows: Sequence[Row], by_dates: bool) -> str:
    """Return the column by which rows are compared; "" if no column is clearly asked for."""
    shares: dict[str, float] = {}
    for column in rows[0].cells:
        cells = [row.cells.get(column, "") for row in rows]
        is_out = by_dates and not all(map(_is_date, cells))
        if is_out or column == rows[0].key_column:
            continue
        stems = _column_stems(column)
        shared = stems & (asked.stems | asked.measured)
        if shared or by_dates:
            shares[column] = len(shared) / len(stems)
    best = max(shares.values(), default=0.0)
    columns = [column for column, share in shares.items() if share == best]
    if len(columns) != 1:
        return ""
    (column,) = columns
    said = [stem_set(row.key) for row in rows] + _ORDER_STEMS
    left = _left(asked, rows[0], said, (column, rows[0].key_column))
    return "" if left else column


_ORDER_STEMS = [stem_set(" ".join(listed)) for listed, *_ in ORDERS]


def _is_date(cell: str) -> bool:
    figures = figures_in(cell)
    are_dates = [figure.is_date for figure in figures]
    return bool(are_dates) and all(are_dates)


def _row_with_most(rows: Sequence[Row], column: str, sign: int) -> Row | None:
    """Return the row with the largest figure, or for sign -1 the smallest.

    Return None unless all rows have one figure, in the same unit, and one is the best.
    """
    figures: list[float] = []
    units: set[str] = set()
    for row in rows:
        cell = row.cells.get(column, "")
        found = figures_in(cell)
        if len(found) != 1:
            return None
        figure = found[0]
        unit = cell[: figure.start] + cell[figure.end :]
        units.add(canonical_key(unit))
        figures.append(figure.order * sign)
    best = max(figures)
    if len(units) > 1 or figures.count(best) > 1:
        return None
    return rows[figures.index(best)]

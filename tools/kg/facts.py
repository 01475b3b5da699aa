"""Stores a knowledge graph in the database of its index: the names, and the facts of each passage.

A reading is the set of facts that were read in one version of a passage. It is committed as soon as the passage is
read, but readers of the graph see it only once the next graph is published; so a build that is killed leaves the
graph unchanged. The number of a name is never used again, and neither is a cell, the number of a passage's row in
the index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Ints
from ras_agent.text.canonical import canonical_key
from ras_agent.text.normal_form import storable
from ras_agent.tools.index.passages import damaged
from ras_agent.tools.kg.arrays import StringTable
from ras_agent.tools.kg.assemble import EQUIVALENT, Occurrences
from ras_agent.tools.kg.edit_rows import read_edits
from ras_agent.tools.kg.graph_state import read_graph_state
from ras_agent.tools.kg.notes import note_columns, note_in
from ras_agent.tools.kg.other_nodes import DOCUMENT, ENTITY, Node, OtherNodes
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge
from ras_agent.tools.kg.vector_rows import read_near
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.graph import FactRow
from ras_agent.tools.store.transaction import Transaction

_LOW = (1 << 31) - 1
_ENDS = ("subject", "object")
_UNNAMED = {"subject": 1, "object": 2}
"""The bits of the column `kg_edges.unnamed`: which ends of an imported edge no document named at the import."""


class PassageRecord(NamedTuple):
    """Describes a passage whose facts are stored."""

    digest: bytes
    """A digest of the passage's contents."""
    reader: str
    """The name of the extractor that read it."""
    text: int = 0
    """The hash that the passage index has for the same text; 0 if unknown."""
    cell: int = -1
    """The cell of the index that held the passage when it was read, -1 if unknown. A passage that changes moves to
    another cell.
    """


class Reading(NamedTuple):
    """Holds the facts, mentions and names that were read in the passages of an index."""

    found: Occurrences
    """The occurrences of names in facts and mentions."""
    texts: npt.NDArray[np.uint64] | None
    """The hash of each document's text, as in PassageRecord; None if they are unknown."""
    readers: tuple[str, ...]
    """The names of the extractors that read the facts."""
    names: Ints
    """The number of each name in the database."""

    def text_of(self) -> dict[str, int]:
        """Return the hash of each document's text, by document id."""
        assert self.texts is not None
        texts = self.texts.tolist()
        return dict(zip(self.found.documents, texts, strict=True))

    def unused_names(self) -> set[int]:
        """Return the numbers of the names that no fact, mention or edge uses."""
        found = self.found
        is_used = np.zeros(len(self.names), dtype=np.bool_)
        is_used[found.facts[:, 1:4]] = True
        is_used[found.mentions[:, 1]] = True
        is_used[found.edges] = True
        unused = self.names[~is_used]
        return set(unused.tolist())


# ---- names


def name_numbers(transaction: Transaction, names: Iterable[str]) -> list[int]:
    """Return the number of each name, in the given order. Names that are not stored yet are stored."""
    listed = list(map(storable, names))
    distinct = dict.fromkeys(listed)
    numbers = transaction.names.numbers_of(distinct)
    keys = {name: canonical_key(name) for name in distinct if name not in numbers}
    if keys:
        numbers |= transaction.names.add(keys)
    return [numbers[name] for name in listed]


# ---- passages that were read


def records(transaction: Transaction) -> dict[str, PassageRecord]:
    """Return the records of all passages that were read, by passage id."""
    columns = transaction.readings.all()
    known = map(
        PassageRecord, columns.digest, columns.reader, columns.text, columns.cell
    )
    return dict(zip(columns.passage, known, strict=True))


# ---- facts


def put_facts(
    transaction: Transaction,
    facts: PassageFacts,
    known: PassageRecord,
    since: int,
) -> None:
    """Store the facts of a passage. They replace facts that were read in it since the last graph was published.

    Args:
        known: the record of the passage.
        since: the number of the first published graph that shows these facts.
    """
    passage = storable(facts.passage_id)
    reading = transaction.readings.add(
        passage, since, known.text, known.cell, known.digest, known.reader
    )
    words = []
    for triple in facts.triples:
        words += [triple.subject, triple.predicate, triple.object]
    numbers = name_numbers(transaction, [*words, *facts.entities])
    rows: list[FactRow] = []
    for at, triple in enumerate(facts.triples):
        ends = numbers[3 * at : 3 * at + 3]
        for place in facts.places(triple):
            note = note_columns(triple, place)
            row = (reading, len(rows), *ends, place.start, place.end, *note)
            rows.append(FactRow._make(row))
    mentions = Counter(numbers[len(words) :])
    transaction.facts.add(reading, rows, mentions)


def read_facts(
    transaction: Transaction, database: Database, upto: int | None = None
) -> Reading:
    """Return everything that was read. Raises IndexMismatch for a damaged row.

    Args:
        upto: the number of a published graph, to read only its rows; by default, rows added since the last
            published graph are read too.
    """
    columns = transaction.readings.all(upto)
    last_of = {passage: at for at, passage in enumerate(columns.passage)}
    last = sorted(last_of.values())
    readings = np.array(columns.number, np.int64)[last]
    texts = np.array(columns.text, np.uint64)[last]
    readers = {columns.reader[at] for at in last}
    passages = [columns.passage[at] for at in last]
    numbered, names, keys = transaction.names.all()
    numbers = np.array(numbered, np.int64)
    name_at = _Places(numbers, database)
    edges, similarities = _read_edges(transaction, name_at)
    facts, notes = _read_stated(transaction, readings, name_at)
    found = Occurrences(
        StringTable.of(names),
        StringTable.of(passages),
        facts,
        _read_mentions(transaction, readings, name_at),
        edges,
        similarities,
        StringTable.of(keys),
        notes,
    )
    return Reading(found, texts, tuple(sorted(readers)), numbers)


class _Places:
    """Maps the numbers of names to their positions in the list of all names."""

    def __init__(self, numbers: Ints, database: Database) -> None:
        self.database = database
        end = int(numbers.max(initial=-1)) + 1
        self._place_of = np.full(end, -1, dtype=np.int64)
        self._place_of[numbers] = np.arange(len(numbers))

    def __getitem__(self, wanted: Ints) -> Ints:
        """Return the positions of names, given by number. Raises IndexMismatch for a number that does not exist."""
        lowest = wanted.min(initial=0)
        highest = wanted.max(initial=-1)
        if lowest >= 0 and highest < len(self._place_of):
            places = self._place_of[wanted]
            if (places >= 0).all():
                return places
        problem = "its graph states facts of names that are not there"
        raise damaged(self.database, problem)


def _read_stated(
    transaction: Transaction, readings: Ints, name_at: _Places
) -> tuple[Ints, StringTable]:
    """Return the facts of the given readings, in the columns of `Occurrences.facts`, and the table of their notes."""
    first, second, third = _numbers(transaction.facts.all(), 3)
    reading = first >> 31
    note_of_fact = np.zeros(len(reading), np.int64)
    notes = {"": 0}
    for at, note in _read_notes(transaction, reading, name_at.database):
        note_of_fact[at] = notes.setdefault(note, len(notes))
    document, is_read = _documents(readings, reading)
    columns = [
        document,
        name_at[first & _LOW],
        name_at[second >> 31],
        name_at[second & _LOW],
        third >> 31,
        third & _LOW,
        note_of_fact,
    ]
    facts = np.stack(columns, axis=1)
    return facts[is_read], StringTable.of(notes)


def _read_notes(
    transaction: Transaction, reading: Ints, database: Database
) -> Iterator[tuple[int, str]]:
    """Yield the position of each fact that has a note, among all facts, with the note as JSON.

    Args:
        reading: (facts,) the reading of each fact, ascending.
    """
    for number, place, *noted in transaction.facts.noted():
        try:
            note = note_in(*noted)
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            problem = f"the attributes of a fact in reading {number:,} are not JSON"
            raise damaged(database, problem) from error
        first = int(np.searchsorted(reading, number))
        yield first + place, note


def _read_mentions(transaction: Transaction, readings: Ints, name_at: _Places) -> Ints:
    first, counts = _numbers(transaction.facts.mentions(), 2)
    document, is_read = _documents(readings, first >> 31)
    name = name_at[first & _LOW]
    mentions = np.stack([document, name, counts], axis=1)
    return mentions[is_read]


def _documents(readings: Ints, wanted: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return for each reading in `wanted` its position in `readings`, which ascend, and whether it is there at all."""
    if not len(readings):
        return np.zeros_like(wanted), np.zeros(len(wanted), np.bool_)
    last = len(readings) - 1
    places = np.searchsorted(readings, wanted).clip(max=last)
    return places, readings[places] == wanted


def _numbers(rows: Iterable[Sequence[int]], width: int) -> Ints:
    """Return the columns of rows of integers, shape (width, n)."""
    joined = chain.from_iterable(rows)
    numbers = np.fromiter(joined, np.int64)
    return numbers.reshape(-1, width).T


# ---- edges that no document states


def put_edges(transaction: Transaction, edges: Iterable[UnstatedEdge]) -> None:
    """Replace the stored edges that no document states.

    Such an edge is deleted once no document names one of its ends any longer. This does not apply to an end that no
    document names at the time of this call.
    """
    listed = list(edges)
    words = []
    for edge in listed:
        words += [edge.subject, edge.relation, edge.target]
    numbers = name_numbers(transaction, words)
    subjects = numbers[0::3]
    predicates = numbers[1::3]
    objects = numbers[2::3]
    named = _named(transaction, {*subjects, *objects})
    rows = []
    for at, edge in enumerate(listed):
        subject = subjects[at]
        object_ = objects[at]
        unnamed = 0
        if subject not in named:
            unnamed += _UNNAMED["subject"]
        if object_ not in named:
            unnamed += _UNNAMED["object"]
        row = (at, subject, predicates[at], object_, edge.similarity, unnamed)
        rows.append(row)
    transaction.facts.replace_edges(rows)


def _read_edges(
    transaction: Transaction, name_at: _Places
) -> tuple[Ints, npt.NDArray[np.float32]]:
    rows = transaction.facts.edges()
    worths = [np.nan if row[3] is None else row[3] for row in rows]
    try:
        ends = np.array([row[:3] for row in rows], np.int64).reshape(-1, 3)
        similarities = np.array(worths, np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        problem = "a row of the edges of its graph holds other values than numbers"
        raise damaged(name_at.database, problem) from error
    return name_at[ends], similarities


def put_others(transaction: Transaction, others: OtherNodes) -> None:
    """Replace the stored nodes that are neither entities nor documents."""
    data = None
    if others:
        data = storable(others.to_json())
    transaction.facts.replace_others(data)


def read_others(transaction: Transaction, database: Database) -> OtherNodes:
    """Return the nodes that are neither entities nor documents. Raises IndexMismatch if their row is damaged."""
    data = transaction.facts.others()
    if data is None:
        return OtherNodes()
    try:
        return OtherNodes.from_json(data)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = "the other nodes of its graph are not JSON"
        raise damaged(database, problem) from error


def _erase_unused_others(transaction: Transaction, database: Database) -> None:
    """Erase the other nodes that depended on entities or documents that are gone."""
    others = read_others(transaction, database)
    if not others:
        return
    ends = others.ends() | {Node(ENTITY, name) for name in others.about}
    entities = [node.name for node in ends if node.type == ENTITY]
    documents = [node.name for node in ends if node.type == DOCUMENT]
    names = transaction.names.numbers_of(entities)
    passages = transaction.readings.of_passages(documents).values()
    gone = ends - {Node(ENTITY, name) for name in names}
    gone -= {Node(DOCUMENT, name) for name in passages}
    if gone:
        left = others.without(gone)
        put_others(transaction, left)
        lost = others.nodes.keys() - left.nodes.keys()
        transaction.vectors.forget_texts_of([node.name for node in lost])
        transaction.state.leave_remains()


# ---- rows that nothing refers to any longer


def erase_unused(
    transaction: Transaction, database: Database, numbers: Collection[int]
) -> None:
    """Delete those of the given names that nothing refers to, and the edges at names that no passage names.

    Their vectors and lists of nearest names are deleted too.

    Args:
        numbers: the numbers of all names that may have lost a reference.
    """
    spoken_of = {EQUIVALENT}
    for edit in read_edits(transaction, database):
        spoken_of.update(map(storable, (*edit.old, *edit.new)))
    _erase_edges(transaction, set(numbers))
    names = transaction.names.names_of(numbers)
    asked = {number for number, name in names.items() if name not in spoken_of}
    lost = asked - _named(transaction, asked)
    holding = transaction.facts.holding
    lost -= holding("kg_facts", "predicate", lost)
    for column in ("subject", "predicate", "object"):
        lost -= holding("kg_edges", column, lost)
    transaction.names.forget(lost)
    if lost:
        transaction.vectors.forget_texts_of([names[number] for number in lost])
        transaction.state.leave_remains()
    _erase_unused_others(transaction, database)


def _erase_edges(transaction: Transaction, numbers: set[int]) -> None:
    """Erase the edges whose ends no passage names any longer, except for ends that no passage named at the import
    either."""
    for column, bit in _UNNAMED.items():
        ends = transaction.facts.holding("kg_edges", column, numbers)
        unnamed = ends - _named(transaction, ends)
        transaction.facts.forget_edges(column, unnamed, bit)


def _named(transaction: Transaction, numbers: set[int]) -> set[int]:
    """Return which of the given names passages mention, or use as subject or object of a fact."""
    holding = transaction.facts.holding
    named = holding("kg_mentions", "name", numbers)
    for column in _ENDS:
        named |= holding("kg_facts", column, numbers - named)
    return named


def check_graph(database: Database) -> None:
    """Read all rows of the graph. Raises IndexMismatch for a row that cannot be read."""
    with database.reading() as transaction:
        state = read_graph_state(transaction, database)
        if state is None:
            return
        read_facts(transaction, database, state.published)
        read_facts(transaction, database)
        read_edits(transaction, database)
        read_others(transaction, database)
        read_near(transaction, database)

"""Stores a knowledge graph in the database of its index: the names, and the facts of each passage.

A reading is the set of facts that were read in one version of a passage. It is committed as soon as the passage is
read, but readers of the graph see it only once the next graph is published; so a build that is killed leaves the
graph unchanged. The number of a name is never used again, and neither is a cell, the number of a passage's row in
the index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Ints
from ras_agent.text.canonical import canonical_key
from ras_agent.text.normal_form import storable
from ras_agent.tools.index.passages import damaged, leave_remains
from ras_agent.tools.kg.arrays import StringTable
from ras_agent.tools.kg.assemble import EQUIVALENT, Occurrences
from ras_agent.tools.kg.edit_rows import read_edits
from ras_agent.tools.kg.edits import Anchor
from ras_agent.tools.kg.graph_state import read_graph_state
from ras_agent.tools.kg.notes import NoteColumns, note_columns, note_in
from ras_agent.tools.kg.other_nodes import DOCUMENT, ENTITY, Node, OtherNodes
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge
from ras_agent.tools.kg.vector_rows import erase_texts, read_near
from ras_agent.tools.store.database import Connection, Database, parts_of, read_columns

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
    """Holds everything that was read."""

    found: Occurrences
    """The occurrences of names in facts and mentions."""
    texts: npt.NDArray[np.uint64]
    """The hash of each document's text, as in PassageRecord."""
    readers: tuple[str, ...]
    """The names of the extractors that read the facts."""
    names: Ints
    """The number of each name in the database."""

    def text_of(self) -> dict[str, int]:
        """Return the hash of each document's text, by document id."""
        return dict(zip(self.found.documents, self.texts.tolist(), strict=True))

    def unused_names(self) -> set[int]:
        """Return the numbers of the names that no fact, mention or edge uses."""
        found = self.found
        used = np.zeros(len(self.names), dtype=np.bool_)
        for numbers in (found.facts[:, 1:4], found.mentions[:, 1], found.edges):
            used[numbers] = True
        return set(self.names[~used].tolist())


# ---- names


def name_numbers(connection: Connection, names: Iterable[str]) -> list[int]:
    """Return the number of each name, in the given order. Names that are not stored yet are stored."""
    listed = list(map(storable, names))
    distinct = dict.fromkeys(listed)
    numbers: dict[str, int] = {}
    for marks, part in parts_of(distinct):
        query = f"SELECT name, number FROM kg_names WHERE name IN ({marks})"
        numbers.update(connection.execute(query, part).fetchall())
    fresh = [name for name in distinct if name not in numbers]
    if fresh:
        numbers |= _put_names(connection, fresh)
    return [numbers[name] for name in listed]


def _put_names(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    """Store names that are not stored yet; return their new numbers by name."""
    (first,) = connection.execute("SELECT names FROM kg_state").fetchone()
    rows = [
        (number, name, canonical_key(name))
        for number, name in enumerate(names, start=first)
    ]
    connection.executemany("INSERT INTO kg_names VALUES (?, ?, ?)", rows)
    connection.execute("UPDATE kg_state SET names = ?", (first + len(rows),))
    return {name: number for number, name, _ in rows}


def _read_names(connection: Connection) -> tuple[Ints, list[str], list[str]]:
    """Return the number, the name and the canonical key of each name, sorted by key."""
    numbers: list[int] = []
    names: list[str] = []
    keys: list[str] = []
    query = "SELECT number, name, key FROM kg_names ORDER BY key, number"
    read_columns(connection.execute(query), (numbers, names, keys))
    return np.array(numbers, np.int64), names, keys


# ---- passages that were read


def records(connection: Connection) -> dict[str, PassageRecord]:
    """Return the records of all passages that were read, by passage id."""
    query = (
        "SELECT passage, digest, reader, text, cell FROM kg_passages ORDER BY number"
    )
    columns: tuple[list[Any], ...] = ([], [], [], [], [])
    read_columns(connection.execute(query), columns)
    passages, *known = columns
    return dict(zip(passages, map(PassageRecord, *known), strict=True))


def passages_moved(connection: Connection) -> list[Anchor]:
    """Return the passages whose cell is no longer in the index, each with the hash of the text that was read."""
    query = """SELECT passage, text FROM kg_passages
        WHERE cell NOT IN (SELECT cell FROM passages) ORDER BY number"""
    texts = dict(connection.execute(query).fetchall())
    return [Anchor(passage, text) for passage, text in texts.items()]


def passages_gone(connection: Connection) -> list[str]:
    """Return the ids of the passages that were read but are no longer in the index."""
    query = (
        "SELECT passage FROM kg_passages WHERE passage NOT IN (SELECT id FROM passages)"
    )
    return [passage for (passage,) in connection.execute(query).fetchall()]


def put_places(connection: Connection, places: Mapping[str, tuple[int, int]]) -> None:
    """Store new values of `text` and `cell` (see PassageRecord) for passages whose facts are stored, by passage id."""
    rows = [(*place, passage) for passage, place in places.items()]
    connection.executemany(
        "UPDATE kg_passages SET text = ?, cell = ? WHERE passage = ?", rows
    )


def erase_passages(
    connection: Connection, passage_ids: Iterable[str]
) -> tuple[int, set[int]]:
    """Delete everything that was read in the given passages.

    Returns:
        How many of them were stored, and the numbers of the names that occurred in them.
    """
    numbers: list[int] = []
    gone: set[str] = set()
    for marks, part in parts_of(list(map(storable, passage_ids))):
        query = f"SELECT number, passage FROM kg_passages WHERE passage IN ({marks})"
        for number, passage in connection.execute(query, part):
            numbers.append(number)
            gone.add(passage)
    return len(gone), _erase_readings(connection, numbers)


def erase_superseded(connection: Connection) -> set[int]:
    """Delete the older readings of passages that were read again. Returns the numbers of the names in these readings."""
    query = """SELECT number FROM kg_passages AS earlier WHERE EXISTS (
        SELECT 1 FROM kg_passages WHERE passage = earlier.passage AND since > earlier.since)"""
    rows = connection.execute(query).fetchall()
    return _erase_readings(connection, [number for (number,) in rows])


def _erase_readings(connection: Connection, numbers: Sequence[int]) -> set[int]:
    names: set[int] = set()
    for marks, part in parts_of(numbers):
        query = f"""SELECT subject, predicate, object FROM kg_facts WHERE reading IN ({marks})"""
        names.update(chain.from_iterable(connection.execute(query, part)))
        query = f"SELECT name FROM kg_mentions WHERE reading IN ({marks})"
        names.update(chain.from_iterable(connection.execute(query, part)))
        query = f"DELETE FROM kg_passages WHERE number IN ({marks})"
        connection.execute(query, part)
    if numbers:
        leave_remains(connection)
    return names


# ---- facts


def put_facts(
    connection: Connection,
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
    query = "SELECT number FROM kg_passages WHERE passage = ? AND since = ?"
    earlier = connection.execute(query, (passage, since)).fetchall()
    _erase_readings(connection, [number for (number,) in earlier])
    (last,) = connection.execute("SELECT MAX(number) FROM kg_passages").fetchone()
    reading = 0 if last is None else last + 1
    connection.execute(
        "INSERT INTO kg_passages VALUES (?, ?, ?, ?, ?, ?, ?)",
        (reading, passage, since, known.text, known.cell, known.digest, known.reader),
    )
    triples = list(facts.triples)
    words = [
        word for one in triples for word in (one.subject, one.predicate, one.object)
    ]
    numbers = name_numbers(connection, [*words, *facts.entities])
    rows: list[tuple[Any, ...]] = []
    for at, triple in enumerate(triples):
        ends = numbers[3 * at : 3 * at + 3]
        for place in facts.places(triple):
            note = note_columns(triple, place)
            rows.append((reading, len(rows), *ends, place.start, place.end, *note))
    connection.executemany(
        "INSERT INTO kg_facts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
    )
    counts = Counter(numbers[3 * len(triples) :])
    mentions = [(reading, name, count) for name, count in counts.items()]
    connection.executemany("INSERT INTO kg_mentions VALUES (?, ?, ?)", mentions)


def read_facts(
    connection: Connection, database: Database, upto: int | None = None
) -> Reading:
    """Return everything that was read. Raises IndexMismatch for a damaged row.

    Args:
        upto: the number of a published graph, to read only its rows; by default, rows added since the last
            published graph are read too.
    """
    readings, passages, texts, readers = _read_passages(connection, upto)
    numbers, names, keys = _read_names(connection)
    name_at = _Places(numbers, database)
    edges, similarities = _read_edges(connection, name_at)
    facts, notes = _read_stated(connection, readings, name_at)
    found = Occurrences(
        StringTable.of(names),
        StringTable.of(passages),
        facts,
        _read_mentions(connection, readings, name_at),
        edges,
        similarities,
        StringTable.of(keys),
        notes,
    )
    return Reading(
        found, np.array(texts, np.uint64), tuple(sorted(set(readers))), numbers
    )


def _read_passages(
    connection: Connection, upto: int | None
) -> tuple[Ints, list[str], list[int], list[str]]:
    """Return number, passage id, text hash and reader of the latest reading of each passage, sorted by number."""
    query = "SELECT number, passage, text, reader FROM kg_passages"
    if upto is not None:
        query += f" WHERE since <= {upto:d}"
    columns: tuple[list[Any], ...] = ([], [], [], [])
    read_columns(connection.execute(f"{query} ORDER BY number"), columns)
    last_of = {passage: at for at, passage in enumerate(columns[1])}
    last = sorted(last_of.values())
    numbers, passages, texts, readers = (
        [column[at] for at in last] for column in columns
    )
    return np.array(numbers, np.int64), passages, texts, readers


class _Places:
    """A map from the numbers of names to their positions in the list of all names."""

    def __init__(self, numbers: Ints, database: Database) -> None:
        self.database = database
        self._place_of = np.full(int(numbers.max(initial=-1)) + 1, -1, dtype=np.int64)
        self._place_of[numbers] = np.arange(len(numbers))

    def __getitem__(self, wanted: Ints) -> Ints:
        """Return the positions of names, given by number. Raises IndexMismatch for a number that does not exist."""
        there = wanted.size == 0 or (
            int(wanted.min()) >= 0 and int(wanted.max()) < len(self._place_of)
        )
        places = self._place_of[wanted] if there else np.full(1, -1)
        if (places < 0).any():
            problem = "its graph states facts of names that are not there"
            raise damaged(self.database, problem)
        return places


def _read_stated(
    connection: Connection, readings: Ints, name_at: _Places
) -> tuple[Ints, StringTable]:
    """Return the facts of the given readings, in the columns of `Occurrences.facts`, and the table of their notes."""
    # two numbers in one: half as many objects to make
    query = """SELECT (reading << 31) | subject, (predicate << 31) | object, (start << 31) | stop
        FROM kg_facts ORDER BY reading, place"""
    first, second, third = _numbers(connection.execute(query), 3)
    reading = first >> 31
    note_of_fact = np.zeros(len(reading), np.int64)
    notes = {"": 0}
    for at, note in _read_notes(connection, reading, name_at.database):
        note_of_fact[at] = notes.setdefault(note, len(notes))
    document, is_read = _documents(readings, reading)
    facts = np.stack(
        [
            document,
            name_at[first & _LOW],
            name_at[second >> 31],
            name_at[second & _LOW],
            third >> 31,
            third & _LOW,
            note_of_fact,
        ],
        axis=1,
    )
    return facts[is_read], StringTable.of(notes)


def _read_notes(
    connection: Connection, reading: Ints, database: Database
) -> Iterator[tuple[int, str]]:
    """Yield the position of each fact that has a note, among all facts, with the note as JSON.

    Args:
        reading: (facts,) the reading of each fact, ascending.
    """
    columns = ", ".join(NoteColumns._fields)
    some = " OR ".join(f"{name} IS NOT NULL" for name in NoteColumns._fields)
    query = f"SELECT reading, place, {columns} FROM kg_facts WHERE {some}"
    for number, place, *noted in connection.execute(query):
        try:
            note = note_in(NoteColumns(*noted))
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise damaged(
                database, f"the attributes of a fact in reading {number:,} are not JSON"
            ) from error
        yield int(np.searchsorted(reading, number)) + place, note


def _read_mentions(connection: Connection, readings: Ints, name_at: _Places) -> Ints:
    query = "SELECT (reading << 31) | name, count FROM kg_mentions"
    first, counts = _numbers(connection.execute(query), 2)
    document, is_read = _documents(readings, first >> 31)
    mentions = np.stack([document, name_at[first & _LOW], counts], axis=1)
    return mentions[is_read]


def _documents(readings: Ints, wanted: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return for each reading in `wanted` its position in `readings`, which ascend, and whether it is there at all."""
    if not len(readings):
        return np.zeros_like(wanted), np.zeros(len(wanted), np.bool_)
    places = np.searchsorted(readings, wanted).clip(max=len(readings) - 1)
    return places, readings[places] == wanted


def _numbers(rows: Iterable[Sequence[int]], width: int) -> Ints:
    """Return the columns of rows of integers, shape (width, n)."""
    numbers = np.fromiter(chain.from_iterable(rows), np.int64)
    return numbers.reshape(-1, width).T


# ---- edges that no document states


def put_edges(connection: Connection, edges: Iterable[UnstatedEdge]) -> None:
    """Replace the stored edges that no document states.

    Such an edge is deleted once no document names one of its ends any longer. This does not apply to an end that no
    document names at the time of this call.
    """
    listed = list(edges)
    words = [
        word for edge in listed for word in (edge.subject, edge.relation, edge.target)
    ]
    numbers = np.array(name_numbers(connection, words), np.int64).reshape(-1, 3)
    named = _named(connection, set(numbers[:, [0, 2]].ravel().tolist()))
    rows = []
    for at, edge in enumerate(listed):
        subject, predicate, object_ = numbers[at].tolist()
        unnamed = 0
        if subject not in named:
            unnamed += _UNNAMED["subject"]
        if object_ not in named:
            unnamed += _UNNAMED["object"]
        rows.append((at, subject, predicate, object_, edge.similarity, unnamed))
    connection.execute("DELETE FROM kg_edges")
    connection.executemany("INSERT INTO kg_edges VALUES (?, ?, ?, ?, ?, ?)", rows)


def _read_edges(
    connection: Connection, name_at: _Places
) -> tuple[Ints, npt.NDArray[np.float32]]:
    query = "SELECT subject, predicate, object, similarity FROM kg_edges"
    rows = connection.execute(query).fetchall()
    ends = np.array([row[:3] for row in rows], np.int64).reshape(-1, 3)
    similarities = [np.nan if row[3] is None else row[3] for row in rows]
    return name_at[ends], np.array(similarities, np.float32)


def put_others(connection: Connection, others: OtherNodes) -> None:
    """Replace the stored nodes that are neither entities nor documents."""
    connection.execute("DELETE FROM kg_others")
    if others:
        connection.execute(
            "INSERT INTO kg_others VALUES (1, ?)", (storable(others.to_json()),)
        )


def read_others(connection: Connection, database: Database) -> OtherNodes:
    """Return the nodes that are neither entities nor documents. Raises IndexMismatch if their row is damaged."""
    row = connection.execute("SELECT data FROM kg_others").fetchone()
    if row is None:
        return OtherNodes()
    try:
        return OtherNodes.from_json(row[0])
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = "the other nodes of its graph are not JSON"
        raise damaged(database, problem) from error


def _erase_unused_others(connection: Connection, database: Database) -> None:
    """Erase the other nodes that depended on entities or documents that are gone."""
    others = read_others(connection, database)
    if not others:
        return
    ends = others.ends() | {Node(ENTITY, name) for name in others.about}
    gone = set(ends)
    for kind, table, column in (
        (ENTITY, "kg_names", "name"),
        (DOCUMENT, "kg_passages", "passage"),
    ):
        asked = [node.name for node in ends if node.type == kind]
        for marks, part in parts_of(asked):
            query = f"SELECT {column} FROM {table} WHERE {column} IN ({marks})"
            gone -= {Node(kind, name) for (name,) in connection.execute(query, part)}
    if gone:
        left = others.without(gone)
        put_others(connection, left)
        lost = others.nodes.keys() - left.nodes.keys()
        erase_texts(connection, [node.name for node in lost])
        leave_remains(connection)


# ---- rows that nothing refers to any longer


def erase_unused(
    connection: Connection, database: Database, numbers: Collection[int]
) -> None:
    """Delete those of the given names that nothing refers to, and the edges at names that no passage names.

    Their vectors and lists of nearest names are deleted too.

    Args:
        numbers: the numbers of all names that may have lost a reference.
    """
    spoken_of = {EQUIVALENT}
    for edit in read_edits(connection, database):
        spoken_of.update(map(storable, (*edit.old, *edit.new)))
    _erase_edges(connection, set(numbers))
    names: dict[int, str] = {}
    for marks, part in parts_of(numbers):
        query = f"SELECT number, name FROM kg_names WHERE number IN ({marks})"
        names.update(connection.execute(query, part).fetchall())
    asked = {number for number, name in names.items() if name not in spoken_of}
    lost = asked - _named(connection, asked)
    lost -= _holding(connection, "kg_facts", "predicate", lost)
    for column in ("subject", "predicate", "object"):
        lost -= _holding(connection, "kg_edges", column, lost)
    for marks, part in parts_of(lost):
        connection.execute(f"DELETE FROM kg_names WHERE number IN ({marks})", part)
    if lost:
        erase_texts(connection, [names[number] for number in lost])
        leave_remains(connection)
    _erase_unused_others(connection, database)


def _erase_edges(connection: Connection, numbers: set[int]) -> None:
    """Erase the edges whose ends no passage names any longer, except for ends that no passage named at the import
    either."""
    for column, bit in _UNNAMED.items():
        ends = _holding(connection, "kg_edges", column, numbers)
        for marks, part in parts_of(ends - _named(connection, ends)):
            query = f"DELETE FROM kg_edges WHERE {column} IN ({marks}) AND unnamed & {bit} = 0"
            connection.execute(query, part)
            leave_remains(connection)


def _named(connection: Connection, numbers: set[int]) -> set[int]:
    """Return which of the given names passages mention, or use as subject or object of a fact."""
    named = _holding(connection, "kg_mentions", "name", numbers)
    for column in _ENDS:
        named |= _holding(connection, "kg_facts", column, numbers - named)
    return named


def _holding(
    connection: Connection, table: str, column: str, numbers: set[int]
) -> set[int]:
    """Return which of the given numbers occur in a column of a table."""
    query = f"SELECT DISTINCT {column} FROM {table}"
    parts = list(parts_of(numbers))
    if len(parts) > 1:
        return numbers & set(chain.from_iterable(connection.execute(query)))
    held: set[int] = set()
    for marks, part in parts:
        some = f"{query} WHERE {column} IN ({marks})"
        held.update(chain.from_iterable(connection.execute(some, part)))
    return held


def check_graph(database: Database) -> None:
    """Read all rows of the graph. Raises IndexMismatch for a row that cannot be read."""
    with database.reading() as connection:
        if (state := read_graph_state(connection, database)) is None:
            return
        for upto in (state.published, None):
            read_facts(connection, database, upto)
        read_edits(connection, database)
        read_others(connection, database)
        read_near(connection, database)

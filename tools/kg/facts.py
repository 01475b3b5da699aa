"""Rows of a knowledge graph in the database of its index: names, the facts of passages, and their readers.

The facts of a passage are a row, committed as soon as they were read; readers see it once the graph was written, so
that a killed build leaves the graph as it was. Names are rows of their own, each with a number that is never used
again. Erased rows are overwritten where they lie, as rows of passages are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Ints
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.index.passages import (
    ERASED,
    checksum,
    checksums,
    crc_of_number,
    damaged,
    hash_of,
    leave_remains,
)
from ras_agent.tools.kg.arrays import StringTable
from ras_agent.tools.kg.assemble import EQUIVALENT, Occurrences
from ras_agent.tools.kg.edit_rows import read_edits
from ras_agent.tools.kg.graph_state import read_graph_state
from ras_agent.tools.kg.notes import dump_notes, load_notes, note_of
from ras_agent.tools.kg.other_nodes import DOCUMENT, ENTITY, Node, OtherNodes
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge
from ras_agent.tools.kg.vector_rows import check_vectors, erase_texts
from ras_agent.tools.store.database import Connection, Database, read_columns

_EDGE = np.dtype([("ends", "<i4", (3,)), ("similarity", "<f4"), ("alone", "<i4")])
_LOW = (1 << 31) - 1
_AT_ONCE = 500  # parameters of one statement
_BYTES_OF_FACT = 5 * 4
_UNKNOWN = 1 << 62
"""Stands for a text with an unknown hash: as long as a hash, which is overwritten in place"""


class PassageRecord(NamedTuple):
    """Describes a passage whose facts are stored: a digest of its contents, and the reader that read it.

    text: the hash that a passage index has for the same text (`row_of`); 0 if unknown. cell: where the index has the
    passage that was read, -1 if unknown; a passage that changes moves to another one.
    """

    digest: bytes
    reader: str
    text: int = 0
    cell: int = -1


class Reading(NamedTuple):
    """Holds all that was read: texts of the documents, as in PassageRecord, the readers, and each name's number."""

    found: Occurrences
    texts: npt.NDArray[np.uint64]
    readers: tuple[str, ...]
    names: Ints

    def text_of(self) -> dict[str, int]:
        """Return the texts by the ids of documents."""
        return dict(zip(self.found.documents, self.texts.tolist(), strict=True))


# ---- names


class NameNumbers:
    """Numbers of names, read when the first is asked for; unknown names become rows."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._changes = -1
        self._next = 0

    def take(self, connection: Connection, changes: int) -> None:
        """Read the names again, if somebody else has changed any since."""
        if self._changes != changes:
            rows = connection.execute(
                f"SELECT name, number FROM kg_names WHERE crc <> {ERASED}"
            )
            self._numbers = dict(rows)
            (last,) = connection.execute("SELECT MAX(number) FROM kg_names").fetchone()
            self._next = 0 if last is None else last + 1
        self._changes = changes

    def wrote(self, changes: int) -> None:
        """Note how many changes there are after one of ours."""
        self._changes = changes

    def forget(self) -> None:
        """Read the names again the next time: the last change may have been taken back."""
        self._changes = -1

    def of(self, connection: Connection, names: Iterable[str]) -> list[int]:
        """Return the numbers of names."""
        listed = [_bytes(name) for name in names]
        rows = []
        for name in dict.fromkeys(listed):
            if name not in self._numbers:
                self._numbers[name] = number = self._next
                key = _bytes(canonical_key(_text(name)))
                rows.append((number, checksum(name, key, number=number), name, key))
                self._next += 1
        connection.executemany("INSERT INTO kg_names VALUES (?, ?, ?, ?)", rows)
        return [self._numbers[name] for name in listed]


def _read_names(
    connection: Connection, database: Database
) -> tuple[Ints, list[bytes], list[bytes]]:
    """Return number, name and key of each name, in the order of keys."""
    query = f"SELECT number, name, key, crc FROM kg_names WHERE crc <> {ERASED} ORDER BY key, number"
    numbers: list[int] = []
    names: list[bytes] = []
    keys: list[bytes] = []
    sums: list[int] = []
    read_columns(connection.execute(query), (numbers, names, keys, sums))
    # as `checksum` has it, at once: there are as many names as all else together
    found = np.fromiter(
        map(crc32, keys, map(crc32, names, map(crc_of_number, numbers))),
        np.int64,
        len(numbers),
    )
    wrong = np.flatnonzero(np.array(sums, np.int64) != checksums(found))
    if len(wrong):
        raise damaged(
            database,
            f"name {numbers[int(wrong[0])]:,} of its graph is not what was written",
        )
    return np.array(numbers, np.int64), names, keys


# ---- facts of passages


class _Rows(NamedTuple):
    """Columns of rows of the table `kg_documents`; see schema.py."""

    number: list[int]
    since: list[int]
    text: list[int]
    cell: list[int]
    crc: list[int]
    digest: list[bytes]
    reader: list[str]
    id: list[bytes]
    facts: list[bytes]
    mentions: list[bytes]
    notes: list[bytes]

    def sums(self) -> Ints:
        """Return the checksums that the rows should have; the upper half is of the facts of the passages."""
        told = [
            f"{since} {text} {cell} {reader}".encode()
            for since, text, cell, reader in zip(
                self.since, self.text, self.cell, self.reader, strict=True
            )
        ]
        heads = map(
            crc32,
            self.id,
            map(crc32, self.digest, map(crc32, told, map(crc_of_number, self.number))),
        )
        states = map(crc32, self.facts)
        states = map(crc32, self.mentions, states)
        states = map(crc32, self.notes, states)
        head, state = (
            checksums(np.fromiter(sums, np.int64, len(told)))
            for sums in (heads, states)
        )
        return head | (state & _LOW) << 31

    def take(self, places: Sequence[int]) -> _Rows:
        """Return some of the rows."""
        return _Rows(*([column[at] for at in places] for column in self))  # type: ignore[arg-type]  # eleven columns


def _rows_of_documents(
    connection: Connection,
    database: Database,
    upto: int | None = None,
    numbers: Sequence[int] | None = None,
) -> _Rows:
    """Return the rows of passages that were read, the last of each passage, by number.

    upto: of the graph published then; by default of all that was read since, too. numbers: of the only rows to read,
    ascending. Raises IndexMismatch for a damaged row.
    """
    query = f"SELECT {', '.join(_Rows._fields)} FROM kg_documents WHERE crc <> {ERASED}"
    rows = _Rows(*([] for _ in _Rows._fields))
    if numbers is None:
        read_columns(connection.execute(f"{query} ORDER BY number"), rows)
    for start in range(0, len(numbers or ()), _AT_ONCE):
        part = (numbers or ())[start : start + _AT_ONCE]
        some = f"{query} AND number IN ({', '.join('?' * len(part))}) ORDER BY number"
        read_columns(connection.execute(some, part), rows)
    wrong = np.flatnonzero(rows.sums() != np.array(rows.crc, np.int64))
    if len(wrong):
        raise damaged(
            database,
            f"the facts of passage {rows.number[int(wrong[0])]:,} are not what was written",
        )
    if upto is not None:
        rows = rows.take([at for at, since in enumerate(rows.since) if since <= upto])
    last_of = {name: at for at, name in enumerate(rows.id)}
    return rows if len(last_of) == len(rows.id) else rows.take(sorted(last_of.values()))


class Read(NamedTuple):
    """Passages that were read: the last row of each, the cell that the index had it in, and its reader."""

    numbers: Ints
    cells: Ints
    readers: list[str]


def passages_read(connection: Connection) -> Read:
    """Return the passages that were read, without looking at their facts."""
    ids: list[bytes] = []
    numbers: list[int] = []
    cells: list[int] = []
    readers: list[str] = []
    query = f"SELECT id, number, cell, reader FROM kg_documents WHERE crc <> {ERASED} ORDER BY number"
    read_columns(connection.execute(query), (ids, numbers, cells, readers))
    last = sorted({name: at for at, name in enumerate(ids)}.values())
    return Read(
        np.array(numbers, np.int64)[last],
        np.array(cells, np.int64)[last] - _UNKNOWN - 1,
        [readers[at] for at in last],
    )


def records(
    connection: Connection, database: Database, numbers: Sequence[int] | None = None
) -> dict[str, PassageRecord]:
    """Return the records of all passages that were read, or of those in some rows, by id."""
    rows = _rows_of_documents(connection, database, numbers=numbers)
    return {
        _text(name): PassageRecord(
            digest, reader, 0 if text == _UNKNOWN else text, cell - _UNKNOWN - 1
        )
        for name, digest, reader, text, cell in zip(
            rows.id, rows.digest, rows.reader, rows.text, rows.cell, strict=True
        )
    }


def put_facts(
    connection: Connection,
    names: NameNumbers,
    facts: PassageFacts,
    known: PassageRecord,
    since: int,
) -> None:
    """Store the facts of a passage; they replace those that were read of it since the last published graph."""
    (last,) = connection.execute("SELECT MAX(number) FROM kg_documents").fetchone()
    triples = list(facts.triples)
    words = [
        word for one in triples for word in (one.subject, one.predicate, one.object)
    ]
    numbers = names.of(connection, [*words, *facts.entities])
    stated: list[tuple[int, ...]] = []
    notes: list[str] = []
    for at, triple in enumerate(triples):
        ends = numbers[3 * at : 3 * at + 3]
        for place in facts.places(triple):
            fact = (*ends, place.start, place.end)
            note = note_of(triple, place)
            stated.append(fact)
            notes.append(note)
    named = [(number, 1) for number in numbers[3 * len(triples) :]]
    row = _Rows(
        [0 if last is None else last + 1],
        [since],
        [known.text or _UNKNOWN],
        [_stored_cell(known.cell)],
        [0],
        [known.digest],
        [known.reader],
        [_bytes(facts.passage_id)],
        [np.array(stated, "<i4").tobytes()],
        [np.array(named, "<i4").tobytes()],
        [dump_notes(notes)],
    )
    rows = zip(*row._replace(crc=row.sums().tolist()), strict=True)
    places = ", ".join("?" * len(row))
    statement = f"INSERT INTO kg_documents VALUES ({places})"
    connection.executemany(statement, rows)


def put_places(
    connection: Connection, database: Database, places: Mapping[str, tuple[int, int]]
) -> None:
    """Store `text` and `cell` of passages that have stored facts."""
    rows = _rows_of_documents(connection, database)
    moved = rows.take([at for at, name in enumerate(rows.id) if _text(name) in places])
    texts, cells = (
        zip(*(places[_text(name)] for name in moved.id), strict=True)
        if moved.id
        else ((), ())
    )
    moved = moved._replace(text=list(texts), cell=list(map(_stored_cell, cells)))
    values = zip(
        moved.text, moved.cell, moved.sums().tolist(), moved.number, strict=True
    )
    connection.executemany(
        "UPDATE kg_documents SET text = ?, cell = ?, crc = ? WHERE number = ?", values
    )


def erase_passages(connection: Connection, passage_ids: Iterable[str]) -> int:
    """Overwrite all that was read of some passages; return how many of them there were."""
    gone = {_bytes(one) for one in passage_ids}
    found = connection.execute(
        f"SELECT number, id FROM kg_documents WHERE crc <> {ERASED}"
    )
    rows = [(number, name) for number, name in found if name in gone]
    _blank_documents(connection, [number for number, _ in rows])
    return len({name for _, name in rows})


def erase_superseded(connection: Connection) -> None:
    """Overwrite the older rows of passages that were read again."""
    last: dict[bytes, int] = {}
    old = []
    for number, name in connection.execute(
        f"SELECT number, id FROM kg_documents WHERE crc <> {ERASED} ORDER BY number"
    ):
        if name in last:
            old.append(last[name])
        last[name] = number
    _blank_documents(connection, old)


def _blank_documents(connection: Connection, numbers: Sequence[int]) -> None:
    if not numbers:
        return
    blanks = ", ".join(
        f"{name} = zeroblob(length({name}))"
        for name in ("digest", "id", "facts", "mentions", "notes")
    )
    connection.executemany(
        f"UPDATE kg_documents SET text = {ERASED}, cell = {ERASED}, crc = {ERASED}, {blanks} WHERE number = ?",
        [(number,) for number in numbers],
    )
    connection.execute("UPDATE kg_state SET dead = dead + ?", (len(numbers),))
    leave_remains(connection)


def read_facts(
    connection: Connection, database: Database, upto: int | None = None
) -> Reading:
    """Return all that was read. upto: for the graph published then; by default all that was read since, too."""
    rows = _rows_of_documents(connection, database, upto)
    numbers, names, keys = _read_names(connection, database)
    place_of = np.full(int(numbers.max(initial=-1)) + 1, -1, dtype=np.int64)
    place_of[numbers] = np.arange(len(numbers))
    edges = _read_edges(connection, database)
    facts = _numbered(rows.facts, 5, 3, place_of, database)
    notes, note_of_fact = _read_notes(rows)
    found = Occurrences(
        StringTable.of_bytes(names),
        StringTable.of_bytes(rows.id),
        np.column_stack([facts, note_of_fact]),
        _numbered(rows.mentions, 2, 1, place_of, database),
        _places(edges["ends"], place_of, database),
        edges["similarity"].copy(),
        StringTable.of_bytes(keys),
        notes,
    )
    texts = np.array(rows.text, dtype=np.uint64)
    texts[texts == _UNKNOWN] = 0
    return Reading(found, texts, tuple(sorted(set(rows.reader))), numbers)


def _read_notes(rows: _Rows) -> tuple[StringTable, Ints]:
    """Return the distinct notes, "" first, and the number of each fact's note."""
    sizes = [len(facts) // _BYTES_OF_FACT for facts in rows.facts]
    notes = {"": 0}
    if not any(rows.notes):
        return StringTable.of(notes), np.zeros(sum(sizes), np.int64)
    numbers: list[int] = []
    for note in load_notes(rows.notes, sizes):
        number = notes.setdefault(note, len(notes))
        numbers.append(number)
    return StringTable.of(notes), np.array(numbers, np.int64)


def _numbered(
    blobs: Sequence[bytes], width: int, named: int, place_of: Ints, database: Database
) -> Ints:
    """Return the rows of all blobs, each after its document; the first `named` of their numbers become places."""
    rows = np.frombuffer(b"".join(blobs), "<i4").reshape(-1, width)
    sizes = np.fromiter(map(len, blobs), np.int64, len(blobs)) // (4 * width)
    table = np.empty((len(rows), width + 1), np.int64)
    table[:, 0] = np.repeat(np.arange(len(blobs)), sizes)
    table[:, 1 : named + 1] = _places(rows[:, :named], place_of, database)
    table[:, named + 1 :] = rows[:, named:]
    return table


def _places(wanted: npt.NDArray[Any], place_of: Ints, database: Database) -> Ints:
    """Return where names are among all, by their numbers. Raises IndexMismatch for one that is not there."""
    there = wanted.size == 0 or (
        int(wanted.min()) >= 0 and int(wanted.max()) < len(place_of)
    )
    places = place_of[wanted] if there else np.full(1, -1)
    if (places < 0).any():
        raise damaged(database, "its graph states facts of names that are not there")
    return places


# ---- edges that no document states


def put_edges(
    connection: Connection, names: NameNumbers, edges: Iterable[UnstatedEdge]
) -> None:
    """Replace the edges that no document states.

    An edge is kept as long as documents name its ends; an end that no document names now does not count.
    """
    listed = list(edges)
    rows = np.zeros(len(listed), _EDGE)
    words = [
        word for edge in listed for word in (edge.subject, edge.relation, edge.target)
    ]
    rows["ends"] = np.array(names.of(connection, words), np.int64).reshape(-1, 3)
    rows["similarity"] = [
        np.nan if edge.similarity is None else edge.similarity for edge in listed
    ]
    named, _ = _named(connection)
    rows["alone"] = ~named[rows["ends"][:, 0]] + 2 * ~named[rows["ends"][:, 2]]
    _write_edges(connection, rows)


def _write_edges(connection: Connection, rows: npt.NDArray[Any]) -> None:
    connection.execute("DELETE FROM kg_edges")
    if len(rows):
        data = rows.tobytes()
        connection.execute(
            "INSERT INTO kg_edges VALUES (1, ?, ?)", (checksum(data), data)
        )


def _read_edges(connection: Connection, database: Database) -> npt.NDArray[Any]:
    row = connection.execute("SELECT crc, data FROM kg_edges").fetchone()
    if row is None:
        return np.empty(0, _EDGE)
    if row[0] != checksum(row[1]):
        raise damaged(database, "the edges of its graph are not what was written")
    return np.frombuffer(row[1], _EDGE)


def put_others(connection: Connection, others: OtherNodes) -> None:
    """Replace the nodes that are neither entities nor documents."""
    connection.execute("DELETE FROM kg_others")
    if others:
        data = _bytes(others.to_json())
        connection.execute(
            "INSERT INTO kg_others VALUES (1, ?, ?)", (checksum(data), data)
        )


def read_others(connection: Connection, database: Database) -> OtherNodes:
    """Return the nodes that are neither entities nor documents. Raises IndexMismatch for damaged ones."""
    row = connection.execute("SELECT crc, data FROM kg_others").fetchone()
    if row is None:
        return OtherNodes()
    if row[0] != checksum(row[1]):
        raise damaged(database, "the other nodes of its graph are not what was written")
    return OtherNodes.from_json(_text(row[1]))


def _erase_unused_others(
    connection: Connection, database: Database, used: npt.NDArray[np.bool_]
) -> None:
    """Erase the nodes that rested on names that are not `used`, by their numbers, or on documents that are gone."""
    others = read_others(connection, database)
    if not others:
        return
    names = connection.execute(
        f"SELECT number, name FROM kg_names WHERE crc <> {ERASED}"
    )
    named = {name for number, name in names if used[number]}
    rows = connection.execute(
        f"SELECT id FROM kg_documents WHERE crc <> {ERASED}"
    ).fetchall()
    there = {Node(ENTITY, _text(name)) for name in named} | {
        Node(DOCUMENT, _text(name)) for (name,) in rows
    }
    gone = (others.ends() | {Node(ENTITY, name) for name in others.about}) - there
    if gone:
        left = others.without(gone)
        put_others(connection, left)
        erase_texts(
            connection,
            [hash_of(node.name) for node in others.nodes.keys() - left.nodes.keys()],
        )
        leave_remains(connection)


# ---- rows that nothing refers to any more


def erase_unused(connection: Connection, database: Database) -> None:
    """Erase edges with ends that are named no more, and names that nothing refers to, with their vectors and lists."""
    named, used = _named(connection)
    edges = _read_edges(connection, database)
    ends = edges["ends"]
    gone = ~named[ends[:, 0]] & (edges["alone"] & 1 == 0)
    gone |= ~named[ends[:, 2]] & (edges["alone"] & 2 == 0)
    if gone.any():
        edges = edges[~gone]
        _write_edges(connection, edges)
        leave_remains(connection)
    used[edges["ends"].ravel()] = True
    _erase_unused_others(connection, database, used)
    living: list[int] = []
    read_columns(
        connection.execute(f"SELECT number FROM kg_names WHERE crc <> {ERASED}"),
        (living,),
    )
    numbers = np.array(living, np.int64)
    unused = numbers[~used[numbers]]
    words = {EQUIVALENT} | {
        word
        for edit in read_edits(connection, database)
        for word in (*edit.old, *edit.new)
    }
    lost = []
    for number in unused.tolist():
        (name,) = connection.execute(
            "SELECT name FROM kg_names WHERE number = ?", (number,)
        ).fetchone()
        if _text(name) not in words:
            lost.append((number, _text(name)))
    if not lost:
        return
    by_number = [(number,) for number, _ in lost]
    connection.executemany(
        f"""UPDATE kg_names SET crc = {ERASED}, name = zeroblob(length(name)), key = zeroblob(length(key))
        WHERE number = ?""",
        by_number,
    )
    connection.executemany(
        f"UPDATE kg_vectors SET crc = {ERASED}, data = zeroblob(length(data)) WHERE name = ?",
        by_number,
    )
    connection.executemany("DELETE FROM kg_near WHERE name = ?", by_number)
    erase_texts(connection, [hash_of(name) for _, name in lost])
    leave_remains(connection)


def _named(
    connection: Connection,
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return by their numbers which names passages use as ends of facts or mention, and which they use at all."""
    (last,) = connection.execute("SELECT MAX(number) FROM kg_names").fetchone()
    blobs: tuple[list[bytes], list[bytes]] = ([], [])
    read_columns(
        connection.execute(
            f"SELECT facts, mentions FROM kg_documents WHERE crc <> {ERASED}"
        ),
        blobs,
    )
    facts, mentions = (
        np.frombuffer(b"".join(blobs[at]), "<i4").reshape(-1, width)
        for at, width in enumerate((5, 2))
    )
    named = np.zeros(0 if last is None else last + 1, dtype=np.bool_)
    for numbers in (facts[:, 0], facts[:, 2], mentions[:, 0]):
        named[numbers] = True
    used = named.copy()
    used[facts[:, 1]] = True
    return named, used


def check_graph(database: Database) -> None:
    """Read all of the graph's rows. Raises IndexMismatch for one that is not as it was written."""
    with database.reading() as connection:
        if (state := read_graph_state(connection, database)) is None:
            return
        for upto in (state.published, None):
            read_facts(connection, database, upto)
        read_edits(connection, database)
        read_others(connection, database)
        check_vectors(connection, database)


def _stored_cell(cell: int) -> int:
    """Return a cell as a row has it: a number of eight bytes, which is overwritten in place."""
    return _UNKNOWN + 1 + cell


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")

"""Stores the facts of every passage in one SQLite file, from which the graph's arrays are made.

A passage's facts are committed as soon as they are read, so a killed build reads nothing twice. Facts refer to names;
names that no fact refers to any more are erased.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ras_agent.errors import IndexMismatch
from ras_agent.tools.kg.arrays import StringTable
from ras_agent.tools.kg.assemble import Occurrences
from ras_agent.tools.kg.database import open_database
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge

_VERSION = 1
REMEDY = "delete {path} and run the `ras-agent kg build` that made the graph again; it reads every passage anew"
"""What mends a damaged store."""
# names are bytes: text may hold lone surrogates, which SQLite's text cannot
_TABLES = """
CREATE TABLE IF NOT EXISTS names (no INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS documents (
    no INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, digest BLOB NOT NULL, reader TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS facts (
    document INTEGER NOT NULL, subject INTEGER NOT NULL, predicate INTEGER NOT NULL, object INTEGER NOT NULL,
    start INTEGER NOT NULL, end INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS mentions (document INTEGER NOT NULL, name INTEGER NOT NULL, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS edges (
    subject INTEGER NOT NULL, predicate INTEGER NOT NULL, object INTEGER NOT NULL, similarity REAL,
    alone INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS pending_vectors (name BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS facts_of_document ON facts (document);
CREATE INDEX IF NOT EXISTS mentions_of_document ON mentions (document);
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""

Vectors = npt.NDArray[np.float16]
_NAMED = "SELECT subject FROM facts UNION SELECT object FROM facts UNION SELECT name FROM mentions"
_REMAINS = "remains"  # the setting that says that erased text may still be somewhere in the file


@dataclass(frozen=True, slots=True)
class PassageRecord:
    """Describes a passage whose facts are stored: a digest of what was read, and the reader that read it.

    text: the hash that a passage index has for the same text (`row_table`); 0 if unknown.
    """

    digest: bytes
    reader: str
    text: int = 0


class FactStore:
    """Stores facts by passage. Nothing is stored before `commit`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.executescript(_TABLES)
        columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(documents)")]
        if "text" not in columns:  # stores of older versions have none
            connection.execute("ALTER TABLE documents ADD COLUMN text BLOB NOT NULL DEFAULT x''")
        self._names: dict[str, int] = {}

    @property
    def revision(self) -> int:
        """Return a number that rises with every change, so that a graph can say which facts it was made from."""
        return int(self.setting("revision") or 0)

    def known(self) -> dict[str, PassageRecord]:
        """Return the records of all passages by id."""
        rows = self._connection.execute("SELECT id, digest, reader, text FROM documents ORDER BY no")
        return {
            _text(name): PassageRecord(digest, reader, int.from_bytes(text, "little"))
            for name, digest, reader, text in rows
        }

    def put(self, facts: PassageFacts, known: PassageRecord) -> None:
        """Replace what is stored for a passage."""
        self._erase(facts.passage_id)
        document = self._connection.execute(
            "INSERT INTO documents (id, digest, reader, text) VALUES (?, ?, ?, ?)",
            (_bytes(facts.passage_id), known.digest, known.reader, _stored(known.text)),
        ).lastrowid
        rows = []
        for triple in facts.triples:
            numbers = self._name(triple.subject), self._name(triple.predicate), self._name(triple.object)
            rows += [(document, *numbers, start, end) for start, end in facts.spans(triple)]
        self._connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?)", rows)
        mentions = [(document, self._name(entity), 1) for entity in facts.entities]
        self._connection.executemany("INSERT INTO mentions VALUES (?, ?, ?)", mentions)
        self._changed()

    def put_texts(self, texts: Mapping[str, int]) -> None:
        """Store the `text` of passages whose facts are stored."""
        rows = [(_stored(text), _bytes(name)) for name, text in texts.items()]
        self._connection.executemany("UPDATE documents SET text = ? WHERE id = ?", rows)
        if rows:
            self._changed()

    def put_edges(self, edges: Iterable[UnstatedEdge]) -> None:
        """Replace the edges that no document states.

        One lives as long as documents name its ends; an end that none names now is not waited for.
        """
        if self._connection.execute("DELETE FROM edges").rowcount:
            self.leave_remains()
        rows = [
            (self._name(edge.subject), self._name(edge.relation), self._name(edge.target), edge.similarity)
            for edge in edges
        ]
        self._connection.executemany("INSERT INTO edges VALUES (?, ?, ?, ?, 0)", rows)
        self._connection.execute(
            f"UPDATE edges SET alone = (subject NOT IN ({_NAMED})) + 2 * (object NOT IN ({_NAMED}))"
        )
        self._changed()

    def drop(self, passage_ids: Iterable[str]) -> int:
        """Erase passages with their facts; return how many there were."""
        dropped = sum(self._erase(passage_id) for passage_id in passage_ids)
        if dropped:
            self._changed()
            self.leave_remains()
        return dropped

    def erase_unused_names(self) -> None:
        """Erase edges whose ends are named no more, names that nothing refers to, and vectors of such names."""
        self._connection.execute(
            f"DELETE FROM edges WHERE (subject NOT IN ({_NAMED}) AND NOT alone & 1) "
            f"OR (object NOT IN ({_NAMED}) AND NOT alone & 2)"
        )
        erased = self._connection.execute(
            f"DELETE FROM names WHERE no NOT IN ({_NAMED} UNION SELECT predicate FROM facts "
            "UNION SELECT subject FROM edges UNION SELECT predicate FROM edges UNION SELECT object FROM edges)"
        ).rowcount
        if erased:
            self.leave_remains()
        self._connection.execute("DELETE FROM pending_vectors WHERE name NOT IN (SELECT name FROM names)")
        self._names.clear()

    def occurrences(self) -> Occurrences:
        """Return everything, numbered anew."""
        names = self._connection.execute("SELECT no, name FROM names ORDER BY no").fetchall()
        documents = self._connection.execute("SELECT no, id FROM documents ORDER BY no").fetchall()
        facts = _table(self._connection.execute("SELECT * FROM facts"), 6)
        mentions = _table(self._connection.execute("SELECT * FROM mentions"), 3)
        edges = _table(self._connection.execute("SELECT subject, predicate, object FROM edges ORDER BY rowid"), 3)
        values = self._connection.execute("SELECT similarity FROM edges ORDER BY rowid")
        similarities = np.array([np.nan if value is None else value for (value,) in values], dtype=np.float32)
        name_numbers, document_numbers = _numbers(names), _numbers(documents)
        edges = np.searchsorted(name_numbers, edges)
        for table, columns in ((facts, (1, 2, 3)), (mentions, (1,))):
            table[:, 0] = np.searchsorted(document_numbers, table[:, 0])
            for column in columns:
                table[:, column] = np.searchsorted(name_numbers, table[:, column])
        known = StringTable.of_bytes([name for _, name in names]), StringTable.of_bytes([name for _, name in documents])
        return Occurrences(*known, facts, mentions, edges, similarities)

    def put_vectors(self, names: Sequence[str], vectors: Vectors) -> None:
        """Store vectors (len(names), d) until the graph that holds them is written."""
        rows = [(_bytes(name), vector.tobytes()) for name, vector in zip(names, vectors, strict=True)]
        self._connection.executemany("INSERT OR REPLACE INTO pending_vectors VALUES (?, ?)", rows)

    def pending_vectors(self) -> Iterator[tuple[str, Vectors]]:
        """Yield names and vectors (d,) of a graph that is not written yet."""
        for name, vector in self._connection.execute("SELECT name, vector FROM pending_vectors"):
            yield _text(name), np.frombuffer(vector, dtype=np.float16)

    def drop_vectors(self) -> None:
        """Erase all vectors."""
        self._connection.execute("DELETE FROM pending_vectors")

    def sweep(self) -> None:
        """Rewrite the file if something was erased, or if most of it is free. Call it after `commit`.

        Erased rows are overwritten at once (secure_delete), but not the copies that SQLite left in the unused parts of
        pages when it moved rows between them, nor what is still to come over from SQLite's write-ahead log.
        """
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        if 2 * free > pages or self.setting(_REMAINS):
            self._connection.execute("VACUUM")
            self.remember({_REMAINS: ""})
            self.commit()
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def setting(self, name: str) -> str | None:
        """Return the setting `name`, None if there is none."""
        row = self._connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def remember(self, settings: Mapping[str, str]) -> None:
        """Store settings."""
        self._connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", settings.items())

    def forget(self, names: Iterable[str]) -> None:
        """Erase the settings `names`."""
        if self._connection.executemany("DELETE FROM settings WHERE name = ?", ((name,) for name in names)).rowcount:
            self.leave_remains()

    def commit(self) -> None:
        """Make everything so far durable."""
        self._connection.commit()

    def _erase(self, passage_id: str) -> bool:
        row = self._connection.execute("SELECT no FROM documents WHERE id = ?", (_bytes(passage_id),)).fetchone()
        if row is None:
            return False
        for statement in (
            "DELETE FROM facts WHERE document = ?",
            "DELETE FROM mentions WHERE document = ?",
            "DELETE FROM documents WHERE no = ?",
        ):
            self._connection.execute(statement, row)
        return True

    def _name(self, name: str) -> int:
        number = self._names.get(name)
        if number is None:
            data = (_bytes(name),)
            row = self._connection.execute("SELECT no FROM names WHERE name = ?", data).fetchone()
            number = row[0] if row else self._connection.execute("INSERT INTO names (name) VALUES (?)", data).lastrowid
            assert number is not None
            self._names[name] = number
        return number

    def leave_remains(self) -> None:
        """Have the next `sweep` rewrite the file."""
        self.remember({_REMAINS: "yes"})

    def _changed(self) -> None:
        self.remember({"revision": str(self.revision + 1)})


@contextmanager
def open_fact_store(path: Path) -> Iterator[FactStore]:
    """Open the store in the file `path` for this process alone.

    Raises IngestError while another process holds it, IndexMismatch for a damaged file or one of another version.
    """
    with open_database(path, "graph", REMEDY.format(path=path)) as connection:
        # commits then wait for no disk, so each passage can have its own; only a crash of the machine may lose some
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            raise IndexMismatch(
                f"{path} has version {version}, this ras-agent reads {_VERSION}: {REMEDY.format(path=path)}"
            )
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        yield FactStore(connection)


def _stored(text: int) -> bytes:
    return text.to_bytes(8, "little") if text else b""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _numbers(rows: Sequence[tuple[int, bytes]]) -> npt.NDArray[np.int64]:
    return np.array([number for number, _ in rows], dtype=np.int64)


def _table(rows: Iterable[tuple[int, ...]], width: int) -> npt.NDArray[np.int64]:
    return np.fromiter((number for row in rows for number in row), dtype=np.int64).reshape(-1, width)

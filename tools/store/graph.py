"""Reads and writes the rows of a knowledge graph in a transaction: its state, its names, its facts, and edits of
persons.

A name is given by its number. A reading, the set of facts that were read in one version of a passage, has a number
too.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from ras_agent.text.normal_form import storable
from ras_agent.tools.store.statements import Rows


class ReadingColumns(NamedTuple):
    """Holds columns of the table `kg_passages`, one value for each reading; schema.py describes them."""

    number: list[int]
    passage: list[str]
    text: list[int]
    cell: list[int]
    digest: list[bytes]
    reader: list[str]


class FactRow(NamedTuple):
    """Holds the columns of the table `kg_facts`; schema.py describes them."""

    reading: int
    place: int
    subject: int
    predicate: int
    object: int
    start: int
    stop: int
    attributes: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    source: str | None = None


_MANY = 500
"""The number of values above which a column is read whole."""
_NOTE = FactRow._fields[-4:]
"""The columns that hold a note about a fact and its place."""


class GraphStateRows(Rows):
    """Reads and writes the row that says which rows of the graph readers see."""

    def read(self) -> tuple[Any, ...] | None:
        """Return published, stamp, changes, made, names and settings; None if no graph was begun."""
        query = "SELECT published, stamp, changes, made, names, settings FROM kg_state"
        row: tuple[Any, ...] | None = self._run(query).fetchone()
        return row

    def begin(self, settings: str) -> None:
        """Store the state of a new, empty graph, unless there is a state already."""
        query = """INSERT INTO kg_state VALUES (1, 0, ?, 0, -1, 0, ?)
            ON CONFLICT DO NOTHING"""
        self._run(query, (_stamp(), settings))

    def publish(self, settings: str) -> int:
        """Make everything that was read visible to readers, as the next graph. Returns the stamp of that graph."""
        stamp = _stamp()
        query = """UPDATE kg_state SET published = published + 1, stamp = ?,
            changes = changes + 1, made = changes + 1, settings = ?"""
        self._run(query, (stamp, settings))
        self.advance()
        return stamp

    def change(self) -> None:
        """Count a change of rows that readers do not see yet."""
        self._run("UPDATE kg_state SET changes = changes + 1")

    def change_visibly(self) -> None:
        """Count a change of the graph that readers see, which gets a new stamp."""
        query = """UPDATE kg_state SET stamp = ?, changes = changes + 1,
            made = CASE WHEN made = changes THEN made + 1 ELSE made END"""
        self._run(query, (_stamp(),))
        self.advance()


def _stamp() -> int:
    return secrets.randbits(60) | 1 << 60


class NameRows(Rows):
    """Reads and writes the names of entities and relations, by number. A number is never used again."""

    def end(self) -> int:
        """Return the number of the next new name."""
        return self._value("SELECT names FROM kg_state") or 0

    def numbers_of(self, names: Iterable[str]) -> dict[str, int]:
        """Return the number of each of the given names that is stored."""
        query = "SELECT name, number FROM kg_names WHERE name"
        return dict(self._having(query, names))

    def names_of(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return the name of each of the given numbers that is stored."""
        query = "SELECT number, name FROM kg_names WHERE number"
        return dict(self._having(query, numbers))

    def add(self, keys: Mapping[str, str]) -> dict[str, int]:
        """Store names that are not stored yet. Returns their new numbers.

        Args:
            keys: the canonical key of each name.
        """
        rows = []
        numbers = {}
        end = self.end()
        for name, key in keys.items():
            rows.append((end, name, key))
            numbers[name] = end
            end += 1
        self._run_for_each("INSERT INTO kg_names VALUES (?, ?, ?)", rows)
        self._run("UPDATE kg_state SET names = ?", (end,))
        return numbers

    def all(self) -> tuple[list[int], list[str], list[str]]:
        """Return the number, the name and the canonical key of each name, sorted by key."""
        query = "SELECT number, name, key FROM kg_names ORDER BY key, number"
        numbers, names, keys = self._columns(query, width=3)
        return numbers, names, keys

    def forget(self, numbers: Iterable[int]) -> None:
        """Delete names, with their vectors and their lists of nearest names."""
        if self._delete("kg_names WHERE number", numbers):
            self.leave_remains()


class ReadingRows(Rows):
    """Reads and writes the readings of passages. FactRows reads their facts and mentions."""

    def all(self, upto: int | None = None) -> ReadingColumns:
        """Return the columns of all readings by number.

        Args:
            upto: the number of a published graph, for only the readings that it shows.
        """
        shown = "" if upto is None else f"WHERE since <= {upto:d}"
        names = ", ".join(ReadingColumns._fields)
        query = f"SELECT {names} FROM kg_passages {shown} ORDER BY number"
        return ReadingColumns._make(self._columns(query, width=6))

    def of_passages(self, passages: Iterable[str]) -> dict[int, str]:
        """Return the readings of the given passages: the passage id of each, by the reading's number."""
        query = "SELECT number, passage FROM kg_passages WHERE passage"
        return dict(self._having(query, passages))

    def superseded(self) -> list[int]:
        """Return the older readings of passages that were read again."""
        return self._column(
            """SELECT number FROM kg_passages AS earlier WHERE EXISTS (
            SELECT 1 FROM kg_passages WHERE passage = earlier.passage AND since > earlier.since)"""
        )

    def moved(self) -> dict[str, int]:
        """Return the passages that are no longer in the cell in which they were read, each with the hash of the text
        that was read.

        A cell is a row of the table `passages`. A passage that changes moves to another cell.
        """
        query = """SELECT passage, text FROM kg_passages
            WHERE cell NOT IN (SELECT cell FROM passages) ORDER BY number"""
        return dict(self._run(query).fetchall())

    def gone(self) -> list[str]:
        """Return the ids of the passages that were read but are no longer in the index."""
        return self._column(
            "SELECT passage FROM kg_passages WHERE passage NOT IN (SELECT id FROM passages)"
        )

    def put_places(self, rows: Iterable[tuple[int, int, str]]) -> None:
        """Store the hash of the text and the cell of passages.

        Args:
            rows: both, then the passage's id.
        """
        query = "UPDATE kg_passages SET text = ?, cell = ? WHERE passage = ?"
        self._run_for_each(query, rows)

    def add(
        self, passage: str, since: int, text: int, cell: int, digest: bytes, reader: str
    ) -> int:
        """Store a reading without facts, which replaces an earlier one of the same `since`. Returns its number.

        Args:
            since: the number of the first published graph that shows it.
            text, cell, digest, reader: see ras_agent.tools.kg.facts.PassageRecord.
        """
        query = "SELECT number FROM kg_passages WHERE passage = ? AND since = ?"
        self.forget(self._column(query, passage, since))
        last = self._value("SELECT MAX(number) FROM kg_passages")
        number = 0 if last is None else int(last) + 1
        row = (number, passage, since, text, cell, digest, reader)
        self._run("INSERT INTO kg_passages VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return number

    def forget(self, numbers: Iterable[int]) -> set[int]:
        """Delete readings, with their facts and mentions. Returns the numbers of the names in these."""
        listed = list(numbers)
        query = "SELECT subject, predicate, object FROM kg_facts WHERE reading"
        names = set(chain.from_iterable(self._having(query, listed)))
        query = "SELECT name FROM kg_mentions WHERE reading"
        names.update(chain.from_iterable(self._having(query, listed)))
        if self._delete("kg_passages WHERE number", listed):
            self.leave_remains()
        return names


class FactRows(Rows):
    """Reads and writes the facts and mentions of readings, and the edges and nodes of an imported graph that no
    document states.
    """

    def add(
        self, reading: int, facts: Sequence[FactRow], mentions: Mapping[int, int]
    ) -> None:
        """Store the facts of a reading, and how often it mentions each name."""
        marks = ", ".join("?" * len(FactRow._fields))
        self._run_for_each(f"INSERT INTO kg_facts VALUES ({marks})", facts)
        rows = [(reading, name, count) for name, count in mentions.items()]
        self._run_for_each("INSERT INTO kg_mentions VALUES (?, ?, ?)", rows)

    def all(self) -> Iterable[tuple[int, int, int]]:
        """Return all facts by reading and place, as three numbers: reading and subject, predicate and object, start
        and end.

        Each is a pair in the upper and the lower 31 bits of one number, so that there are half as many objects to
        make.
        """
        rows: Iterable[tuple[int, int, int]] = self._run(
            """SELECT (reading << 31) | subject, (predicate << 31) | object, (start << 31) | stop
            FROM kg_facts ORDER BY reading, place"""
        )
        return rows

    def noted(self) -> Iterable[tuple[Any, ...]]:
        """Return the reading, the place and the columns of the note of each fact that has one."""
        some = " OR ".join(f"{name} IS NOT NULL" for name in _NOTE)
        query = f"SELECT reading, place, {', '.join(_NOTE)} FROM kg_facts WHERE {some}"
        rows: Iterable[tuple[Any, ...]] = self._run(query)
        return rows

    def mentions(self) -> Iterable[tuple[int, int]]:
        """Return all mentions: reading and name as one number, as in `all`, and the count."""
        query = "SELECT (reading << 31) | name, count FROM kg_mentions"
        rows: Iterable[tuple[int, int]] = self._run(query)
        return rows

    def edges(self) -> list[tuple[int, int, int, float | None]]:
        """Return the edges that no document states: subject, predicate, object, similarity."""
        query = "SELECT subject, predicate, object, similarity FROM kg_edges"
        return list(self._run(query).fetchall())

    def replace_edges(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Replace the edges that no document states.

        Args:
            rows: for each edge, the columns of the table `kg_edges`.
        """
        self._run("DELETE FROM kg_edges")
        self._run_for_each("INSERT INTO kg_edges VALUES (?, ?, ?, ?, ?, ?)", rows)

    def forget_edges(self, column: str, names: Iterable[int], bit: int) -> None:
        """Delete the edges with one of the names in a column.

        Args:
            column: "subject" or "object".
            bit: edges with this bit in `unnamed` are kept.
        """
        if self._delete(f"kg_edges WHERE unnamed & {bit:d} = 0 AND {column}", names):
            self.leave_remains()

    def holding(self, table: str, column: str, numbers: set[int]) -> set[int]:
        """Return which of the given numbers occur in a column of a table."""
        query = f"SELECT DISTINCT {column} FROM {table}"
        if len(numbers) > _MANY:
            return numbers.intersection(self._column(query))
        rows = self._having(f"{query} WHERE {column}", numbers)
        return set(chain.from_iterable(rows))

    def others(self) -> str | None:
        """Return the nodes that are neither entities nor documents, as JSON, or None."""
        data: str | None = self._value("SELECT data FROM kg_others")
        return data

    def replace_others(self, data: str | None) -> None:
        """Replace the nodes that are neither entities nor documents.

        Args:
            data: the nodes as JSON; None to delete them.
        """
        self._run("DELETE FROM kg_others")
        if data is not None:
            self._run("INSERT INTO kg_others VALUES (1, ?)", (data,))


class EditRows(Rows):
    """Reads and writes the edits that persons made, as JSON, and the paths from which files of triples were added."""

    def all(self) -> list[tuple[int, str]]:
        """Return the number of each edit and the edit, in order."""
        query = "SELECT number, edit FROM kg_edits ORDER BY number"
        return list(self._run(query).fetchall())

    def replace(self, rows: Sequence[tuple[int, str]]) -> None:
        """Replace the stored edits."""
        self._run("DELETE FROM kg_edits")
        self._run_for_each("INSERT INTO kg_edits VALUES (?, ?)", rows)
        self.leave_remains()

    def origin_of(self, file: str) -> str:
        """Return the path from which a file of triples was added, by its name; "" if no file of this name was added."""
        return self._value("SELECT path FROM kg_files WHERE name = ?", file) or ""

    def put_origins(self, origins: Mapping[str, str]) -> None:
        """Store the paths from which files of triples were added, by file name."""
        query = """INSERT INTO kg_files VALUES (?, ?)
            ON CONFLICT (name) DO UPDATE SET path = excluded.path"""
        self._run_for_each(query, origins.items())

    def forget_origins(self) -> None:
        """Delete the paths of files of triples that have no passages in the index any longer."""
        query = "DELETE FROM kg_files WHERE name NOT IN (SELECT document FROM passages)"
        if self._run(query).rowcount:
            self.leave_remains()


class VectorRows(Rows):
    """Reads and writes vectors of texts by the use and the embedder that made them (`maker`), and the nearest names of
    each name.
    """

    def near(self) -> dict[int, bytes]:
        """Return the lists of nearest names, by name."""
        names, lists = self._columns("SELECT name, data FROM kg_near", width=2)
        return dict(zip(names, lists, strict=True))

    def put_near(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Store lists of nearest names."""
        query = """INSERT INTO kg_near VALUES (?, ?)
            ON CONFLICT (name) DO UPDATE SET data = excluded.data"""
        self._run_for_each(query, rows)

    def forget_near(self, names: Iterable[int] | None) -> None:
        """Delete the lists of nearest names of the given names; None for all lists."""
        if names is None:
            self._run("DELETE FROM kg_near")
        else:
            self._delete("kg_near WHERE name", names)

    def of_texts(self, maker: int) -> dict[int, bytes]:
        """Return the vectors of texts by the hashes of the texts."""
        query = "SELECT text, data FROM kg_texts WHERE maker = ?"
        texts, vectors = self._columns(query, maker, width=2)
        return dict(zip(texts, vectors, strict=True))

    def put_texts(self, maker: int, texts: Iterable[tuple[int, str, bytes]]) -> None:
        """Store vectors of texts.

        Args:
            maker: the number of the use and the embedder.
            texts: for each text its hash, its owner (the name or passage that it is about), and its vector.
        """
        query = """INSERT INTO kg_texts VALUES (?, ?, ?, ?)
            ON CONFLICT (maker, text) DO UPDATE SET owner = excluded.owner, data = excluded.data"""
        rows = [(maker, text, storable(owner), data) for text, owner, data in texts]
        self._run_for_each(query, rows)

    def forget_texts_of(self, owners: Iterable[str]) -> None:
        """Delete the vectors of texts about the given names or passages."""
        if self._delete("kg_texts WHERE owner", map(storable, owners)):
            self.leave_remains()

    def forget_maker(self, maker: int) -> None:
        """Delete all vectors that one maker made."""
        if self._run("DELETE FROM kg_texts WHERE maker = ?", (maker,)).rowcount:
            self.leave_remains()

    def forget_texts(self, maker: int, texts: Iterable[int]) -> None:
        """Delete the vectors that one maker made of the texts with these hashes."""
        if self._delete(f"kg_texts WHERE maker = {maker:d} AND text", texts):
            self.leave_remains()

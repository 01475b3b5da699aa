"""Records the files and documents that an index was made from, in the database of the index.

A run commits its writes to the index and to the journal together, batch by batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.tools.store.database import Database
from ras_agent.tools.store.schema import beginning
from ras_agent.tools.store.sqlite import memory_database
from ras_agent.tools.store.statements import Rows
from ras_agent.tools.store.transaction import Transaction

_ENTRY = "id, file, own, place, digest, run"
_PUT_DOCUMENT = """
INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
    file = excluded.file, own = excluded.own, place = excluded.place, digest = excluded.digest, run = excluded.run
"""
_NOTES = {"fields": "rules", "metadata": "given"}
"""The tables of texts about folders and files, and their columns."""
_WITHIN = "(path = ? OR path >= ? AND path < ?)"
_SEPARATOR = os.fsencode(os.sep)
_AFTER_SEPARATOR = bytes([ord(os.sep) + 1])


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """Describes an indexed document: the file and place it came from, its digest, and the last run that saw it."""

    id: str
    """The document's id, unique in the index."""
    file: str
    own: str
    """The id of the document in its file."""
    place: str
    digest: bytes
    run: int


@dataclass(frozen=True, slots=True)
class JournalFile:
    """Describes an indexed file: its label, its absolute path, and its stamp."""

    label: str
    path: Path
    stamp: str
    """The state of the file when it was completely indexed; "" if it was not."""


class Journal(Rows):
    """Reads and writes the journal during one run. Nothing is stored before `commit`.

    Files are identified by their absolute paths and shown by their labels. Sources, the folders and files that a
    user named, are likewise identified by their paths and shown by their names.
    """

    def __init__(self, database: Database) -> None:
        """Begin a run in the database of an index; its number is stored with its first commit."""
        self._database = database
        with database.reading() as transaction:
            self.run = transaction.state.last_run() + 1
        self._compared = False
        self._held = ExitStack()
        self._transaction: Transaction | None = None
        super().__init__(self)

    def sources(self) -> dict[Path, str]:
        """Return the names of all sources, by path."""
        rows = self._run("SELECT path, name FROM sources ORDER BY path")
        return {_path(path): name for path, name in rows}

    def source_at(self, path: Path) -> str | None:
        """Return the name of the source at a path; None if there is no source."""
        query = "SELECT name FROM sources WHERE path = ?"
        name: str | None = self._value(query, os.fsencode(path))
        return name

    def has_source(self, name: str) -> bool:
        """Return whether there is a source with this name."""
        query = "SELECT 1 FROM sources WHERE name = ?"
        return self._value(query, name) is not None

    def put_source(self, path: Path, name: str) -> None:
        """Store a source with its name."""
        values = (os.fsencode(path), name)
        self._run("INSERT INTO sources VALUES (?, ?)", values)

    def move_source(self, old: Path, new: Path) -> None:
        """Record that the source at `old` is now at `new`, with all files and sources inside it."""
        place = os.fsencode(new)
        before = os.fsencode(old)
        for table in ("sources", "files", "fields", "metadata"):
            query = f"SELECT path FROM {table} WHERE {_WITHIN}"
            for path in self._column(query, *_within(old)):
                moved = place + path.removeprefix(before)
                self._run(f"UPDATE {table} SET path = ? WHERE path = ?", (moved, path))

    def drop_empty_sources(self) -> None:
        """Delete the sources without files, with their fields and metadata, so that their names can be used again."""
        for path in self.sources():
            if not self._holds_files(path):
                self._run("DELETE FROM sources WHERE path = ?", (os.fsencode(path),))
        for table in ("fields", "metadata"):
            for path in self._column(f"SELECT path FROM {table}"):
                if not self._holds_files(_path(path)):
                    self._run(f"DELETE FROM {table} WHERE path = ?", (path,))

    def note_at(self, table: str, path: Path) -> str:
        """Return the text stored for a folder or file, or "".

        Args:
            table: "fields" or "metadata".
        """
        column = _NOTES[table]
        query = f"SELECT {column} FROM {table} WHERE path = ?"
        return self._value(query, os.fsencode(path)) or ""

    def put_note(self, table: str, path: Path, text: str) -> None:
        """Store a text for a folder or file.

        Args:
            table: "fields" or "metadata".
        """
        place = os.fsencode(path)
        self._run(f"DELETE FROM {table} WHERE path = ?", (place,))
        self._run(f"INSERT INTO {table} VALUES (?, ?)", (place, text))

    def all_fields(self) -> list[str]:
        """Return all stored rules for the fields of records, of all folders and files."""
        return self._column("SELECT rules FROM fields")

    def file(self, label: str) -> JournalFile | None:
        """Return the file with this label; None if the journal does not know it."""
        return self._file("label", label)

    def file_at(self, path: Path) -> JournalFile | None:
        """Return the file at an absolute path; None if the journal does not know it."""
        return self._file("path", os.fsencode(path))

    def files_in(self, path: Path) -> list[JournalFile]:
        """Return the files that were indexed from the folder `path`, or the file at `path`, sorted by label."""
        query = f"SELECT label, path, stamp FROM files WHERE {_WITHIN} ORDER BY label"
        return [_file_in(row) for row in self._run(query, _within(path))]

    def _holds_files(self, path: Path) -> bool:
        query = f"SELECT 1 FROM files WHERE {_WITHIN} LIMIT 1"
        return self._value(query, *_within(path)) is not None

    def put_file(self, label: str, path: Path, stamp: str) -> None:
        """Store a file's entry. It replaces entries with the same label or path."""
        place = os.fsencode(path)
        self._run("DELETE FROM files WHERE label = ? OR path = ?", (label, place))
        self._run("INSERT INTO files VALUES (?, ?, ?)", (label, place, stamp))

    def put_upload(self, path: Path, data: bytes) -> None:
        """Store the bytes of an uploaded file."""
        with self._database.named_errors():
            self.begin().uploads.put(path, data)

    def _drop_upload(self, label: str) -> None:
        if known := self.file(label):
            with self._database.named_errors():
                self.begin().uploads.forget(known.path)

    def drop_file(self, label: str) -> None:
        """Delete a file's entry, its own metadata and its bytes."""
        self._drop_upload(label)
        own = (
            "DELETE FROM metadata WHERE path = (SELECT path FROM files WHERE label = ?)"
        )
        self._run(own, (label,))
        self._run("DELETE FROM files WHERE label = ?", (label,))
        self.leave_remains()

    def document(self, name: str) -> JournalEntry | None:
        """Return the document with this id; None if the journal does not know it."""
        return self._document("id = ?", name)

    def document_of(self, file: str, own: str) -> JournalEntry | None:
        """Return the document with the id `own` in a file; None if the journal does not know it."""
        return self._document("file = ? AND own = ?", file, own)

    def _document(self, condition: str, *values: str) -> JournalEntry | None:
        query = f"SELECT {_ENTRY} FROM documents WHERE {condition}"
        row = self._run(query, values).fetchone()
        return JournalEntry(*row) if row else None

    def ids_from(self, first: str, end: str) -> list[str]:
        """Return the ids of the documents from `first` up to, but not including, `end`."""
        query = "SELECT id FROM documents WHERE id >= ? AND id < ?"
        return self._column(query, first, end)

    def put_document(
        self, name: str, file: str, own: str, place: str, digest: bytes
    ) -> None:
        """Store a document's entry, and that this run saw it."""
        values = (name, file, own, place, digest, self.run)
        self._run(_PUT_DOCUMENT, values)

    def drop_document(self, name: str) -> None:
        """Delete a document's entry, and the bytes of the upload that contained it."""
        if known := self.document(name):
            self._drop_upload(known.file)
        self._run("DELETE FROM documents WHERE id = ?", (name,))
        self.leave_remains()

    def forget_document(self, name: str) -> None:
        """Delete a document and the stamp of its file, so that the next run indexes it again if it still exists."""
        known = self.document(name)
        self.drop_document(name)
        if known is None:
            return
        if self._value("SELECT 1 FROM documents WHERE file = ?", known.file):
            self._run("UPDATE files SET stamp = '' WHERE label = ?", (known.file,))
        else:
            self.drop_file(known.file)

    def documents_of(self, file: str, *, unseen: bool = False) -> list[str]:
        """Return the ids of a file's documents.

        Args:
            unseen: whether to return only those that this run has not seen.
        """
        latest = self.run - 1 if unseen else self.run
        query = "SELECT id FROM documents WHERE file = ? AND run <= ? ORDER BY id"
        return self._column(query, file, latest)

    def _file(self, column: str, value: object) -> JournalFile | None:
        query = f"SELECT label, path, stamp FROM files WHERE {column} = ?"
        row = self._run(query, (value,)).fetchone()
        return _file_in(row) if row else None

    def compare(self) -> None:
        """Let the database check its indexes of files and documents, once for each run. Raises IndexMismatch for
        damage.

        Otherwise a file with a damaged path could be mistaken for another file with its label.
        """
        if not self._compared:
            self._compared = True
            self._database.check(("sources", "files", "documents"))

    def begin(self) -> Transaction:
        """Begin the transaction that `commit` ends, and store the run's number, unless one has begun already."""
        if self._transaction is None:
            self._transaction = self._held.enter_context(self._database.writing())
            with self._database.named_errors():
                self._transaction.state.put_run(self.run)
        return self._transaction

    def commit(self) -> None:
        """Store everything written since `begin`."""
        self.begin()
        self._transaction = None
        self._held.close()

    def rollback(self) -> None:
        """Discard everything written since `begin`."""
        if self._transaction is not None:
            self._transaction = None
            with suppress(_TakenBack):
                self._held.__exit__(_TakenBack, _TakenBack(), None)

    def execute(self, query: str, values: Any = (), /) -> Any:
        """Run a statement. The first one that writes begins a transaction; reads before it need none."""
        reads = query.lstrip().startswith("SELECT")
        if self._transaction is None and reads:
            with self._database.reading() as transaction:
                rows = transaction.execute(query, values).fetchall()
                return _Rows(rows)
        with self._database.named_errors():
            return self.begin().execute(query, values)

    def executemany(self, query: str, rows: Any, /) -> Any:
        """Run a statement for each of `rows`."""
        with self._database.named_errors():
            return self.begin().executemany(query, rows)


class _Rows(list[Any]):
    """Holds the rows of a read that has ended, with the interface of a cursor."""

    def fetchone(self) -> Any:
        return self[0] if self else None

    def fetchall(self) -> list[Any]:
        return self


class _TakenBack(Exception):
    """Ends a transaction so that it is rolled back."""


@contextmanager
def open_journal(database: Database | None) -> Iterator[Journal]:
    """Open the journal of the index in `database`, for this process only. Raises IngestError while another process has
    it.

    Without a database, the journal is an empty one in memory.
    """
    if database is None:
        database = memory_database(beginning(0, ""))
    with database.alone():
        journal = Journal(database)
        try:
            yield journal
        finally:
            journal.rollback()


def _within(path: Path) -> tuple[bytes, bytes, bytes]:
    """Return the parameters of `_WITHIN`: the path itself, and the range of the paths in that folder."""
    whole = os.fsencode(path)
    folder = whole.rstrip(_SEPARATOR)
    return whole, folder + _SEPARATOR, folder + _AFTER_SEPARATOR


def _path(data: bytes) -> Path:
    return Path(os.fsdecode(data))


def _file_in(row: tuple[str, bytes, str]) -> JournalFile:
    label, place, stamp = row
    return JournalFile(label, _path(place), stamp)

"""Indexes files: loads, cuts and adds them batch by batch, so that a run that is killed can be continued.

A file that has not changed since it was completely indexed is not read again, and an unchanged document is not
embedded again. Files and records that cannot be loaded are skipped, counted and reported; with `strict`, the first
of them ends the run before anything is written.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any

from ras_agent.config.address import Address, as_argument, place_of
from ras_agent.config.filters import read_metadata
from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.text.languages import ENGLISH
from ras_agent.tools.index.apart import FILE_SECONDS, Apart
from ras_agent.tools.index.chunk import DEFAULT_CHUNKING, Chunking, passages_of
from ras_agent.tools.index.documents import Document, Skipped
from ras_agent.tools.index.fields import (
    ALL_FILES,
    TEXT,
    FieldRules,
    Fields,
    Remembered,
    stored_rules,
    text_patterns,
)
from ras_agent.tools.index.find_files import SourceFile, find_files
from ras_agent.tools.index.identity import (
    document_id,
    gone_sources,
    label_of,
    settled_state,
    size_and_time,
    take_over_moved,
)
from ras_agent.tools.index.language import check_language
from ras_agent.tools.index.load import SUFFIXES, load
from ras_agent.tools.index.ocr import with_ocr
from ras_agent.tools.index.snapshot import read_state
from ras_agent.tools.index.store import Compact, PassageIndex, database_at
from ras_agent.tools.index.text_files import Convert, path_of
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.uploads import uploaded_as
from ras_agent.tools.index.vision import PICTURES, Vision, with_vision
from ras_agent.tools.store.journal import Journal, JournalFile, open_journal

# Numbers of passages in the first and in the largest batch. The size of batches is adapted until one takes a few
# seconds to write, so that little is repeated after a kill, whether ten or ten thousand passages are embedded a second.
FIRST_BATCH = 128
LARGEST_BATCH = 8192
BATCH_SECONDS = 4.0
# Increased when a release reads files in another way: the next run then reads all of them again.
READING = 5
_BY_OCR = " ocr"
# A file that begins with this many bad records was probably meant to be read in another way; reading stops there.
HOPELESS = 1000
_CHANGED = "changed or vanished while it was read; run again when no program writes it"
_MOST_FIELDS = 2_000_000
"""The maximum number of fields that the passages of one document hold together."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Reports the progress of a run: the current file, bytes read of all files, and passages written so far."""

    file: str
    bytes_read: int
    bytes_total: int
    passages: int


@dataclass(frozen=True, slots=True)
class IngestReport:
    """Counts the files, documents and passages that a run has handled."""

    files: int
    files_unchanged: int
    documents_written: int
    documents_unchanged: int
    documents_removed: int
    passages_written: int
    passages_total: int
    skipped: tuple[Skipped, ...]
    vanished: tuple[str, ...]
    """Files that were indexed from the named folders before and are missing now; after pruning, only those whose
    folder cannot be read.
    """
    moved: tuple[tuple[str, str], ...] = ()
    """Old and new place of folders and files that were moved."""
    stranded: tuple[str, ...] = ()
    """Folders and files of earlier runs that no longer exist, if this run added new ones; their documents are kept."""
    long_records: int = 0
    """How many written records are longer than a passage should be, and were not cut because they have an id."""
    remaining: tuple[str, ...] = ()
    """Files that were forgotten but still exist, so that the next run over their folder reads them again."""

    @property
    def errors(self) -> tuple[Skipped, ...]:
        """Return the files and records that should have been indexed but could not be."""
        return tuple(item for item in self.skipped if item.error)


def ingest(
    paths: Iterable[str | Path | SourceFile],
    out: str | Path | Address,
    *,
    embedder: Any = None,
    chunking: Chunking = DEFAULT_CHUNKING,
    fields: Fields | FieldRules | None = None,
    metadata: Mapping[str, Any] | None = None,
    language: str | None = None,
    strict: bool = False,
    prune: bool = False,
    forget: Sequence[str] = (),
    follow_links: bool = False,
    as_text: Sequence[str] = (),
    ocr: Sequence[str] = (),
    vision: str = "",
    compact: Compact = "now",
    on_progress: Callable[[Progress], None] | None = None,
) -> IngestReport:
    """Index files, and the files in folders, into the index at `out`, which is created if it does not exist.

    A file is a document, or each of its records is one; `identity` gives the documents their names.

    Args:
        paths: files and folders. If an uploaded file is among them (a SourceFile with data), the whole call is one
            transaction, which also stores the bytes of the file.
        out: a folder, or the address of a database such as postgresql://host/database.
        embedder: for the vectors, as in PassageIndex.create.
        chunking: how documents are cut into passages.
        fields: the fields of records, for all files or by patterns of file names. The index remembers them for each of
            `paths`, so that a later run need not give them.
        metadata: metadata fields for all passages of `paths`, whatever their files say, remembered in the same way; a
            field with the value None is removed.
        language: the language of the texts, which decides how words are stemmed; a new index remembers it. English by
            default.
        strict: whether the first thing that cannot be loaded ends the run.
        prune: remove the documents of files that were indexed from the named folders and no longer exist, except those
            in a folder that cannot be read.
        forget: labels of files, ids of documents, or paths of files and folders, whose documents are removed whether or
            not the files still exist.
        follow_links: also load the files to which links inside the named folders lead.
        as_text: patterns of files of other kinds that are read as plain text, remembered like `fields`.
        ocr: a program with its arguments that reads the pages of a PDF without text, see `with_ocr`. It is not
            remembered, but the text that it has read is kept as long as the file does not change.
        vision: a chat model that describes pictures, see `with_vision`; without it, pictures are left out.
        compact: when the bytes of removed and replaced texts leave the files; searches do not find these texts in
            any case. "now": before this returns, with those left by an interrupted call; "later": with the next call
            that says "now".
        on_progress: receives progress reports.

    Raises:
        FilterError: metadata that no filter can compare.
        IngestError: there is nothing to do, another run writes the same index, or, with `strict`, something cannot be
            loaded.
        IndexExists, IndexMismatch, MissingExtra: as for PassageIndex.
    """
    place = place_of(out)
    exclude = place if isinstance(place, Path) else None
    rules = (
        dict(fields or {}) if not isinstance(fields, Fields) else {ALL_FILES: fields}
    )
    rules = {**dict.fromkeys(as_text, Fields(kind=TEXT)), **rules}
    known = PassageIndex.exists(place)
    patterns = {*as_text, *(_text_patterns(place) if known else ())}
    files = find_files(
        paths,
        (*SUFFIXES, *PICTURES) if vision else SUFFIXES,
        exclude=exclude,
        follow_links=follow_links,
        as_text=patterns,
    )
    found = tuple(files)
    some = bool(forget) or any(isinstance(item, SourceFile) for item in found)
    problems = [
        item for item in found if isinstance(item, Skipped) and (item.error or not some)
    ]
    if problems and (strict or not some):
        first = next((item for item in problems if item.error), problems[0])
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        if first.error:
            raise IngestError(str(first))
        raise IngestError(
            f"no file to index under the given paths; left out: {first}{more}"
        )
    if not some:
        raise IngestError(
            "no file to index in the given folders: give the path of a file or folder that has one"
        )

    given = read_metadata(metadata or {})
    sees = Vision(vision) if vision else None
    run = partial(
        _IngestRun,
        chunking=chunking,
        fields=rules,
        metadata=given,
        strict=strict,
        ocr=ocr,
        vision=sees,
    )
    if strict:
        with _journal(place) as journal:
            run(None, journal).take(found, prune=prune, forget=forget)
    if known or not found:
        index = PassageIndex.open(place, embedder)
        check_language(index, language)
    else:
        index = PassageIndex.create(
            place, embedder, tokeniser=Tokeniser(language or ENGLISH)
        )
    with open_journal(index.database) as journal:
        if not index.is_finished():
            index.finish(compact)  # this run may find nothing to do
        with index.batch(compact):
            writing = run(index, journal, on_progress=on_progress)
            return writing.take(found, prune=prune, forget=forget)


def _text_patterns(place: Path | Address) -> tuple[str, ...]:
    """Return the patterns of the files that an index reads as plain text."""
    with _journal(place) as journal:
        stored = journal.all_fields()
    return text_patterns(map(stored_rules, stored))


def upload_label(name: str, out: str | Path | Address) -> str | None:
    """Return the label of an uploaded file in an index; None if the index does not know it.

    Args:
        name: the file's name, or part/name.
    """
    path = uploaded_as(name)
    with _journal(place_of(out)) as journal:
        known = path and journal.file_at(path)
    return known.label if known else None


def dry_run(
    paths: Iterable[str | Path | SourceFile],
    out: str | Path | Address,
    *,
    chunking: Chunking,
    fields: FieldRules,
    metadata: Mapping[str, Any],
) -> IngestReport:
    """Return the report that `ingest` would return for the same arguments, without writing anything."""
    with _journal(place_of(out)) as journal:
        return _IngestRun(None, journal, chunking, fields, metadata).take(
            tuple(find_files(paths, SUFFIXES))
        )


@contextmanager
def _journal(place: Path | Address) -> Iterator[Journal]:
    """Open the journal of the index at a place, or an empty journal if there is no index."""
    if not PassageIndex.exists(place):
        with open_journal(None) as journal:
            yield journal
        return
    database = database_at(place)
    try:
        with database.reading() as connection:
            read_state(connection, database)
        with open_journal(database) as journal:
            yield journal
    finally:
        database.close()


class _IngestRun:
    """Passes over files once and indexes them. Without an index, it loads everything and writes nothing (a dry run).

    Args:
        strict: raise IngestError for the first thing that cannot be loaded.
    """

    def __init__(
        self,
        index: PassageIndex | None,
        journal: Journal,
        chunking: Chunking,
        fields: FieldRules,
        metadata: Mapping[str, Any],
        *,
        strict: bool = False,
        ocr: Sequence[str] = (),
        vision: Vision | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._ocr = ocr
        self._vision = vision
        self._index = index
        self._journal = journal
        self._chunking = chunking
        self._strict = strict
        self._remembered = Remembered(journal, fields, metadata)
        self._metadata = dict[str, Any]()
        self._on_progress = on_progress
        self._way = ""
        self._apart = False
        self._at_once = False
        self._counts: Counter[str] = Counter()
        self._skipped: list[Skipped] = []
        self._new: list[Passage] = []
        self._old: list[str] = []
        self._remaining: list[str] = []
        self._bytes = self._bytes_total = 0
        self._batch = FIRST_BATCH
        self._file = ""
        self._process = Apart(FILE_SECONDS, each=True)

    def take(
        self,
        found: Sequence[SourceFile | Skipped],
        *,
        prune: bool = False,
        forget: Sequence[str] = (),
    ) -> IngestReport:
        """Remove the names in `forget` and, with `prune`, the files that vanished; then index the files in `found`."""
        files = [item for item in found if isinstance(item, SourceFile)]
        self._bytes_total = sum(_size(file) for file in files)
        self._at_once = any(file.data is not None for file in files)
        for item in found:
            if isinstance(item, Skipped):
                self._skip(item)
        for name in forget:
            self._forget(name)
        remaining = list(self._remaining)
        if forget:
            self._journal.drop_empty_sources()
        moved = take_over_moved(files, self._journal)
        for root in {file.root for file in files}:
            self._remembered.remember(root)
        known_roots = self._journal.sources()
        new = any(
            file.root not in known_roots and not self._journal.file_at(file.place)
            for file in files
        )
        stranded = gone_sources(self._journal) if new else []
        places = {file.place for file in files}
        roots = {file.root for file in files}
        known = {
            one.path: one.label
            for root in roots
            for one in self._journal.files_in(root)
        }
        vanished = {path: label for path, label in known.items() if path not in places}
        if prune:
            # files in a folder that cannot be read seem to have vanished, but are kept
            hidden = {
                path: label for path, label in vanished.items() if self._is_hidden(path)
            }
            for path, label in vanished.items():
                if path not in hidden:
                    self._forget_file(label)
            self._journal.drop_empty_sources()
            vanished = hidden
        with self._process:
            for file in files:
                self._take_file(file)
        self._flush()
        return IngestReport(
            files=self._counts["files"],
            files_unchanged=self._counts["files_unchanged"],
            documents_written=self._counts["documents_written"],
            documents_unchanged=self._counts["documents_unchanged"],
            documents_removed=self._counts["documents_removed"],
            passages_written=self._counts["passages_written"],
            passages_total=0 if self._index is None else len(self._index),
            skipped=tuple(self._skipped),
            vanished=tuple(sorted(vanished.values())),
            moved=tuple((str(old), str(new)) for old, new in moved),
            stranded=tuple(map(str, stranded)),
            long_records=self._counts["long_records"],
            remaining=tuple(remaining),
        )

    def _take_file(self, file: SourceFile) -> None:
        label = label_of(file, self._journal)
        self._file = label
        began = self._bytes
        fields = self._remembered.fields_of(file.root, file.inner)
        self._metadata = self._remembered.metadata_of(file.place)
        self._apart = file.apart
        self._way = json.dumps([READING, asdict(self._chunking), asdict(fields)])
        if self._metadata:
            self._way += json.dumps(self._metadata, sort_keys=True)
        known = self._journal.file(label)
        state = settled_state(file.path) if file.data is None else ""
        stamp = state and state + self._way
        by_ocr = f"{stamp}{_BY_OCR}"
        is_read = known is not None and known.stamp in (stamp, by_ocr)
        if self._ocr and file.path.suffix.lower() == ".pdf":
            stamp = by_ocr
            is_read = known is not None and known.stamp == stamp
        if stamp and is_read:
            self._counts["files_unchanged"] += 1
        else:
            self._journal.put_file(label, file.place, "")
            if self._take_documents(file, label, fields, state):
                # after an error, documents that were not seen stay in the index until the file can be read completely
                self._remove(self._journal.documents_of(label, unseen=True))
                self._journal.put_file(label, file.place, stamp)
            else:
                self._report_older(label)
            if file.data is not None and self._index is not None:
                self._journal.put_upload(file.place, file.data)
            self._counts["files"] += 1
            if not self._new and not self._at_once:
                self._flush()
        self._read(began + _size(file) - self._bytes)

    def _report_older(self, label: str) -> None:
        """Report the documents of a file that an earlier run read and this run could not read."""
        count = len(self._journal.documents_of(label, unseen=True))
        if count:
            documents = "a document" if count == 1 else f"{count:,} documents"
            reason = f"{documents} that an earlier run read in it can still be found: mend the file, or --forget it"
            self._skip(Skipped(label, reason, error=False))

    def _take_documents(
        self, file: SourceFile, label: str, fields: Fields, state: str
    ) -> bool:
        """Index the documents of a file; return whether all of the file could be loaded.

        Args:
            state: the file's size and time of change before it is read; nothing that is read after a change is indexed.
        """
        good = bad = 0
        convert: Convert = self._process.convert
        if self._ocr:
            convert = with_ocr(self._ocr, convert)
        if self._vision:
            convert = with_vision(self._vision, convert)
        for item in load(file.content, label, fields, self._read, convert):
            if _has_changed(file, state):
                break
            problem = item if isinstance(item, Skipped) else self._put(item, label)
            if problem is None:
                good += 1
                continue
            self._skip(problem)
            bad += problem.error
            if bad == HOPELESS and not good:
                self._skip(
                    Skipped(
                        label,
                        f"its first {HOPELESS:,} records are all bad; the rest was not read",
                    )
                )
                break
        if _has_changed(file, state):
            self._skip(Skipped(label, _CHANGED))
            return False
        return not bad

    def _put(self, document: Document, file: str) -> Skipped | None:
        """Write a document if it is new or changed. Return a Skipped if it cannot be written, for example if its id is
        repeated."""
        known = self._journal.document_of(file, document.id)
        if known and known.run == self._journal.run:
            return Skipped(
                document.place, f"id {document.id!r} is already taken by {known.place}"
            )
        own = (
            f"{file}/{document.id}" if self._apart and document.record else document.id
        )
        name = known.id if known else document_id(own, file, self._journal)
        digest = self._digest(document)
        if problem := _too_wide(document, self._chunking):
            return problem
        if known and known.digest == digest:
            self._counts["documents_unchanged"] += 1
        else:
            # a record may name the file that it was made from in its metadata, and is then cited by it
            about = {"file": file, **_known_values(document.metadata), **self._metadata}
            self._new += passages_of(
                replace(document, id=name, metadata=about), self._chunking
            )
            self._counts["documents_written"] += 1
            whole = document.record and not self._chunking.cut_records
            self._counts["long_records"] += (
                whole and len(document.text) > self._chunking.size
            )
        self._journal.put_document(name, file, document.id, document.place, digest)
        if len(self._new) >= self._batch and not self._at_once:
            self._flush()
        return None

    def _forget(self, name: str) -> None:
        """Remove what `name` refers to: the documents of a file, by its label, one document, or all that came from a
        path."""
        if self._journal.file(name):
            self._forget_file(name)
        elif self._journal.document(name):
            self._remove([name])
        elif files := _files_at(path_of(name), self._journal):
            for file in files:
                self._forget_file(file.label)
        else:
            remedy = "give a file as it is called there, its path, that of a folder, or an id"
            if self._index is not None and name in self._index.document_ids():
                command = f"`ras-agent kg delete {as_argument(self._index)} {as_argument(name)}`"
                method = f"PassageIndex.delete_document({name!r})"
                remedy = f"it was added otherwise, {method if self._index.path is None else command} takes it out"
            raise IngestError(f"nothing in the index came from {name!r}: {remedy}")

    def _forget_file(self, label: str) -> None:
        known = self._journal.file(label)
        if known is not None and known.path.is_file():
            self._remaining.append(str(known.path))
        self._remove(self._journal.documents_of(label))
        self._journal.drop_file(label)

    def _remove(self, documents: Iterable[str]) -> None:
        for name in documents:
            self._old.append(name)
            self._journal.drop_document(name)
            self._counts["documents_removed"] += 1

    def _flush(self) -> None:
        """Write the batch to the index and the journal, in a single transaction if both are in one database."""
        if self._index is not None:
            began = monotonic()
            self._journal.begin()
            if self._old:
                self._index.delete_documents(self._old)
            if self._new:
                self._index.upsert(self._new, whole_documents=True)
            self._journal.commit()
            self._index.committed()
            if len(self._new) >= self._batch:
                quick = monotonic() - began < BATCH_SECONDS
                self._batch = (
                    min(2 * self._batch, LARGEST_BATCH)
                    if quick
                    else max(self._batch // 2, FIRST_BATCH)
                )
            self._counts["passages_written"] += len(self._new)
            self._read(0)
        self._new = []
        self._old = []

    def _skip(self, item: Skipped) -> None:
        if item.error and self._strict:
            raise IngestError(str(item))
        self._skipped.append(item)

    def _read(self, count: int) -> None:
        """Add `count` to the bytes read, and report the progress of the run."""
        self._bytes += count
        if self._on_progress:
            written = self._counts["passages_written"]
            self._on_progress(
                Progress(self._file, self._bytes, self._bytes_total, written)
            )

    def _is_hidden(self, path: Path) -> bool:
        """Return whether the file, or a folder that contains it, could not be read."""
        hidden = [item.hides for item in self._skipped if item.hides]
        return any(map(path.is_relative_to, hidden))

    def _digest(self, document: Document) -> bytes:
        parts = [
            document.text,
            document.title,
            document.metadata,
            document.pages,
            self._way,
        ]
        return hashlib.blake2b(
            json.dumps(parts, sort_keys=True).encode(), digest_size=16
        ).digest()


def _known_values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without NaN and infinities, which tables use for missing values; inside lists these become
    null."""
    known = {}
    for key, value in metadata.items():
        if not _is_unknown(value):
            known[key] = _with_nulls(value)
    return known


def _is_unknown(value: object) -> bool:
    return isinstance(value, float) and not isfinite(value)


def _with_nulls(value: Any) -> Any:
    """Return a JSON value in which NaN and infinities are replaced by null, or left out of objects."""
    if isinstance(value, list):
        return list(map(_with_nulls, value))
    if isinstance(value, dict):
        return _known_values(value)
    return None if _is_unknown(value) else value


def _too_wide(document: Document, chunking: Chunking) -> Skipped | None:
    """Return a Skipped if a document's fields, repeated in each of its passages, would fill the memory; otherwise
    None."""
    if document.record and not chunking.cut_records:
        return None
    passages = 1 + len(document.text) // chunking.size
    fields = len(document.metadata)
    if fields * passages <= _MOST_FIELDS:
        return None
    return Skipped(
        document.place,
        f"its {fields:,} fields would be repeated in each of about {passages:,} passages; "
        "leave columns out, or give it an id, so that it stays one passage",
    )


def _files_at(path: Path, journal: Journal) -> list[JournalFile]:
    """Return the files that came from a path, which may be a symbolic link that is now broken."""
    return journal.files_in(Path(os.path.realpath(path))) or journal.files_in(
        Path(os.path.abspath(path))
    )


def _has_changed(file: SourceFile, state: str) -> bool:
    """Return whether a file on a disk has changed, or vanished, since it had this size and time of change."""
    return file.data is None and size_and_time(file.path) != state


def _size(file: SourceFile) -> int:
    if file.data is not None:
        return len(file.data)
    try:
        return file.path.stat().st_size
    except OSError:
        return 0

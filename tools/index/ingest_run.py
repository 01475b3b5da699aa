"""One run over files: what changed goes to the index in batches, and to the journal right after."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from time import monotonic

from ras_agent.errors import IngestError
from ras_agent.records import Passage
from ras_agent.tools.index.chunk import Chunking, passages_of
from ras_agent.tools.index.find_files import SourceFile
from ras_agent.tools.index.journal import Journal
from ras_agent.tools.index.load import Document, Fields, Skipped, load
from ras_agent.tools.index.store import PassageIndex

__all__ = ["IngestReport", "IngestRun", "Progress"]

# Passages of the first batch, and of the largest: a batch grows and shrinks until it takes a few seconds to write, so
# that little is done twice after a kill, whether embedding runs at ten passages a second or at ten thousand.
FIRST_BATCH, LARGEST_BATCH = 128, 8192
BATCH_SECONDS = 4.0
# A file that begins with so many bad records was meant to be read otherwise; a million messages say no more.
HOPELESS = 1000


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: bytes of all its files, passages of those that changed."""

    file: str
    bytes_read: int
    bytes_total: int
    passages: int


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What a run did.

    vanished: files once indexed from the folders named now, and no longer to be seen there; after pruning only those
    that may stand in a place that cannot be read.
    """

    files: int
    files_unchanged: int
    documents_written: int
    documents_unchanged: int
    documents_removed: int
    passages_written: int
    passages_total: int
    skipped: tuple[Skipped, ...]
    vanished: tuple[str, ...]

    @property
    def errors(self) -> tuple[Skipped, ...]:
        """What should have been indexed and could not be."""
        return tuple(item for item in self.skipped if item.error)


class IngestRun:
    """One pass over files. Without an index it rehearses: everything is loaded, nothing is written.

    strict: raise IngestError for the first thing that cannot be loaded.
    """

    def __init__(
        self,
        index: PassageIndex | None,
        journal: Journal,
        chunking: Chunking,
        fields: Fields,
        *,
        strict: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._index, self._journal = index, journal
        self._chunking, self._fields, self._strict = chunking, fields, strict
        self._on_progress = on_progress
        self._way = json.dumps([asdict(chunking), asdict(fields)])
        self._counts: Counter[str] = Counter()
        self._skipped: list[Skipped] = []
        self._new: list[Passage] = []
        self._old: list[str] = []
        self._bytes = self._bytes_total = 0
        self._batch, self._file = FIRST_BATCH, ""

    def take(
        self, found: Sequence[SourceFile | Skipped], *, prune: bool = False, forget: Sequence[str] = ()
    ) -> IngestReport:
        """Index what was found; before that, remove what is to be forgotten and, with `prune`, what vanished."""
        files = [item for item in found if isinstance(item, SourceFile)]
        self._bytes_total = sum(_size(file) for file in files)
        for item in found:
            if isinstance(item, Skipped):
                self._skip(item)
        for name in forget:
            self._forget(name)
        labels = {file.label for file in files}
        vanished = [label for label in self._journal.files_under({file.root for file in files}) if label not in labels]
        if prune:
            # the files of a folder that cannot be read look as if they had vanished
            hidden = [label for label in vanished if any(_is_in(label, item.hides) for item in self._skipped)]
            for label in vanished:
                if label not in hidden:
                    self._forget(label)
            vanished = hidden
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
            vanished=tuple(vanished),
        )

    def _take_file(self, file: SourceFile) -> None:
        self._file, began = file.label, self._bytes
        stamp = self._stamp(file)
        if stamp and self._journal.stamp(file.label) == stamp:
            self._counts["files_unchanged"] += 1
        else:
            self._journal.put_file(file.label, file.root, "")
            if self._take_documents(file):
                # what an error may have hidden stays in the index until the file can be read
                self._remove(self._journal.documents_of(file.label, unseen=True))
                self._journal.put_file(file.label, file.root, stamp)
            self._counts["files"] += 1
            if not self._new:
                self._flush()
        self._read(began + _size(file) - self._bytes)

    def _take_documents(self, file: SourceFile) -> bool:
        """Whether all of the file could be loaded."""
        good = bad = 0
        for item in load(file.path, file.label, self._fields, self._read):
            problem = item if isinstance(item, Skipped) else self._put(item, file.label)
            if problem is None:
                good += 1
                continue
            self._skip(problem)
            bad += problem.error
            if bad == HOPELESS and not good:
                self._skip(Skipped(file.label, f"its first {HOPELESS:,} records are all bad; the rest was not read"))
                break
        return not bad

    def _put(self, document: Document, file: str) -> Skipped | None:
        """Write a document that is new or changed, unless its id is another's."""
        known = self._journal.document(document.id)
        if known and (known.file != file or known.run == self._journal.run):
            return Skipped(document.place, f"id {document.id!r} is already taken by {known.place}")
        digest = self._digest(document)
        if known and known.digest == digest:
            self._counts["documents_unchanged"] += 1
        else:
            self._new += passages_of(document, self._chunking)
            self._counts["documents_written"] += 1
        self._journal.put_document(document.id, file, document.place, digest)
        if len(self._new) >= self._batch:
            self._flush()
        return None

    def _forget(self, name: str) -> None:
        """Remove a file's documents, or the one document of that name."""
        if self._journal.stamp(name) is not None:
            self._remove(self._journal.documents_of(name))
            self._journal.drop_file(name)
        elif self._journal.document(name):
            self._remove([name])
        else:
            told = "give a file as it is called there, or an id"
            if self._index is not None and name in self._index.document_ids():
                told = f"it was added otherwise, `ras-agent kg delete {self._index.path} {name}` takes it out"
            raise IngestError(f"nothing in the index came from {name!r}: {told}")

    def _remove(self, documents: Iterable[str]) -> None:
        for name in documents:
            self._old.append(name)
            self._journal.drop_document(name)
            self._counts["documents_removed"] += 1

    def _flush(self) -> None:
        """Write the batch: the index first, then the journal."""
        if self._index is not None:
            began = monotonic()
            if self._old:
                self._index.delete_documents(self._old)
            if self._new:
                self._index.upsert(self._new, whole_documents=True)
            self._journal.commit()
            if len(self._new) >= self._batch:
                quick = monotonic() - began < BATCH_SECONDS
                self._batch = min(2 * self._batch, LARGEST_BATCH) if quick else max(self._batch // 2, FIRST_BATCH)
            self._counts["passages_written"] += len(self._new)
            self._read(0)
        self._new, self._old = [], []

    def _skip(self, item: Skipped) -> None:
        if item.error and self._strict:
            raise IngestError(str(item))
        self._skipped.append(item)

    def _read(self, count: int) -> None:
        """Note that `count` more bytes were read, and tell how far the run is."""
        self._bytes += count
        if self._on_progress:
            written = self._counts["passages_written"]
            self._on_progress(Progress(self._file, self._bytes, self._bytes_total, written))

    def _stamp(self, file: SourceFile) -> str:
        """The file's size, time of change, and how it is read; empty where it cannot be asked."""
        try:
            status = file.path.stat()
        except OSError:
            return ""
        return f"{status.st_size} {status.st_mtime_ns} {self._way}"

    def _digest(self, document: Document) -> bytes:
        parts = [document.text, document.title, document.metadata, document.pages, self._way]
        return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).digest()


def _is_in(label: str, place: str) -> bool:
    """Whether `place` is the file's label, or that of a folder around it."""
    return bool(place) and (label == place or label.startswith(f"{place}/"))


def _size(file: SourceFile) -> int:
    try:
        return file.path.stat().st_size
    except OSError:
        return 0

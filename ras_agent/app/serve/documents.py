"""The documents of a server's index: uploaded, indexed, removed."""

from __future__ import annotations

import asyncio
import os
import shutil
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from fastapi import UploadFile

from ras_agent.address import Address
from ras_agent.app.serve.access import Caller
from ras_agent.app.serve.refused import Refused
from ras_agent.app.serve.wire import Removed, Skip, Uploaded
from ras_agent.errors import IngestError, RasError
from ras_agent.settings import Settings
from ras_agent.tools.index.chunk import Chunking
from ras_agent.tools.index.fields import ALL_FILES, USUAL_FIELDS, FieldRules, Fields
from ras_agent.tools.index.ingest import IngestReport, ingest, rehearse
from ras_agent.tools.index.load import LOADERS, Skipped
from ras_agent.tools.index.postgres import PostgresIndex
from ras_agent.tools.index.store import PassageIndex

_LONGEST_NAME = 200  # bytes: file systems take 255, and a name gets an ending while its file is written


class Documents:
    """Changes the documents of an index, one change at a time; readers see the last that ended."""

    def __init__(self, index: PassageIndex | PostgresIndex, settings: Settings) -> None:
        self._index, self._settings = index, settings
        size = settings.chunk_size
        self._chunking = Chunking(size or 1000, settings.overlap, cut_records=size is not None)
        self._fields = _fields(settings)
        self._changing = asyncio.Lock()

    async def add(self, files: Sequence[UploadFile], caller: Caller) -> Uploaded:
        """Store files, and index them. Raises Refused for names that cannot be; then nothing has changed.

        Where anything fails, the files and the index are as they were.
        """
        _check_writes(caller)
        folder = self._folder(self._place())
        names = [safe_name(file.filename or "") for file in files]
        if len({name.casefold() for name in names}) < len(names):
            raise Refused(422, "two files of this upload have the same name", "same_name")
        async with self._changing:
            return await asyncio.to_thread(self._add, [file.file for file in files], names, folder)

    async def remove(self, name: str, caller: Caller) -> Removed:
        """Remove a document, or all of an uploaded file, from the index and the stored files."""
        _check_writes(caller)
        self._place()
        async with self._changing:
            return await asyncio.to_thread(self._remove, name)

    def _place(self) -> Path | Address:
        if self._settings.index is None:
            raise Refused(409, "the sample cannot be changed: serve an index of your own, --index PATH", "no_index")
        return self._settings.index

    def _folder(self, place: Path | Address) -> Path:
        """Return the folder of uploaded files."""
        if self._settings.uploads:
            return self._settings.uploads
        if isinstance(place, Address):
            raise Refused(
                409, "an index in a database has no folder for uploads: start with --uploads FOLDER", "no_uploads"
            )
        return place.with_name(f"{place.name}.uploads")

    def _add(self, files: Sequence[IO[bytes]], names: Sequence[str], folder: Path) -> Uploaded:
        incoming = folder / f".{uuid4().hex}"
        placed: list[str] = []
        unreadable: list[Skipped] = []
        try:
            incoming.mkdir(parents=True)
            for file, name in zip(files, names, strict=True):
                with (incoming / name).open("wb") as out:
                    shutil.copyfileobj(file, out)
            for name in names:
                if (folder / name).exists():
                    os.replace(folder / name, incoming / f"{name}.old")
                placed.append(name)
                os.replace(incoming / name, folder / name)
                # tried before the index is touched: what it forgets is gone from its knowledge graph too
                trial = rehearse(
                    [folder / name], self._place(), chunking=self._chunking, fields=self._fields, metadata={}
                )
                if not (trial.files_unchanged or trial.documents_written or trial.documents_unchanged):
                    _put_back(placed.pop(), incoming, folder)
                    unreadable += trial.skipped
            if not placed:
                reasons = "; ".join(str(item) for item in unreadable) or "they hold no text"
                raise Refused(422, f"nothing of the upload could be indexed: {reasons}", "unreadable")
            report = self._ingest([folder / name for name in placed])
        except BaseException:
            for name in placed:
                _put_back(name, incoming, folder)
                self._index_again(folder / name)
            raise
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
        return Uploaded(
            files=placed,
            documents_written=report.documents_written,
            documents_unchanged=report.documents_unchanged,
            passages_written=report.passages_written,
            passages_total=report.passages_total,
            skipped=[Skip(place=item.place, reason=item.reason) for item in (*unreadable, *report.skipped)],
        )

    def _index_again(self, file: Path) -> None:
        """Undo in the index what an upload that failed did to it: a batch of its passages may be written already."""
        with suppress(RasError, OSError):  # the caller is told of what came first; a new file is perhaps unknown still
            if file.exists():
                self._ingest([file])
            else:
                self._ingest([], forget=[str(file.absolute())])

    def _remove(self, name: str) -> Removed:
        place = self._place()
        stored = self._stored(name, place)
        if isinstance(self._index, PassageIndex):
            self._index.refresh()
        if name in self._index.document_ids():
            removed = self._delete(name, place)
        elif stored:  # several documents may come from one file
            removed = self._ingest([], forget=[str(stored.absolute())]).documents_removed
        else:
            raise Refused(404, f"there is no document {name!r}", "unknown_document")
        if stored:
            stored.unlink()
        return Removed(documents_removed=removed)

    def _stored(self, name: str, place: Path | Address) -> Path | None:
        """Return the uploaded file of that name, if there is one; a path is no name."""
        if name != Path(name).name or (isinstance(place, Address) and not self._settings.uploads):
            return None
        path = self._folder(place) / name
        return path if path.is_file() else None

    def _delete(self, name: str, place: Path | Address) -> int:
        from ras_agent.tools.kg.build import delete_documents

        if isinstance(place, Path):
            delete_documents(place, name)
            return 1
        try:
            return self._ingest([], forget=[name]).documents_removed
        except IngestError:  # it came from no file
            self._index.delete_document(name)
            return 1

    def _ingest(self, paths: Sequence[Path], forget: Sequence[str] = ()) -> IngestReport:
        from ras_agent.tools.kg.build import erase_gone

        place = self._place()
        return ingest(
            paths,
            place,
            chunking=self._chunking,
            fields=self._fields,
            forget=forget,
            erase_too=None if isinstance(place, Address) else lambda: erase_gone(place),
        )


def _put_back(name: str, incoming: Path, folder: Path) -> None:
    """Give the folder of uploads the file of that name again that it had before, if it had one."""
    before = incoming / f"{name}.old"
    if before.exists():
        os.replace(before, folder / name)
    else:
        (folder / name).unlink(missing_ok=True)


def _fields(settings: Settings) -> FieldRules:
    """Return by which fields records are read, as `ras-agent index` has it."""
    rules = {pattern: Fields(**named) for pattern, named in (settings.fields or {}).items()}
    usual = Fields(settings.text_field, settings.title_field, settings.id_field or None)
    return rules if usual == USUAL_FIELDS else {**rules, ALL_FILES: rules.get(ALL_FILES, usual)}


def safe_name(given: str) -> str:
    """Return the name of an uploaded file as it is stored. Raises Refused for one that is no plain name of a file.

    A path, a hidden file, a name with control characters and a kind of file that cannot be read are refused, not
    mended: what is stored has the name that the caller gave.
    """
    name = unicodedata.normalize("NFC", given)
    if not name or name != Path(name).name or "\\" in name or ":" in name or name.startswith("."):
        raise Refused(422, f"{given!r:.200} is no name of a file: give one without folders", "bad_name")
    if any(unicodedata.category(char)[0] == "C" for char in name) or name != name.strip():
        raise Refused(422, f"{given!r:.200} holds characters that no name of a file should", "bad_name")
    if len(name.encode()) > _LONGEST_NAME:
        raise Refused(422, f"the name {given[:40]!r}... is too long: {_LONGEST_NAME} bytes are the most", "bad_name")
    suffix = Path(name).suffix.lower()
    if suffix not in LOADERS:
        raise Refused(415, f"{name!r}: files of this kind cannot be read; known: {', '.join(LOADERS)}", "unknown_kind")
    return name


def _check_writes(caller: Caller) -> None:
    if not caller.sees_all:
        raise Refused(403, "this token sees a part of the index, and may not change it", "read_only")

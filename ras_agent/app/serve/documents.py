"""The documents of a server's index: uploaded, indexed, removed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from fastapi import UploadFile

from ras_agent.address import Address
from ras_agent.app.serve.access import Caller
from ras_agent.app.serve.errors import ApiError
from ras_agent.app.serve.wire import Removed, Skip, Uploaded
from ras_agent.errors import FilterError, IngestError, RasError
from ras_agent.filters import ASSIGNED, Filter, read_metadata, value_texts
from ras_agent.settings import Settings
from ras_agent.tools.index.chunk import Chunking
from ras_agent.tools.index.fields import FieldRules, Fields
from ras_agent.tools.index.find_files import SourceFile
from ras_agent.tools.index.ingest import IngestReport, dry_run, ingest, is_indexed, metadata_given
from ras_agent.tools.index.load import LOADERS, Skipped
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.store.durable import writer_lock

_LONGEST_PLAIN = 40  # characters of an own folder's name that are there to be read
# the folder that holds the files of an upload until it is done, and its lock; other hidden folders are not ours
_INCOMING = "." + "[0-9a-f]" * 32
_LOCK = ".lock"
_LONGEST_NAME = 200  # bytes: file systems take 255, and a name gets an ending while its file is written


class Documents:
    """Documents of an index, changed one change at a time; readers see the last one that ended."""

    def __init__(self, index: PassageIndex, settings: Settings) -> None:
        self._index, self._settings = index, settings
        size = settings.chunk_size
        self._chunking = Chunking(size or 1000, settings.overlap, cut_records=size is not None)
        self._fields = _fields(settings)
        self._changing = asyncio.Lock()

    async def add(self, files: Sequence[UploadFile], metadata: object, caller: Caller) -> Uploaded:
        """Store files, and index them with metadata. Raises ApiError for what cannot be; then nothing has changed.

        They get the fields that the caller's filter asks for, and those of `metadata`. What a caller uploads who sees a
        part of the index replaces only what was uploaded with the same filter. Where anything fails, the files and the
        index are as they were.
        """
        own = own_folder(caller)
        given = (self._settings.metadata or {}) | within(_read(metadata), self._settings.filter, caller.filter)
        folder = self._folder(self._place()) / own
        names = [safe_name(file.filename or "") for file in files]
        if len({name.casefold() for name in names}) < len(names):
            raise ApiError(422, "two files of this upload have the same name", "same_name")
        async with self._changing:
            done = await asyncio.to_thread(self._add, [file.file for file in files], names, folder, own, given)
        return done if caller.sees_all else done.model_copy(update={"passages_total": None})

    async def remove(self, name: str, caller: Caller) -> Removed:
        """Remove a document, or all of an uploaded file, from the index and the stored files.

        A caller who sees a part of the index removes what was uploaded with the same filter. Raises ApiError.
        """
        own = own_folder(caller)
        place = self._place()
        async with self._changing:
            if self._settings.uploads or not isinstance(place, Address):
                await asyncio.to_thread(self._take_back, self._folder(place))
            if own:
                return await asyncio.to_thread(self._remove_own, name, own)
            return await asyncio.to_thread(self._remove, name)

    def _place(self) -> Path | Address:
        if self._settings.max_upload_mb == 0:
            raise ApiError(403, "this server changes no documents: it was started with --max-upload-mb 0", "read_only")
        if self._settings.index is None:
            raise ApiError(409, "the sample cannot be changed: serve an index of your own, --index PATH", "no_index")
        return self._settings.index

    def _folder(self, place: Path | Address) -> Path:
        """Return the folder of uploaded files."""
        if self._settings.uploads:
            return self._settings.uploads
        if isinstance(place, Address):
            raise ApiError(
                409, "an index in a database has no folder for uploads: start with --uploads FOLDER", "no_uploads"
            )
        return place.with_name(f"{place.name}.uploads")

    def _add(
        self, files: Sequence[IO[bytes]], names: Sequence[str], folder: Path, own: str, given: Mapping[str, Any]
    ) -> Uploaded:
        place = self._place()
        self._take_back(self._folder(place))
        incoming = folder / f".{uuid4().hex}"
        try:
            incoming.mkdir(parents=True)
            with writer_lock(incoming / _LOCK):
                return self._placed(files, names, incoming, own, given)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)

    def _placed(
        self, files: Sequence[IO[bytes]], names: Sequence[str], incoming: Path, own: str, given: Mapping[str, Any]
    ) -> Uploaded:
        """Put files into the folder around `incoming`, and index them."""
        before: dict[str, Mapping[str, Any]] = {}
        folder, place = incoming.parent, self._place()
        placed: list[str] = []
        unreadable: list[Skipped] = []
        try:
            for file, name in zip(files, names, strict=True):
                with (incoming / name).open("wb") as out:
                    shutil.copyfileobj(file, out)
            for name in names:
                known = metadata_given(_real(folder / name), place) if given else {}
                before[name] = {**dict.fromkeys(given), **known}
                if (folder / name).exists():
                    os.replace(folder / name, incoming / f"{name}.old")
                placed.append(name)
                os.replace(incoming / name, folder / name)
                # tried before the index is touched: what it forgets is gone from its knowledge graph too
                trial = dry_run(
                    [_source(folder / name, own)], place, chunking=self._chunking, fields=self._fields, metadata=given
                )
                if not (trial.files_unchanged or trial.documents_written or trial.documents_unchanged):
                    _put_back(placed.pop(), incoming, folder)
                    unreadable += trial.skipped
            if not placed:
                reasons = "; ".join(str(item) for item in unreadable) or "they hold no text"
                raise ApiError(422, f"nothing of the upload could be indexed: {reasons}", "unreadable")
            report = self._ingest([_source(folder / name, own) for name in placed], given)
        except BaseException:
            for name in placed:
                _put_back(name, incoming, folder)
                self._index_again(folder / name, own, before[name])
            raise
        return Uploaded(
            files=placed,
            documents_written=report.documents_written,
            documents_unchanged=report.documents_unchanged,
            passages_written=report.passages_written,
            passages_total=report.passages_total,
            graph="stale" if report.passages_written and KGIndex.exists(place) else None,
            skipped=[Skip(place=item.place, reason=item.reason) for item in (*unreadable, *report.skipped)],
        )

    def _take_back(self, uploads: Path) -> None:
        """Give back what an upload has replaced whose server was killed before it ended: nobody was told of it.

        An earlier text would otherwise outlive the removal of its document.
        """
        for incoming in (*uploads.glob(f"{_INCOMING}/"), *uploads.glob(f"*/{_INCOMING}/")):
            folder = incoming.parent
            with suppress(BlockingIOError):  # an upload of another server is under way
                # its lock is perhaps gone, where it was killed as it cleared away
                with writer_lock(incoming / _LOCK, wait=False):
                    for old in incoming.glob("*.old"):
                        file = folder / old.name.removesuffix(".old")
                        os.replace(old, file)
                        self._index_again(file, "" if folder == uploads else folder.name, {})
                shutil.rmtree(incoming, ignore_errors=True)

    def _index_again(self, file: Path, own: str, before: Mapping[str, Any]) -> None:
        """Undo in the index what an upload that failed did to it: a batch of its passages may be written already."""
        with suppress(RasError, OSError):  # the caller is told of what came first; a new file is perhaps unknown still
            if file.exists():
                self._ingest([_source(file, own)], before)
            else:
                self._ingest([], forget=[str(file.absolute())])

    def _remove_own(self, name: str, own: str) -> Removed:
        place = self._place()
        stored = self._stored(f"{own}/{name.removeprefix(f'{own}/')}", place)
        if stored is None:
            raise ApiError(
                404, f"there is no document {name!r} of an upload with this token's filter", "unknown_document"
            )
        removed = self._forget(stored, place)
        stored.unlink()
        return Removed(documents_removed=removed)

    def _forget(self, stored: Path, place: Path | Address) -> int:
        """Take what came from a file out of the index: nothing, where a removal was interrupted just before its end."""
        name = str(stored.absolute())
        try:
            return self._ingest([], forget=[name]).documents_removed
        except IngestError:
            if is_indexed(name, place):
                raise
            return 0

    def _remove(self, name: str) -> Removed:
        place = self._place()
        stored = self._stored(name, place)
        self._index.refresh()
        if name in self._index.document_ids():
            removed = self._delete(name, place)
        elif stored:  # several documents may come from one file
            removed = self._forget(stored, place)
        else:
            raise ApiError(404, f"there is no document {name!r}", "unknown_document")
        if stored:
            stored.unlink()
        return Removed(documents_removed=removed)

    def _stored(self, name: str, place: Path | Address) -> Path | None:
        """Return the uploaded file of that name, or of that name below an own folder, if there is one.

        Any other path is no name.
        """
        *above, last = name.split("/")
        plain = all(part and part == Path(part).name and not part.startswith(".") for part in (*above, last))
        if not plain or len(above) > 1 or (isinstance(place, Address) and not self._settings.uploads):
            return None
        path = self._folder(place).joinpath(*above, last)
        return path if path.is_file() else None

    def _delete(self, name: str, place: Path | Address) -> int:
        from ras_agent.tools.kg.build import delete_documents

        delete_documents(place, name)
        return 1

    def _ingest(
        self, paths: Sequence[Path | SourceFile], given: Mapping[str, Any] | None = None, forget: Sequence[str] = ()
    ) -> IngestReport:
        return ingest(
            paths,
            self._place(),
            chunking=self._chunking,
            fields=self._fields,
            metadata=given,
            forget=forget,
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
    return {pattern: Fields(**keys) for pattern, keys in (settings.fields or {}).items()}


def safe_name(given: str) -> str:
    """Return the name of an uploaded file as it is stored. Raises ApiError for one that is no plain name of a file.

    A path, a hidden file, a name with control characters and a kind of file that cannot be read are refused, not
    mended: what is stored has the name that the caller gave.
    """
    name = unicodedata.normalize("NFC", given)
    if not name or name != Path(name).name or "\\" in name or ":" in name or name.startswith("."):
        raise ApiError(422, f"{given!r:.200} is no name of a file: give one without folders", "bad_name")
    if any(unicodedata.category(char)[0] == "C" for char in name) or name != name.strip():
        raise ApiError(422, f"{given!r:.200} holds characters that no name of a file should", "bad_name")
    if len(name.encode()) > _LONGEST_NAME:
        raise ApiError(422, f"the name {given[:40]!r}... is too long: {_LONGEST_NAME} bytes are the most", "bad_name")
    suffix = Path(name).suffix.lower()
    if suffix not in LOADERS:
        raise ApiError(415, f"{name!r}: files of this kind cannot be read; known: {', '.join(LOADERS)}", "unknown_kind")
    return name


def own_folder(caller: Caller) -> str:
    """Return the name of the folder in which the uploads of a caller are who sees a part of the index; "" for others.

    Callers with the same filter share it. Their documents are called by it, so that no name tells what others have.
    """
    if caller.sees_all:
        return ""
    filter = Filter.of(caller.filter)
    exact = hashlib.sha256(json.dumps([[one.key, one.texts] for one in filter.conditions]).encode()).hexdigest()
    plain = "".join(char if char.isalnum() or char in "=_" else "-" for char in str(filter).replace(" = ", "="))
    return f"{plain[:_LONGEST_PLAIN]}~{exact[:8]}"


def within(given: Mapping[str, Any], *filters: object) -> dict[str, Any]:
    """Return metadata that all filters admit: `given`, and the one value that a filter asks of a field.

    Raises ApiError for a value that a filter does not admit, for one to choose that is missing, and where a filter is
    over what no upload can choose.
    """
    conditions = Filter.of([filter for filter in filters if filter]).conditions
    for condition in conditions:
        if condition.key in ASSIGNED:
            raise ApiError(
                403, f"only a part of the index is open here, by {condition.key!r}: nothing is added to it", "read_only"
            )
    only = {condition.key: condition.values[0] for condition in conditions if len(condition.values) == 1}
    chosen = {**only, **given}
    for condition in conditions:
        key, known = condition.key, " or ".join(condition.texts)
        if key not in chosen:
            raise ApiError(
                422, f'metadata: say whether {key} is {known}, such as {{"{key}": "{condition.texts[0]}"}}', "metadata"
            )
        texts = value_texts(chosen[key])
        if not texts or not all(map(condition.admits, texts)):
            raise ApiError(403, f"metadata: {key!r} of what this token uploads is {known}", "other_metadata")
    return chosen


def _read(metadata: object) -> dict[str, Any]:
    try:
        return read_metadata(metadata or {})
    except FilterError as error:
        raise ApiError(422, str(error), "metadata") from None


def _source(path: Path, own: str) -> Path | SourceFile:
    """Return an uploaded file as it is indexed: in an own folder it is called by that, and its records too."""
    return SourceFile(path, _real(path), "", f"{own}/{path.name}", apart=True) if own else path


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))

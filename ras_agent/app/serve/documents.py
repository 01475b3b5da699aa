"""Changes the documents of a server's index: uploads, indexes and removes them.

An upload is one transaction of the index's database, with the bytes of its files and the passages made from
them. If the server is killed, all of it is stored, or nothing.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from fastapi import UploadFile

from ras_agent.app.serve.access import Caller
from ras_agent.app.serve.errors import ApiError, no_graph
from ras_agent.app.serve.wire import GraphCorrection, Removed, Skip, Uploaded
from ras_agent.config.address import Address
from ras_agent.config.filters import ASSIGNED, Filter, read_metadata, value_texts
from ras_agent.config.settings import Settings
from ras_agent.contracts.records import JSON
from ras_agent.running.calling import Threads
from ras_agent.tools.index.apart import UPLOAD_SECONDS, Apart
from ras_agent.tools.index.chunk import Chunking
from ras_agent.tools.index.conversions import CONVERTERS
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.index.fields import Fields
from ras_agent.tools.index.find_files import SourceFile
from ras_agent.tools.index.ingest import dry_run, ingest, upload_label
from ras_agent.tools.index.load import SUFFIXES
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.text_files import HeldFile, NotText
from ras_agent.tools.index.uploads import name_in_part, upload_part, upload_path
from ras_agent.tools.kg.index import KGIndex

_CHANGE_SECONDS = 600.0
# bytes: the name becomes the document's id, and part of the address by which it is removed
_LONGEST_NAME = 200


class Documents:
    """Changes the documents of an index, one change at a time. Readers see the index as of the last completed
    change.
    """

    def __init__(self, index: PassageIndex, settings: Settings) -> None:
        self._index = index
        self._settings = settings
        self._how: dict[str, Any] = {  # as `ras-agent index` has it
            "chunking": Chunking.of(settings.chunk_size, settings.overlap),
            "fields": {
                pattern: Fields(**keys)
                for pattern, keys in (settings.fields or {}).items()
            },
        }
        self._turns: dict[str, asyncio.Lock] = {}  # one for each token
        # one thread for each token, so that slow documents delay only their own caller
        self._converting = defaultdict[str, Threads](
            lambda: Threads(1, _CHANGE_SECONDS)
        )
        self._changing = Threads(1, _CHANGE_SECONDS)
        self._reading = Threads(4, _CHANGE_SECONDS)

    async def add(
        self, files: Sequence[UploadFile], metadata: JSON | None, caller: Caller
    ) -> Uploaded:
        """Store uploaded files, and index them with metadata.

        The passages get `metadata`, and the fields that the caller's filter requires. Uploads of a caller who
        may read only a part of the index replace only uploads with the same filter.

        Raises:
            ApiError: if a file cannot be added; the index is then unchanged.
        """
        own = upload_part(caller.filter)
        chosen = within(
            read_metadata(metadata or {}), self._settings.filter, caller.filter
        )
        given = {**(self._settings.metadata or {}), **chosen}
        names = [safe_name(file.filename or "") for file in files]
        if len({name.casefold() for name in names}) < len(names):
            raise ApiError(
                422,
                "two files of this upload have the same name: rename one of them",
                "same_name",
            )
        # one upload of a caller at a time: a caller with many or slow uploads delays only itself
        async with self._turns.setdefault(caller.name, asyncio.Lock()):
            held = await self._reading.run(_held, [file.file for file in files], names)
            readable = held
            unreadable = list[Skipped]()
            if any(map(_needs_conversion, held)):
                readable, unreadable = await self._converting[caller.name].run(
                    _converted, held
                )
            done = await self._changing.run(self._add, readable, unreadable, own, given)
        return (
            done
            if caller.sees_all
            else done.model_copy(update={"passages_total": None})
        )

    async def remove(self, name: str, caller: Caller) -> Removed:
        """Remove a document, or all documents of an uploaded file, from the index.

        A caller who may read only a part of the index can remove only uploads with the same filter. Raises
        ApiError.
        """
        removed = await self._changing.run(
            self._remove, name, upload_part(caller.filter)
        )
        return Removed(documents_removed=removed)

    async def correct(self, body: GraphCorrection, caller: Caller) -> None:
        """Correct or remove a fact of the stored knowledge graph. Raises ApiError or EditError if that is not
        possible.
        """
        if not caller.sees_all:
            raise ApiError(
                403,
                "this token may read only a part of the graph, and cannot correct it: use a token for the whole index",
                "read_only",
            )
        from ras_agent.tools.kg.edit import remove_fact, replace_fact

        if not KGIndex.exists(self._index):
            raise no_graph()
        right = body.correction
        edit = remove_fact if right is None else partial(replace_fact, by_fact=right)
        await self._changing.run(lambda: edit(self._place(), body.fact))

    async def file(self, name: str, caller: Caller) -> bytes:
        """Return an uploaded file as it was sent. A caller may read the files that it may remove. Raises ApiError."""
        own = upload_part(caller.filter)
        data = await self._reading.run(self._index.uploaded, name_in_part(name, own))
        if data is None:
            raise _unknown(name, own)
        return data

    def _place(self) -> Path | Address:
        if self._settings.max_upload_mb == 0:
            raise ApiError(
                403,
                "this server does not change documents: start it without --max-upload-mb 0",
                "read_only",
            )
        if self._settings.index is None:
            raise ApiError(
                409,
                "the sample cannot be changed: serve your own index with --index PATH",
                "no_index",
            )
        self._index.refresh()  # raises if the index was moved, so that it is not created again
        return self._settings.index

    def _add(
        self,
        files: Sequence[HeldFile],
        unreadable: list[Skipped],
        own: str,
        given: Mapping[str, Any],
    ) -> Uploaded:
        place = self._place()
        readable: list[SourceFile] = []
        for file in files:
            path = upload_path(own, file.name)
            name = name_in_part(file.name, own)
            source = SourceFile(
                path,
                path,
                "",
                name,
                apart=bool(own),
                data=file.data,
                converted=file.converted,
            )
            # tried before anything is written, so that an unreadable file does not replace an earlier one
            trial = dry_run([source], place, metadata=given, **self._how)
            if trial.documents_written or trial.documents_unchanged:
                readable.append(source)
            else:
                unreadable += trial.skipped
        report = (
            ingest(readable, place, metadata=given, **self._how) if readable else None
        )
        skipped = [*unreadable, *(report.skipped if report else ())]
        skips = [
            Skip(place=item.place.removeprefix(f"{own}/"), reason=item.reason)
            for item in skipped
        ]
        if report is None:
            reasons = (
                "; ".join(f"{skip.place}: {skip.reason}" for skip in skips)
                or "they hold no text"
            )
            raise ApiError(
                422, f"no file of the upload could be indexed: {reasons}", "unreadable"
            )
        return Uploaded(
            files=[source.path.name for source in readable],
            documents_written=report.documents_written,
            documents_unchanged=report.documents_unchanged,
            passages_written=report.passages_written,
            passages_total=report.passages_total,
            graph="stale"
            if report.passages_written and KGIndex.exists(place)
            else None,
            skipped=skips,
        )

    def _remove(self, name: str, own: str) -> int:
        from ras_agent.tools.kg.build import delete_documents

        place = self._place()
        if not own and name in self._index.document_ids():
            delete_documents(place, name)
            return 1
        label = upload_label(name_in_part(name, own), place)
        if label is None:
            raise _unknown(name, own)
        return ingest(
            [], place, forget=[label], **self._how
        ).documents_removed  # one file may be several documents


def _held(files: Sequence[IO[bytes]], names: Sequence[str]) -> list[HeldFile]:
    """Return uploaded files with their bytes."""
    return [
        HeldFile(name, file.read()) for file, name in zip(files, names, strict=True)
    ]


def _needs_conversion(file: HeldFile) -> bool:
    return file.suffix.lower() in CONVERTERS


def _converted(files: Sequence[HeldFile]) -> tuple[list[HeldFile], list[Skipped]]:
    """Return the readable files, converted to text where necessary, and the files that cannot be converted."""
    readable = []
    unreadable = []
    with Apart(UPLOAD_SECONDS) as apart:
        for file in files:
            if not _needs_conversion(file):
                readable.append(file)
                continue
            try:
                readable.append(replace(file, converted=apart.convert(file)))
            except NotText as error:
                unreadable.append(Skipped(file.name, str(error), error=not error.empty))
    return readable, unreadable


def safe_name(given: str) -> str:
    """Return the name under which an uploaded file is stored: always the name that the caller gave.

    A path, a hidden file, a name with control characters and a kind of file that cannot be read are refused,
    not corrected.

    Raises:
        ApiError: for anything but a plain file name.
    """
    name = unicodedata.normalize("NFC", given)
    if (
        not name
        or name != Path(name).name
        or "\\" in name
        or ":" in name
        or name.startswith(".")
    ):
        raise ApiError(
            422,
            f"{given!r:.200} is not a plain file name: give a name without folders",
            "bad_name",
        )
    if (
        any(unicodedata.category(char)[0] == "C" for char in name)
        or name != name.strip()
    ):
        raise ApiError(
            422,
            f"{given!r:.200} has characters that a file's name should not have: give another name",
            "bad_name",
        )
    if len(name.encode()) > _LONGEST_NAME:
        raise ApiError(
            422,
            f"the name {given[:40]!r}... is too long: give one of at most {_LONGEST_NAME} bytes",
            "bad_name",
        )
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        wrong = (
            f"{name!r}: files of this kind cannot be read; known: {', '.join(SUFFIXES)}"
        )
        raise ApiError(415, wrong, "unknown_kind")
    return name


def _unknown(name: str, own: str) -> ApiError:
    of = " of an upload with this token's filter" if own else ""
    return ApiError(404, f"there is no document {name!r}{of}", "unknown_document")


def within(given: Mapping[str, Any], *filters: object) -> dict[str, Any]:
    """Return `given`, the metadata of an upload, completed so that all filters admit the upload.

    A missing field is added if a filter allows only one value of it.

    Raises:
        ApiError: for a value that a filter does not admit, for a missing field with several allowed values, and
            for a filter on a field that uploads cannot choose.
    """
    conditions = Filter.of([filter for filter in filters if filter]).conditions
    for condition in conditions:
        if condition.key in ASSIGNED:
            wrong = f"only a part of the index is open here, by {condition.key!r}: nothing is added to it"
            raise ApiError(403, wrong, "read_only")
    only = {
        condition.key: condition.values[0]
        for condition in conditions
        if condition.test == "in" and len(condition.values) == 1
    }
    chosen = {**only, **given}
    for condition in conditions:
        key = condition.key
        known = " or ".join(condition.texts)
        if key not in chosen and condition.holds(()):
            continue
        if key not in chosen and condition.test == "in":
            wrong = f'metadata: say whether {key} is {known}, such as {{"{key}": "{condition.texts[0]}"}}'
            raise ApiError(422, wrong, "metadata")
        if key not in chosen:
            raise ApiError(
                422,
                f"metadata: what this token uploads needs {condition}: give {key}",
                "metadata",
            )
        texts = value_texts(chosen[key])
        if not texts or not all(condition.holds([text]) for text in texts):
            asked = f"{key!r} of what this token uploads is {known}"
            if condition.test != "in":
                asked = f"of what this token uploads, {condition}"
            raise ApiError(403, f"metadata: {asked}", "other_metadata")
    return chosen

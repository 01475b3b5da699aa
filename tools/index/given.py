"""Reads texts given by the caller: passages, dictionaries, LangChain documents, or plain texts."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.text.titles import file_title
from ras_agent.tools.index.chunk import DEFAULT_CHUNKING, Chunking, passages_of
from ras_agent.tools.index.documents import Document, Skipped
from ras_agent.tools.index.find_files import find_files
from ras_agent.tools.index.load import SUFFIXES, load
from ras_agent.tools.index.stated_facts import STATED, read_facts

if TYPE_CHECKING:
    from langchain_core.documents import Document as LangChainDocument

Text: TypeAlias = "Passage | Mapping[str, Any] | LangChainDocument | str"

_TEXT_KEYS = ("text", "page_content", "content")
_OWN_KEYS = ("id", "title", "document_id", "metadata")
_LONGEST_NAME = 1_000
"""The maximum number of characters in the path of a file."""


def given_passages(
    given: object, chunking: Chunking = DEFAULT_CHUNKING
) -> Iterator[Passage]:
    """Yield the passages of a list of texts, of items that `passage_of` takes, or of a mix of them.

    An item with an id is not cut, like the passages of a corpus that is already cut; other items are cut as files
    are. A Path is a file, or a folder of files, which is read as `ras-agent index` reads it. Items without an id
    that are equal in all their fields are used once. Raises IngestError if `given` is not a list, or an item is not
    a text.
    """
    if (
        isinstance(given, str | bytes | Mapping | Passage)
        or not isinstance(given, Iterable)
        or _is_document(given)
    ):
        raise IngestError(
            f"texts to search are given as a list, such as index=['...', '...'], got {given!r:.80}"
        )
    ids = set[str]()
    for number, item in enumerate(given, start=1):
        if isinstance(item, Passage):
            yield item
            continue
        if isinstance(item, Path):
            for document in _documents_in(item):
                yield from passages_of(document, chunking)
            continue
        passage = passage_of(item, "", f"text {number} of the index")
        if passage.id:
            yield passage
            continue
        about = json.dumps(
            [passage.title, passage.text, passage.metadata], sort_keys=True
        )
        if (name := text_id(about)) not in ids:
            ids.add(name)
            yield from passages_of(
                Document(name, passage.text, passage.title, passage.metadata), chunking
            )


def passage_of(item: object, name: str, place: str) -> Passage:
    """Return a text given by the caller as one passage. Raises IngestError, which begins with `place`, for anything
    else.

    A missing title is made from the file name in the metadata (Passage.file).

    Args:
        item: a Passage; a LangChain document; a text; or a dictionary with the text under `text`, `page_content` or
            `content`, whose other keys are fields of a passage or go into its metadata.
        name: the id to use if the item has no id.
        place: names the item in messages.
    """
    if isinstance(item, Passage):
        return item
    if isinstance(item, str):
        if _names_a_file(item):
            raise IngestError(
                f"{place} is the path of a file, {item!r}: give its text, or Path({item!r}) to read the file"
            )
        return Passage(name, item)
    if _is_document(item):
        passage = passage_of_document(item)
        return replace(
            passage, id=passage.id or name, metadata=_as_json(passage.metadata)
        )
    if not isinstance(item, Mapping):
        raise IngestError(
            f"{place} has to be a text, a Passage, a LangChain document or {{'text': '...'}}, got {item!r:.200}"
        )
    key = next((key for key in _TEXT_KEYS if isinstance(item.get(key), str)), None)
    if key is None:
        there = ", ".join(map(repr, item)) or "nothing"
        raise IngestError(
            f"{place} has no text under the key 'text', only {there}: put its text under 'text'"
        )
    inner = item.get("metadata")
    about = {
        name: value for name, value in item.items() if name not in (key, *_OWN_KEYS)
    }
    if STATED in about:
        facts, problems = read_facts(about[STATED], place)
        if problems:
            raise IngestError(f"{place}: {problems[0]}")
        about[STATED] = facts
    return _titled(
        Passage(
            str(item.get("id") or name),
            item[key],
            str(item.get("title") or ""),
            str(item.get("document_id") or ""),
            _as_json({**about, **(inner if isinstance(inner, Mapping) else {})}),
        )
    )


def passage_of_document(document: LangChainDocument) -> Passage:
    """Return a LangChain document as one passage, with the id "" if the document has no id.

    Its `metadata` provides id, title, document_id (or else "source"), file and page. Loaders of PDF files, which set
    `total_pages`, count pages from 0; passages count from 1.
    """
    about = dict(document.metadata)
    about.pop("score", None)
    if isinstance(page := about.get("page"), int) and "total_pages" in about:
        about["page"] = page + 1
    return _titled(
        Passage(
            id=str(document.id or about.get("id") or ""),
            text=document.page_content,
            title=str(about.pop("title", "")),
            document_id=str(about.pop("document_id", about.get("source", ""))),
            metadata=about,
        )
    )


def _documents_in(path: Path) -> Iterator[Document]:
    """Yield the documents in a file or folder. Raises IngestError for a file that cannot be read."""
    for found in find_files([path], SUFFIXES):
        if isinstance(found, Skipped):
            _raise_if_error(found)
            continue
        for document in load(found.path, str(path / found.inner)):
            if isinstance(document, Skipped):
                _raise_if_error(document)
                continue
            yield document


def _raise_if_error(skipped: Skipped) -> None:
    if skipped.error:
        raise IngestError(str(skipped))


def _names_a_file(text: str) -> bool:
    """Return whether a text is the name of an existing file of a known kind, so it was probably not meant as a text."""
    if len(text) > _LONGEST_NAME or "\n" in text or "\0" in text:
        return False
    path = Path(text)
    return path.suffix.lower() in SUFFIXES and path.is_file()


def text_id(text: str) -> str:
    """Return an id computed from a text; equal texts have equal ids."""
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=8
    ).hexdigest()


def _titled(passage: Passage) -> Passage:
    if passage.title or not passage.file:
        return passage
    return replace(passage, title=file_title(passage.file))


def _as_json(about: Mapping[Any, Any]) -> dict[str, Any]:
    """Return metadata as stored in an index: a value that JSON does not know, such as a date, becomes text."""
    values: dict[str, Any] = json.loads(json.dumps(dict(about), default=str))
    return values


def _is_document(item: object) -> TypeGuard[LangChainDocument]:
    """Return whether `item` is a LangChain document; False as long as LangChain is not loaded."""
    module = sys.modules.get("langchain_core.documents")
    return module is not None and isinstance(item, module.Document)

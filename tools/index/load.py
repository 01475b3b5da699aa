"""Loads the documents in a file: plain text, Markdown, records, PDF, web pages, Office files, e-mails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from ras_agent.contracts.errors import MissingExtra
from ras_agent.text.titles import file_stem, file_title, is_title
from ras_agent.tools.index.conversions import CONVERTERS, convert
from ras_agent.tools.index.documents import Document, Skipped, dated
from ras_agent.tools.index.fields import TEXT, USUAL_FIELDS, Fields
from ras_agent.tools.index.markdown import (
    first_heading,
    front_matter,
    without_unseen,
)
from ras_agent.tools.index.plain_kinds import PLAIN_KINDS
from ras_agent.tools.index.records import load_csv, load_json, load_jsonl, of_sheets
from ras_agent.tools.index.tags import without_tags
from ras_agent.tools.index.text_files import (
    Convert,
    Converted,
    FileContent,
    NotText,
    OnRead,
    name_of,
    read_text,
)
from ras_agent.tools.index.vision import PICTURES
from ras_agent.tools.index.workbooks import UNSAVED

_NOTEBOOK = ".ipynb"
_MUCH = 20_000  # in characters; encoded data in a shorter text does no harm
_ASCII_WORD = re.compile(r"[!-~]+")
_LONGEST_WORD = 1000

_Loader = Callable[[FileContent, str, Fields, OnRead], Iterator[Document | Skipped]]


def load(
    path: FileContent,
    label: str = "",
    fields: Fields = USUAL_FIELDS,
    on_read: OnRead = lambda _: None,
    convert: Convert = convert,
) -> Iterator[Document | Skipped]:
    """Yield the documents of a file, and a Skipped for each part that is not loaded, in order.

    A file's content never raises an error.

    Args:
        path: a file, or its bytes in memory, with a suffix among SUFFIXES.
        label: the file's name in ids and messages; by default its own name.
        fields: which fields of a record are its text, title and id.
        on_read: receives the number of bytes read.
        convert: converts files; by default in this process, see `apart` for a separate one.
    """
    label = label or name_of(path.name)
    suffix = path.suffix.lower()
    try:
        if fields.kind == TEXT:
            items = _load_text(path, label, fields, on_read)
        elif suffix in CONVERTERS or suffix in PICTURES:
            found = convert(path, on_read)
            if suffix == ".eml":
                items = _of_mail(found, label)
            else:
                items = _of_converted(found, suffix, label, fields)
        else:
            items = _LOADERS[suffix](path, label, fields, on_read)
        for item in items:
            if isinstance(item, Document):
                yield from _checked(item)
            else:
                yield item
    except NotText as error:
        yield Skipped(
            f"{label} line {error.line}" if error.line else label,
            str(error),
            error=not error.empty,
        )
    except MissingExtra as error:
        yield Skipped(label, str(error))
    except OSError as error:
        yield Skipped(label, f"cannot be read: {error.strerror}")


def _checked(document: Document) -> Iterator[Document | Skipped]:
    """Yield a document without hidden characters, and a report of these; or only a report if it is encoded data."""
    problem = _encoded_data(document.text)
    if problem:
        yield Skipped(document.place, problem, error=False)
        return
    seen = without_tags(document.text, document.pages)
    if seen.hidden:
        yield replace(document, text=seen.text, pages=seen.pages)
        reason = _of_unseen_parts(seen.hidden, "of tag characters")
        yield Skipped(document.place, reason, error=False)
    else:
        yield document


def _encoded_data(text: str) -> str:
    """Return why a text is encoded data, which is not worth searching; "" if it is not.

    It is encoded if most of it is words that nobody writes, such as hexadecimal numbers, base64 and minified code. Only
    ASCII words count, since scripts without spaces have long words.
    """
    if len(text) < _MUCH:
        return ""
    lengths = (word.end() - word.start() for word in _ASCII_WORD.finditer(text))
    within = sum(length for length in lengths if length > _LONGEST_WORD)
    if 2 * within <= len(text):
        return ""
    return f"no text: {within:,} of its {len(text):,} characters are words of over 1,000 letters, as of encoded data"


def _load_text(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    yield Document(label, read_text(path, on_read), file_title(label), place=label)


def _load_markdown(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    """Yield one document, titled by its front matter, otherwise by its first heading or by its file name."""
    metadata, written = front_matter(read_text(path, on_read))
    body, left_out = without_unseen(written)
    named = metadata.get("title")
    title = ""
    if isinstance(named, str) and is_title(named):
        title = named.strip()
    if title:
        del metadata["title"]
    title = title or first_heading(body) or file_title(label)
    if body.strip():
        yield Document(
            id=label,
            text=body,
            title=title,
            metadata=dated(metadata),
            place=label,
            is_markdown=True,
        )
    else:
        yield Skipped(label, "holds no text below its front matter", error=False)
    yield from _left_out(left_out, label)


def _of_converted(
    found: Converted, suffix: str, label: str, fields: Fields
) -> Iterator[Document | Skipped]:
    """Yield one document as Markdown, or one per row of a workbook; then a Skipped for each kind of text that was left
    out."""
    if found.rows:
        yield from of_sheets(found.rows, fields, label)
    else:
        yield from _of_text(found, suffix, label)
    yield from _left_out(found.left_out, label)


def _of_text(found: Converted, suffix: str, label: str) -> Iterator[Document | Skipped]:
    is_pdf = suffix == ".pdf"
    title = found.title
    if not title and not is_pdf:
        title = first_heading(found.text)
    if not title and is_pdf and label.islower():
        # then the file name was probably made by a program and is not words
        title = file_stem(label)
    title = title or file_title(label)
    yield Document(
        id=label,
        text=found.text,
        title=title,
        metadata=dated(found.metadata),
        place=label,
        pages=found.pages,
        is_markdown=not is_pdf,
    )
    if is_pdf:
        offsets = (*found.pages, len(found.text))
        for number, (start, end) in enumerate(pairwise(offsets), start=1):
            if start == end:
                yield Skipped(
                    f"{label} page {number}", "no text on this page", error=False
                )


def _left_out(counts: Mapping[str, int], label: str) -> Iterator[Skipped]:
    for reason, count in sorted(counts.items()):
        if not count:
            continue
        if reason == UNSAVED:
            formulas = "1 formula" if count == 1 else f"{count:,} formulas"
            verb = "is" if count == 1 else "are"
            said = (
                f"{formulas} without a saved value, which {verb} left empty: open and save the file in a spreadsheet "
                "program"
            )
        else:
            said = _of_unseen_parts(count, reason)
        yield Skipped(label, said, error=False)


def _of_unseen_parts(count: int, kind: str) -> str:
    parts = "1 part" if count == 1 else f"{count:,} parts"
    return f"text that no reader sees is left out: {parts} {kind}"


def _load_plain(
    path: FileContent, label: str, fields: Fields, on_read: OnRead
) -> Iterator[Document | Skipped]:
    """Yield the document of a text in another markup, as Markdown."""
    written = read_text(path, on_read)
    suffix = path.suffix.lower()
    text, metadata = PLAIN_KINDS[suffix](written)
    left_out: Mapping[str, int] = {}
    if suffix == _NOTEBOOK:
        text, left_out = without_unseen(text)
    yield Document(
        id=label,
        text=text,
        title=first_heading(text) or file_title(label),
        metadata=dated(metadata),
        place=label,
        is_markdown=True,
    )
    yield from _left_out(left_out, label)


def _of_mail(mail: Converted, label: str) -> Iterator[Document | Skipped]:
    """Yield an e-mail's own words, and its quotations as a separate document; attachments are only reported."""
    title = mail.title or file_title(label)
    if mail.text:
        yield Document(
            id=label, text=mail.text, title=title, metadata=mail.metadata, place=label
        )
    if mail.quoted:
        yield Document(
            id=f"{label}:quoted",
            text=mail.quoted,
            title=title,
            metadata={**mail.metadata, "quoted": True},
            place=f"{label} quoted",
        )
    for name in mail.attachments:
        yield Skipped(
            f"{label} attachment {name}",
            "attachments are not read; save it as a file",
            error=False,
        )
    yield from _left_out(mail.left_out, label)


_LOADERS: Mapping[str, _Loader] = {
    ".txt": _load_text,
    ".text": _load_text,
    ".md": _load_markdown,
    ".markdown": _load_markdown,
    **dict.fromkeys(PLAIN_KINDS, _load_plain),
    ".json": load_json,
    ".jsonl": load_jsonl,
    ".ndjson": load_jsonl,
    ".csv": load_csv,
    ".tsv": load_csv,
}
"""The function that loads a text file, by suffix; it takes the first four arguments of `load`."""

SUFFIXES = (*_LOADERS, *CONVERTERS)
"""The suffixes of the files that can be loaded."""

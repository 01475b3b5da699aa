"""One function loads any kind of file there is a loader for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from ras_agent.errors import MissingExtra
from ras_agent.tools.index.load_document import USUAL_FIELDS, Document, Fields, OnRead, Skipped

__all__ = ["LOADERS", "load"]

_TEXT = "ras_agent.tools.index.load_text:load_text"
_MARKDOWN = "ras_agent.tools.index.load_markdown:load_markdown"
_JSONL = "ras_agent.tools.index.load_jsonl:load_jsonl"
_CSV = "ras_agent.tools.index.load_csv:load_csv"
_PDF = "ras_agent.tools.index.load_pdf:load_pdf"

LOADERS = {
    ".txt": _TEXT,
    ".text": _TEXT,
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".jsonl": _JSONL,
    ".ndjson": _JSONL,
    ".csv": _CSV,
    ".tsv": _CSV,
    ".pdf": _PDF,
}
"""Suffix -> "module:function" with the signature of `load`."""


def _unheard(count: int) -> None:
    return None


def load(
    path: Path, label: str = "", fields: Fields = USUAL_FIELDS, on_read: OnRead = _unheard
) -> Iterator[Document | Skipped]:
    """The documents of a file, and what it holds that is none, in order. Never raises for what a file holds.

    path: a file whose suffix is a key of LOADERS. label: the file's name in ids and messages.
    """
    module, _, function = LOADERS[path.suffix.lower()].partition(":")
    loader: Callable[[Path, str, Fields, OnRead], Iterator[Document | Skipped]]
    loader = getattr(import_module(module), function)
    label = label or path.name
    try:
        yield from loader(path, label, fields, on_read)
    except MissingExtra as error:
        yield Skipped(label, str(error))
    except OSError as error:
        yield Skipped(label, f"cannot be read: {error.strerror}")

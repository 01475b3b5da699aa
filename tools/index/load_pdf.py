"""PDF files (extra: pdf), a document each, with the page on which every passage begins."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from ras_agent.errors import MissingExtra
from ras_agent.tools.index.load_document import Document, Fields, OnRead, Skipped
from ras_agent.tools.index.load_text import not_unicode, title_from_name

__all__ = ["load_pdf"]


def load_pdf(path: Path, label: str, fields: Fields, on_read: OnRead) -> Iterator[Document | Skipped]:
    """The text of all pages, and each page without any. Raises MissingExtra without pypdf."""
    try:
        from pypdf import PdfReader
    except ImportError as error:
        raise MissingExtra("reading PDF files", "pdf") from error
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns about every oddity of a file it can read
    text, pages, blank = "", [], []
    try:
        reader = PdfReader(path)
        title = str((reader.metadata and reader.metadata.title) or "").strip() or title_from_name(path)
        for number, page in enumerate(reader.pages, start=1):
            pages.append(len(text))
            words = page.extract_text().strip()
            text += f"{words}\n" if words else ""
            if not words:
                blank.append(number)
    except Exception as error:  # damaged files make pypdf raise nearly anything, RecursionError included
        yield Skipped(label, f"not a readable PDF: {type(error).__name__}: {error}"[:300])
        return
    on_read(path.stat().st_size)
    if reason := not_unicode(text):
        yield Skipped(label, reason)
    elif not text:
        yield Skipped(label, "no text on any page; a scan needs OCR first")
    else:
        for number in blank:
            yield Skipped(f"{label} page {number}", "no text on this page", error=False)
        yield Document(label, text, title, place=label, pages=tuple(pages))

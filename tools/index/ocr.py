"""Reads pages without text by a program that the user chooses; no program is built in."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path

from ras_agent.tools.index.text_files import (
    Convert,
    Converted,
    FileContent,
    HeldFile,
    NotText,
    OnRead,
)

_SECONDS = 300
"""The time in which a page must be read."""


def with_ocr(command: Sequence[str], convert: Convert) -> Convert:
    """Return a conversion in which a program reads the pages of a PDF that have no text.

    The program is run directly, without a shell. The conversion raises NotText if the program fails.

    Args:
        command: the program with its arguments, to which the path of the file and the number of the page, from 1,
            are appended; it prints the text.
        convert: converts all other files.
    """

    def read(path: FileContent, on_read: OnRead) -> Converted:
        try:
            found = convert(path, on_read)
        except NotText as error:
            if not error.pages:
                raise
            found = Converted("", pages=(0,) * error.pages)
        if path.suffix.lower() != ".pdf":
            return found
        return _with_pages_read(command, path, found)

    return read


def _with_pages_read(
    command: Sequence[str], path: FileContent, found: Converted
) -> Converted:
    borders = pairwise((*found.pages, len(found.text)))
    texts = [found.text[start:end].strip() for start, end in borders]
    if all(texts):
        return found
    if isinstance(path, HeldFile):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "upload.pdf"
            file.write_bytes(path.data)
            read = _pages_read(command, file, texts)
    else:
        read = _pages_read(command, path, texts)
    whole = "".join(f"{text}\n" for text in read if text)
    if not whole:
        raise NotText("holds no text, and --ocr found none", empty=True)
    lengths = [len(text) + 1 if text else 0 for text in read]
    starts = accumulate(lengths[:-1], initial=0)
    return replace(
        found, text=whole, pages=tuple(starts), metadata={**found.metadata, "ocr": True}
    )


def _pages_read(command: Sequence[str], file: Path, texts: Sequence[str]) -> list[str]:
    """Return the texts of all pages; pages without one are read by the program."""
    read = []
    for number, text in enumerate(texts, start=1):
        said = text or _page(command, file, number)
        read.append(said)
    return read


def _page(command: Sequence[str], file: Path, number: int) -> str:
    arguments = [*command, str(file.absolute()), str(number)]
    try:
        ended = subprocess.run(
            arguments,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError as error:
        raise NotText(
            f"--ocr {command[0]!r} cannot be run: {error.strerror}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise NotText(
            f"--ocr takes longer than {_SECONDS} s for page {number}; leave the file out, or use a faster program"
        ) from error
    if ended.returncode:
        said = ended.stderr.decode("utf-8", "replace").strip()[:200]
        raise NotText(f"--ocr failed on page {number} with {ended.returncode}: {said}")
    return ended.stdout.decode("utf-8", "replace").replace("\0", "").strip()

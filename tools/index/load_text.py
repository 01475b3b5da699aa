"""Plain text files: UTF-8, with or without a byte order mark, kept as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ras_agent.tools.index.load_document import Document, Fields, OnRead, Skipped

__all__ = ["load_text", "not_unicode", "read_lines", "read_text", "title_from_name"]

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def load_text(path: Path, label: str, fields: Fields, on_read: OnRead) -> Iterator[Document | Skipped]:
    """One document, titled after its file."""
    text = read_text(path, label, on_read)
    yield text if isinstance(text, Skipped) else Document(label, text, title_from_name(path), place=label)


def title_from_name(path: Path) -> str:
    """`notes/Alexander_Graham_Bell.txt` is titled "Alexander Graham Bell"."""
    return path.stem.replace("_", " ").strip()


def read_text(path: Path, label: str, on_read: OnRead) -> str | Skipped:
    """The whole file, line ends as they are, without its byte order mark."""
    data = path.read_bytes()
    on_read(len(data))
    if data.startswith(_UTF16):
        return Skipped(label, f"not UTF-8 but UTF-16; convert it: iconv -f UTF-16 -t UTF-8 {path.name}")
    text = _decoded(data.removeprefix(b"\xef\xbb\xbf"))
    if reason := not_unicode(text):
        line = text.count("\n", 0, _first_bad(text)) + 1
        return Skipped(f"{label} line {line}", reason)
    if "\0" in text:
        return Skipped(f"{label} line {text.count(chr(10), 0, text.index(chr(0))) + 1}", "holds a NUL: not a text file")
    return text if text.strip() else Skipped(label, "holds no text", error=False)


def read_lines(path: Path, on_read: OnRead) -> Iterator[str]:
    """The file's lines with their line ends, one by one. Ask `not_unicode` of what is made of them."""
    with path.open("rb") as file:
        for number, line in enumerate(file):
            on_read(len(line))
            yield _decoded(line if number else line.removeprefix(b"\xef\xbb\xbf"))


def not_unicode(text: str) -> str:
    """Why `text` cannot be stored, or nothing: bytes that are not UTF-8, or half of a surrogate pair."""
    at = _first_bad(text)
    if at < 0:
        return ""
    code = ord(text[at])
    # surrogateescape keeps an undecodable byte b as the code point 0xdc00 + b
    if 0xDC80 <= code <= 0xDCFF:
        column = at - text.rfind("\n", 0, at)
        return (
            f"not UTF-8: byte 0x{code - 0xDC00:02x} at character {column}; "
            "convert the file, for example: iconv -f ISO-8859-1 -t UTF-8"
        )
    return f"holds half of a surrogate pair, \\u{code:04x}, which is no character"


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _first_bad(text: str) -> int:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return error.start
    return -1

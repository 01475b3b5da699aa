"""Reads text files of unknown origin: UTF-8 with or without a byte order mark, lines, and lines of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO, Any, Literal

OnRead = Callable[[int], None]
"""Called with the number of bytes read since the last call."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# a few occur in texts about encodings, and where a byte was lost
_MOST_UNREADABLE = 0.02
CONVERT = (
    "convert the file from the encoding that it was saved in, iconv -f ENCODING -t UTF-8; on Windows that is mostly "
    "WINDOWS-1252 in the west of Europe, GBK in China, SHIFT_JIS in Japan"
)
_DEEPEST = 100  # levels of JSON: well below Python's limit, since stored values are later parsed at a deeper stack


@dataclass(frozen=True, slots=True)
class SheetRow:
    """Holds a row of a sheet: its number there, and its cells as they are shown."""

    sheet: str
    number: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """Holds a file's text as Markdown."""

    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pages: tuple[int, ...] = ()
    """For pages and slides, the offset in `text` at which each begins."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many parts were left out because no reader sees them, by the reason: "hidden" or "struck out"."""
    rows: tuple[SheetRow, ...] = ()
    """The rows of a workbook, which are read instead of its text."""
    quoted: str = ""
    """The earlier mails that a mail quotes."""
    attachments: tuple[str, ...] = ()
    """The names of a mail's attachments, which are not read."""


@dataclass(frozen=True, slots=True)
class HeldFile:
    """Holds a file in memory, which is read like a file at a path."""

    name: str
    data: bytes
    converted: Converted | None = None
    """Its text, if it is known."""

    @property
    def suffix(self) -> str:
        """Return the suffix of the name."""
        return Path(self.name).suffix

    def read_bytes(self) -> bytes:
        """Return the bytes."""
        return self.data

    def open(self, mode: Literal["rb"]) -> IO[bytes]:
        """Return the bytes as an open file."""
        return BytesIO(self.data)


FileContent = Path | HeldFile
"""The path, or the bytes in memory, from which a file is read."""


class NotText(Exception):
    """Reports a file that contains no text that can be indexed."""

    def __init__(
        self, reason: str, line: int = 0, *, empty: bool = False, pages: int = 0
    ) -> None:
        """Take the reason.

        Args:
            line: where the problem is; 0 for the whole file.
            empty: whether the file is empty.
            pages: the number of pages, if no page has a text.
        """
        super().__init__(reason)
        self.line = line
        self.empty = empty
        self.pages = pages


Convert = Callable[[FileContent, OnRead], Converted]
"""Returns the text of a file that is not a text file; see `conversions.convert`."""


def name_of(path: Path | str) -> str:
    """Return the path of a file as UTF-8, whatever the locale's encoding is.

    Bytes that are not UTF-8 become lone surrogates, which `not_unicode` finds.
    """
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def path_of(name: str) -> Path:
    """Return the path whose name, as returned by `name_of`, is `name`."""
    return Path(os.fsdecode(name.encode("utf-8", "surrogateescape")))


def read_text(path: FileContent, on_read: OnRead) -> str:
    """Return the whole text of a file without its byte order mark, with line ends unchanged. Raises NotText,
    OSError."""
    data = path.read_bytes()
    on_read(len(data))
    text = (
        _of_utf16(data)
        if data.startswith(_UTF16)
        else _decoded(data.removeprefix(_BYTE_ORDER_MARK))
    )
    if reason := not_unicode(text):
        raise NotText(reason, _line_of(text, _first_bad(text)))
    check_text(text)
    if not text.strip():
        raise NotText("holds no text", empty=True)
    return text


def check_text(text: str) -> None:
    """Raise NotText if a file read as text is not a text: if it contains NULs or many unreadable characters."""
    if "\0" in text:
        raise NotText(
            "holds a NUL character, as no text file does",
            _line_of(text, text.index("\0")),
        )
    unreadable = text.count(_REPLACEMENT)
    if unreadable > _MOST_UNREADABLE * len(text) + 1:
        raise NotText(
            f"{unreadable:,} of its {len(text):,} characters could not be read: it is encrypted, or in another encoding"
        )


def _of_utf16(data: bytes) -> str:
    """Return the text of bytes that begin with UTF-16's byte order mark. Raises NotText."""
    try:
        return data.decode("utf-16")
    except UnicodeDecodeError as error:
        raise NotText(
            f"begins with UTF-16's byte order mark, but byte {error.start + 1:,} is not UTF-16; save it as UTF-8"
        ) from error


def read_lines(path: FileContent, on_read: OnRead = lambda _: None) -> Iterator[str]:
    """Yield the file's lines one by one, with their line ends. Check values made from them with `not_unicode`."""
    with path.open("rb") as file:
        if file.read(2) in _UTF16:
            file.seek(0)
            data = file.read()
            on_read(len(data))
            yield from StringIO(_of_utf16(data), newline="\n")
            return
        file.seek(0)
        for number, line in enumerate(file):
            on_read(len(line))
            yield _decoded(line if number else line.removeprefix(_BYTE_ORDER_MARK))


def not_unicode(text: str) -> str:
    """Return why `text` cannot be stored; "" if it can.

    Bytes that are not UTF-8, and halves of surrogate pairs, cannot be stored.
    """
    at = _first_bad(text)
    if at < 0:
        return ""
    code = ord(text[at])
    # surrogateescape keeps an undecodable byte b as the code point 0xdc00 + b
    if 0xDC80 <= code <= 0xDCFF:
        column = at - text.rfind("\n", 0, at)
        return (
            f"not UTF-8: byte 0x{code - 0xDC00:02x} at character {column}; " + CONVERT
        )
    return f"holds half of a surrogate pair, \\u{code:04x}, which is no character"


class WrittenNumber(float):
    """Keeps the digits of a number as written, since 1.10 is not the same price as 1.1 to a reader."""

    __slots__ = ("written",)

    def __init__(self, written: str) -> None:
        """Take the digits."""
        self.written = written


def parse_line(line: str, *, as_written: bool = False) -> Any:
    """Return the JSON value of a line. Raises ValueError, with the reason, for a line without one, or with one that
    cannot be stored.

    Args:
        as_written: whether decimal numbers keep their digits, as WrittenNumber.
    """
    try:
        value = json.loads(line, parse_float=WrittenNumber if as_written else None)
    except json.JSONDecodeError as error:
        around = line[max(0, error.pos - 20) : error.pos + 20]
        raise ValueError(
            f"not JSON: {error.msg} at character {error.pos + 1}: {around!r}"
        ) from error
    except ValueError as error:  # an integer with thousands of digits
        raise ValueError(f"cannot be read: {error}") from error
    except RecursionError as error:
        raise ValueError("nested too deeply to be read") from error
    if line.count("[") + line.count("{") > _DEEPEST and _is_deep(value):
        raise ValueError("nested too deeply to be read")
    return value


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _first_bad(text: str) -> int:
    """Return the position of the first character that UTF-8 cannot encode, or -1."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return error.start
    return -1


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _is_deep(value: object, levels: int = _DEEPEST) -> bool:
    inner = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, list)
        else ()
    )
    return not levels or any(_is_deep(item, levels - 1) for item in inner)

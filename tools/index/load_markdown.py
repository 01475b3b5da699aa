"""Markdown: kept as written; its title is the first heading, its simple front matter becomes metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ras_agent.tools.index.load_document import Document, Fields, OnRead, Skipped
from ras_agent.tools.index.load_text import read_text, title_from_name

__all__ = ["first_heading", "front_matter", "load_markdown"]

_FRONT = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"([A-Za-z][\w-]*):(?:[ \t]+(.*))?")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_ATX = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_SETEXT = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_PLAIN = re.compile(r" {0,3}[^\s#>*+|`~-].*")


def load_markdown(path: Path, label: str, fields: Fields, on_read: OnRead) -> Iterator[Document | Skipped]:
    """One document, titled by front matter, else by its first heading, else after its file."""
    text = read_text(path, label, on_read)
    if isinstance(text, Skipped):
        yield text
        return
    metadata, body = front_matter(text)
    title = metadata.pop("title", "") or first_heading(body) or title_from_name(path)
    if body.strip():
        yield Document(label, body, title, metadata, place=label)
    else:
        yield Skipped(label, "holds no text below its front matter", error=False)


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """The `key: value` lines between two `---` at the top, and the text below them.

    Front matter of any richer kind (nested, lists, block text) is left where it is, in the text.
    """
    match = _FRONT.match(text)
    if match is None:
        return {}, text
    metadata: dict[str, str] = {}
    for line in match[1].splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        entry = _ENTRY.fullmatch(line.rstrip())
        if entry is None or not entry[2] or entry[2][0] in "[{|>&*!":
            return {}, text
        metadata[entry[1]] = _unquoted(entry[2])
    return metadata, text[match.end() :]


def first_heading(text: str) -> str:
    """The first `# heading`, or line underlined with `===` or `---`, outside fenced code; nothing if there is none."""
    fence, above = "", ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence, above = ("" if fence else mark[1]), ""
            continue
        if fence:
            continue
        heading = _ATX.fullmatch(line)
        if heading and heading[1]:
            return heading[1]
        if above and _SETEXT.fullmatch(line):
            return above.strip()
        above = line if _PLAIN.fullmatch(line) else ""
    return ""


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value

"""Converts texts in other markups to Markdown: reStructuredText, AsciiDoc, notebooks and subtitles."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import unescape
from itertools import pairwise
from typing import Any

from ras_agent.tools.index.markup_tables import (
    with_tables_of_asciidoc,
    with_tables_of_rst,
)
from ras_agent.tools.index.scripts import lowered, raised, written_out
from ras_agent.tools.index.text_files import NotText, WrittenNumber, parse_line

_UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*")
_FIELD = re.compile(r":([A-Za-z][\w -]{0,40}):(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"([-.=*_+/])\1{3,}\s*")
_REMARK_BLOCK = "/"
_FENCES = ("-", ".", _REMARK_BLOCK)
_ASCIIDOC_RAISED = re.compile(r"\^([^\s^]{1,40})\^")
_ASCIIDOC_LOWERED = re.compile(r"~([^\s~]{1,40})~")
_ASCIIDOC_STRUCK = re.compile(r"\[\.?line-through\]##?[^#\n]{1,400}##?")
_ASCIIDOC_NOTE = re.compile(r"footnote:[\w-]{0,40}\[([^\]\n]{1,400})\]")
_ASCIIDOC_NAME = re.compile(r"\{([\w-]{1,40})\}")
_RST_NAME = re.compile(r"\|([^\s|](?:[^|\n]{0,60}[^\s|])?)\|_{0,2}(?![\w|])")
_RST_NAMED = re.compile(r"^\.\. \|([^|\n]{1,60})\| replace:: (.*)\n?", re.MULTILINE)
_RST_NOTE = re.compile(r"\[(#?[\w-]{0,40}|\*)\]_(?!\w)")
_SECTION = re.compile(r"(={1,6})[ \t]+(\S.*)")
_TIMING = re.compile(r"(?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3}[ \t]+-->")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*+)?[ \t]++([^<>]*+)>")
_TAG = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")
_ROLE = re.compile(r"(?:\\ )?:([\w+.-]{1,40}):`([^`<>]*+)(?:<[^`<>]*+>)?`(?:\\ )?")
_RST_LINK = re.compile(r"`([^`<>]++)<[^`<>]*+>`__?")
_REMARK = re.compile(r"\.\.(?:[ \t]++(?![\[_|]|.*::).*)?")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATES = ("date", "revdate")

Text = tuple[str, dict[str, Any]]
"""A text as Markdown, and the metadata stated in it."""


def _from_rst(text: str) -> Text:
    """Return a text whose underlined titles are headings. Each kind of underline is a level, in the order of first use.

    Comments are left out, and roles and links are replaced by their words.
    """
    text = with_tables_of_rst(text)
    named = dict(_RST_NAMED.findall(text))
    with_names = _with_names(_RST_NAMED.sub("", text), _RST_NAME, named)
    with_roles = _ROLE.sub(_words_of_role, with_names)
    plain = _RST_NOTE.sub(r"[\1]", written_out(with_roles))
    lines = _without_remarks(_RST_LINK.sub(_words_of_link, plain))
    levels: list[str] = []
    made: list[str] = []
    number = 0
    while number < len(lines):
        titled = _rst_title(lines, number)
        if titled is None:
            made.append(lines[number])
            number += 1
            continue
        title, kind, count = titled
        if kind not in levels:
            levels.append(kind)
        level = min(levels.index(kind) + 1, 6)
        made.append(f"{'#' * level} {title}")
        number += count
    return _without_fields(made)


def _with_names(text: str, pattern: re.Pattern[str], named: Mapping[str, str]) -> str:
    """Return a text in which names are replaced by what they stand for; unknown names are kept."""

    def meant(match: re.Match[str]) -> str:
        return named.get(match[1], match[0])

    return pattern.sub(meant, text) if named else text


def _words_of_role(match: re.Match[str]) -> str:
    """Return the words of a role such as :ref:`the lid <lid>`; words above or below the line are marked."""
    role = match[1]
    words = match[2].strip()
    if role in ("sup", "superscript"):
        return raised(words)
    if role in ("sub", "subscript"):
        return lowered(words)
    return words


def _words_of_link(match: re.Match[str]) -> str:
    return match[1].strip()


def _without_remarks(text: str) -> list[str]:
    """Return the lines of a text without comments: two dots that are not a directive, with the indented lines below.

    Two dots without words do not include anything below an empty line.
    """
    kept: list[str] = []
    is_remark = False
    for line, following in pairwise([*text.splitlines(), ""]):
        is_indented = line[:1].isspace() or not line
        if is_remark and is_indented:
            continue
        is_remark = False
        if _REMARK.fullmatch(line) is None:
            kept.append(line)
            continue
        has_words = line.strip() != ".."
        is_remark = has_words or bool(following.strip())
    return kept


def _rst_title(lines: Sequence[str], number: int) -> tuple[str, str, int] | None:
    """Return the title that begins at a line, its kind, and its number of lines, or None if no title begins there."""
    over = _UNDERLINE.fullmatch(lines[number])
    first = number + 1 if over else number
    if first + 1 >= len(lines):
        return None
    line = lines[first]
    title = line.strip()
    under = _UNDERLINE.fullmatch(lines[first + 1])
    if not title or under is None or _UNDERLINE.fullmatch(line):
        return None
    length = len(under.group().strip())
    if length < len(title):
        return None
    sign = under[1]
    if over is None:
        is_indented = line[0].isspace()
        return None if is_indented else (title, sign, 2)
    if over[1] != sign:
        return None
    return title, sign * 2, 3


def _without_fields(lines: Sequence[str]) -> Text:
    """Return the lines without the fields below the first heading, such as `:date: 2024-05-03`, and these fields."""
    about: dict[str, Any] = {}
    made: list[str] = []
    is_head = True
    for line in lines:
        field = _FIELD.fullmatch(line) if is_head else None
        if field is None:
            is_head = is_head and (not line.strip() or line.startswith("# "))
            made.append(line)
            continue
        name = field[1].lower()
        value = (field[2] or "").strip()
        about[name] = value
        if name in _DATES and value:
            about["date"] = value
    return "\n".join(made).strip() + "\n", about


def _from_asciidoc(text: str) -> Text:
    """Return a text with its sections as headings and its code blocks fenced."""
    made: list[str] = []
    fence = ""
    lines = list(_with_named_head(with_tables_of_asciidoc(text).splitlines()))
    fields = filter(None, map(_FIELD.fullmatch, lines))
    named = {field[1]: (field[2] or "").strip() for field in fields}
    for line in lines:
        block = _BLOCK.fullmatch(line)
        section = _SECTION.fullmatch(line)
        if block and block[1] in _FENCES and fence in ("", line.strip()):
            fence = "" if fence else line.strip()
            if block[1] != _REMARK_BLOCK:
                made.append("```")
        elif fence:
            if not fence.startswith(_REMARK_BLOCK):
                made.append(line)
        elif block:
            made.append("")
        elif section:
            marks = "#" * len(section[1])
            made.append(f"{marks} {section[2]}")
        elif not line.startswith("//"):
            with_names = _with_names(line, _ASCIIDOC_NAME, named)
            made.append(_without_marks(with_names))
    return _without_fields(made)


def _without_marks(line: str) -> str:
    """Return a line of AsciiDoc with raised and lowered text written in the line, and without struck out text."""
    with_notes = _ASCIIDOC_NOTE.sub(r" (\1)", line)
    kept = _ASCIIDOC_STRUCK.sub("", with_notes)
    with_raised = _ASCIIDOC_RAISED.sub(raised(r"\1"), kept)
    marked = _ASCIIDOC_LOWERED.sub(lowered(r"\1"), with_raised)
    return written_out(marked)


def _with_named_head(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of AsciiDoc; those of author and revision, directly below the title, become fields."""
    names = ["revision", "author"]
    is_head = lines[:1] != [] and lines[0].startswith("= ")
    for number, line in enumerate(lines):
        if not line.strip():
            is_head = False
        elif is_head and number and names and not line.startswith((":", "//")):
            name = names.pop()
            yield f":{name}: {line.strip()}"
            day = _DAY.search(line)
            if day and name == "revision":
                yield f":revdate: {day[0]}"
            continue
        yield line


def _from_notebook(text: str) -> Text:
    """Return the cells of a notebook, with code fenced; the output of the code is left out."""
    try:
        notebook = parse_line(text)
    except ValueError as error:
        raise NotText(f"not a notebook: {error}") from error
    parts = []
    for cell in _cells_of(notebook):
        source = cell.get("source", cell.get("input", ""))
        if isinstance(source, list):
            source = "".join(map(str, source))
        said = str(source).strip()
        if said and cell.get("cell_type") == "code":
            said = f"```\n{said}\n```"
        if said:
            parts.append(said)
    if not parts:
        raise NotText("holds no cell with a text", empty=True)
    return "\n\n".join(parts) + "\n", {}


def _cells_of(notebook: object) -> Iterator[Mapping[str, Any]]:
    """Yield the cells of a notebook; older notebooks have several sheets of cells."""
    if not isinstance(notebook, dict):
        raise NotText(
            "not a Jupyter notebook: its JSON is no object with cells; save it again from Jupyter"
        )
    sheets = [notebook, *_dicts(notebook.get("worksheets"))]
    for sheet in sheets:
        yield from _dicts(sheet.get("cells"))


def _dicts(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def _from_subtitles(text: str) -> Text:
    """Return the spoken text, one line per cue, with the names of the speakers; a directly repeated line is kept
    once."""
    said: list[str] = []
    is_spoken = False
    for line, following in pairwise([*text.splitlines(), ""]):
        begins = _TIMING.match(line.strip()) is not None
        is_number = _TIMING.match(following.strip()) and line.strip().isdecimal()
        if begins or not line.strip():
            is_spoken = begins
        elif is_spoken and not is_number:
            spoken = _spoken(line)
            if spoken and spoken not in said[-2:]:
                said.append(spoken)
    if not said:
        raise NotText("holds no subtitle", empty=True)
    return "\n".join(said) + "\n", {}


def _spoken(line: str) -> str:
    """Return a line of a cue without tags, with the name of its speaker."""
    named = _VOICE.sub(r"\1: ", line)
    words = unescape(_TAG.sub("", named)).split()
    return " ".join(words)


PLAIN_KINDS: Mapping[str, Callable[[str], Text]] = {
    ".rst": _from_rst,
    ".adoc": _from_asciidoc,
    ".asciidoc": _from_asciidoc,
    ".ipynb": _from_notebook,
    ".vtt": _from_subtitles,
    ".srt": _from_subtitles,
}
"""The function that converts a text to Markdown, by suffix; it raises NotText for a text of another kind."""


def flat(value: object, name: str = "") -> dict[str, str]:
    """Return the values of an object by their paths, such as "address.city"; a list of plain values becomes one value.

    >>> flat({"name": "Ilse", "home": {"port": "Orvena"}, "tags": ["a", 2], "sold": None})
    {'name': 'Ilse', 'home.port': 'Orvena', 'tags': 'a, 2'}
    """
    if value is None or value != value:  # NaN counts as missing
        return {}
    if not isinstance(value, Mapping | list):
        return {name: _as_text(value)}
    if isinstance(value, Mapping):
        items = list(value.items())
    elif any(isinstance(item, dict | list) for item in value):
        items = list(enumerate(value, start=1))
    else:
        values = [_as_text(item) for item in value]
        return {name: ", ".join(values)}
    found: dict[str, str] = {}
    for key, inner in items:
        path = f"{name}.{key}" if name else str(key)
        found |= flat(inner, path)
    return found


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, WrittenNumber):
        return value.written
    return json.dumps(value, ensure_ascii=False)

"""Reads the front matter and the headings of Markdown."""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

from ras_agent.tools.index.page_styles import declarations, hides
from ras_agent.tools.index.scripts import lowered, raised, written_out

_FRONT = re.compile(
    r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_TOML = re.compile(
    r"\+\+\+[ \t]*\r?\n(.*?)^\+\+\+[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_PERCENT = re.compile(r"%[ \t]+(.+)\n(?:%[ \t]*(.*)\n)?(?:%[ \t]*(.*)\n)?[ \t]*\r?\n")
_HEAD = re.compile(r"Title:[ \t].*\n(?:[A-Za-z][\w-]*:[ \t].*\n)+[ \t]*\r?\n")
_ENTRY = re.compile(r"([^\W\d][\w.-]*):(?:[ \t]+(.*))?")
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_COMMENT = re.compile(r" {0,3}<!--")
# code is matched first, since a comment inside code is visible
_MARKUP = re.compile(
    r"^ {0,3}(?P<fence>`{3,}|~{3,}).*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)|`[^`\n]*`|<!--(?P<comment>.*?)(?:-->|\Z)"
    r"|(?<!~)~~(?=[^\s~])(?P<struck>[^~\n]{1,1000})(?<=\S)~~(?!~)"
    r"|^ {0,3}\[(?://|comment)\]:[ \t]*(?:#|<>)(?P<remark>[^\n]*)$"
    r"|<(?P<level>su[pb])>(?P<script>[^<\n]{1,40})</(?P=level)>"
    r"|<(?P<close>/?)(?P<name>[A-Za-z][\w-]*+)(?P<about>(?:\s[^<>]*+)?)>",
    re.DOTALL | re.MULTILINE,
)
_CLOSED = re.compile(r"</([A-Za-z][\w-]*+)\s*+>")
_STRUCK = ("s", "del", "strike")
_STYLE_OF = re.compile(r"\bstyle\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')")
_HIDDEN = re.compile(r"\s(?:hidden(?=[\s=/]|\Z)|aria-hidden\s*+=\s*+[\"']?true)")
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]++(.*)")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_MARKS = re.compile(r"\*\*|(?<!\w)__|__(?!\w)|`|<br ?/?>")
_ZERO_WIDTH = "\u200b\u2060\ufeff\u00ad"
_SETEXT = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_PLAIN = re.compile(r" {0,3}[^\s#>*+|`~-].*")

# in characters; longer front matter is read line by line, since YAML's reader is slow
_LONGEST_FRONT = 1 << 14
_BLANKS = "\r\n\t \ufeff"
_DEEPEST = 20  # the maximum depth of nested lists


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the front matter at the top of a text, with every value as it is written, and the text below it.

    Front matter is YAML between two `---`, TOML between two `+++`, a JSON object, lines of which the first is
    "Title: ...", or Pandoc's lines of title, author and date, each after a `%`. Invalid YAML, such as `title:
    Sonar: a guide`, is read line by line, as `key: value`, lists and comments. Any other lines are not front
    matter, and stay in the text.
    """
    begin = len(text) - len(text.lstrip(_BLANKS))
    for pattern, read in ((_FRONT, _from_yaml_or_lines), (_TOML, _from_toml)):
        match = pattern.match(text, begin)
        if match is not None:
            metadata = read(match[1])
            return ({}, text) if metadata is None else (metadata, text[match.end() :])
    if text.startswith("{"):
        return _from_json(text)
    head = _HEAD.match(text, begin)
    if head is not None:
        entries = _from_lines(head[0]) or {}
        return {name.lower(): entries[name] for name in entries}, text[head.end() :]
    percent = _PERCENT.match(text, begin)
    if percent is not None:
        named = zip(("title", "author", "date"), percent.groups(), strict=True)
        return {name: said.strip() for name, said in named if said}, text[
            percent.end() :
        ]
    return {}, text


def _from_yaml_or_lines(block: str) -> dict[str, Any] | None:
    metadata = _from_yaml(block)
    if metadata is None:
        metadata = _from_lines(block)
    return metadata


def _from_toml(block: str) -> dict[str, Any] | None:
    try:
        found = tomllib.loads(block)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return None
    values = json.loads(json.dumps(found, default=str))
    return dict(values)


def _from_json(text: str) -> tuple[dict[str, Any], str]:
    """Return the object that a text begins with, and the text below it; a text that is only an object is not front
    matter."""
    try:
        found, end = json.JSONDecoder().raw_decode(text[:_LONGEST_FRONT])
    except (ValueError, RecursionError):
        return {}, text
    below = text[end:]
    is_front = isinstance(found, dict) and below.lstrip(" \t").startswith(
        ("\n", "\r\n")
    )
    if not is_front or not below.strip():
        return {}, text
    return found, below.lstrip()


def _from_yaml(block: str) -> dict[str, Any] | None:
    import yaml  # langchain-core requires it

    if len(block) > _LONGEST_FRONT:
        return None
    try:
        # an alias repeats the value that it names: a few lines of them can expand to gigabytes
        if any(
            isinstance(event, yaml.AliasEvent)
            for event in yaml.parse(block, yaml.BaseLoader)
        ):
            return None
        # the base loader keeps every value as text: dates are unchanged, and 1.10 does not become 1.1
        found = yaml.load(block, yaml.BaseLoader)
    except (
        yaml.YAMLError,
        RecursionError,
        ValueError,
        TypeError,
    ):  # a list as a key is a TypeError
        return None
    if found is None:
        return {}
    plain = isinstance(found, dict) and _is_plain(found)
    return {key.strip(): value for key, value in found.items()} if plain else None


def _is_plain(value: object, levels: int = _DEEPEST) -> bool:
    """Return whether a value consists of texts, lists and objects with names, and is not nested too deeply."""
    if isinstance(value, str):
        return True
    if not levels:
        return False
    if isinstance(value, dict):
        return all(
            isinstance(key, str) and _is_plain(item, levels - 1)
            for key, item in value.items()
        )
    return isinstance(value, list) and all(
        _is_plain(item, levels - 1) for item in value
    )


def _from_lines(block: str) -> dict[str, Any] | None:
    metadata: dict[str, Any] = {}
    last = ""
    for line in map(str.rstrip, block.splitlines()):
        entry = _ENTRY.fullmatch(line)
        item = _ITEM.fullmatch(line)
        if entry:
            last = entry[1]
            metadata[last] = _unquoted(entry[2] or "")
        elif item and last and not metadata[last]:
            metadata[last] = [_unquoted(item[1])]
        elif item and last and isinstance(metadata[last], list):
            metadata[last].append(_unquoted(item[1]))
        elif line and not line.lstrip().startswith("#"):
            return None
    return metadata


@dataclass(frozen=True, slots=True)
class Line:
    """Holds a line, at the characters `start` to `end` of a text, without its line end."""

    start: int
    end: int
    text: str
    """The line; "" in code and in comments."""


def lines_of_prose(text: str) -> Iterator[Line]:
    """Yield the lines of a Markdown text; the lines of fenced code and of HTML comments have an empty `text`.

    A fenced block ends at a line with the mark of its first line (` or ~), repeated at least as often.
    """
    start = 0
    fence = ""
    in_comment = False
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        mark = _FENCE.match(bare)
        opens_comment = not fence and _COMMENT.match(bare) is not None
        is_prose = not (fence or mark or in_comment or opens_comment)
        shown = bare if is_prose else ""
        if in_comment or opens_comment:
            in_comment = "-->" not in bare
        elif mark and not fence:
            fence = mark[1]
        elif mark:
            behind = bare[mark.end() :].strip()
            closes = mark[1].startswith(fence) and not behind
            fence = "" if closes else fence
        yield Line(start, start + len(bare), shown)
        start += len(line)


@dataclass(frozen=True, slots=True)
class Heading:
    """Describes a heading."""

    start: int
    """Where it begins in its text."""
    level: int
    """1 for the highest."""
    title: str


def headings_of(text: str) -> Iterator[Heading]:
    """Yield the headings of a Markdown text: `# heading`, or a line underlined with `===` or `---`."""
    above = Line(0, 0, "")
    for line in lines_of_prose(text):
        heading = _heading_of(line, above)
        if heading is not None and heading.title:
            yield heading
        is_plain = heading is None and _PLAIN.fullmatch(line.text)
        above = line if is_plain else Line(0, 0, "")


def _heading_of(line: Line, above: Line) -> Heading | None:
    """Return the heading in a line, or the plain line above if this line underlines it; None if there is none."""
    marked = _ATX.fullmatch(line.text)
    if marked:
        return Heading(
            start=line.start,
            level=len(marked[1]),
            title=plain_text(_without_closing(marked[2])),
        )
    if not above.text or not _SETEXT.fullmatch(line.text):
        return None
    level = 1 if "=" in line.text else 2
    return Heading(start=above.start, level=level, title=plain_text(above.text))


def without_unseen(text: str) -> tuple[str, dict[str, int]]:
    """Return a Markdown text without comments, hidden and struck out words, and the number of parts left out for each
    reason.

    Raised and lowered text in HTML is written in the line.

    >>> without_unseen("Seen. <!-- Say yes. --> `<!-- code -->` ~~5~~ 4, 10<sup>6</sup>")
    ('Seen.  `<!-- code -->`  4, 10^6', {'hidden': 1, 'struck out': 1})
    """
    left_out = {"hidden": 0, "struck out": 0}
    ends = {match[1].lower(): match.end() for match in _CLOSED.finditer(text)}
    kept: list[str] = []
    last = 0
    for start, end, reason, shown in _unseen_parts(text, ends):
        kept += [text[last:start], shown]
        last = end
        if reason:
            left_out[reason] += any(map(str.isalnum, text[start:end]))
    kept.append(text[last:])
    return written_out("".join(kept)), left_out


def _unseen_parts(
    text: str, ends: Mapping[str, int]
) -> Iterator[tuple[int, int, str, str]]:
    """Yield the start and end of each part to replace, the reason ("" for raised and lowered text), and its
    replacement.

    Args:
        ends: where the last element of each name ends; an element that never ends hides nothing.
    """
    begun = 0
    name = ""
    depth = 0
    reason = ""
    for match in _MARKUP.finditer(text):
        element = (match["name"] or "").lower()
        if name:
            if element == name:
                depth += -1 if match["close"] else 1
            if depth == 0 or match.end() >= ends[name]:
                yield begun, match.end(), reason, ""
                name = ""
        elif element:
            reason = "" if match["close"] else _reason_of(element, match["about"])
            if reason and ends.get(element, 0) > match.end():
                begun = match.start()
                name = element
                depth = 1
        elif match["level"]:
            make = raised if match["level"] == "sup" else lowered
            yield match.start(), match.end(), "", make(match["script"])
        elif match["struck"]:
            yield match.start(), match.end(), "struck out", ""
        elif match["comment"] is not None or match["remark"]:
            yield match.start(), match.end(), "hidden", ""


def _reason_of(element: str, about: str) -> str:
    """Return why the words in an element of HTML are left out, or "" if they are kept."""
    if element in _STRUCK:
        return "struck out"
    style = _STYLE_OF.search(about)
    if _HIDDEN.search(about):
        return "hidden"
    if style and hides(declarations(style[1] or style[2] or "")):
        return "hidden"
    return ""


def first_heading(text: str) -> str:
    """Return the title of the first heading, or ""."""
    for heading in headings_of(text):
        return heading.title
    return ""


class Outline:
    """Finds the headings above a place in a text."""

    def __init__(self, headings: Iterable[Heading]) -> None:
        """Take the headings of a text, in order."""
        self._starts: list[int] = []
        self._above: list[tuple[str, ...]] = []
        self._within: list[tuple[str, ...]] = []
        open_ones: list[Heading] = []
        for heading in headings:
            while open_ones and open_ones[-1].level >= heading.level:
                open_ones.pop()
            above = tuple(one.title for one in open_ones[:_DEEPEST])
            open_ones.append(heading)
            self._starts.append(heading.start)
            self._above.append(above)
            self._within.append((*above, heading.title))

    def above(self, place: int) -> tuple[str, ...]:
        """Return the headings of the sections that contain an offset of the text, the highest first.

        A heading that begins at the offset is not included.
        """
        last = bisect_right(self._starts, place) - 1
        if last < 0:
            return ()
        if self._starts[last] == place:
            return self._above[last]
        return self._within[last]


def plain_text(text: str) -> str:
    """Return a heading, or a cell of a table, without style marks and without the addresses of links.

    >>> plain_text("**Kestrel** [Werke](https://kestrel.example) `v2`")
    'Kestrel Werke v2'
    """
    said = _LINK.sub(r"\1", text)
    said = unescape(_MARKS.sub("", said))
    visible = "".join([char for char in said if char not in _ZERO_WIDTH])
    return " ".join(visible.split())


def _without_closing(heading: str) -> str:
    """Return a heading without the `#`s that may close it."""
    title = heading.rstrip(" \t")
    opening = title.rstrip("#")
    if opening.endswith((" ", "\t")):
        return opening.rstrip(" \t")
    return title


def _unquoted(value: str) -> str:
    value = value.strip()
    return (
        value[1:-1]
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        else value
    )

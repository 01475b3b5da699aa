"""Reads what Markdown says about itself: front matter, and the first heading."""

from __future__ import annotations

import re
from typing import Any

_FRONT = re.compile(r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"([^\W\d][\w.-]*):(?:[ \t]+(.*))?")
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_ATX = re.compile(r" {0,3}#{1,6}[ \t]++(.*)")
_SETEXT = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_PLAIN = re.compile(r" {0,3}[^\s#>*+|`~-].*")

_LONGEST_FRONT = 1 << 14  # characters; longer ones are read line by line, since YAML's reader is slow
_DEEPEST = 20  # levels of lists in lists


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the YAML between two `---` at the top, every value as it is written, and the text below it.

    What is not YAML, such as `title: Sonar: a guide`, is read line by line, as `key: value`, lists and comments. Lines
    that are none of these are no front matter, and stay in the text.
    """
    match = _FRONT.match(text)
    if match is None:
        return {}, text
    metadata = _from_yaml(match[1])
    if metadata is None:
        metadata = _from_lines(match[1])
    return ({}, text) if metadata is None else (metadata, text[match.end() :])


def _from_yaml(block: str) -> dict[str, Any] | None:
    import yaml  # langchain-core requires it

    if len(block) > _LONGEST_FRONT:
        return None
    try:
        # an alias repeats what it names: some lines of them make gigabytes
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(block, yaml.BaseLoader)):
            return None
        # the base loader leaves every value a text: dates stay dates, 1.10 does not become 1.1
        found = yaml.load(block, yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError):  # a list as a key is a TypeError
        return None
    if found is None:
        return {}
    plain = isinstance(found, dict) and _is_plain(found)
    return {key.strip(): value for key, value in found.items()} if plain else None


def _is_plain(value: object, levels: int = _DEEPEST) -> bool:
    """Return whether a value is made of texts, lists and objects with names, none of them too deep."""
    if isinstance(value, str):
        return True
    if not levels:
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item, levels - 1) for key, item in value.items())
    return isinstance(value, list) and all(_is_plain(item, levels - 1) for item in value)


def _from_lines(block: str) -> dict[str, Any] | None:
    metadata: dict[str, Any] = {}
    last = ""
    for line in map(str.rstrip, block.splitlines()):
        entry, item = _ENTRY.fullmatch(line), _ITEM.fullmatch(line)
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


def first_heading(text: str) -> str:
    """Return the first `# heading`, or line underlined with `===` or `---`, outside fenced code; "" without one."""
    fence, above = "", ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence, above = ("" if fence else mark[1]), ""
            continue
        if fence:
            continue
        heading = _ATX.fullmatch(line)
        if heading and (title := _without_closing(heading[1])):
            return title
        if above and _SETEXT.fullmatch(line):
            return above.strip()
        above = line if _PLAIN.fullmatch(line) else ""
    return ""


def _without_closing(heading: str) -> str:
    """Return a heading without the `#`s that may close it."""
    title = heading.rstrip(" \t")
    opening = title.rstrip("#")
    return opening.rstrip(" \t") if opening.endswith((" ", "\t")) else title


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value

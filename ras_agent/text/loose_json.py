"""Reads JSON objects as models write them: inside prose or a fence, with single quotes, with trailing commas, or
nested.

Values may be texts, numbers, truth values, null and lists of these. Of nested objects, only the inner ones are read. An
object that was cut off is not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

Value: TypeAlias = str | bool | float | list[str | bool | float | None] | None

# possessive repetitions, so that each text is read only once: see ras_agent.contracts.marks
_TEXT = r'(?:"(?:[^"\\]|\\.)*+"' + r"|'(?:[^'\\\n]|\\.)*+')"
_SCALAR = rf"(?:{_TEXT}|-?\d[\d.eE+-]*+|true|false|null|none)"
_LIST = rf"\[\s*+(?:{_SCALAR}\s*+,?\s*+)*+\]"
_OBJECT = re.compile(
    rf"\{{\s*+(?:{_TEXT}\s*+:\s*+(?:{_SCALAR}|{_LIST})\s*+,?\s*+)++\}}",
    re.IGNORECASE | re.DOTALL,
)
_PAIR = re.compile(rf"({_TEXT})\s*+:\s*+({_SCALAR}|{_LIST})", re.IGNORECASE | re.DOTALL)
_ITEM = re.compile(_SCALAR, re.IGNORECASE | re.DOTALL)
_OPENS = re.compile(r"\s*+(?:`{3,}+\w*+\s*+)?+(?:\[\s*+)?+\{\s*+[\"'}]")
_WORDS: dict[str, bool | None] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
}


def json_objects(text: str) -> Iterator[tuple[int, dict[str, Value]]]:
    """Yield each JSON object in `text`, with the position at which it begins.

    Keys are in lower case, with underscores between words.
    """
    for found in _OBJECT.finditer(text):
        item = {}
        for key, value in _PAIR.findall(found[0]):
            words = str(_scalar(key))
            name = re.sub(r"[\s-]+", "_", words)
            item[name.casefold()] = _value(value)
        yield found.start(), item


def first_text(item: Mapping[str, Value], keys: Iterable[str]) -> str:
    """Return the value of the first of `keys` that has a text or a list beginning with one; of a list, its first text.

    Return "" if no key has such a value.
    """
    texts = all_texts(item, keys)
    if texts:
        return texts[0]
    return ""


def all_texts(item: Mapping[str, Value], keys: Iterable[str]) -> list[str]:
    """Return the texts of the first of `keys` that has a text or a list beginning with one.

    Return [] if no key has such a value.
    """
    for key in keys:
        value = item.get(key)
        values = value if isinstance(value, list) else [value]
        texts = []
        for one in values:
            if isinstance(one, str) and one.strip():
                texts.append(one.strip())
        if texts and isinstance(values[0], str) and values[0].strip():
            return texts
    return []


def is_json(text: str) -> bool:
    """Tell whether a text begins like a JSON object or a list of objects, even if it was cut off."""
    return _OPENS.match(text) is not None


def _value(raw: str) -> Value:
    if raw[0] == "[":
        return [_scalar(item) for item in _ITEM.findall(raw)]
    return _scalar(raw)


def _scalar(raw: str) -> str | bool | float | None:
    if raw[0] == '"':
        try:
            return str(json.loads(raw, strict=False))
        except json.JSONDecodeError:  # an escape that JSON does not know
            return raw[1:-1]
    if raw[0] == "'":
        return re.sub(r"\\(.)", r"\1", raw[1:-1])
    if raw.casefold() in _WORDS:
        return _WORDS[raw.casefold()]
    for number in (int, float):
        try:
            return number(raw)
        except ValueError:
            pass
    return raw

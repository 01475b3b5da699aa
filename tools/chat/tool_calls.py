"""Reads tool calls as servers and models write them: in the form of OpenAI's API, nearly in it, or in the reply's
text.

A server that parses calls sends names and arguments separately. Arguments may be an object, JSON text, JSON text
inside JSON text, fenced JSON, or several objects in a row. A server that does not parse calls leaves them in the
text, in the form that the model was trained on. Nothing is evaluated: arguments are JSON or quoted strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ras_agent.contracts.records import JSON
from ras_agent.prompts import ToolCall
from ras_agent.text.loose_json import json_objects

# keys under which servers and models write the arguments of a call, and its name
_ARGUMENT_KEYS = (
    "arguments",
    "parameters",
    "args",
    "input",
    "kwargs",
    "tool_input",
    "action_input",
)
_NAME_KEYS = ("name", "tool_name", "function", "tool", "recipient_name", "action")
_INNER_KEYS = ("function", "custom", "functionCall", "toolUse")
_LABEL_KEYS = (*_NAME_KEYS, "type", "id")
_DEPTH = 3  # levels of JSON text inside JSON text
_DECODER = json.JSONDecoder(strict=False)
_NAME = re.compile(r"""["']name["']\s*:\s*["']([^"']+)["']""")
# "functions.search:0", "search<|channel|>commentary"
_NAMESPACE = re.compile(r"\A.*[./:](?=[A-Za-z_])")
_NAME_TAIL = re.compile(r"[<:(\s].*\Z", re.DOTALL)
_WORD_BORDER = re.compile(r"[\W_]+")
_QUOTED = r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'"
_TAG = r"<(?:[|｜]\w++[|｜]|\w++:)?+"  # DeepSeek and Step write a prefix before a tag's name
_PARAMETER = re.compile(
    rf"{_TAG}parameter(?:=|\s+name=)[\"']?(\w+)[\"']?(?:\s[^<>]*+)?>\s*(.*?)\s*</[^<>]{{0,20}}parameter>"
    r"|<arg_key>\s*(\w+)\s*</arg_key>\s*<arg_value>\s*(.*?)\s*</arg_value>|<(\w+)>([^<>]*+)</\w+>",
    re.DOTALL,
)
_CALL_TAGS = re.compile(
    r"<\|?(?:tool|function)_?calls?\|?>(?P<call>.*?)(?=</?\|?(?:tool|function)_?calls?\|?>|\Z)",
    re.DOTALL | re.I,
)
# Gemma's calls: call:search{query:<escape>text<escape>}; Gemma 4 uses other quotes
_GEMMA_CALL = re.compile(r"\bcall:\w++\{[^{}]*+\}")
_GEMMA_QUOTE = re.compile(r"<escape>|<\|\"\|>")
_BARE_KEY = re.compile(r"([{,]\s*+)(\w++)(?=:)")
_PYTHON_AROUND = re.compile(
    r"</?[|｜]?[a-z_]++[|｜]?>|```\w*|print(?=\()|\.call(?=\()|^Action:",
    re.IGNORECASE | re.MULTILINE,
)
# marks that stand directly before a call
_OPENED = re.compile(r"(?:<[^<>\n]*+>|\[TOOL_CALLS\]|```\w*+|functools|[\[\s])++\Z")
# most unreadable objects: json counts the lines before each, which takes quadratic time
_MOST_BROKEN = 1000
# what may stand between a name and its object: template tokens, an opening fence, white space, the end of a tag
_BETWEEN = r"(?:<[|｜][^<>{}]{0,40}[|｜]>|\[ARGS\]|\[CALL_ID\]\w*+|```(?:json)?|json\b|commentary\b|Action Input:|[\s\"'>:])*+"


def arguments_in(raw: object) -> list[JSON]:
    """Return the arguments that a server sent for one call; several objects if it merged parallel calls.

    Raises ValueError if there is no JSON object; callers treat the call as unreadable.
    """
    found = _objects(raw, _DEPTH)
    if not found:
        raise ValueError(
            f"the arguments of the tool call are not a JSON object: {str(raw)[:200]!r}"
        )
    return [_unwrapped(item) for item in found]


def _objects(raw: object, depth: int) -> list[JSON]:
    if raw is None or raw == "":
        return [{}]
    if isinstance(raw, dict):
        return [raw]
    if isinstance(raw, list):
        return [item for item in raw if isinstance(item, dict)]
    if not isinstance(raw, str) or depth == 0:
        return []
    try:
        return _objects(json.loads(raw, strict=False), depth - 1)
    except (ValueError, RecursionError):  # RecursionError: deeply nested JSON
        decoded = [item for _, item in _decoded(raw)]
    return decoded or [dict(item) for _, item in json_objects(raw)]


def _decoded(text: str) -> Iterator[tuple[int, JSON]]:
    """Yield the offset and content of each outermost JSON object in a text."""
    place = text.find("{")
    broken = 0
    while place >= 0 and broken < _MOST_BROKEN:
        try:
            item, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            broken += 1
            end = place + 1
        else:
            yield place, item
        place = text.find("{", end)


def _unwrapped(arguments: JSON) -> JSON:
    """Return the inner arguments of `{"arguments": {...}}` or `{"name": ..., "parameters": {...}}`, else all."""
    if set(arguments) - {*_NAME_KEYS, *_ARGUMENT_KEYS, "type"}:
        return arguments
    for key in _ARGUMENT_KEYS:
        inner = arguments.get(key)
        if isinstance(inner, dict):
            return inner
    return arguments


def raw_calls(said: Any) -> list[JSON]:
    """Return the unparsed calls in a message, including the single call of OpenAI's older `function_call` field."""
    if not isinstance(said, dict):
        return []
    listed = said.get("tool_calls") or said.get("function_call") or ()
    if isinstance(listed, dict):
        return [listed]
    return [raw for raw in listed if raw]


def calls_in_message(said: JSON) -> tuple[list[ToolCall], list[ToolCall]]:
    """Return the calls in a message of OpenAI's form, and those with unreadable arguments separately.

    Unreadable arguments are kept as text in the argument `raw`.
    """
    calls: list[ToolCall] = []
    unread: list[ToolCall] = []
    for raw in raw_calls(said):
        name, held = name_and_arguments(raw)
        identity = str(raw.get("id") or "")
        try:
            several = arguments_in(held)
        except ValueError:
            unread.append(ToolCall(name, {"raw": str(held)}, identity))
            continue
        for place, arguments in enumerate(several):
            own_id = f"{identity}_{place}" if place and identity else identity
            calls.append(ToolCall(name, arguments, own_id))
    return calls, unread


def tool_named(name: str, names: Sequence[str]) -> str:
    """Return which of `names` a call means by `name`; "" if it means no known tool.

    Prefixes, suffixes and other words around the tool's name are ignored: "functions.search", "Search",
    "web_search", "search<|channel|>commentary".
    """
    bare = _NAME_TAIL.sub("", _NAMESPACE.sub("", name.strip())).casefold()
    if bare in names:
        return bare
    words = _WORD_BORDER.split(bare)
    return next((known for known in names if known in words), "")


def calls_in_text(text: str, names: Sequence[str]) -> tuple[str, list[ToolCall]]:
    """Return the text of a reply before its first tool call, and its calls of the tools `names`, in order.

    It reads JSON objects with a name and arguments (Hermes, Qwen, Llama, Mistral, Cohere, Phi), a name before an
    object (DeepSeek, harmony, Kimi, Mistral), parameters in tags (Qwen3-Coder, GLM, MiniMax), and replies that
    consist only of Python calls (Llama 4, Gemma).
    """
    text = _GEMMA_CALL.sub(_as_json, text)
    found = {**dict(_named_objects(text, names)), **dict(_tagged(text, names))}
    found |= dict(_before_objects(text, names))
    if not found:
        found = dict(_broken(text, names))
    if not found:
        return "", list(_pythonic(text, names))
    places = sorted(found)
    words = _OPENED.sub("", text[: places[0]])
    return words, [found[place] for place in places]


def _named_objects(text: str, names: Sequence[str]) -> Iterator[tuple[int, ToolCall]]:
    for place, item in _decoded(text):
        for one in (item, *_listed_in(item)):
            call = _call_of(one, names)
            if call is not None:
                yield place, call
                break


def _listed_in(item: JSON) -> Iterator[JSON]:
    """Yield the objects in an object's lists, such as those of {"tool_calls": [...]}."""
    for value in item.values():
        if isinstance(value, list):
            yield from (inner for inner in value if isinstance(inner, dict))


def _call_of(item: JSON, names: Sequence[str]) -> ToolCall | None:
    stated, held = name_and_arguments(item)
    name = tool_named(stated, names)
    if held is None and "name" not in item:  # {"tool": "search", "query": "..."}
        rest = dict(item)
        for key in _LABEL_KEYS:
            rest.pop(key, None)
        held = rest or None
    if not name or held is None:
        return None
    return _call(name, held)


def _call(name: str, held: object) -> ToolCall | None:
    """Return the call of a tool; None if it has no arguments, or repeats the tool's own schema."""
    try:
        arguments = arguments_in(held)[0]
    except ValueError:
        if not isinstance(held, str):
            return None
        arguments = {"input": held}
    if "properties" in arguments:
        return None
    return ToolCall(name, arguments)


def _broken(text: str, names: Sequence[str]) -> Iterator[tuple[int, ToolCall]]:
    """Yield the offset and content of each call between tags whose JSON is cut off or uses Python's quotes."""
    for match in _CALL_TAGS.finditer(text):
        stated, held = named_call(match["call"])
        name = tool_named(stated, names)
        if not name or not held:
            continue
        call = _call(name, held)
        if call is not None:
            yield match.start(), call


def _as_json(call: re.Match[str]) -> str:
    """Return one of Gemma's calls with quotes around its keys and strings."""
    quoted = _GEMMA_QUOTE.sub('"', call[0])
    return _BARE_KEY.sub(r'\1"\2"', quoted)


def named_call(text: str) -> tuple[str, object]:
    """Return the name of any tool that a text calls, and the call's unparsed arguments; "" and {} without a call."""
    items = _objects(text, _DEPTH)
    for item in items:
        name, held = name_and_arguments(item)
        if name:
            return name, held
    # the object may be cut off, or have an extra comma
    stated = _NAME.search(text)
    name = stated[1] if stated else ""
    inner = items[0] if items else {}
    return name, inner


def name_and_arguments(item: JSON) -> tuple[str, object]:
    """Return the name and the unparsed arguments in an object that calls a tool; "" or None for a missing one."""
    for key in _INNER_KEYS:
        inner = item.get(key)
        if isinstance(inner, dict):
            return name_and_arguments(inner)
    name = ""
    for key in _NAME_KEYS:
        stated = item.get(key)
        if isinstance(stated, str):
            name = stated
            break
    for key in _ARGUMENT_KEYS:
        if key in item:
            return name, item[key]
    return name, None


def _before_objects(text: str, names: Sequence[str]) -> Iterator[tuple[int, ToolCall]]:
    before = re.compile(
        rf"\b(?:functions?[.:=])?({'|'.join(map(re.escape, names))})(?::\d++)?{_BETWEEN}(?=\{{)"
    )
    broken = 0
    for match in before.finditer(text):
        try:
            item, _ = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            broken += 1
            if broken == _MOST_BROKEN:
                return
            continue
        if _call_of(item, names) is None:
            yield match.start(), ToolCall(match[1], _unwrapped(item))


def _tagged(text: str, names: Sequence[str]) -> Iterator[tuple[int, ToolCall]]:
    any_name = "|".join(map(re.escape, names))
    opening = re.compile(
        rf"{_TAG}(?:function=|invoke\s+name=[\"']?)({any_name})[\"']?\s*>|<tool_call>\s*({any_name})(?=\s*<arg_key>)"
        rf"|<tool_name>\s*({any_name})\s*</tool_name>|<({any_name})>(?=\s*<\w+>[^<>]*+</)"
    )
    starts = list(opening.finditer(text))
    ends = [*(start.start() for start in starts[1:]), len(text)]
    # without starts there is one end, so the lengths may differ
    for start, end in zip(starts, ends, strict=False):
        arguments = {}
        for parameter in _PARAMETER.finditer(text, start.end(), end):
            key, value = (part for part in parameter.groups() if part is not None)
            arguments[key] = value.strip()
        if arguments:
            yield start.start(), ToolCall(start[start.lastindex or 0], arguments)


def _pythonic(text: str, names: Sequence[str]) -> Iterator[ToolCall]:
    argument = rf"(?:\w+\s*+=\s*+)?+(?:{_QUOTED}|\d++)"
    call = rf"(?:\w+\.)*+({'|'.join(map(re.escape, names))})\((\s*+{argument}(?:\s*+,\s*+{argument})*+\s*+|)\)"
    wrapped = _PYTHON_AROUND.sub("", text).strip()
    whole = re.compile(rf"[\[(]?\s*+{call}(?:[\s,;]*+{call})*+\s*+[\])]?")
    if not whole.fullmatch(wrapped):
        # the calls may be the last line, after some words
        wrapped = wrapped.rpartition("\n")[2]
    if not whole.fullmatch(wrapped):
        return
    for match in re.finditer(call, wrapped):
        arguments = {}
        for key, value in re.findall(
            rf"(?:(\w+)\s*+=\s*+)?+({_QUOTED}|\d++)", match[2]
        ):
            arguments[key] = re.sub(r"\\(.)", r"\1", value.strip("\"'"))
        yield ToolCall(match[1], arguments)

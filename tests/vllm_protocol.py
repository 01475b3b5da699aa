"""The arguments and results of vLLM's own classes, by which requests of ours are tried without vLLM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCHEMAS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "tools/graph_tokens/vllm_requests.json").read_text(
        encoding="utf-8"
    )
)["versions"]
NEWEST = "0.33.0"
WITH_CHATS = "0.32.0"
"""The version whose requests of chats are written down."""


def misfit(value: Any, schema: Mapping[str, Any], classes: Mapping[str, Any]) -> str:
    """Return the parts of a value that do not fit the part of JSON schema that the dumps use; "" for nothing."""
    if "$ref" in schema:
        fields = classes[schema["$ref"].rpartition("/")[2]]
        return next(
            filter(
                None,
                (
                    misfit(value.get(name), fields[name], classes)
                    for name in value
                    if name in fields
                ),
            ),
            "",
        )
    if "anyOf" in schema:
        return (
            ""
            if any(not misfit(value, one, classes) for one in schema["anyOf"])
            else f"{value!r:.80} fits no type"
        )
    kinds: dict[str, Any] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "array": list,
        "object": dict,
    }
    kind = schema["type"]
    if kind == "null":
        return "" if value is None else f"{value!r:.80} is not null"
    if not isinstance(value, kinds[kind]) or (
        isinstance(value, bool) and kind != "boolean"
    ):
        return f"{value!r:.80} is no {kind}"
    if kind == "array":
        if len(value) > schema.get("maxItems", len(value)):
            return f"more than {schema['maxItems']} items"
        return next(
            filter(None, (misfit(one, schema["items"], classes) for one in value)), ""
        )
    return ""


def misfits(name: str, body: Mapping[str, Any], version: str = NEWEST) -> list[str]:
    """Return the fields of a request or reply that vLLM's class does not have, or has with another type."""
    classes = SCHEMAS[version]
    fields = classes[name]
    unknown = [f"{key}: unknown" for key in body if key not in fields]
    wrong = (
        (key, misfit(value, fields[key], classes))
        for key, value in body.items()
        if key in fields
    )
    return unknown + [f"{key}: {why}" for key, why in wrong if why]

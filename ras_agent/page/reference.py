"""Makes the reference of the server's HTTP paths: one page without scripts, from the OpenAPI document."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from ras_agent.contracts.records import JSON


def reference_page(schema: JSON) -> str:
    """Return the HTML page that describes an OpenAPI document, `schema`."""
    groups: dict[str, list[str]] = {}
    for path, methods in schema["paths"].items():
        for method, about in methods.items():
            group = next(iter(about.get("tags", ())), "Other")
            groups.setdefault(group, []).append(_operation(path, method, about, schema))
    body = "".join(
        f"<h2>{escape(group)}</h2>{''.join(parts)}" for group, parts in groups.items()
    )
    title = escape(f"{schema['info']['title']} {schema['info']['version']}")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title></head><body><h1>{title}</h1><p>{escape(schema['info']['description'])} "
        f'<a href="openapi.json">openapi.json</a> has the same for programs.</p>{body}</body></html>'
    )


def _operation(path: str, method: str, about: JSON, schema: JSON) -> str:
    parts = [
        f"<h3><code>{method.upper()} {escape(path)}</code></h3><p>{escape(about.get('description', ''))}</p>"
    ]
    if parameters := about.get("parameters"):
        items = "".join(f"<li>{_parameter(parameter)}</li>" for parameter in parameters)
        parts.append(f"<ul>{items}</ul>")
    for kind, content in about.get("requestBody", {}).get("content", {}).items():
        shape = json.dumps(
            _resolve(content["schema"], schema), indent=2, ensure_ascii=False
        )
        parts.append(
            f"<details><summary>Body, {escape(kind)}</summary><pre>{escape(shape)}</pre></details>"
        )
    return f"<section>{''.join(parts)}</section>"


def _parameter(parameter: JSON) -> str:
    about = parameter["schema"]
    default = (
        f", {json.dumps(about['default'])} if not given"
        if about.get("default") not in (None, "")
        else ""
    )
    required = ", required" if parameter.get("required") else ""
    return f"<code>{escape(parameter['name'])}</code> in the {escape(parameter['in'])}{required}{escape(default)}"


def _resolve(part: Any, schema: JSON) -> Any:
    """Return a schema with its references replaced by the schemas that they name."""
    if isinstance(part, dict):
        if "$ref" in part:
            target: Any = schema
            for name in part["$ref"].removeprefix("#/").split("/"):
                target = target[name]
            return _resolve(target, schema)
        return {
            key: _resolve(value, schema)
            for key, value in part.items()
            if key != "title"
        }
    return [_resolve(item, schema) for item in part] if isinstance(part, list) else part

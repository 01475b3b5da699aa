"""Writes down what vLLM's server takes and gives back where prompts are embeddings, from vLLM's own classes.

    python -m lab.vllm_requests

runs where vLLM is installed (no GPU is needed: its classes of requests are Python) and prints JSON, which has a place
under the version in tests/tools/graph_tokens/vllm_requests.json. Tests hold the client's requests against it.
"""

from __future__ import annotations

import argparse
import json
from importlib import import_module, metadata
from typing import Any

from ras_agent.errors import MissingExtra

_HOMES = ("vllm.entrypoints.openai.completion.protocol", "vllm.entrypoints.openai.protocol")
_READ = {
    "CompletionRequest": (
        *("model", "prompt", "prompt_embeds", "max_tokens", "temperature", "stop", "stream", "stream_options"),
        *("n", "echo", "suffix", "prompt_logprobs"),
    ),
    "StreamOptions": ("include_usage",),
    "CompletionResponse": ("object", "model", "choices", "usage"),
    "CompletionResponseChoice": ("index", "text", "finish_reason", "stop_reason"),
    "CompletionStreamResponse": ("object", "model", "choices", "usage"),
    "CompletionResponseStreamChoice": ("index", "text", "finish_reason"),
    "UsageInfo": ("prompt_tokens", "completion_tokens", "total_tokens"),
}


def schemas() -> dict[str, Any]:
    """Return the types of the fields that a client of prompt embeddings reads and writes, by class."""
    home = _home()
    return {"module": home.__name__} | {
        name: {
            field: _plain(schema)
            for field, schema in getattr(home, name).model_json_schema()["properties"].items()
            if field in fields
        }
        for name, fields in _READ.items()
    }


def _home() -> Any:
    """Return the module of vLLM that has the classes; it moved between versions."""
    missing = None
    for name in _HOMES:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            missing = error
    raise MissingExtra("vLLM's classes", "vllm") from missing


def _plain(schema: Any) -> Any:
    """Return a schema without its prose."""
    if isinstance(schema, dict):
        return {name: _plain(value) for name, value in schema.items() if name not in ("title", "description")}
    return list(map(_plain, schema)) if isinstance(schema, list) else schema


def _text(version: str, classes: dict[str, Any]) -> str:
    """Return the dump as JSON with a line for each field."""
    entries = []
    for name, fields in classes.items():
        if isinstance(fields, str):
            entries.append(f'"{name}": "{fields}"')
        else:
            lines = (f'    "{field}": {json.dumps(schema)}' for field, schema in fields.items())
            entries.append(f'"{name}": {{\n' + ",\n".join(lines) + "\n  }")
    return f'"{version}": {{\n  ' + ",\n  ".join(entries) + "\n}"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(_text(metadata.version("vllm"), schemas()))

"""Writes down the time that vLLM's server takes of chats and of prompts as embeddings, and gives back, from its own classes.

    python -m lab.vllm_requests

runs where vLLM is installed (no GPU is needed: its classes of requests are Python) and prints JSON, which has a place
under the version in tests/tools/graph_tokens/vllm_requests.json. Tests hold the client's requests against it.
"""

from __future__ import annotations

import argparse
import json
from importlib import import_module, metadata
from typing import Any

from pydantic import TypeAdapter

from ras_agent.contracts.errors import MissingExtra

_HOMES = (
    "vllm.entrypoints.openai.completion.protocol",
    "vllm.entrypoints.openai.chat_completion.protocol",
    "vllm.entrypoints.openai.protocol",
    "vllm.sampling_params",
)
_READ = {
    "ChatCompletionRequest": (
        *(
            "model",
            "messages",
            "max_tokens",
            "max_completion_tokens",
            "temperature",
            "stop",
            "stream",
        ),
        *(
            "stream_options",
            "structured_outputs",
            "response_format",
            "tools",
            "tool_choice",
        ),
        *("continue_final_message", "add_generation_prompt"),
    ),
    "StructuredOutputsParams": ("json", "regex", "choice", "grammar"),
    "CompletionRequest": (
        *(
            "model",
            "prompt",
            "prompt_embeds",
            "max_tokens",
            "temperature",
            "stop",
            "stream",
            "stream_options",
        ),
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
    """Return the types of the fields that our clients read and write, by class."""
    written: dict[str, Any] = {"module": _class("CompletionRequest").__module__}
    for name, fields in _READ.items():
        properties = TypeAdapter(_class(name)).json_schema()["properties"]
        written[name] = {
            field: _plain(schema)
            for field, schema in properties.items()
            if field in fields
        }
    return written


def _class(name: str) -> Any:
    """Return a class of vLLM; its modules differ between versions."""
    missing = None
    for home in _HOMES:
        try:
            return getattr(import_module(home), name)
        except (ModuleNotFoundError, AttributeError) as error:
            missing = error
    raise MissingExtra("vLLM's classes", "vllm") from missing


def _plain(schema: Any) -> Any:
    """Return a schema without its prose; a class that is not written down is an object."""
    if isinstance(schema, list):
        return list(map(_plain, schema))
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema and schema["$ref"].rpartition("/")[2] not in _READ:
        return {"type": "object"}
    return {
        name: _plain(value)
        for name, value in schema.items()
        if name not in ("title", "description")
    }


def _text(version: str, classes: dict[str, Any]) -> str:
    """Return the dump as JSON with a line for each field."""
    entries = []
    for name, fields in classes.items():
        if isinstance(fields, str):
            entries.append(f'"{name}": "{fields}"')
        else:
            lines = (
                f'    "{field}": {json.dumps(schema)}'
                for field, schema in fields.items()
            )
            entries.append(f'"{name}": {{\n' + ",\n".join(lines) + "\n  }")
    return f'"{version}": {{\n  ' + ",\n  ".join(entries) + "\n}"


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print(_text(metadata.version("vllm"), schemas()))

"""Writes the Agent Trajectory Interchange Format (ATIF 1.4, of Harbor): a folder with a JSON file for each
question.

The prompts of a role are steps of the system and the user, its replies are steps of the agent, and the result
of a tool is the observation of the step that called it. Unless a planner's layout is a dialogue, its prompt is
composed again at each hop. So a trajectory has each prompt as it was sent, without the messages that repeat the
previous prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import ras_agent
from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import JSON
from ras_agent.eval.formats.calls import RoleCall
from ras_agent.eval.formats.exported import Exported, write_json
from ras_agent.eval.formats.registry import Format, registered

VERSION = "ATIF-v1.4"
_SOURCES = {"system": "system", "user": "user", "assistant": "agent"}


def trajectory_of(calls: Sequence[RoleCall]) -> JSON:
    """Return the calls of one question, in order, as a trajectory."""
    first = calls[0]
    steps: list[JSON] = []
    sent: list[JSON] = []  # the messages of the last prompt, and its reply
    used: Counter[str] = Counter()
    for call in calls:
        used.update(call.usage)
        for message in _without(list(call.prompt), sent):
            _add(steps, message, {})
        _add(
            steps,
            call.reply,
            {
                "model_name": call.model,
                "metrics": _metrics(call),
                "extra": {"hop": call.hop},
            },
        )
        sent = call.messages
    return {
        "schema_version": VERSION,
        "session_id": first.id,
        "agent": {
            "name": f"ras-agent {first.role}",
            "version": ras_agent.__version__,
            "model_name": first.model,
        },
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": {
            "total_prompt_tokens": used["input_tokens"],
            "total_completion_tokens": used["output_tokens"],
            "total_steps": len(steps),
        },
        "extra": {
            "question": first.question,
            "scores": dict(first.scores),
            "provenance": _shared(first.provenance),
        },
    }


def _without(prompt: list[JSON], sent: list[JSON]) -> list[JSON]:
    """Return the messages of a prompt, without the first ones that equal those of the previous prompt."""
    same = 0
    for new, old in zip(prompt[:-1], sent, strict=False):
        if new != old:
            break
        same += 1
    return prompt[same:]


def _add(steps: list[JSON], message: JSON, more: JSON) -> None:
    """Append a message as a step. The result of a tool is added to the step that called the tool."""
    if message["role"] == "tool":
        found = {
            "source_call_id": message["tool_call_id"],
            "content": message["content"],
        }
        for caller in reversed(steps):
            if any(
                call["tool_call_id"] == found["source_call_id"]
                for call in caller.get("tool_calls", ())
            ):
                caller.setdefault("observation", {"results": []})["results"].append(
                    found
                )
                break
        return
    step: JSON = {"source": _SOURCES[message["role"]], "message": message["content"]}
    if thoughts := message.get("reasoning_content"):
        step["reasoning_content"] = thoughts
    if calls := message.get("tool_calls"):
        step["tool_calls"] = list(_tool_calls(calls))
    steps.append({**step, **more})


def _tool_calls(calls: Sequence[JSON]) -> Iterator[JSON]:
    for call in calls:
        function = call["function"]
        yield {
            "tool_call_id": call["id"],
            "function_name": function["name"],
            "arguments": function["arguments"],
        }


def _metrics(call: RoleCall) -> JSON:
    names = {
        "prompt_tokens": "input_tokens",
        "completion_tokens": "output_tokens",
        "cached_tokens": "cached_tokens",
    }
    return {name: call.usage[key] for name, key in names.items() if key in call.usage}


def _shared(provenance: Mapping[str, Any]) -> JSON:
    return {name: value for name, value in provenance.items() if name != "key"}


def _write(run: Exported, path: Path) -> Sequence[Path]:
    """Write a file for each question into the folder `path`, numbered in the order of the questions.

    Raises:
        RunError: if the folder is not empty, because a trainer would read the files of an earlier export too.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunError(
            f"{path} is not an empty folder; empty it, or name another with --out"
        )
    by_question = groupby(run.calls, lambda call: call.id)
    paths: list[Path] = []
    for number, (_, calls) in enumerate(by_question, 1):
        trajectory = trajectory_of(list(calls))
        paths += write_json(path / f"{number:05}.json", trajectory)
    return paths


ATIF = registered(Format(name="atif", title="ATIF trajectories", write_calls=_write))

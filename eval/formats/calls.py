"""Joins the calls of a role in a run with their prompts and replies, as data for training a model for the role.

A line of results.jsonl has the question, its scores and, in its trace, the role, hop and key of each call.
replies.sqlite has the messages and the reply for each key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ras_agent.config.address import Address
from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import JSON
from ras_agent.eval.run.result import Result
from ras_agent.prompts import ToolCall, Turn
from ras_agent.prompts.templates import Role
from ras_agent.tools.chat.cache import RecordedCalls

_USAGE = ("input_tokens", "output_tokens", "cached_tokens")


@dataclass(frozen=True, slots=True)
class RoleCall:
    """Holds one call of a role, with its prompt and its reply."""

    id: str
    """The id of the question that was answered."""
    question: str
    """The text of that question."""
    role: str
    hop: int
    model: str
    prompt: tuple[JSON, ...]
    """The messages that were sent, in OpenAI's form."""
    reply: JSON
    """The assistant's message."""
    tools: tuple[JSON, ...] = ()
    """The tools that the model could call."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """The scores of the question's final answer: metric to score in 0..1."""
    provenance: JSON = field(default_factory=dict)
    """The run, its benchmark, agent and commit, and the key of the call."""
    usage: JSON = field(default_factory=dict)
    """The tokens of the call."""
    plan: JSON | None = None
    """For a planner, the agent's next action. It may differ from the reply: the first search of RAS is always
    for the question itself."""
    rejected: JSON | None = None
    """Only in a pair of calls: another run's reply to the same prompt, after which the answer scored less."""

    @property
    def messages(self) -> list[JSON]:
        """Return the prompt followed by the reply."""
        return [*self.prompt, self.reply]

    @property
    def asked(self) -> tuple[str, str, int, str]:
        """Return question id, role, hop and prompt, by which calls of two runs are matched."""
        prompt = _text(self.prompt)
        return self.id, self.role, self.hop, prompt

    @property
    def mask(self) -> list[int]:
        """Return one number for each message: 1 for the reply, which is trained on, and 0 for those of the
        prompt.
        """
        before = [0] * len(self.prompt)
        return [*before, 1]

    @property
    def about(self) -> JSON:
        """Return the description of the call for a row of training data: everything but the messages."""
        return {
            "id": self.id,
            "question": self.question,
            "role": self.role,
            "hop": self.hop,
            **({"plan": self.plan} if self.plan else {}),
            "scores": dict(self.scores),
            "provenance": {**self.provenance, "model": self.model},
        }


def read_calls(
    results: Sequence[Result],
    role: str,
    replies: str | Path | Address,
    provenance: Mapping[str, Any],
) -> list[RoleCall]:
    """Return the calls of a role, question by question, in the order in which they were made.

    If a reply could not be used and the model was asked again, both calls are left out: the first reply is
    wrong, and the second belongs to a repair prompt.

    Args:
        results: The results of the run.
        role: The role.
        replies: The place of the run's cached replies.
        provenance: Where the calls come from, stored with each of them.

    Raises:
        SettingsError: If there are no replies.
        RunError: If the run has no traces of its calls, or none of this role.
    """
    recorded = RecordedCalls(replies)
    calls: list[RoleCall] = []
    roles = set[str]()
    for result in results:
        calls += _calls(result, role, recorded, provenance)
        roles.update(call["role"] for call in _logged(result))
    if role not in roles:
        raise RunError(
            f"{role!r} called no model in this run; roles with calls: {', '.join(sorted(roles)) or 'none'}"
        )
    return calls


def _calls(
    result: Result, role: str, recorded: RecordedCalls, provenance: Mapping[str, Any]
) -> Iterator[RoleCall]:
    calls = []
    for logged in _logged(result):
        if logged["role"] == role:
            calls.append(_call(result, logged, recorded, provenance))
    asked_again = set[int]()
    for first, call in enumerate(calls):
        for second, other in enumerate(calls):
            if call.hop == other.hop and _asks_again(call.prompt, other.prompt):
                asked_again.update((first, second))
    for place, call in enumerate(calls):
        if place not in asked_again:
            yield call


def _logged(result: Result) -> Sequence[JSON]:
    """Return the calls in a result's trace.

    Raises:
        RunError: the run has no traces.
    """
    if result.trace is None:
        if result.error:
            return ()
        raise RunError(
            f"question {result.id!r} has no trace, so its calls are unknown; run it again with --traces"
        )
    calls: Sequence[JSON] = result.trace["usage"]["calls"]
    return calls


def _call(
    result: Result, logged: JSON, recorded: RecordedCalls, provenance: Mapping[str, Any]
) -> RoleCall:
    where = f"question {result.id!r}, {logged['role']}, hop {logged['hop']}"
    key = logged.get("key")
    if not key:
        raise RunError(
            f"{where}: the run, of an earlier version, does not record where the reply is stored: run it again"
        )
    call = recorded.call(key)
    if call is None:
        raise RunError(
            f"{where}: the reply is not in the cache; give the run's cache with --cache"
        )
    request, reply = call
    thoughts = {"thoughts": reply.get("thoughts", "")}
    return RoleCall(
        id=result.id,
        question=result.question,
        role=logged["role"],
        hop=logged["hop"],
        model=logged["model"],
        prompt=tuple(_message(*turn) for turn in request["messages"]),
        reply=_message("assistant", reply["text"], *reply.get("calls", ()), thoughts),
        tools=tuple(request["parameters"].get("tools", ())),
        scores=result.scores,
        provenance={**provenance, "key": key},
        plan=_plan_of(result, logged),
        usage={name: logged[name] for name in _USAGE},
    )


def _plan_of(result: Result, logged: JSON) -> JSON | None:
    """Return the plan that a planner's call led to: action, sub-queries and reason; None for other roles."""
    if logged["role"] != "planner" or not result.trace:
        return None
    for plan in result.trace["plans"]:
        if plan["hop"] == logged["hop"]:
            names = ("action", "subquery", "reason", "further")
            return {name: plan[name] for name in names if name in plan}
    return None


def _message(role: Role, text: str, *more: JSON) -> JSON:
    """Return a stored turn as a message.

    Args:
        more: the turn's tool calls, or those that it answers, and the thoughts before it.
    """
    calls = []
    thoughts = ""
    for part in more:
        if "name" in part:
            calls.append(ToolCall(**part))
        else:
            thoughts = part["thoughts"]
    turn = Turn(role, text, tuple(calls), thoughts)
    return turn.to_message(arguments_as_text=False)


def _asks_again(first: Sequence[JSON], second: Sequence[JSON]) -> bool:
    """Tell whether the second prompt is the first one, its reply, and a user's message that asks for a better
    reply.
    """
    beginning = second[: len(first)]
    roles = [message["role"] for message in second[len(first) :]]
    return list(beginning) == list(first) and roles[:2] == ["assistant", "user"]


def pair_calls(
    calls: Iterable[RoleCall], others: Iterable[RoleCall], metric: str
) -> list[RoleCall]:
    """Pair the calls of two runs with equal prompts but different replies, as preference data.

    A pair is the call of the run that scored more, with the other run's reply as `rejected`. A question gives
    at most one pair for a role: its last call with equal prompts in both runs. Earlier different replies had no
    effect, or later prompts would differ; the first sub-query, for example, is replaced by the question itself.

    Args:
        calls, others: The calls of the two runs.
        metric: The score that decides.
    """
    by_prompt = {call.asked: call for call in others}
    parted: dict[tuple[str, str], tuple[RoleCall, RoleCall]] = {}
    for call in calls:
        other = by_prompt.get(call.asked)
        if other:
            parted[call.id, call.role] = call, other
    pairs = [_pair(call, other, metric) for call, other in parted.values()]
    return list(filter(None, pairs))


def _pair(call: RoleCall, other: RoleCall, metric: str) -> RoleCall | None:
    """Return the call that scored more, with the other's reply as rejected; None if replies or scores are
    equal, or a score is missing.
    """
    ours = call.scores.get(metric)
    theirs = other.scores.get(metric)
    if ours is None or theirs is None or ours == theirs:
        return None
    if _text(call.reply) == _text(other.reply):
        return None
    if ours > theirs:
        return replace(call, rejected=other.reply)
    return replace(other, rejected=call.reply)


def with_json_arguments(messages: Iterable[JSON]) -> list[JSON]:
    """Return messages with the arguments of tool calls as JSON texts, since a column of a table must have one type."""
    written = []
    for message in messages:
        calls = message.get("tool_calls")
        if calls:
            in_json = list(map(_json_arguments, calls))
            message = {**message, "tool_calls": in_json}
        written.append(message)
    return written


def _json_arguments(call: JSON) -> JSON:
    function = dict(call["function"])
    arguments = json.dumps(function["arguments"], ensure_ascii=False)
    function["arguments"] = arguments
    return {**call, "function": function}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)

"""The calls of a role in a run with their prompts and replies, to train a model that plays the role.

A line of results.jsonl knows question, scores and, in its trace, each call's role, hop and key; replies.sqlite has the
messages and the reply under that key. Here the two are joined.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ras_agent.address import Address
from ras_agent.errors import RunError
from ras_agent.eval.run.result import Result
from ras_agent.prompts import ToolCall, Turn
from ras_agent.prompts.templates import Role
from ras_agent.records import JSON
from ras_agent.tools.chat.cache import RecordedCalls


@dataclass(frozen=True, slots=True)
class RoleCall:
    """One call of a role.

    id, question: of the question that was answered. prompt: the messages that were sent, in OpenAI's form. reply: the
    assistant's message. tools: the tools that it could call. scores: of the answer in the end, metric -> 0..1.
    provenance: the run, its benchmark, agent and commit, and the call's key. usage: the call's tokens. plan: of a
    planner, the agent's next action, which need not be the one in the reply: RAS searches for the question itself
    first. rejected: a reply of another run to the same prompt for an answer that scored less; only in a pair of calls.
    """

    id: str
    question: str
    role: str
    hop: int
    model: str
    prompt: tuple[JSON, ...]
    reply: JSON
    tools: tuple[JSON, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    provenance: JSON = field(default_factory=dict)
    usage: JSON = field(default_factory=dict)
    plan: JSON | None = None
    rejected: JSON | None = None

    @property
    def messages(self) -> list[JSON]:
        """Return the prompt with the reply at its end."""
        return [*self.prompt, self.reply]

    @property
    def asked(self) -> tuple[str, str, int, str]:
        """Return the question, role, hop and prompt, which are equal in two runs that have not parted before."""
        return self.id, self.role, self.hop, _text(self.prompt)

    @property
    def mask(self) -> list[int]:
        """Return 1 for the message to train on, which is the reply, and 0 for the others."""
        return [0] * len(self.prompt) + [1]

    @property
    def about(self) -> JSON:
        """Return a row's description of the call, without its messages."""
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
    """Return the calls of a role, by question and in their order.

    replies: where the run's replies are. A reply that could not be used, and the one to the request to reply again, are
    left out: neither is a reply that the role should give to its prompt.
    Raises SettingsError if there are no replies, RunError for a run that does not know its calls, and for a role
    without calls.
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
    """Return the calls in a result's trace. Raises RunError for a run without traces."""
    if result.trace is None:
        if result.error:
            return ()
        raise RunError(
            f"question {result.id!r} has no trace, so its calls are unknown; eval with --traces"
        )
    calls: Sequence[JSON] = result.trace["usage"]["calls"]
    return calls


def _call(
    result: Result, logged: JSON, recorded: RecordedCalls, provenance: Mapping[str, Any]
) -> RoleCall:
    where = f"question {result.id!r}, {logged['role']}, hop {logged['hop']}"
    if not (key := logged.get("key")):
        raise RunError(
            f"{where}: the run does not say where the reply is: ask it again with this version"
        )
    if (call := recorded.call(key)) is None:
        raise RunError(
            f"{where}: the reply is not there; name the place that the run had under --cache"
        )
    request, reply = call
    return RoleCall(
        id=result.id,
        question=result.question,
        role=logged["role"],
        hop=logged["hop"],
        model=logged["model"],
        prompt=tuple(_message(*turn) for turn in request["messages"]),
        reply=_message(
            "assistant",
            reply["text"],
            *reply.get("calls", ()),
            {"thoughts": reply.get("thoughts", "")},
        ),
        tools=tuple(request["parameters"].get("tools", ())),
        scores=result.scores,
        provenance={**provenance, "key": key},
        plan=_plan_of(result, logged),
        usage={
            name: logged[name]
            for name in ("input_tokens", "output_tokens", "cached_tokens")
        },
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
    """Return a stored turn as a message. more: the calls that it makes or answers, and the thoughts before it."""
    calls = tuple(ToolCall(**part) for part in more if "name" in part)
    thoughts = next((part["thoughts"] for part in more if "thoughts" in part), "")
    return Turn(role, text, calls, thoughts).to_message(arguments_as_text=False)


def _asks_again(first: Sequence[JSON], second: Sequence[JSON]) -> bool:
    """Tell whether a prompt is another one with its reply and a user's message, which asks for a better one."""
    more = second[len(first) :]
    return (
        len(more) >= 2
        and list(second[: len(first)]) == list(first)
        and [message["role"] for message in more[:2]] == ["assistant", "user"]
    )


def pair_calls(
    calls: Iterable[RoleCall], others: Iterable[RoleCall], metric: str
) -> list[RoleCall]:
    """Return calls of two runs to which the other run replied otherwise, and scored less, with that reply.

    Of each question the last hop counts at which the prompts were equal: no earlier difference had an effect, as that
    of a first sub-query in place of which the question itself is searched. Equal replies there make no pair.
    """
    by_prompt = {call.asked: call for call in others}
    parted: dict[tuple[str, str], tuple[RoleCall, RoleCall]] = {}
    for call in calls:
        if other := by_prompt.get(call.asked):
            parted[call.id, call.role] = call, other
    pairs = []
    for call, other in parted.values():
        if pair := _pair(call, other, metric):
            pairs.append(pair)
    return pairs


def _pair(call: RoleCall, other: RoleCall, metric: str) -> RoleCall | None:
    """Return the better of two calls with the other's reply as rejected; None if replies or scores are equal."""
    ours = call.scores.get(metric)
    theirs = other.scores.get(metric)
    if (
        ours is None
        or theirs is None
        or ours == theirs
        or _text(call.reply) == _text(other.reply)
    ):
        return None
    if ours > theirs:
        return replace(call, rejected=other.reply)
    return replace(other, rejected=call.reply)


def with_json_arguments(messages: Iterable[JSON]) -> list[JSON]:
    """Return messages with their tool calls' arguments as JSON texts: columns of a table have one type."""
    written = []
    for message in messages:
        if calls := message.get("tool_calls"):
            message = {**message, "tool_calls": list(map(_json_arguments, calls))}
        written.append(message)
    return written


def _json_arguments(call: JSON) -> JSON:
    function = dict(call["function"])
    arguments = json.dumps(function["arguments"], ensure_ascii=False)
    function["arguments"] = arguments
    return {**call, "function": function}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)

"""Runs rollouts: each asks one question with the model in training as planner, for trainers that use the
agent's own loop.

A gateway such as agent-lightning's, or an interception server such as that of verifiers, is between the planner
and the model, and records the model's prompts and replies. All other roles are fixed and never use the model in
training. Within a rollout each prompt extends the one before (layout "dialogue"), so that its calls make one
sample.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import (
    ModelCallError,
    ModelRefused,
    ParseError,
    SettingsError,
)
from ras_agent.contracts.records import JSON, Passage
from ras_agent.eval.metrics import Outcome
from ras_agent.eval.question import Question
from ras_agent.graphs.agent import Agent
from ras_agent.graphs.assembly import AgentGraph
from ras_agent.graphs.parts import AnyIndex
from ras_agent.graphs.registry import graph_spec
from ras_agent.graphs.resolve import assemble_agent, resolve_parts
from ras_agent.gym.rewards import Episode, Rewards, ended_well, parts_of
from ras_agent.tools.chat.http import Endpoint
from ras_agent.tools.chat.models import openai_url
from ras_agent.tools.chat.names import endpoint_of
from ras_agent.tools.chat.refusals import KEEPS_STOP
from ras_agent.tools.chat.runnables import chat_models_in, is_chat_model
from ras_agent.tools.chat.secrets import printable
from ras_agent.tools.plan.dialects import dialect, dialect_of_model
from ras_agent.tools.roles import role_name

TEMPERATURE = 1.0
"""The temperature of the model in training, unless a setting gives another. At 0 all rollouts of a group would be
equal."""
_FIXED = "offline"
_POST_SECONDS = 30.0
_ERROR = re.compile(r"([A-Z]\w*): ")
"""The beginning of a failure's message if an error has caused it (ras_agent.graphs.node)."""
_ADDRESS = re.compile(r"https?://[^#\s]+")


@dataclass(frozen=True, slots=True)
class Policy:
    """Names the server of the model in training."""

    url: str
    """the base URL, up to and including /v1"""
    model: str = "auto"
    key: str = field(default="", repr=False)
    """the token that the gateway expects"""

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Policy:
        """Return the policy that a trainer names in the environment of the processes that it starts.

        AGL_OPENAI_BASE_URL and AGL_KEY are set by agent-lightning; OPENAI_BASE_URL, OPENAI_API_KEY and
        OPENAI_MODEL by verifiers' harnesses and others.

        Raises:
            SettingsError: if neither address is set.
        """
        if url := environment.get("AGL_OPENAI_BASE_URL"):
            return cls(url, key=environment.get("AGL_KEY", ""))
        if url := environment.get("OPENAI_BASE_URL"):
            return cls(
                url,
                environment.get("OPENAI_MODEL") or "auto",
                environment.get("OPENAI_API_KEY", ""),
            )
        raise SettingsError(
            "no policy: a rollout asks the model that is trained, at AGL_OPENAI_BASE_URL or OPENAI_BASE_URL, which the "
            "trainer sets; or give --policy URL"
        )

    @classmethod
    def at(cls, address: str, key: str = "") -> Policy:
        """Return the policy at `http://host:port/v1#model`, with or without `vllm:` before it. Raises SettingsError."""
        url, _, model = address.removeprefix("vllm:").partition("#")
        if not url.startswith(("http://", "https://")):
            raise SettingsError(
                f"expected a policy such as http://host:port/v1#model, got {printable(address)!r}"
            )
        return cls(url, model or "auto", key)

    def chat_model(self, settings: Settings) -> Any:
        """Return the chat model at the address, which samples its replies.

        Its server, if it is vLLM, is asked to keep a stop string in the reply. So the next prompt can repeat
        the reply unchanged, and a gateway recognises it, whether it compares messages or tokens.
        """
        from pydantic import SecretStr

        from ras_agent.tools.chat.openai_chat import OpenAIChat

        return OpenAIChat(
            model=self.model,
            base_url=self.url.rstrip("/"),
            api_key=SecretStr(self.key),
            temperature=TEMPERATURE
            if settings.temperature is None
            else settings.temperature,
            timeout=settings.timeout,
            model_kwargs={KEEPS_STOP: True},
        )


@dataclass(frozen=True, slots=True)
class Rollout:
    """Holds the result of a rollout."""

    reward: float
    """the weighted sum of the parts"""
    parts: Mapping[str, float]
    """the parts of the reward, by name"""
    answer: str
    """the answer that was scored; "" if the run abstained"""
    output: Mapping[str, Any] = field(repr=False)
    """the agent's output, as `invoke` returns it"""

    def to_dict(self) -> JSON:
        """Return the rollout as plain JSON for a log, without passages and facts."""
        calls = self.output["usage"]["calls"]
        return {
            "reward": self.reward,
            "parts": dict(self.parts),
            "answer": self.answer,
            "stop_reason": self.output["stop_reason"],
            "searches": [step["subquery"] for step in self.output["steps"]],
            "calls": sum(call["role"] == "planner" for call in calls),
            "failures": [failure["message"] for failure in self.output["failures"]],
        }


def rollout_agent(
    policy: object, settings: Settings, index: AnyIndex = None, **arguments: Any
) -> Agent:
    """Make the agent of a rollout: the policy plans in a dialogue that only grows, and the other roles are
    fixed.

    A reply of the policy that cannot be read ends the loop: no other planner takes over.

    Args:
        policy: A Policy or its address, a chat model such as ART's, or a planner.
        settings: The settings, which also name the loop. Extractor and answerer are those of the settings, else
            `llm`, else offline, and never the policy.
        index: The index to search, by default that of the settings.
        arguments: Further arguments of the agent.

    Raises:
        SettingsError: For settings that would make rollouts useless: a cache, with which equal calls get the
            same reply; another role that uses the policy, which would be trained too; a loop without a planner;
            a dialect whose prompts do not extend the ones before.
    """
    if settings.cache is not None or settings.replay:
        raise SettingsError(
            "a rollout must call its model each time, but with a cache equal calls of a group get one reply: leave cache and "
            "replay out"
        )
    if isinstance(policy, str):
        policy = Policy.at(policy)
    fixed = {
        role: getattr(settings, role) or settings.llm or _FIXED
        for role in ("extractor", "answerer")
    }
    if isinstance(policy, Policy):
        for role in ("extractor", "answerer", "rewriter", "llm"):
            _refuse_policy(role, arguments.get(role) or getattr(settings, role), policy)
    planner: Any = policy.chat_model(settings) if isinstance(policy, Policy) else policy
    _refuse_other_loops(settings, planner)
    own = {
        "planner": None,
        "llm": None,
        "temperature": None,
        "review": None,
        "rewriter": settings.rewriter or _FIXED,
    }
    layout = settings.layout or "dialogue"
    parts = resolve_parts(
        settings.loop,
        planner=planner,
        settings=settings.model_copy(update={**fixed, **own, "layout": layout}),
        index=index,
        **arguments,
    )
    # otherwise the policy would be rewarded for a search that it did not write
    fallbacks = dict(parts.fallbacks)
    fallbacks.pop("planner", None)
    agent = assemble_agent(replace(parts, fallbacks=fallbacks))
    agent.recipe = partial(rollout_agent, policy, settings, index, **arguments)
    return agent


def _refuse_policy(role: str, spec: object, policy: Policy) -> None:
    """Raise SettingsError if the model of a role has the policy's address."""
    for url in _addresses(spec):
        if _place(url) == _place(policy.url):
            raise SettingsError(
                f"the {role} is the policy ({role_name(spec)} calls {printable(url)}): give the {role} another "
                "model"
            )


def _addresses(spec: object) -> Iterator[str]:
    """Yield the addresses at which a role's model is called, as far as its spec or chat model tells."""
    if isinstance(spec, str):
        yield from (
            [openai_url()] if spec.startswith("openai:") else _ADDRESS.findall(spec)
        )
    else:
        for model in chat_models_in(spec):
            yield from _ADDRESS.findall(endpoint_of(model))


def _place(url: str) -> tuple[str, str]:
    """Return host with port, and path, of a URL, in a form that is equal for all URLs of one server."""
    parts = urlsplit(url)
    host = re.sub(
        r"^(localhost|\[::1\])(?=:|$)",
        "127.0.0.1",
        parts.netloc.rpartition("@")[2].lower(),
    )
    return host.removesuffix(
        ":443" if parts.scheme == "https" else ":80"
    ), parts.path.rstrip("/").removesuffix("/v1")


def _refuse_other_loops(settings: Settings, planner: object) -> None:
    """Raise SettingsError for a loop without a planner, and for a dialect whose prompts do not extend the ones
    before.
    """
    asked = graph_spec(settings.loop).planner
    if asked is None or asked == "reasoner":
        raise SettingsError(
            f"loop {settings.loop!r} has no planner to train: use --loop ras or react"
        )
    if asked != "planner" or not is_chat_model(planner):
        return
    row = dialect_of_model(role_name(planner))
    if settings.dialect:
        row = dialect(settings.dialect)
    if row is not None and (row.rendering == "rewritten" or row.digest):
        raise SettingsError(
            f"dialect {row.name!r} writes a new prompt for each search, but a rollout's prompt has to grow, so that its "
            "calls are one sample: use another, such as --dialect search-r1 or --dialect ras"
        )


def roll_out(
    agent: Agent, question: Question, rewards: Rewards, *, own_answer: bool = False
) -> Rollout:
    """Ask a question and score the run. If `own_answer` is true, the policy's own answer is scored.

    An unreadable reply of the policy is its own fault, and is scored.

    Raises:
        ModelRefused: if the policy cannot be called; there is then no reward.
        ModelCallError: if a call of the policy has failed; there is then no reward.
    """
    return _scored(
        agent,
        agent.invoke(question.inputs),
        question,
        rewards,
        own_answer,
    )


async def aroll_out(
    agent: Agent, question: Question, rewards: Rewards, *, own_answer: bool = False
) -> Rollout:
    """Ask a question and score the run, as `roll_out` does, in a coroutine."""
    out = await agent.ainvoke(question.inputs)
    return _scored(agent, out, question, rewards, own_answer)


def _scored(
    agent: Agent,
    out: Mapping[str, Any],
    question: Question,
    rewards: Rewards,
    own_answer: bool,
) -> Rollout:
    if out["stop_reason"] == "model_refused":
        raise ModelRefused(
            f"no reward: {out['failures'][-1]['message'] if out['failures'] else 'no model replied'}"
        )
    for failure in out["failures"]:
        error = None
        if failure["role"] == "planner":
            error = _ERROR.match(failure["message"])
        if error and error[1] != ParseError.__name__:
            raise ModelCallError(
                f"no reward: the policy failed at hop {failure['hop']}: {failure['message']}"
            )
    outcome = Outcome.from_output(out)
    if own_answer:
        answer = ""
        if out["plans"]:
            answer = out["plans"][-1].get("answer", "")
        outcome = replace(outcome, answer=answer, abstained=not answer, citations=())
    calls = [call for call in out["usage"]["calls"] if call["role"] == "planner"]
    passages = {name: Passage.from_dict(data) for name, data in out["passages"].items()}
    episode = Episode(
        question,
        outcome,
        hops=[
            [passages[hit["passage_id"]] for hit in step["hits"]]
            for step in out["steps"]
        ],
        calls=len(calls),
        followed=_followed(out["plans"]),
        finished=ended_well(out["stop_reason"]),
        shown=max((call["input_tokens"] for call in calls), default=0),
        max_hops=_max_hops(agent, out),
    )
    parts = parts_of(episode, rewards)
    return Rollout(
        rewards.total(parts), parts, "" if outcome.abstained else outcome.answer, out
    )


def _max_hops(agent: Agent, out: Mapping[str, Any]) -> int:
    """Return how many searches a run may make; for a graph of another kind, how many it has made."""
    if isinstance(agent.builder, AgentGraph):
        return agent.builder.limits.max_hops
    return max(len(out["steps"]), 1)


def _followed(plans: Sequence[JSON]) -> int:
    """Return how many of the policy's replies led to plans, not counting those after which it was asked again."""
    count = 0
    unsaid = 0
    for plan in plans:
        if "dialogue" not in plan:
            # a failed plan: the next dialogue contains the search that was made instead as if it were the policy's call
            unsaid += 1
            continue
        roles = [message["role"] for message in plan["dialogue"]["messages"]]
        said = []
        if "assistant" in roles:
            said = roles[roles.index("assistant") :]
        count += said.count("assistant") - said.count("user")
        # otherwise the findings of that search are a user's turn, which is subtracted above
        if "tool" in said:
            count -= unsaid
        unsaid = 0
    return count


def read_rewards(texts: Sequence[str]) -> Rewards:
    """Parse the weights of rewards, such as "f1=1" and "recall@5=0.5"; without any, F1 weighs 1 and `form` 0.1.

    A name is a part of `Rewards` or a registered metric. Raises SettingsError for a text of another form, and
    UnknownName for an unknown name.
    """
    parts = {item.name for item in fields(Rewards) if item.name != "metrics"}
    weights: dict[str, float] = {}
    for text in texts or ("f1=1", "form=0.1"):
        name, _, weight = text.partition("=")
        try:
            weights[name] = float(weight or 1)
        except ValueError:
            raise SettingsError(
                f"expected a reward as NAME=WEIGHT, such as f1=1, got {text!r}"
            ) from None
    own: dict[str, Any] = dict.fromkeys(parts, 0.0)
    metrics = {}
    for name, number in weights.items():
        if name in parts:
            own[name] = number
        else:
            metrics[name] = number
    return Rewards(**own, metrics=metrics)


def read_answers(text: str) -> tuple[str, ...]:
    """Return the gold answers in a text: the items of a JSON list, or the text itself.

    >>> read_answers('["Leith", "Water of Leith"]'), read_answers("1837"), read_answers("Leith")
    (('Leith', 'Water of Leith'), ('1837',), ('Leith',))
    """
    try:
        value = json.loads(text)
    except ValueError:
        if text.strip():
            return (text,)
        return ()
    if isinstance(value, list):
        return tuple(map(str, value))
    return (text if not isinstance(value, str) else value,)


async def apost_reward(url: str, key: str, rollout: Rollout) -> None:
    """Post the reward to a gateway as an event in agent-lightning's form. `key` is the gateway's token.

    Raises ErrorStatus if the gateway refuses it, and ConnectionError if it cannot be reached.
    """
    data = {
        "value": rollout.reward,
        "source": "agent",
        "reason": rollout.output["stop_reason"],
    }
    await Endpoint.with_key(url, key).post(
        "", {"event_type": "reward", "data": data}, _POST_SECONDS
    )

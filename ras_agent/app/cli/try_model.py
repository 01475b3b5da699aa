"""Tries the models that the settings name on a small plan, passage and answer, and suggests settings that fit
them.

Each role's model gets a small task, first with the role's settings, then with aids for small models, until a
reply can be read. Each way of asking is tried only once, so the result depends on one reply.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from ras_agent.app.sample import sample_passages
from ras_agent.config.registry import names
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import RasError
from ras_agent.contracts.records import Passage
from ras_agent.graphs.resolve import role_options, role_specs
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Ledger, Limits, metered
from ras_agent.text.sentences import sentence_spans
from ras_agent.tools.chat.client import as_chat
from ras_agent.tools.chat.http import run, trusted
from ras_agent.tools.chat.retry import RetryPolicy
from ras_agent.tools.roles import (
    RoleOptions,
    resolve_answerer,
    resolve_extractor,
    resolve_planner,
    resolve_reranker,
)

QUESTION = (
    "Which river flows through the city where the inventor of the telephone was born?"
)
ANSWERED = "In which city was Alexander Graham Bell born?"
PASSAGE = "Alexander Graham Bell"
"""The title of the sample's passage from which facts are read, and which contains the answer."""

_SENTENCES = 2
"""How many of the passage's sentences are read: enough for a fact or two."""
_PATIENCE = 5.0
_ENOUGH = 1 << 20
_MOST_TOKENS = 2048
"""The maximum number of tokens of a prompt and its reply, so that an endless reply is stopped."""
_LONGEST_CALL = 300.0
"""The maximum seconds of a call: many, because the trial measures how long calls take."""
_MARGIN = 5
"""The suggested timeout is the slowest call times this number, because the trial's prompts are short."""


def try_reranker(settings: Settings) -> list[float]:
    """Return the reranker's scores of two texts: one that answers a question, and one that does not.

    Raises:
        RasError: for a reranker that cannot be set up or called.
    """
    spec = settings.llm if settings.reranker == "llm" else settings.reranker
    reranker = resolve_reranker(spec, role_options(settings))
    if reranker is None:
        return []
    texts = [
        "Alexander Graham Bell was born in Edinburgh.",
        "A rose is a shrub of the genus Rosa.",
    ]
    return [float(score) for score in reranker.scores(ANSWERED, texts)]


Way = Mapping[str, Any]
"""A way of asking a model: settings by name, which are also options of the role."""

WAYS: tuple[Way, ...] = ({"few_shot": True}, {"few_shot": True, "form": "on"})
"""Ways that help small models, the cheapest first."""


@dataclass(frozen=True, slots=True)
class Server:
    """Holds what a model's server reports about itself and the model."""

    name: str = ""
    owner: str = ""
    window: int | None = None
    """the tokens of the context window; None if the server does not say"""
    slots: int | None = None
    """the number of requests that it serves at the same time; None if it does not say"""
    foreign_template: bool = False
    """whether the chat template has marks that are not tokens of the model, so that it was not trained on
    them"""


@dataclass(frozen=True, slots=True)
class Trial:
    """Records how a role's model replied to a small task."""

    role: str
    way: Way | None
    """the first way of asking that gave a readable reply; None if no way did"""
    reply: str
    """the text that was read, or the problem"""
    seconds: float
    """duration of the last call"""
    tokens: int
    """input and output tokens of the last call"""
    failed: bool = False
    """whether the model could not be called"""


def models_of(settings: Settings) -> dict[str, str]:
    """Return the roles that run on a chat model, each with the model's spec, such as "openai:gpt-4o-mini"."""
    specs = role_specs(settings)
    return {
        role: spec
        for role, spec in specs.items()
        if role in _ASKED and _is_model(role, spec)
    }


def _is_model(role: str, spec: str) -> bool:
    return spec.partition(":")[0] not in names(role)


def try_role(role: str, spec: str, settings: Settings) -> Trial:
    """Give a role's model a small task, and return how it replied. `spec` is the model's spec, as in
    `models_of`.
    """
    options = role_options(settings)
    once = RetryPolicy(attempts=1, patience=0.0)
    timeout = max(settings.timeout, _LONGEST_CALL)
    chat = replace(options.chat, cache=None, replay=False, retry=once, timeout=timeout)
    options = replace(options, chat=chat)
    trial = Trial(role, None, "", 0.0, 0, failed=True)
    for way in _ways(options):
        trial = _try(role, spec, replace(options, **way), way)
        if trial.way is not None or trial.failed:
            break
    return trial


def _try(role: str, spec: str, options: RoleOptions, way: Way) -> Trial:
    # 2, because one call is reserved for the answerer
    limits = Limits(
        max_llm_calls=1 if role == "answerer" else 2, max_tokens=_MOST_TOKENS
    )
    ledger = Ledger(role=role, limits=limits)
    reply = ""
    begun = time.monotonic()
    with metered(ledger):
        try:
            reply = _ASKED[role](spec, options)
        except RasError as error:
            problem = str(error)
        else:
            problem = "the reply could not be read"
    if not ledger.calls:
        seconds = time.monotonic() - begun
        # after a time-out the model is not counted as failed, because another way of asking may give a shorter reply
        return Trial(
            role,
            None,
            problem,
            seconds,
            0,
            failed=seconds < (options.chat.timeout or _LONGEST_CALL),
        )
    call = ledger.calls[-1]
    tokens = call.input_tokens + call.output_tokens
    if reply and ledger.refused is None:
        return Trial(role, way, reply, call.seconds, tokens)
    return Trial(role, None, problem, call.seconds, tokens)


def _ways(options: RoleOptions) -> list[Way]:
    """Return the ways of asking: that of the settings, then those with more aids."""
    further = [
        way
        for way in WAYS
        if any(getattr(options, name) != value for name, value in way.items())
    ]
    return [{}, *further]


def _plan(spec: str, options: RoleOptions) -> str:
    plan = resolve_planner(spec, options).plan(QUESTION, QuestionGraph(), ())
    return plan.subquery or plan.action


def _read(spec: str, options: RoleOptions) -> str:
    triples = resolve_extractor(spec, options).extract([_passage()]).triples
    return f"{len(triples)} facts" if triples else ""


def _answer(spec: str, options: RoleOptions) -> str:
    answer = resolve_answerer(spec, options).answer(
        ANSWERED, QuestionGraph(), [_passage()], ()
    )
    return "" if answer.failed else answer.text


_ASKED: Mapping[str, Callable[[str, RoleOptions], str]] = {
    "planner": _plan,
    "extractor": _read,
    "answerer": _answer,
}
"""For each role, the function that asks it. It returns "" if the reply could not be read."""


def _passage() -> Passage:
    """Return the beginning of a passage, because a model that does not stop may repeat a whole passage, which
    takes long.
    """
    whole = next(passage for passage in sample_passages() if passage.title == PASSAGE)
    spans = sentence_spans(whole.text)
    _, end = spans[_SENTENCES - 1]
    return replace(whole, text=whole.text[:end])


# ---- the server


def ask_server(spec: str) -> Server:
    """Return what the model's server reports about itself; an empty Server unless it has OpenAI's API."""
    model: Any = as_chat(spec).model
    if not hasattr(model, "about"):
        return Server()
    about: Mapping[str, Any] = run(model.about())
    meta = about.get("meta") or {}
    server = Server(
        name=str(about.get("id", "")),
        owner=str(about.get("owned_by", "")),
        window=about.get("max_model_len") or meta.get("n_ctx"),
    )
    return _llama(server, model) if server.owner == "llamacpp" else server


def _llama(server: Server, model: Any) -> Server:
    """Return a llama.cpp server with further details: its slots, and whether the chat template fits the model."""
    base = model.base_url.rstrip("/").removesuffix("/v1")
    key = model.api_key.get_secret_value()
    try:
        props = _asked(f"{base}/props", key)
        marks = _marks(str(props.get("chat_template", "")))
        pieces = [
            _asked(f"{base}/tokenize", key, {"content": mark, "parse_special": True})
            for mark in marks
        ]
    except (OSError, ValueError):
        return server
    foreign = any(len(piece.get("tokens", ())) > 1 for piece in pieces)
    return replace(server, slots=props.get("total_slots"), foreign_template=foreign)


def _marks(template: str) -> Sequence[str]:
    """Return the marks of a chat template around turns, sorted.

    >>> _marks("{{ '<|im_start|>' + message['role'] }}<|im_end|>")
    ['<|im_end|>', '<|im_start|>']
    """
    pieces = (piece.partition("|>") for piece in template.split("<|")[1:])
    return sorted(
        {f"<|{name}|>" for name, end, _ in pieces if end and name.isidentifier()}
    )


def _asked(url: str, key: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"} | (
        {"Authorization": f"Bearer {key}"} if key else {}
    )
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(
        request, timeout=_PATIENCE, context=trusted()
    ) as response:
        reply = json.loads(response.read(_ENOUGH))
    return reply if isinstance(reply, dict) else {}


# ---- the settings


def advised(
    settings: Settings, trials: Sequence[Trial], servers: Mapping[str, Server]
) -> dict[str, str]:
    """Return the settings that the trials suggest, by name, each value in the form of ras-agent.toml.

    `servers` has the servers by the model's spec. A role whose replies cannot be read becomes offline.
    """
    named = {name: getattr(settings, name) for name in _NAMED}
    lines = toml_of({name: str(spec) for name, spec in named.items() if spec})
    for trial in trials:
        if trial.way is None and not trial.failed:
            lines |= toml_of({trial.role: "offline"})
        elif trial.way is not None:
            lines |= toml_of(trial.way)
    slots = [server.slots for server in servers.values() if server.slots]
    if slots:
        lines["in_flight"] = str(min(slots))
    windows = [server.window for server in servers.values() if server.window]
    if windows:
        lines["context_window"] = str(min(windows))
    needed = _MARGIN * max((trial.seconds for trial in trials), default=0.0)
    if needed > settings.timeout:
        lines["timeout"] = str(10 * ceil(needed / 10))
    return lines


_NAMED = ("llm", "planner", "extractor", "answerer")


def toml_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return settings by name, each value in the form of ras-agent.toml."""
    return {
        name: json.dumps(value, ensure_ascii=False) for name, value in settings.items()
    }

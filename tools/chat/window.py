"""Computes how many tokens a model can take, from its context window, a server's list of models, and estimates.

A window holds a prompt and its reply together. Its size comes from a setting, else from the model's profile, else
it is assumed. If a server refuses a prompt as too long, its list of models is requested for the true size, and
every role at that endpoint keeps to it afterwards.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from ras_agent.contracts.records import JSON
from ras_agent.prompts import Turn
from ras_agent.running.budget import current_ledger
from ras_agent.text.tokens import estimate_tokens, most_tokens
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.runnables import chat_models_in, class_names
from ras_agent.tools.chat.waits import causes

UNKNOWN_WINDOW = 32_768
"""The assumed window, in tokens, of an unknown model. A server with a smaller one says so when it refuses a prompt."""
OLLAMA_WINDOW = 4096
"""Ollama's window, in tokens, if `num_ctx` is not set. It cuts off longer prompts, usually without saying so."""
SHOWN_TOKENS = 256
"""How many tokens of an unusable reply are shown to the model."""

SMALL_EVIDENCE = 2000
"""The maximum number of tokens of evidence that a small model is shown, as it makes little use of more."""
_SMALL = 4e9  # parameters
_LEAST_EVIDENCE = 4000
_UNITS = {"m": 1e6, "b": 1e9}
_SIZE = re.compile(
    r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)(m|b)(?![a-z0-9])", re.IGNORECASE
)

# vLLM and SGLang, llama.cpp, OpenRouter and Together, Groq, Mistral
_LISTED = (
    "max_model_len",
    "n_ctx",
    "context_length",
    "context_window",
    "max_context_length",
)
_REPAIR_TOKENS = 512
_LEAST = 512  # tokens; no model has a smaller window, so a smaller number means something else
REPLY_SHARE = 8  # a prompt leaves at least an eighth of the window for the reply
THOUGHTS_SHARE = 4  # a quarter of the window is for thoughts and the reply

USUAL_REPLY = 256
"""The tokens that are reserved in the run's budget for a reply whose length has no limit."""

TOKENS_PER_TURN = 8
"""The tokens that a chat template adds to a message: role, marks, line breaks."""


def fit_into(turns: Iterable[Turn], room: int) -> bool:
    """Return whether a prompt has at most `room` tokens, by an estimate."""
    turns = tuple(turns)
    most = sum(
        most_tokens(turn.text + turn.thoughts) + TOKENS_PER_TURN for turn in turns
    )
    return most <= room or estimate_turns(turns) <= room


def estimate_turns(turns: Iterable[Turn]) -> int:
    """Estimate the tokens of a prompt: its texts and thoughts, and the tokens that a chat template adds to each turn."""
    total = 0
    for turn in turns:
        total += TOKENS_PER_TURN
        total += estimate_tokens(turn.text)
        total += estimate_tokens(turn.thoughts)
    return total


@dataclass
class Window:
    """Holds the limits of a model that the refusals and replies of its endpoint have shown, above all the window.
    Thread safe.

    All roles at the endpoint share it, so each of them learns from refusals of the others' requests.
    """

    tokens: int | None = None
    """The size of the window in tokens, as a refusal showed it; None before the first refusal."""
    thinks: bool = False
    """Whether the model writes thoughts, which take more tokens than a short reply."""
    unmarked_thoughts: bool | None = None
    """Whether the model's last reply closed thoughts that it had not opened; None before its first reply."""
    longest_reply: int | None = None
    """The greatest limit of a reply that the server accepts; None if it has not refused any."""
    refused: set[str] = field(default_factory=set)
    """The parts of a request that the server does not accept (`ras_agent.tools.chat.refusals`)."""
    parameters: float | None = None
    """The model's number of parameters by the server's list; 0 if the list has none, None if it was not asked for."""
    has_guessed: bool = False
    """Whether a part was left out on a guess; this is done only once."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def shrink(self, tokens: int) -> None:
        """Record that the window has at most `tokens` tokens."""
        with self._lock:
            self.tokens = min(self.tokens or tokens, tokens)


def smaller_window(asked: int, assumed: int, listed: int | None) -> int:
    """Return the next guess of the window's size, after a request was refused as too long.

    Args:
        asked: the estimated tokens of the prompt plus the limit of its reply.
        assumed: the size that was assumed.
        listed: the size in the server's list, which is taken if it is known; otherwise half of `asked`. If the
            request would pass again with that size, the estimate was too low, and three quarters of `assumed` are
            returned.
    """
    window = listed or max(asked // 2, _LEAST)
    if asked < assumed <= window:
        return assumed * 3 // 4
    return window


def parameters_named(name: str) -> float:
    """Return the number of parameters that a model's name states; 0 if it states none.

    >>> parameters_named("SmolLM2-135M-Instruct"), parameters_named("qwen2.5:0.5b"), parameters_named("Mixtral-8x7B")
    (135000000.0, 500000000.0, 56000000000.0)
    """
    found = _SIZE.search(name.rpartition("/")[2])
    if found is None:
        return 0.0
    experts, count, unit = found.groups()
    return float(experts or 1) * float(count) * _UNITS[unit.lower()]


def parameters_in(listed: JSON) -> float:
    """Return the number of parameters in a server's list entry for a model, as llama.cpp states it; otherwise 0."""
    meta = listed.get("meta")
    if not isinstance(meta, Mapping):
        return 0.0
    count = meta.get("n_params")
    if not isinstance(count, int):
        return 0.0
    return float(max(count, 0))


def usual_evidence(window: int, parameters: float) -> int:
    """Return the default maximum number of tokens of evidence for a model: half of its window, but at least 4,000.

    Args:
        parameters: the model's number of parameters; a model below 4 billion is shown 2,000 tokens. 0 if the size
            is unknown.

    >>> usual_evidence(8192, 135e6), usual_evidence(2048, 0), usual_evidence(32768, 70e9)
    (2000, 4000, 16384)
    """
    if 0 < parameters < _SMALL:
        return SMALL_EVIDENCE
    return max(_LEAST_EVIDENCE, window // 2)


_windows: dict[str, Window] = {}


def shared_window(endpoint: str) -> Window:
    """Return the Window that all users of an endpoint share."""
    return _windows.setdefault(endpoint, Window())


def stated_window(model: Any) -> int | None:
    """Return the window, in tokens, of a model by Ollama's `num_ctx` or LangChain's profile; None if neither states it."""
    stated = getattr(model, "num_ctx", None)
    if isinstance(stated, int) and stated > 0:
        return stated
    if type(model).__name__ == "ChatOllama":
        return OLLAMA_WINDOW
    stated = _profile(model).get("max_input_tokens")
    return stated if isinstance(stated, int) and stated >= _LEAST else None


def window_in(listed: JSON) -> int | None:
    """Return the window, in tokens, in a server's list entry for a model; None if it is missing.

    >>> window_in({"id": "m", "owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_ctx_train": 131072}})
    4096
    """
    meta = listed.get("meta")
    about = {**meta, **listed} if isinstance(meta, Mapping) else listed
    for name in _LISTED:
        tokens = about.get(name)
        if isinstance(tokens, int) and tokens >= _LEAST:
            return tokens
    return None


def to_ask_again(window: int) -> int:
    """Return the number of tokens to reserve for a second request that asks to correct the reply."""
    return min(_REPAIR_TOKENS, window // REPLY_SHARE)


def writes_thoughts(model: Any) -> bool:
    """Return whether LangChain's profile says that the model writes thoughts before its reply."""
    return _profile(model).get("reasoning_output") is True


def _profile(model: Any) -> JSON:
    profile = getattr(model, "profile", None)
    return profile if isinstance(profile, dict) else {}


# ---- refusals of prompts that are too long

# OpenAI, vLLM, SGLang, llama.cpp, LM Studio, OpenRouter, Mistral, xAI, Gemini, Cohere, TGI, Anthropic, TensorRT-LLM
_TOO_LONG = re.compile(
    r"context[_ ](?:length|size|window|limit)|exceed_context|ContextWindowExceeded|maximum prompt length"
    r"|max_(?:input|model)_len|(?:prompt|input|request)\b.{0,40}\btoo (?:long|large)\b|too many tokens"
    r"|input token count|Input tokens exceed|`inputs` (?:tokens|must have)|(?:prompt|input) length|prompt exceeds"
    r"|exceed(?:ed|s)? (?:max(?:imum)? (?:context|message)|model token limit)|length of the messages|(?:上下文|输入)长度"
    r"|max_tokens must be at least 1, got -",
    re.IGNORECASE,
)
_TOO_LARGE = 413
_OTHER_REASONS = frozenset({401, 403, 404, 408, 429})


def is_overflow(error: BaseException | None) -> bool:
    """Return whether an error says that a prompt is too long for the model.

    >>> is_overflow(ValueError("This model's maximum context length is 4096 tokens. However, your request has 5000 "
    ...                        "input tokens. Please reduce the length of the input messages."))
    True
    """
    for link in causes(error):
        status = getattr(link, "status_code", None)
        if status in _OTHER_REASONS:
            return False
        if "ContextOverflowError" in class_names(link) or status == _TOO_LARGE:
            return True
        # clients that keep the server's error in `body` may leave details out of their own messages
        said = f"{link} ; {getattr(link, 'body', '')}"
        if _TOO_LONG.search(said):
            return True
    return False


class Sizes:
    """Computes how many tokens a model can read and write. It also learns from the replies of its endpoint."""

    def __init__(
        self,
        model: Any,
        name: str,
        endpoint: str,
        context_window: int | None = None,
        evidence_tokens: int | None = None,
    ) -> None:
        """Read the sizes of a model.

        Args:
            name: the model's name, which may state its number of parameters.
            endpoint: the name of the endpoint whose Window is shared.
            context_window, evidence_tokens: settings that override the model's own values.
        """
        self.name = name
        models = chat_models_in(model)
        stated = [tokens for tokens in map(stated_window, models) if tokens]
        self.learnt = shared_window(endpoint)
        self._stated = context_window or min(stated, default=UNKNOWN_WINDOW)
        self._parameters = parameters_named(name)
        self._evidence = evidence_tokens
        self._thinks = any(map(writes_thoughts, models))

    @property
    def window(self) -> int:
        """Return the maximum number of tokens of a prompt and its reply together, as far as is known."""
        learnt = self.learnt.tokens
        if not learnt:
            return self._stated
        return min(self._stated, learnt)

    @property
    def evidence_tokens(self) -> int:
        """Return the maximum number of tokens of passages and facts in a prompt."""
        if self._evidence:
            return self._evidence
        parameters = self._parameters or self.learnt.parameters or 0.0
        return usual_evidence(self.window, parameters)

    @property
    def wants_parameters(self) -> bool:
        """Return whether the model's number of parameters is needed but unknown."""
        known = self._parameters or self._evidence
        return not known and self.learnt.parameters is None

    async def learn_parameters(self, server: Any) -> None:
        """Ask the model's server for its number of parameters, once per process, even if this fails."""
        self.learnt.parameters = 0.0  # even if asking fails
        self.learnt.parameters = parameters_in(await server.about())

    def room(self, max_tokens: int | None = None, share: int = REPLY_SHARE) -> int:
        """Return how many tokens a prompt may have. A few tokens are kept free to ask again.

        If the run's budget has fewer tokens left than the window, the prompt and the reply share these.

        Args:
            max_tokens: the maximum number of tokens of the reply; None for no limit.
            share: in a small window, the reply gets at least 1 / `share`; a model that writes thoughts gets a
                quarter.
        """
        window = self.window
        if max_tokens is None or self._thinks_aloud:
            kept = self.for_thoughts
        else:
            kept = min(max_tokens, window // share)
        room = window - kept - to_ask_again(window)
        left = current_ledger().tokens_left()
        if left == inf:
            return room
        tokens = int(left)
        wanted = max_tokens or USUAL_REPLY
        reply = min(wanted, tokens // share)
        return min(room, tokens - reply)

    def limit(self, request: Request) -> int | None:
        """Return the maximum number of tokens that the reply to a request may have; None for no limit.

        It is `max_tokens`, or the tokens that the prompt leaves free in the window. A model that writes thoughts
        gets at least a quarter of its window.
        """
        longest = self.learnt.longest_reply
        wanted = request.max_tokens
        if wanted is None:
            return longest
        if self._thinks_aloud:
            wanted = max(wanted, self.for_thoughts)
        window = self.window
        room = window - to_ask_again(window)
        if not fit_into(request.turns, room - wanted):
            left = room - estimate_turns(request.turns)
            least = window // REPLY_SHARE
            wanted = min(wanted, max(left, least))
        if longest is None:
            return wanted
        return min(wanted, longest)

    def with_room_for_thoughts(self, request: Request) -> Request:
        """Return the request with a limit of the reply that leaves room for thoughts."""
        wanted = request.max_tokens or 0
        return replace(request, max_tokens=max(wanted, self.for_thoughts))

    @property
    def may_think_unmarked(self) -> bool:
        """Return whether the beginning of a reply may be a thought without an opening mark."""
        return self.learnt.unmarked_thoughts is not False

    @property
    def _thinks_aloud(self) -> bool:
        return self._thinks or self.learnt.thinks

    @property
    def for_thoughts(self) -> int:
        """Return the number of tokens for thoughts and reply of a model that writes thoughts."""
        return self.window // THOUGHTS_SHARE

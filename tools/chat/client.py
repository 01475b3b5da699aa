"""Builds a chat model as the roles call it: a stack of wrappers around a model, each of which adds one thing."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from ras_agent.config.address import Address
from ras_agent.config.settings import Settings
from ras_agent.running.budget import current_ledger
from ras_agent.tools.chat.accepted import Accepted
from ras_agent.tools.chat.cached import Cached, check_recorded
from ras_agent.tools.chat.call import Model, Reply, Request
from ras_agent.tools.chat.counting import Metered
from ras_agent.tools.chat.deadline import Clock, Deadline
from ras_agent.tools.chat.fields import NO_FIELDS, RequestFields
from ras_agent.tools.chat.form import ReplyForm
from ras_agent.tools.chat.http import run
from ras_agent.tools.chat.limits import Limiter, Rates, Slotted, shared_limiter
from ras_agent.tools.chat.models import build_chat_model
from ras_agent.tools.chat.names import endpoint_of, model_name
from ras_agent.tools.chat.retry import RetryPolicy, Tried
from ras_agent.tools.chat.runnables import is_chat_model, our_model, retries_itself
from ras_agent.tools.chat.secrets import printable
from ras_agent.tools.chat.window import Sizes

TIMEOUT = 60.0
"""Seconds that one try of a call may take, for a model built from a string, unless the settings give another number."""

# seconds by which the provider's client times out after us, so that ours is the error message that users see
_LATER = 1.0
_TRIES = frozenset(("retries", "patience"))


@dataclass(frozen=True)
class ChatSettings:
    """Sets how models are built from strings, and how any model is called."""

    temperature: float | None = None
    """The temperature of models built from a string; None leaves the provider's default."""
    max_tokens: int | None = None
    """The maximum number of tokens of a reply, for models built from a string; None leaves the provider's default."""
    timeout: float | None = None
    """Seconds that one try may take, from its beginning to the last byte of its reply.

    None means 60 for models built from a string, and the model's own timeout for model objects.
    """
    rates: Rates | None = None
    """The rate limits of the model's endpoint, shared by all roles that use it; None leaves the present limits."""
    retry: RetryPolicy | None = None
    """When a failed call is tried again.

    None means the default policy for models built from a string, and for model objects without retries of their own; a
    model object that has retries (`max_retries`, `with_retry`) is asked once, and retries by itself.
    """
    cache: str | Path | Address | None = None
    """Where replies are stored; a request whose reply is stored is not sent to the model."""
    replay: bool = False
    """Whether a request without a stored reply raises ReplayMiss, instead of being sent to the model."""
    clock: Clock = field(default_factory=Clock)
    context_window: int | None = None
    """The size of the model's window in tokens; None for the number that the model or its server states."""
    request: RequestFields = NO_FIELDS
    """Fields, headers and keys that are added to each request of models built from a string."""
    evidence_tokens: int | None = None
    """The maximum number of tokens of evidence in a prompt; None for a number that suits the model."""

    @classmethod
    def of(cls, settings: Settings) -> ChatSettings:
        """Return the chat settings for the settings of a run. Settings that the user has not made are left to the
        model.
        """
        chosen = settings.model_fields_set
        rates = Rates(
            settings.requests_per_minute, settings.tokens_per_minute, settings.in_flight
        )
        retry = RetryPolicy(settings.retries + 1, patience=settings.patience)
        return cls(
            temperature=settings.temperature,
            timeout=settings.timeout if "timeout" in chosen else None,
            rates=rates if chosen & asdict(rates).keys() else None,
            retry=retry if chosen & _TRIES else None,
            cache=settings.cache,
            replay=settings.replay,
            context_window=settings.context_window,
            request=RequestFields.of(settings),
            evidence_tokens=settings.evidence_tokens,
        )


class Chat:
    """Calls a chat model for the roles of an agent. Thread safe.

    Wrappers are applied from the inside out: `Accepted` leaves out what the server refuses, `Slotted` waits for the
    endpoint's rate limits, `Tried` retries, `Cached` stores replies, and `Metered` records the call in the run's
    ledger. `sizes` holds how much fits into the model.
    """

    def __init__(
        self,
        model: Any,
        name: str = "",
        settings: ChatSettings | None = None,
        limiter: Limiter | None = None,
    ) -> None:
        """Wrap a LangChain chat model, or a runnable around one or more.

        Args:
            name: the model's name in traces and messages; by default its own.
            settings: by default `ChatSettings()`.
            limiter: by default the one that all users of the endpoint share.
        """
        settings = settings or ChatSettings()
        self.model = model
        self.name = name or model_name(model)
        self.endpoint = endpoint_of(model)
        self.settings = settings
        self.limiter = limiter or shared_limiter(
            self.endpoint, settings.rates, settings.clock
        )
        self.sizes = Sizes(
            model,
            self.name,
            self.endpoint,
            settings.context_window,
            settings.evidence_tokens,
        )
        self._server = our_model(model)
        usual = RetryPolicy()
        if retries_itself(model):
            usual = RetryPolicy(attempts=1, patience=0.0)
        self.policy = settings.retry or usual
        self.a_try = settings.timeout or inf
        self._accepted = Accepted(model, self.name, self.sizes, settings.request.body)
        tried = Tried(
            Slotted(self._accepted, self.limiter),
            self.policy,
            self.limiter,
            self.name,
            self.endpoint,
            model,
        )
        self._asked = Metered(self._kept(tried), self.sizes)

    def __repr__(self) -> str:
        return f"Chat({self.name!r})"

    def complete(self, request: Request) -> Reply:
        """Return the model's reply.

        Raises:
            BudgetExceeded: if the run's budget forbids the call or runs out during it.
            PromptTooLong: if the prompt does not fit into the model's window.
            ModelRefused: if the server cannot be reached, refuses the key or does not know the model.
            ModelCallError: after the last failed try.
        """
        return run(self.acomplete(request))

    async def acomplete(self, request: Request) -> Reply:
        """Return the same as `complete`, as a coroutine."""
        deadline = Deadline.of(
            current_ledger(), self.settings.clock, self.a_try, self.policy.attempts
        )
        return await self._asked.ask(request, deadline)

    def keeps(self, form: ReplyForm | None) -> bool:
        """Return whether the server can be asked to enforce a form of replies, and has not refused to."""
        return self._accepted.keeps(form)

    def learn_size(self) -> None:
        """Ask the server once for the model's size, unless a name or setting says how much evidence to show the model.

        With a cache the server is not asked, since a replayed run has to send the same prompts.
        """
        if self._wants_size:
            run(self.alearn_size())

    async def alearn_size(self) -> None:
        """Do the same as `learn_size`, as a coroutine."""
        if self._wants_size:
            await self.sizes.learn_parameters(self._server)

    @property
    def _wants_size(self) -> bool:
        return (
            self._server is not None
            and not self.settings.cache
            and self.sizes.wants_parameters
        )

    def _kept(self, model: Model) -> Model:
        """Return the model wrapped in a cache if the settings name one, else the model itself."""
        settings = self.settings
        if settings.replay:
            check_recorded(settings.cache)
        if not settings.cache:
            return model
        return Cached(
            model,
            self.model,
            self.sizes,
            settings.cache,
            settings.request.identity,
            replay=settings.replay,
            believes_sizes=settings.context_window is not None,
        )


class ChatRole:
    """Holds the chat model of a role."""

    def __init__(self, model: object, settings: ChatSettings | None = None) -> None:
        """Take a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat."""
        self._chat = as_chat(model, settings)

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._chat.name


def as_chat(model: object, settings: ChatSettings | None = None) -> Chat:
    """Return a Chat for a spec such as "openai:gpt-4o-mini" or a LangChain chat model; a Chat is returned unchanged."""
    if isinstance(model, Chat):
        return model
    if isinstance(model, str):
        return _built(model, settings or ChatSettings())
    if not is_chat_model(model):
        raise TypeError(
            f"{type(model)} is not a chat model: give a LangChain chat model, a runnable around one, or a string like "
            "'openai:gpt-4o-mini'"
        )
    return Chat(model, settings=settings and replace(settings, request=NO_FIELDS))


def _built(spec: str, settings: ChatSettings) -> Chat:
    timeout = settings.timeout or TIMEOUT
    model = build_chat_model(
        spec,
        timeout=timeout + _LATER,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        context_window=settings.context_window,
        key="none" if settings.replay else "",
        request=settings.request,
    )
    settings = replace(settings, timeout=timeout, retry=settings.retry or RetryPolicy())
    return Chat(model, printable(spec), settings)

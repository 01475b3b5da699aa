"""One model call: budget, cached replies, rate limits, retries, the call itself, its usage. Sync and async."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from ras_agent.address import Address
from ras_agent.budget import Ledger, current_ledger
from ras_agent.errors import BudgetExceeded, ModelCallError, ModelRefused, PromptTooLong, RasError
from ras_agent.prompts import ToolCall
from ras_agent.records import Call
from ras_agent.settings import Settings
from ras_agent.text.tokens import estimate_tokens
from ras_agent.tools.chat.cache import FAILED, ReplyCache, ReplySlot, SingleFlight
from ras_agent.tools.chat.call import (
    Reply,
    Request,
    ask,
    asks_in_any_loop,
    continuing,
    graph_of,
    held_to,
    listed_window,
    reply_in,
)
from ras_agent.tools.chat.counting import USUAL_REPLY, uncounted
from ras_agent.tools.chat.endings import LENGTH
from ras_agent.tools.chat.fields import NO_FIELDS, RequestFields
from ras_agent.tools.chat.form import FIELDS as FORM_FIELDS
from ras_agent.tools.chat.form import TOOL_CHOICE, ReplyForm
from ras_agent.tools.chat.http import run
from ras_agent.tools.chat.limits import Clock, Deadline, Limiter, Rates, shared_limiter
from ras_agent.tools.chat.models import (
    build_chat_model,
    capped,
    endpoint_of,
    longest_reply,
    model_name,
    printable,
    sampling_parameters,
    with_options,
    with_tools,
    without_secrets,
)
from ras_agent.tools.chat.refusals import (
    MOST,
    ROLES,
    STREAM,
    WHOLE,
    accepted_turns,
    longest_allowed,
    misses_limit,
    parts_sent,
    refused_part,
    says_nothing,
    without_fields,
)
from ras_agent.tools.chat.replay import check_recorded, miss_of
from ras_agent.tools.chat.retry import RetryPolicy, diagnosis, unreachable
from ras_agent.tools.chat.runnables import chat_models_in, is_chat_model, retries_itself
from ras_agent.tools.chat.waits import retry_after
from ras_agent.tools.chat.window import (
    REPLY_SHARE,
    THOUGHTS_SHARE,
    UNKNOWN_WINDOW,
    estimate_turns,
    fit_into,
    is_overflow,
    parameters_in,
    parameters_named,
    shared_window,
    smaller_window,
    stated_window,
    to_ask_again,
    usual_evidence,
    writes_thoughts,
)

TIMEOUT = 60.0
"""Seconds that one try of a call may take, of a model built from a string, unless settings say otherwise."""

# the provider's client gives up so many seconds after us, so that one message says how long a try may take
_LATER = 1.0
_VARIED = 0.5  # the temperature of a reply that is to differ from the likeliest
_UNUSABLE = frozenset((401, 403, 404))
_TRIES = frozenset(("retries", "patience"))
_REMEDIES = {
    401: "check the API key",
    403: "check the API key's rights",
    404: "check the model's name and the server's address",
    429: "lower requests_per_minute or tokens_per_minute",
}


@dataclass(frozen=True)
class ChatSettings:
    """Says how models are built from strings, and how any model is called.

    temperature, max_tokens: for models built from a string; None leaves the provider's default.
    timeout: seconds one try may take, from its beginning to the last byte of its reply. None: 60 for models built from
        a string, a model object's own timeout for the others.
    rates: the limits of the model's endpoint; None leaves those it has. All roles on one endpoint share one limiter.
    retry: None is the default policy for models built from a string, and for model objects that have no retries of
        their own; one that has (`max_retries`, `with_retry`) decides itself, and is tried once.
    cache: where replies are stored; a request found there is answered from there.
    replay: a request that is not found there is a ReplayMiss: no model is asked.
    context_window: the tokens of a prompt and its reply together; None for what the model or its server says.
    request: what is added to each request, of models built from a string.
    evidence_tokens: the most tokens of evidence in a prompt; None for what fits the model's window and size.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    rates: Rates | None = None
    retry: RetryPolicy | None = None
    cache: str | Path | Address | None = None
    replay: bool = False
    clock: Clock = field(default_factory=Clock)
    context_window: int | None = None
    request: RequestFields = NO_FIELDS
    evidence_tokens: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> ChatSettings:
        """Return how the settings of a run want models to be called; what was not set is left to the model."""
        chosen = settings.model_fields_set
        rates = Rates(settings.requests_per_minute, settings.tokens_per_minute, settings.in_flight)
        return cls(
            temperature=settings.temperature,
            timeout=settings.timeout if "timeout" in chosen else None,
            rates=rates if chosen & asdict(rates).keys() else None,
            retry=RetryPolicy(settings.retries + 1, patience=settings.patience) if chosen & _TRIES else None,
            cache=settings.cache,
            replay=settings.replay,
            context_window=settings.context_window,
            request=RequestFields.of(settings),
            evidence_tokens=settings.evidence_tokens,
        )


class Chat:
    """Wraps a chat model for the roles. Thread safe.

    Every call is entered in the running node's ledger. So is a reply from the cache, with the tokens it once cost: a
    replayed run meets its limits where the first run did, and takes the same path.
    """

    def __init__(
        self, model: Any, name: str = "", settings: ChatSettings | None = None, limiter: Limiter | None = None
    ) -> None:
        self.model = self._asked = model
        self.name = name or model_name(model)
        self.endpoint = endpoint_of(model)
        self.settings = settings = settings or ChatSettings()
        self._a_try = settings.timeout or inf
        own = RetryPolicy(attempts=1, patience=0.0) if retries_itself(model) else RetryPolicy()
        self._retry = settings.retry or own
        self.limiter = limiter or shared_limiter(self.endpoint, self.settings.rates, self.settings.clock)
        self._window = shared_window(self.endpoint)
        models = chat_models_in(model)
        stated = min(filter(None, map(stated_window, models)), default=UNKNOWN_WINDOW)
        self._stated_window = self.settings.context_window or stated
        self._named_size = parameters_named(self.name)
        self._thinks = any(map(writes_thoughts, models))
        self._has_replied = False
        if settings.replay:
            check_recorded(settings.cache)
        self._cache = ReplyCache(self.settings.cache) if self.settings.cache else None
        self._in_flight: SingleFlight[Reply] = SingleFlight()
        self._in_any_loop = asks_in_any_loop(model)
        # those of a configurable model are what the running call's configuration names
        self._parameters = sampling_parameters(model) if self._in_any_loop else None

    def __repr__(self) -> str:
        return f"Chat({self.name!r})"

    @property
    def window(self) -> int:
        """Return the tokens of a prompt and its reply together, as far as is known by now."""
        return min(self._stated_window, self._window.tokens or self._stated_window)

    @property
    def evidence_tokens(self) -> int:
        """Return the most tokens of passages and facts that a prompt shows."""
        size = self._named_size or self._window.parameters or 0.0
        return self.settings.evidence_tokens or usual_evidence(self.window, size)

    def learn_size(self) -> None:
        """Ask the server once how large the model is, where neither its name nor a setting tells what to show it.

        Where replies are kept it is not asked: a replayed run has to send the same prompts.
        """
        if self._wants_size():
            run(self.alearn_size())

    async def alearn_size(self) -> None:
        """Do the same as `learn_size`, for coroutines."""
        if self._wants_size():
            self._window.parameters = 0.0  # it is asked once, whatever comes of it
            self._window.parameters = parameters_in(await self._asked.about())

    def _wants_size(self) -> bool:
        told = self._named_size or self.settings.evidence_tokens or self._cache
        return self._in_any_loop and not told and self._window.parameters is None

    def room(self, max_tokens: int | None = None, share: int = REPLY_SHARE) -> int:
        """Return the tokens that a prompt may have, with a little room left to ask again.

        Its reply gets `max_tokens`, or at least one `share`-th of a window that is too small; thoughts get a quarter.
        Where the run has fewer tokens left than the window, they are what is shared.
        """
        window, left = self.window, current_ledger().tokens_left()
        kept = (
            window // THOUGHTS_SHARE if max_tokens is None or self._thinks_aloud() else min(max_tokens, window // share)
        )
        room = window - kept - to_ask_again(window)
        if left < inf:
            room = min(room, int(left) - min(max_tokens or USUAL_REPLY, int(left) // share))
        return room

    def limit(self, request: Request) -> int | None:
        """Return the tokens that the reply to a request may have: what the prompt leaves, and `max_tokens` at most.

        A model that writes thoughts has a quarter of its window for them.
        """
        longest = self._window.longest_reply
        if request.max_tokens is None:
            return longest
        wanted = max(request.max_tokens, self._room_for_thoughts()) if self._thinks_aloud() else request.max_tokens
        room = self.window - to_ask_again(self.window)
        if not fit_into(request.turns, room - wanted):
            left = room - estimate_turns(request.turns)
            wanted = min(wanted, max(left, self.window // REPLY_SHARE))
        return wanted if longest is None else min(wanted, longest)

    def note_unmarked_thoughts(self, had_some: bool) -> None:
        """Remember whether a reply of this endpoint began with thoughts that no mark opened."""
        self._window.unmarked_thoughts = had_some

    @property
    def may_think_unmarked(self) -> bool:
        """Return whether the beginning of a reply may be a thought, though no mark says so."""
        return self._window.unmarked_thoughts is not False

    def _thinks_aloud(self) -> bool:
        return self._thinks or self._window.thinks

    def _room_for_thoughts(self) -> int:
        return self.window // THOUGHTS_SHARE

    def with_room_for_thoughts(self, request: Request) -> Request:
        """Return a request whose reply may be as long as thoughts and a reply are together."""
        return replace(request, max_tokens=max(request.max_tokens or 0, self._room_for_thoughts()))

    def note_thoughts(self) -> None:
        """Remember that the model writes thoughts: from now on the replies of this endpoint have room for them."""
        self._window.thinks = True

    def complete(self, request: Request) -> Reply:
        """Return the model's reply.

        Raises BudgetExceeded if the budget forbids the call or ends before it does, PromptTooLong if the prompt does
        not fit into the model's window, ModelRefused if the server is not there, refuses the key or does not know the
        model, ModelCallError after the last try.
        """
        return run(self.acomplete(request, in_a_thread=not self._in_any_loop))

    async def acomplete(self, request: Request, *, in_a_thread: bool = False) -> Reply:
        """Do the same as `complete`, for coroutines.

        in_a_thread: ask through the model's synchronous methods, as its asynchronous ones may belong to other loops.
        """
        with self._metered(request) as (ledger, request, most, reserved):
            deadline = Deadline.of(ledger, self.settings.clock, self._a_try, self._retry.attempts)
            fresh = partial(self._fresh, request, most, deadline, in_a_thread)
            if self._cache is None:
                return self._delivered(request, await fresh(), ledger, reserved)
            slot = self._slot(self._cache, request)
            reply = await self._cached(request, slot, deadline, fresh)
            return self._delivered(request, reply, ledger, reserved, slot.key)

    async def _cached(
        self, request: Request, slot: ReplySlot, deadline: Deadline, fresh: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        """Return the cached reply, the reply to an equal request in progress, or a fresh one, which is then cached."""
        while (ahead := self._in_flight.join(slot.key)) is not None:
            # shielded: a caller that stops waiting must not cancel the call for the others
            if (found := await deadline.wait(asyncio.shield(asyncio.wrap_future(ahead)))) is not None:
                return replace(found, replayed=True, seconds=0.0)
        reply = None
        try:
            stored = slot.get(_replayed) if slot.is_local else await asyncio.to_thread(slot.get, _replayed)
            reply = self._known(request, stored)
            if reply is None and self.settings.replay:
                raise await asyncio.to_thread(self._not_recorded, slot)
            if reply is None:
                try:
                    reply = await fresh()
                except PromptTooLong:  # kept, as a replayed run asks for the same prompts as the first
                    await asyncio.to_thread(slot.put, {"refused": self.window})
                    raise
                except ModelCallError as error:  # kept for replays alone: a run that goes on asks again
                    await asyncio.to_thread(slot.of_failure.put, {FAILED: str(error)})
                    raise
                await asyncio.to_thread(slot.put, _to_json(reply))
            return reply
        finally:
            self._in_flight.finish(slot.key, reply)

    def _not_recorded(self, slot: ReplySlot) -> RasError:
        """Return the error for a request that a replay has no reply to: as the call failed then, or a ReplayMiss."""
        failure = slot.of_failure.get(lambda reply: str(reply[FAILED]))
        return ModelCallError(failure) if failure else miss_of(slot, self.settings.cache)

    def _known(self, request: Request, found: Reply | int | None) -> Reply | None:
        """Return a cached reply. Raises PromptTooLong if the server refused the prompt when it was asked.

        Where a window is set, it is believed: the server may have another one by now.
        """
        if not isinstance(found, int):
            return found
        if self.settings.context_window:
            return None
        self._window.shrink(found)
        refused = f"{self.name} refused a prompt of about {estimate_turns(request.turns):,} tokens as too long"
        raise PromptTooLong(f"{refused}, by the replies in {self.settings.cache}")

    async def _fresh(self, request: Request, most: float, deadline: Deadline, in_a_thread: bool) -> Reply:
        """Return the model's own reply, after as many tries as it takes."""
        tries = AsyncRetrying(sleep=self.settings.clock.asleep, **self._retry_options(deadline))
        tokens = _estimated_tokens(request) if self.limiter.rates.tokens_per_minute else 0
        with self._errors_named(tries):
            async for attempt in tries:
                with attempt:
                    async with self.limiter.hold(tokens, deadline) as booking:
                        reply = await self._ask(request, most, deadline, in_a_thread)
                        booking.tokens = reply.input_tokens + reply.output_tokens or booking.tokens
                        return reply
        raise AssertionError("a call either returns or raises")

    async def _ask(self, request: Request, most: float, deadline: Deadline, in_a_thread: bool) -> Reply:
        """Return the reply of one try, in which what the server refuses of the request is left out."""
        started = time.perf_counter()
        options = await continuing(self._asked, request)
        if request.stop:
            options["stop"] = list(request.stop)
        options |= self._variation(request)
        guess = ""
        while True:
            form = await self._form(request)
            in_text = form.keys() - {TOOL_CHOICE}
            asked = replace(request, tools=()) if in_text else request
            sent = self._sent(asked, most, options | form)
            try:
                async with deadline.one_try():
                    with uncounted():
                        message = await ask(sent.model, sent.request, streamed=sent.streamed, in_a_thread=in_a_thread)
                return reply_in(message, time.perf_counter() - started, self.model)
            except Exception as error:
                self._window.refused.discard(guess)
                if is_overflow(error):
                    await self._learn_window(request, deadline)
                    raise
                part = self._learn_refusal(error, sent)
                guess = ROLES if not part and self._may_refuse_roles(error, sent) else ""
                if not part and not guess:
                    raise
                self._window.refused |= {part, guess} - {""}
                if part in self._sent(asked, most, options | form).parts:  # no copy can be made that leaves it out
                    raise

    def _variation(self, request: Request) -> dict[str, Any]:
        """Return the temperature of a request that is to vary, of a model whose own is 0."""
        certain = any(getattr(one, "temperature", None) == 0 for one in chat_models_in(self._asked))
        return {"temperature": _VARIED} if request.varied and certain else {}

    async def _form(self, request: Request) -> dict[str, Any]:
        """Return the options that hold the reply to its form; {} where the server has refused them."""
        options = await held_to(self._asked, request)
        return {} if self._window.refused & options.keys() else options

    def keeps(self, form: ReplyForm | None) -> bool:
        """Return whether the server may hold a reply to a form: it is sent one, and has refused none."""
        return form is not None and self._in_any_loop and not self._window.refused & set(FORM_FIELDS)

    def _sent(self, request: Request, most: float, options: Mapping[str, Any]) -> _Sent:
        """Return a request as the server takes it, by what is known of it.

        The key of a cached reply keeps what is left out, so that a run is replayed whatever was learnt when.
        """
        refused = self._window.refused
        ends_early = request.ends_early and self._in_any_loop
        wants_stream = request.on_text is not None or ends_early or WHOLE in refused
        asked = replace(request, turns=accepted_turns(request.turns, refused))
        model = with_options(self._model_for(request, most), options)
        return _Sent(without_fields(model, refused), asked, wants_stream and STREAM not in refused)

    def _learn_refusal(self, error: Exception, sent: _Sent) -> str:
        """Take note of what a server refuses; return the part of the request, or "" where it refuses none."""
        known, asked = self._window.longest_reply, longest_reply(sent.model)
        if asked is not None:
            longest = longest_allowed(error, asked)
        else:
            longest = self._room_for_thoughts() if misses_limit(error) else None
        if longest is None or longest == known:
            return self._note_refusal(refused_part(error, sent.parts, self.settings.request.body))
        self._window.longest_reply = longest
        return MOST

    def _note_refusal(self, part: str) -> str:
        """Note in the run that a field which the user set is left out, and return it."""
        if part in self.settings.request.body:
            current_ledger().note(f"{self.name} refuses {part}, which is left out of its requests from now on")
        return part

    def _may_refuse_roles(self, error: Exception, sent: _Sent) -> bool:
        """Return whether a server that has never replied, and fails without a word, may do so for the system's role."""
        if self._has_replied or self._window.has_guessed or ROLES not in sent.parts or not says_nothing(error):
            return False
        self._window.has_guessed = True
        return True

    async def _learn_window(self, request: Request, deadline: Deadline) -> None:
        """Take note that a prompt was refused as too long, and ask the server what it lists of its window."""
        asked, assumed = estimate_turns(request.turns) + (self.limit(request) or 0), self.window
        async with deadline.one_try():
            listed = await listed_window(self._asked)
        self._window.shrink(smaller_window(asked, assumed, listed))

    @contextmanager
    def _metered(self, request: Request) -> Iterator[tuple[Ledger, Request, float, int]]:
        """Reserve the call in the ledger.

        Yields the ledger, the request, the most tokens that its reply may have, and the tokens that were reserved.
        """
        ledger, reserved, most = current_ledger(), 0, inf
        if ledger.tokens_left() < inf:
            prompt, limit = estimate_turns(request.turns), self.limit(request)
            granted = ledger.admit(prompt, limit or USUAL_REPLY)
            if limit is not None:
                most = granted
                request = replace(request, max_tokens=min(granted, request.max_tokens or granted))
            reserved = prompt + granted
        else:
            ledger.admit()
        try:
            yield ledger, request, most, reserved
        except BaseException:
            ledger.release(reserved)
            raise

    def _delivered(self, request: Request, reply: Reply, ledger: Ledger, reserved: int, key: str = "") -> Reply:
        """Enter the call in the ledger. A replayed reply, which was not streamed, goes to `on_text` as a whole."""
        self._has_replied |= not reply.replayed
        if reply.replayed and request.on_text is not None:
            request.on_text(reply.text)
        tokens, estimated = (reply.input_tokens, reply.output_tokens, reply.cached_tokens), False
        if not any(tokens):
            tokens, estimated = (estimate_turns(request.turns), estimate_tokens(reply.text), 0), True
        name = reply.model or self.name
        call = Call(ledger.role, ledger.hop, name, *tokens, reply.seconds, reply.replayed, estimated, key)
        ledger.record(call, reserved)
        return reply

    def _model_for(self, request: Request, most: float) -> Any:
        """Return the model, with a limit to its replies where the request has one and the model takes one."""
        limit = self.limit(request)
        if limit is not None and most < limit:
            limit = int(most)
        refused = self._window.refused
        model = capped(self._asked, limit, refused) if limit is not None or refused else self._asked
        return with_tools(model, request.tools) if request.tools else model

    def _slot(self, cache: ReplyCache, request: Request) -> ReplySlot:
        more: dict[str, Any] = {} if request.max_tokens is None else {"most": request.max_tokens}
        more |= self.settings.request.identity
        if given := graph_of(self.model, request):
            more["graph"] = [list(map(str, facts)) for facts in given["graph"]]
        if request.tools:
            more["tools"] = list(request.tools)
        if request.form:
            more["pattern"] = request.form.pattern
        if request.varied:
            more["varied"] = True
        if request.stop:
            more["stop"] = list(request.stop)
        parameters, ledger = self._parameters or sampling_parameters(self.model), current_ledger()
        return cache.slot(parameters | more, request.turns, ledger.role, ledger.hop)

    def _retry_options(self, deadline: Deadline) -> dict[str, Any]:
        policy = self._retry
        decide = policy.decides(has_replied=self._has_replied, now=self.settings.clock.now)

        def worth_it(error: BaseException) -> bool:
            in_time = (retry_after(error) or 0.0) < deadline.left()
            return in_time and not is_overflow(error) and decide(error)

        def pause_everybody(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            self.limiter.pause((error and retry_after(error)) or 0.0)

        return {
            "retry": retry_if_exception(worth_it),
            "wait": lambda state: min(policy.wait(state), deadline.left()),
            "before_sleep": pause_everybody,
            "reraise": True,
        }

    @contextmanager
    def _errors_named(self, tries: AsyncRetrying) -> Iterator[None]:
        """Turn whatever a provider's client raises into a RasError without credentials."""
        try:
            yield
        except (BudgetExceeded, ModelRefused):
            raise
        except Exception as error:
            message = without_secrets(str(error), self.model)
            status, gone = getattr(error, "status_code", None), unreachable(error)
            # once a model has replied, key and name are right, and a refusal has another reason
            unusable = (gone or status in _UNUSABLE) and not self._has_replied
            kind: Callable[[str], RasError] = ModelRefused if unusable else ModelCallError
            # a server that went away fails one whole call; if the next call finds nobody either, no other will
            self._has_replied &= not gone
            if is_overflow(error):
                kind = PromptTooLong
            remedy = f"; {_REMEDIES[status]}" if status in _REMEDIES else ""
            if why := without_secrets(diagnosis(error, self.endpoint), self.model):
                remedy = f": {why}"
            count = tries.statistics.get("attempt_number", 1)
            where = self.name if self.name.endswith(self.endpoint) else f"{self.name} at {self.endpoint}"
            said = why if gone else f"{type(error).__name__}: {message[:300]}{remedy}"
            raise kind(f"{where} failed after {count} {'try' if count == 1 else 'tries'}: {said}") from (
                error if message == str(error) else None
            )


@dataclass(frozen=True, slots=True)
class _Sent:
    """A request as it is sent, without what the server refuses."""

    model: Any
    request: Request
    streamed: bool

    @property
    def parts(self) -> set[str]:
        """Return what a server may refuse of it."""
        return parts_sent(self.model, self.request.turns, self.streamed)


def as_chat(model: object, settings: ChatSettings | None = None) -> Chat:
    """Return a Chat for a spec string or a LangChain chat model; a Chat is returned as it is."""
    if isinstance(model, Chat):
        return model
    if isinstance(model, str):
        settings = settings or ChatSettings()
        settings = replace(settings, timeout=settings.timeout or TIMEOUT, retry=settings.retry or RetryPolicy())
        built = build_chat_model(
            model,
            timeout=(settings.timeout or TIMEOUT) + _LATER,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            context_window=settings.context_window,
            key="" if not settings.replay else "none",
            request=settings.request,
        )
        return Chat(built, printable(model), settings)
    if not is_chat_model(model):
        raise TypeError(
            "expected a LangChain chat model, a runnable around one, or a string like 'openai:gpt-4o-mini', "
            f"got {type(model)}"
        )
    return Chat(model, settings=settings and replace(settings, request=NO_FIELDS))


def _estimated_tokens(request: Request) -> int:
    """Estimate the tokens of a request and its reply."""
    return estimate_turns(request.turns) + (request.max_tokens or USUAL_REPLY)


def _replayed(cached: dict[str, Any]) -> Reply | int:
    """Return a cached reply, or the window that a refusal left. Raises TypeError for another form."""
    if "refused" in cached:
        return int(cached["refused"])
    calls = tuple(ToolCall(**call) for call in cached.pop("calls", ()))
    if cached.pop("truncated", False):  # of a cache of an earlier version
        cached["ending"] = LENGTH
    unread = tuple(ToolCall(**call) for call in cached.pop("unread", ()))
    reply = Reply(**cached, calls=calls, unread=unread, replayed=True)
    tokens = (reply.input_tokens, reply.output_tokens, reply.cached_tokens)
    if not isinstance(reply.text, str) or not all(isinstance(count, int) for count in tokens):
        raise TypeError("a reply is a text with numbers of tokens")
    return reply


def _to_json(reply: Reply) -> dict[str, Any]:
    """Return a reply as it is cached: without the time it took."""
    empty = {name for name in ("calls", "thoughts", "unread", "ending", "refusal") if not getattr(reply, name)}
    left_out = empty | {"seconds", "replayed"}
    return {name: value for name, value in asdict(reply).items() if name not in left_out}

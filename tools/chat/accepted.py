"""Wraps a model so that a request is sent again without the parts that the server refuses."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from ras_agent.contracts.records import JSON
from ras_agent.running.budget import current_ledger
from ras_agent.tools.chat.asking import ask, reply_in
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.counting import uncounted
from ras_agent.tools.chat.deadline import Deadline
from ras_agent.tools.chat.form import FIELDS as FORM_FIELDS
from ras_agent.tools.chat.form import KEEP_PATTERNS, TOOL_CHOICE, ReplyForm
from ras_agent.tools.chat.models import with_options, with_tools
from ras_agent.tools.chat.refusals import (
    MOST,
    ROLES,
    STREAM,
    WHOLE,
    accepted_turns,
    capped,
    longest_allowed,
    longest_reply,
    misses_limit,
    parts_sent,
    refused_part,
    says_nothing,
    without_fields,
)
from ras_agent.tools.chat.runnables import chat_models_in, our_model
from ras_agent.tools.chat.window import (
    Sizes,
    estimate_turns,
    is_overflow,
    smaller_window,
    window_in,
)

_VARIED = 0.5  # the temperature of a request that needs a varied reply
_TAKES_CONTINUATION = ("vllm", "sglang")


@dataclass(frozen=True, slots=True)
class _Sent:
    """Holds a request as it is sent, without the parts that the server refuses."""

    model: Any
    request: Request
    streamed: bool

    @property
    def parts(self) -> set[str]:
        """Return the names of the request's parts that a server may refuse."""
        return parts_sent(self.model, self.request.turns, self.streamed)


class Accepted:
    """Sends a request once, without the parts that the server is known to refuse.

    All users of an endpoint share its refusals. The key of a cached reply contains the parts that were left out, so
    a run can be replayed even if other refusals are known by then.
    """

    def __init__(self, model: Any, name: str, sizes: Sizes, added: JSON) -> None:
        """Wrap a LangChain model.

        Args:
            name: the model's name in notes.
            sizes: holds the refusals and the window of the model's endpoint.
            added: fields that the user added to each request; the run notes if one is refused.
        """
        self._model = model
        self._name = name
        self._sizes = sizes
        self._added = added
        self._server = our_model(model)
        self._known = sizes.learnt
        self._has_replied = False

    async def ask(self, request: Request, deadline: Deadline) -> Reply:
        """Return the reply. If the server refuses a part of the request, it is sent again without that part."""
        started = time.perf_counter()
        options = await self._options(request)
        guess = ""
        while True:
            form = await self._form(request)
            in_text = form.keys() - {TOOL_CHOICE}
            asked = replace(request, tools=()) if in_text else request
            sent = self._sent(asked, options | form)
            try:
                async with deadline.one_try():
                    with uncounted():
                        message = await ask(
                            sent.model, sent.request, streamed=sent.streamed
                        )
                reply = reply_in(message, time.perf_counter() - started, self._model)
            except Exception as error:
                self._known.refused.discard(guess)
                if is_overflow(error):
                    await self._learn_window(request, deadline)
                    raise
                part = self._learn_refusal(error, sent)
                guess = "" if part else self._guess(error, sent)
                if not part and not guess:
                    raise
                self._known.refused.add(part or guess)
                # the part is still sent, so asking again would not help
                if part in self._sent(asked, options | form).parts:
                    raise
            else:
                self._has_replied = True
                return reply

    def keeps(self, form: ReplyForm | None) -> bool:
        """Return whether the server can be asked to enforce a form of replies, and has not refused to."""
        return (
            form is not None
            and self._server is not None
            and self._known.refused.isdisjoint(FORM_FIELDS)
        )

    async def _options(self, request: Request) -> JSON:
        """Return a request's stop texts, its temperature if the reply has to vary, and how its last turn continues.

        vLLM and SGLang need options to continue an assistant's turn instead of beginning a new one. Other servers
        continue it by themselves, or cannot.
        """
        options: JSON = {}
        if request.stop:
            options["stop"] = list(request.stop)
        for one in chat_models_in(self._model):
            if request.varied and getattr(one, "temperature", None) == 0:
                options["temperature"] = _VARIED
        last = request.turns[-1]
        if last.role != "assistant" or self._server is None:
            return options
        owner = await self._server.owner()
        if owner in _TAKES_CONTINUATION:
            options["continue_final_message"] = True
            options["add_generation_prompt"] = False
        return options

    async def _form(self, request: Request) -> JSON:
        """Return the options that make the server enforce the request's form; {} without a form, or if it is refused.

        If the model may call tools and its server cannot enforce patterns, a tool call is required instead.
        """
        if request.form is None or self._server is None:
            return {}
        owner = await self._server.owner()
        if request.tools and owner not in KEEP_PATTERNS:
            options: JSON = {TOOL_CHOICE: "required"}
        else:
            options = request.form.options(owner)
        return options if self._known.refused.isdisjoint(options) else {}

    def _sent(self, request: Request, options: JSON) -> _Sent:
        """Return the request as it is sent: without the parts that the server is known to refuse."""
        refused = self._known.refused
        ends_early = request.ends_early and self._server is not None
        wants_stream = request.on_text is not None or ends_early or WHOLE in refused
        model = self._model
        limit = self._sizes.limit(request)
        if limit is not None:
            limit = int(min(limit, request.granted))
        if limit is not None or refused:
            model = capped(model, limit, refused)
        if request.tools:
            model = with_tools(model, request.tools)
        model = without_fields(with_options(model, options), refused)
        turns = accepted_turns(request.turns, refused)
        return _Sent(
            model, replace(request, turns=turns), wants_stream and STREAM not in refused
        )

    def _learn_refusal(self, error: Exception, sent: _Sent) -> str:
        """Remember the part of a request that the server refused and return its name; "" for another error."""
        asked = longest_reply(sent.model)
        longest = None
        if asked is not None:
            longest = longest_allowed(error, asked)
        elif misses_limit(error):
            longest = self._sizes.for_thoughts
        if longest is not None and longest != self._known.longest_reply:
            self._known.longest_reply = longest
            return MOST
        part = refused_part(error, sent.parts, self._added)
        if part in self._added:
            current_ledger().note(
                f"{self._name} refuses {part}, which is left out of later requests to it"
            )
        return part

    def _guess(self, error: Exception, sent: _Sent) -> str:
        """Return ROLES as the refused part, once, if a server that never replied fails without a reason, or ""."""
        if (
            self._has_replied
            or self._known.has_guessed
            or ROLES not in sent.parts
            or not says_nothing(error)
        ):
            return ""
        self._known.has_guessed = True
        return ROLES

    async def _learn_window(self, request: Request, deadline: Deadline) -> None:
        """Record that a prompt was too long, and take the window from the server's list of models if it has one."""
        asked = estimate_turns(request.turns) + (self._sizes.limit(request) or 0)
        assumed = self._sizes.window
        listed = None
        async with deadline.one_try():
            if self._server is not None:
                listed = window_in(await self._server.about())
        self._known.shrink(smaller_window(asked, assumed, listed))

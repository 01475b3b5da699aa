"""How many tokens a prompt and a reply of a model may have: by its window, its thoughts, and the run's budget."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

from ras_agent.budget import current_ledger
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.runnables import chat_models_in
from ras_agent.tools.chat.window import (
    REPLY_SHARE,
    THOUGHTS_SHARE,
    UNKNOWN_WINDOW,
    USUAL_REPLY,
    estimate_turns,
    fit_into,
    parameters_in,
    parameters_named,
    shared_window,
    stated_window,
    to_ask_again,
    usual_evidence,
    writes_thoughts,
)


class Sizes:
    """Knows how much a model takes in and writes, and learns it from the replies of its endpoint."""

    def __init__(
        self,
        model: Any,
        name: str,
        endpoint: str,
        context_window: int | None = None,
        evidence_tokens: int | None = None,
    ) -> None:
        """Take the settings' window and tokens of evidence, in place of the model's own."""
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
        """Return the tokens of a prompt and its reply together, as far as is known by now."""
        learnt = self.learnt.tokens
        if not learnt:
            return self._stated
        return min(self._stated, learnt)

    @property
    def evidence_tokens(self) -> int:
        """Return the most tokens of passages and facts that a prompt shows."""
        if self._evidence:
            return self._evidence
        parameters = self._parameters or self.learnt.parameters or 0.0
        return usual_evidence(self.window, parameters)

    @property
    def wants_parameters(self) -> bool:
        """Return whether the model's size matters and is not known."""
        known = self._parameters or self._evidence
        return not known and self.learnt.parameters is None

    async def learn_parameters(self, server: Any) -> None:
        """Ask the server of a model how large it is, once in a process."""
        self.learnt.parameters = 0.0  # whatever comes of it
        self.learnt.parameters = parameters_in(await server.about())

    def room(self, max_tokens: int | None = None, share: int = REPLY_SHARE) -> int:
        """Return the tokens that a prompt may have, with a little room left to ask again.

        Its reply gets `max_tokens`, or at least one `share`-th of a window that is too small; thoughts get a quarter.
        Where the run has fewer tokens left than the window, they are shared.
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
        """Return the tokens that the reply to a request may have: `max_tokens`, or as many as the prompt leaves.

        A model that writes thoughts has a quarter of its window for them.
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
        """Return a request whose reply may be as long as thoughts and a reply are together."""
        wanted = request.max_tokens or 0
        return replace(request, max_tokens=max(wanted, self.for_thoughts))

    @property
    def may_think_unmarked(self) -> bool:
        """Return whether the beginning of a reply may be a thought, though no mark says so."""
        return self.learnt.unmarked_thoughts is not False

    @property
    def _thinks_aloud(self) -> bool:
        return self._thinks or self.learnt.thinks

    @property
    def for_thoughts(self) -> int:
        """Return the tokens that a model which thinks gets for its thoughts and its reply."""
        return self.window // THOUGHTS_SHARE

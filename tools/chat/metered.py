"""Enters a model's calls in the running node's ledger, and refuses those that the run's budget forbids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf

from ras_agent.budget import Ledger, current_ledger
from ras_agent.records import Call
from ras_agent.text.tokens import estimate_tokens
from ras_agent.tools.chat.call import Model, Reply, Request
from ras_agent.tools.chat.deadline import Deadline
from ras_agent.tools.chat.sizes import Sizes
from ras_agent.tools.chat.window import USUAL_REPLY, estimate_turns


class Metered:
    """Counts every call, those of cached replies with the tokens that they once cost.

    So a replayed run meets its limits where the first run did, and takes the same path.
    """

    def __init__(self, model: Model, sizes: Sizes, name: str) -> None:
        """Take the model inside, and the name that the calls are entered under."""
        self._model = model
        self._sizes = sizes
        self._name = name

    async def ask(self, request: Request, deadline: Deadline) -> Reply:
        """Return the reply. Raises BudgetExceeded if the budget forbids the call or ends before it does."""
        ledger = current_ledger()
        with self._reserved(ledger, request) as (granted, reserved):
            reply = await self._model.ask(granted, deadline)
            if reply.replayed and request.on_text is not None:
                request.on_text(reply.text)  # it was not streamed
            ledger.record(self._entry(ledger, request, reply), reserved)
            return reply

    @contextmanager
    def _reserved(
        self, ledger: Ledger, request: Request
    ) -> Iterator[tuple[Request, int]]:
        """Reserve a call in the ledger; yield the request with its grant, and the tokens that are reserved."""
        reserved = 0
        if ledger.tokens_left() == inf:
            ledger.admit()
        else:
            prompt = estimate_turns(request.turns)
            limit = self._sizes.limit(request)
            granted = ledger.admit(prompt, limit or USUAL_REPLY)
            reserved = prompt + granted
            if limit is not None:
                most = min(granted, request.max_tokens or granted)
                request = replace(request, max_tokens=most, granted=granted)
        try:
            yield request, reserved
        except BaseException:
            ledger.release(reserved)
            raise

    def _entry(self, ledger: Ledger, request: Request, reply: Reply) -> Call:
        read = reply.input_tokens
        written = reply.output_tokens
        estimated = not (read or written or reply.cached_tokens)
        if estimated:
            read = estimate_turns(request.turns)
            written = estimate_tokens(reply.text)
        return Call(
            ledger.role,
            ledger.hop,
            reply.model or self._name,
            read,
            written,
            reply.cached_tokens,
            seconds=reply.seconds,
            replayed=reply.replayed,
            estimated=estimated,
            key=reply.key,
        )

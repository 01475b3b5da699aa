"""Worked examples and forms by need: how a role asks first, and how after a reply that could not be read.

A model that writes no readable reply to a bare instruction mostly does so with worked examples, or where the server
holds it to a form (docs/models.md has the figures). Both cost tokens, so they come with the first reply that cannot be
read, and stay for the rest of the run. A conversation about the reply that was wrong helps where both are there
already: small models repeat their replies.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from ras_agent.budget import current_ledger
from ras_agent.prompts import Prompt, load
from ras_agent.records import Advice
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import Chat
from ras_agent.tools.chat.dialogue import fitted, repair
from ras_agent.tools.chat.form import FormUse, ReplyForm

_EXAMPLES = "worked examples"
_FORM = "a form that the server keeps"
_REMEDIES = {_EXAMPLES: "few_shot = true (--few-shot)", _FORM: "form = on (--form on)"}


@dataclass(frozen=True, slots=True)
class Asking:
    """A way to ask."""

    prompt: Prompt
    form: ReplyForm | None = None


@dataclass(frozen=True, slots=True)
class ByNeed:
    """The ways in which a role asks its model."""

    plain: Prompt
    examples: Prompt
    """the prompt with worked examples; `plain` where there are none, or where it has them already"""
    repair: Prompt
    example: str
    """a reply as it should be, for a repair"""
    form: ReplyForm | None = None
    use: FormUse = "auto"

    @classmethod
    def load(
        cls,
        name: str,
        directory: str | Path | None,
        *,
        few_shot: bool,
        example: str,
        form: ReplyForm | None = None,
        use: FormUse = "auto",
        examples: str = "",
    ) -> Self:
        """Read a role's prompts.

        few_shot: whether worked examples are shown from the start. examples: the name of the prompt that has them, if
        it is not `<name>-few-shot`.
        """
        if examples:
            shown = load(examples, directory)
        else:
            shown = load(name, directory, few_shot=True)
        return cls(
            plain=shown if few_shot else load(name, directory),
            examples=shown,
            repair=load("repair", directory),
            example=example,
            form=None if use == "off" else form,
            use=use,
        )

    def asking(self) -> Asking:
        """Return how the running role asks: with all that it has, once a reply of this run could not be read."""
        if current_ledger().needs_more:
            return Asking(self.examples, self.form)
        return Asking(self.plain, self.form if self.use == "on" else None)

    def more(self, asking: Asking, chat: Chat) -> Asking | None:
        """Return a way to ask that gives the model more than `asking` did; None if everything is in use."""
        form = self.form if chat.keeps(self.form) else None
        more = Asking(self.examples, asking.form or form)
        return None if more == asking else more

    def again(
        self,
        chat: Chat,
        asking: Asking,
        asked: tuple[Request, Reply],
        problem: str,
        render: Callable[[Asking, int], Request],
    ) -> Generator[Request, Reply, tuple[Request, Reply]]:
        """Ask again, since a reply could not be read: with more than before, else in a conversation about the reply.

        asked: the request and its reply. render: makes the prompt of a way to ask, for so many tokens.
        """
        request, reply = asked
        more = self.more(asking, chat)
        if more is None:
            second = repair(request, reply, self.repair, problem, self.example)
            return second, (yield second)
        self.note(asking, more, problem, reply.text)
        return (yield from fitted(chat, request.max_tokens, partial(render, more)))

    def note(self, asking: Asking, more: Asking, problem: str, reply: str) -> None:
        """Note that a reply could not be read, the additions to the run's further prompts, and their settings."""
        added = []
        if more.prompt != asking.prompt:
            added.append(_EXAMPLES)
        if more.form != asking.form:
            added.append(_FORM)
        more_words = " and ".join(added)
        settings = " and ".join(map(_REMEDIES.__getitem__, added))
        ledger = current_ledger()
        ledger.ask_for_more()
        ledger.note(
            f"the model's reply could not be read ({problem}): for the rest of the run it is asked with {more_words}; "
            f"set {settings} to ask so from the start",
            reply[:500],
            Advice,
        )

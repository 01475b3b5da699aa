"""Adds worked examples and an enforced form to a role's prompts once a reply could not be read.

A model that writes no readable reply to a bare instruction usually writes one when it is shown worked examples, or
when the server enforces a form (docs/models.md has the figures). Both cost tokens, so they are added after the
first unreadable reply and stay for the rest of the run. Small models repeat their replies, so an explanation of
what was wrong with the reply is the last resort, when examples and form are already in use.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from ras_agent.contracts.records import Advice
from ras_agent.prompts import Prompt, load
from ras_agent.running.budget import current_ledger
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import Chat
from ras_agent.tools.chat.dialogue import fitted, repair
from ras_agent.tools.chat.form import FormUse, ReplyForm

_EXAMPLES = "worked examples"
_FORM = "a form that the server keeps"
_REMEDIES = {_EXAMPLES: "few_shot = true (--few-shot)", _FORM: "form = on (--form on)"}


@dataclass(frozen=True, slots=True)
class Asking:
    """Holds one way to ask a model: a prompt, and the form that the server enforces on the reply, if any."""

    prompt: Prompt
    form: ReplyForm | None = None


@dataclass(frozen=True, slots=True)
class ByNeed:
    """Holds the ways in which a role can ask its model: with or without worked examples, and an enforced form."""

    plain: Prompt
    examples: Prompt
    """The prompt with worked examples; the same as `plain` if that has them, or if there are no examples."""
    repair: Prompt
    example: str
    """A well-formed reply, shown when a reply has to be repaired."""
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

        Args:
            name: the name of the role's prompt.
            directory: a folder whose prompts replace the built-in ones.
            few_shot: whether worked examples are shown from the start.
            example: a well-formed reply, shown when a reply has to be repaired.
            form: the form that a server can enforce on the reply.
            use: when it is enforced: "auto" after an unreadable reply, "on" always, "off" never.
            examples: the name of the prompt with worked examples, by default `<name>-few-shot`.
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
        """Return how to ask now: with worked examples and the form once a reply in this run could not be read."""
        if current_ledger().needs_more:
            return Asking(self.examples, self.form)
        return Asking(self.plain, self.form if self.use == "on" else None)

    def more(self, asking: Asking, chat: Chat) -> Asking | None:
        """Return a way to ask that helps the model more than `asking`; None if all help is already in use."""
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
        """Ask again after an unreadable reply: with more help, else with an explanation of the problem.

        Args:
            asking: how the first request was made.
            asked: the first request and its reply.
            problem: why the reply could not be read.
            render: returns the request for a way to ask and a number of prompt tokens.

        Returns:
            The second request and its reply.
        """
        request, reply = asked
        more = self.more(asking, chat)
        if more is None:
            second = repair(request, reply, self.repair, problem, self.example)
            return second, (yield second)
        self.note(asking, more, problem, reply.text)
        return (yield from fitted(chat, request.max_tokens, partial(render, more)))

    def note(self, asking: Asking, more: Asking, problem: str, reply: str) -> None:
        """Record in the run's ledger that a reply could not be read, and which settings add the help from the start."""
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

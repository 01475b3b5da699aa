"""Finds the names in a question with a chat model."""

from __future__ import annotations

import re
from pathlib import Path

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.marks import NONE
from ras_agent.prompts import as_data, load
from ras_agent.text.canonical import canonical_key
from ras_agent.text.lines import lines_of
from ras_agent.text.tokens import cut_to_tokens
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, converse, fitted, parsed_twice
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.tools.chat.window import estimate_turns
from ras_agent.tools.roles import RoleOptions

MOST_TOKENS = 512
"""The maximum number of tokens in a reply, not counting a model's thoughts."""

_FORM = "Sydney Opera House\nJørn Utzon"
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


class LLMMentions:
    """Asks a chat model for the names in a question. May be used as a linker, or as `mentions` of an EntityLinker."""

    def __init__(
        self,
        model: object,
        *,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
    ) -> None:
        """Take the model and the prompts.

        Args:
            model: a chat model, by name or as an object.
            prompts_dir: a folder whose prompts "mentions" and "repair" replace the built-in ones.
        """
        self._chat = as_chat(model, settings)
        self._prompt = load("mentions", prompts_dir)
        self._repair = load("repair", prompts_dir)

    def __call__(self, question: str) -> list[str]:
        """Return the names that the model finds in the question.

        Raises ParseError if no reply lists any, and ModelCallError.
        """
        return converse(self._chat, self._dialogue(question))

    def links(self, question: str) -> dict[str, float]:
        """Return the names, each with weight 1. Raises ParseError and ModelCallError."""
        return dict.fromkeys(self(question), 1.0)

    def _dialogue(self, question: str) -> Dialogue[list[str]]:
        around = estimate_turns(self._prompt.fill(question=""))

        def render(room: int) -> Request:
            # a question that is too long is cut: names are looked up one by one, so those at the beginning are useful alone
            return Request(
                self._prompt.fill(
                    question=cut_to_tokens(as_data(question), room - around)
                )
            )

        def parse(text: str) -> list[str]:
            names = listed_names(text, question)
            if names is None:
                raise ParseError("it lists no names that occur in the question")
            return names

        asked = yield from fitted(self._chat, MOST_TOKENS, render)
        return (yield from parsed_twice(asked, parse, self._repair, _FORM))


def llm_linker(model: object, options: RoleOptions) -> LLMMentions:
    """Build the linker that asks a chat model, with an agent's options."""
    return LLMMentions(model, prompts_dir=options.prompts_dir, settings=options.chat)


def listed_names(reply: str, question: str) -> list[str] | None:
    r"""Return the lines of a reply that occur in the question; None if no line does, [] if the reply says that there
    are no names.

    >>> listed_names("- Alexander Graham Bell\n- Scotland", "Where was Alexander Graham Bell born?")
    ['Alexander Graham Bell']
    >>> listed_names("[NONE]", "What is that?")
    []
    """
    lines = [
        _BULLET.sub("", line).strip('*_`"“” \t,;')
        for line in lines_of(without_thinking(reply))
    ]
    lines = [line for line in lines if canonical_key(line)]
    if any(line.strip("[]").upper() == str(NONE).strip("[]") for line in lines):
        return []
    asked = f" {canonical_key(question)} "
    names = [
        line
        for line in lines
        if f" {canonical_key(line)} " in asked
        or (not line.isascii() and line in question)
    ]
    return list(dict.fromkeys(names)) or None

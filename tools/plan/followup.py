"""Rewrites a follow-up question as a standalone question, given the conversation's earlier turns, by a chat model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.marks import CONVERSATION_FENCE, fenced
from ras_agent.contracts.records import Exchange
from ras_agent.prompts import Turn, as_line, load
from ras_agent.text.lines import lines_of
from ras_agent.text.loose_json import first_text, is_json, json_objects
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import ChatRole, ChatSettings
from ras_agent.tools.chat.dialogue import (
    Dialogue,
    aconverse,
    converse,
    fitted,
    parsed_twice,
)
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.tools.chat.window import estimate_turns
from ras_agent.tools.plan.grammar import first_question
from ras_agent.tools.roles import RoleOptions

MAX_TOKENS = 512
"""The maximum number of tokens of a reply; a model that writes thoughts gets more."""

_LABELS = ("next question", "standalone question", "rewritten question", "question")
_KEYS = (
    "question",
    "standalone_question",
    "standalone",
    "rewritten",
    "rewritten_question",
    "text",
)
_LONGEST_ANSWER = 500
_FORM = "In which city was Jørn Utzon born?"


class LLMRewriter(ChatRole):
    """Rewrites follow-up questions as standalone questions, by a chat model."""

    def __init__(
        self,
        model: object,
        *,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
    ) -> None:
        """Take the model and the prompts.

        Args:
            model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
            prompts_dir: a folder with files that override the packaged prompts (followup, repair).
        """
        super().__init__(model, settings)
        self._prompt = load("followup", prompts_dir)
        self._repair = load("repair", prompts_dir)

    def rewrite(self, question: str, exchanges: Sequence[Exchange]) -> str:
        """Return the standalone question. Raises ParseError if neither the first nor the second reply is a question."""
        dialogue = self._dialogue(question, exchanges)
        return converse(self._chat, dialogue)

    async def arewrite(self, question: str, exchanges: Sequence[Exchange]) -> str:
        """Return the same as `rewrite`, as a coroutine."""
        dialogue = self._dialogue(question, exchanges)
        return await aconverse(self._chat, dialogue)

    def _dialogue(self, question: str, exchanges: Sequence[Exchange]) -> Dialogue[str]:
        def prompt(turns: Sequence[Exchange]) -> tuple[Turn, ...]:
            conversation = "\n".join(map(_as_data, turns))
            return self._prompt.fill(
                conversation=fenced(CONVERSATION_FENCE, conversation),
                question=as_line(question),
            )

        def render(room: int) -> Request:
            turns = list(exchanges)
            # the oldest turns go first, as a follow-up mostly refers to the last ones
            while len(turns) > 1 and estimate_turns(prompt(turns)) > room:
                del turns[0]
            return Request(prompt(turns))

        def parse(text: str) -> str:
            standalone = question_in(text, question)
            if not standalone:
                raise ParseError("it is not a question")
            return standalone

        asked = yield from fitted(self._chat, MAX_TOKENS, render)
        return (yield from parsed_twice(asked, parse, self._repair, _FORM))


def llm_rewriter(model: object, options: RoleOptions) -> LLMRewriter:
    """Build the rewriter on a chat model, with an agent's options."""
    return LLMRewriter(
        model,
        prompts_dir=options.prompts_dir,
        settings=options.chat,
    )


def question_in(reply: str, question: str) -> str:
    """Return the standalone question in a reply to the follow-up `question`, without a label, quotes or JSON around
    it.

    Returns "" if the reply contains no question.

    >>> question_in('Standalone question: "How long is the Loire?"', "How long is it?")
    'How long is the Loire?'
    """
    text = without_thinking(reply)
    if is_json(text):
        texts = (first_text(item, _KEYS) for _, item in json_objects(text))
        text = next(filter(None, texts), "")
    asks = question.rstrip().endswith("?")
    for line in lines_of(text):
        label, colon, rest = line.partition(":")
        if colon and label.strip(" *_#").lower() in _LABELS:
            line = rest
        bare = first_question(line)
        if bare.endswith("?") or (bare and not asks):
            return bare
    return ""


def _as_data(exchange: Exchange) -> str:
    answer = as_line(exchange.answer)
    if len(answer) > _LONGEST_ANSWER:
        answer = f"{answer[:_LONGEST_ANSWER].rstrip()} …"
    return f"User: {as_line(exchange.question)}\nAnswer: {answer or '(none)'}"

"""Chat models that reply with the result of a function of the prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class ReplyingModel(BaseChatModel):
    """Replies with `reply(prompt)`; a prompt is its turns, one below the other. Sync and async."""

    reply: Callable[[str], str]

    @property
    def _llm_type(self) -> str:
        return "replying"

    def _generate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        text = self.reply("\n".join(str(message.text) for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def role_of(prompt: str) -> str:
    """Return which role a prompt is for: "plan", "extract", "reason" or "answer"."""
    begins = {
        "You steer": "plan",
        "You read passages": "extract",
        "You work out": "reason",
    }
    return next(
        (role for words, role in begins.items() if prompt.startswith(words)), "answer"
    )

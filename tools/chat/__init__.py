"""Calls of chat models: rate limits, retries, deadlines, a cache of replies, and dialogues of several calls."""

from ras_agent.tools.chat.cache import ReplyCache
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from ras_agent.tools.chat.limits import Rates
from ras_agent.tools.chat.models import build_chat_model
from ras_agent.tools.chat.retry import RetryPolicy

__all__ = [
    "Chat",
    "ChatSettings",
    "Rates",
    "Reply",
    "ReplyCache",
    "Request",
    "RetryPolicy",
    "as_chat",
    "build_chat_model",
]

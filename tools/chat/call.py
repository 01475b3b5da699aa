"""A call of a model: the request, the reply, and the protocol of everything that answers a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Protocol

from ras_agent.prompts import ToolCall, Turn
from ras_agent.records import JSON, Triple
from ras_agent.tools.chat.deadline import Deadline
from ras_agent.tools.chat.endings import LENGTH, REPEATED, shortfall
from ras_agent.tools.chat.form import ReplyForm


@dataclass(frozen=True, slots=True)
class Request:
    """Holds the prompt and the options of a call. Where the last turn is the assistant's, the reply goes on with it."""

    turns: tuple[Turn, ...]
    on_text: Callable[[str], None] | None = None
    """called with the whole reply so far whenever more of it arrives"""
    max_tokens: int | None = None
    """of the reply; None for no limit"""
    graph: tuple[tuple[Triple, ...], ...] = ()
    """the facts of each sub-query, for a model that reads them through soft tokens"""
    tools: tuple[JSON, ...] = ()
    """the tools that the model may call: JSON Schemas with name and description, as LangChain's `bind_tools` takes"""
    form: ReplyForm | None = None
    """the form that the server holds the whole reply to, which then calls no tool"""
    varied: bool = False
    """whether a model of temperature 0 is to vary: it would repeat an earlier reply"""
    stop: tuple[str, ...] = ()
    """texts at which the reply ends, and which are not part of it"""
    takes_part: bool = False
    """whether the beginning of a reply is of use where its server withholds the rest"""
    ends_early: bool = False
    """whether the reply is streamed, by a model of ours, so that it ends where it begins to repeat itself"""
    granted: float = inf
    """tokens of the run's budget that the reply may take"""


@dataclass(frozen=True, slots=True)
class Reply:
    """Holds the model's reply and its cost."""

    text: str
    ending: str = ""
    """the reason of its end, where it is not whole: "length", "repeated", or the server's word"""
    refusal: str = ""
    """the words of the model or its server in place of the rest"""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    replayed: bool = False
    """whether it came from the cache"""
    model: str = ""
    """which of several models answered, such as a fallback"""
    calls: tuple[ToolCall, ...] = ()
    """the tools that it wants called"""
    thoughts: str = ""
    """the thoughts in front of it, where the server sends them in a field of their own"""
    unread: tuple[ToolCall, ...] = ()
    """calls whose arguments cannot be read"""
    key: str = ""
    """under which it is in the cache"""

    @property
    def truncated(self) -> bool:
        """Return whether it was cut off at its token limit, or because it repeated itself."""
        return self.ending in (LENGTH, REPEATED)

    @property
    def shortfall(self) -> str:
        """Say which part of it is missing; "" for no part."""
        return shortfall(self.ending, self.refusal)


class Model(Protocol):
    """Answers requests: a model, or a model around a model that adds one thing, such as a cache or retries."""

    async def ask(self, request: Request, deadline: Deadline) -> Reply:
        """Return the reply. Raises an error of the provider's, or a RasError."""
        ...

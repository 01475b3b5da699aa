"""Describes a call of a model: the request, the reply, and the protocol of the objects that answer requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Protocol

from ras_agent.contracts.records import JSON, Triple
from ras_agent.prompts import ToolCall, Turn
from ras_agent.tools.chat.deadline import Deadline
from ras_agent.tools.chat.endings import LENGTH, REPEATED, shortfall
from ras_agent.tools.chat.form import ReplyForm


@dataclass(frozen=True, slots=True)
class Request:
    """Holds the prompt and the options of a call. If the last turn is the assistant's, the reply continues it."""

    turns: tuple[Turn, ...]
    on_text: Callable[[str], None] | None = None
    """Called with the whole text so far whenever another piece of the reply arrives."""
    max_tokens: int | None = None
    """The maximum number of tokens of the reply; None for no limit."""
    graph: tuple[tuple[Triple, ...], ...] = ()
    """The facts of each sub-query, for a model that reads them as soft tokens."""
    tools: tuple[JSON, ...] = ()
    """The tools that the model may call: JSON Schemas with name and description, as for LangChain's `bind_tools`."""
    form: ReplyForm | None = None
    """The form that the server should force the whole reply to have; such a reply calls no tool."""
    varied: bool = False
    """Whether a model of temperature 0 is asked with a higher temperature, since it would repeat an earlier reply."""
    sample: int = 0
    """The number of the sample, from 1, if the same prompt is asked for several; it keeps their stored replies apart."""
    stop: tuple[str, ...] = ()
    """Texts at which the reply ends; they are not part of the reply."""
    takes_part: bool = False
    """Whether the beginning of a reply is useful if the server withholds the rest."""
    ends_early: bool = False
    """Whether a model of this package streams the reply, so that it can be stopped once it repeats itself."""
    granted: float = inf
    """The tokens of the run's budget that the reply may use."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Holds the model's reply and its cost."""

    text: str
    ending: str = ""
    """Why the reply is incomplete: "length", "repeated", or the server's own word; "" for a whole reply."""
    refusal: str = ""
    """The explanation that the model or its server gave for a missing part."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    replayed: bool = False
    """Whether the reply came from the cache."""
    model: str = ""
    """The model that answered, if there are several, such as a fallback."""
    calls: tuple[ToolCall, ...] = ()
    """The tool calls that the model asks for."""
    thoughts: str = ""
    """The model's thoughts before its reply, if the server sends them in a separate field."""
    unread: tuple[ToolCall, ...] = ()
    """Tool calls whose arguments cannot be read."""
    key: str = ""
    """The key of the reply in the cache; "" if it is not cached."""

    @property
    def truncated(self) -> bool:
        """Return whether the reply was cut off at its token limit or because it repeated itself."""
        return self.ending in (LENGTH, REPEATED)

    @property
    def shortfall(self) -> str:
        """Describe the missing part of the reply; return "" for a whole reply."""
        return shortfall(self.ending, self.refusal)


class Model(Protocol):
    """Describes an object that answers requests: a model, or a wrapper that adds one thing to it, such as a cache."""

    async def ask(self, request: Request, deadline: Deadline) -> Reply:
        """Return the reply to a request. Raises an error of the provider or a RasError."""
        ...

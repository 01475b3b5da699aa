"""The shapes of requests and answers on the wire, from which the OpenAPI document is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

# what a server and an application pass each other, as ASGI has it
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

THREAD = r"^[A-Za-z0-9_.~-]{1,128}$"
Thread = Annotated[str, Field(pattern=THREAD, description="A thread's id; letters, digits and -_.~ alone.")]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Message(BaseModel):
    """A turn of a conversation, in OpenAI's form."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """Return the text of the turn; parts that are no text are left out."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")
        return self.content or ""


class RequestLimits(_Request):
    """Limits of one run. Each can only lower what the server allows."""

    max_hops: PositiveInt | None = None
    k: PositiveInt | None = None
    max_facts: PositiveInt | None = None
    max_llm_calls: PositiveInt | None = None
    max_tokens: PositiveInt | None = None
    max_seconds: PositiveFloat | None = None


class AskRequest(_Request):
    """A question, or a conversation that ends in one."""

    question: str | None = None
    messages: list[Message] | None = None
    thread: Thread | None = None
    filter: dict[str, Any] | None = Field(None, description='Only passages with this metadata, such as {"team": "x"}.')
    limits: RequestLimits | None = None
    stream: bool = Field(False, description="Send events as they happen (SSE) instead of one JSON document.")

    @model_validator(mode="after")
    def _asks_once(self) -> AskRequest:
        if (self.question is None) == (self.messages is None):
            raise ValueError("give question or messages, one of them")
        return self


class ErrorDetail(BaseModel):
    """What went wrong, in OpenAI's form."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """The body of every answer that reports an error."""

    error: ErrorDetail


class Health(BaseModel):
    """Says that the server answers. runs: questions under way."""

    status: str = "ok"
    version: str
    runs: NonNegativeInt

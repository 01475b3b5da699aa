"""Calls any server that speaks OpenAI's protocol, as a LangChain chat model."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from math import inf
from typing import Any, ClassVar, cast

from langchain_core.callbacks import (
    AsyncCallbackManager,
)
from langchain_core.globals import get_llm_cache
from langchain_core.language_models.base import LanguageModelInput
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    convert_to_openai_messages,
    message_chunk_to_message,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import (
    ToolCallChunk,
    invalid_tool_call,
    tool_call,
    tool_call_chunk,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field, PrivateAttr, SecretStr

from ras_agent.contracts.records import JSON
from ras_agent.prompts.templates import THOUGHTS_KEY
from ras_agent.tools.chat.http import (
    BrokenReply,
    Endpoint,
    RefusedReply,
    choices_in,
    ends,
    run,
    run_iterator,
)
from ras_agent.tools.chat.tool_calls import (
    calls_in_message,
    name_and_arguments,
    raw_calls,
)

_NO_REPLY = "the reply does not have the form of OpenAI's protocol"
_THOUGHTS = (
    "thinking",
    "reasoning",
)  # parts of a message that do not belong to its text
_LONG_PIECE = 20  # characters; a shorter last piece may repeat the text so far
# options that a caller or LangChain may pass with a call, and that no server accepts
_NOT_SENT = frozenset(
    (
        "ls_structured_output_format",
        "structured_output_format",
        "strict_tools",
        "run_manager",
    )
)


class OpenAIChat(BaseChatModel):
    """Calls a server that speaks OpenAI's protocol, as a LangChain chat model.

    It does not retry; errors are raised unchanged (ras_agent.tools.chat.http lists them).
    """

    in_any_loop: ClassVar[bool] = True
    """True, since the model may be used from any event loop: each loop has its own connections."""
    path: ClassVar[str] = "/chat/completions"
    """The path of requests below the server's address."""

    model_name: str = Field(alias="model")
    """The server's name of the model."""
    base_url: str = Field(repr=False)  # like headers, it may hold secrets
    """The server's address, up to /v1."""
    api_key: SecretStr = SecretStr("")
    temperature: float | None = None
    max_tokens: int | None = None
    limit_name: str = "max_tokens"
    """The field under which a request limits its reply; "" to send no limit."""
    timeout: float | None = None
    """The seconds that a whole reply may take; None for no limit."""
    stream_usage: bool = True
    """Whether a stream is asked for its token counts."""
    model_kwargs: JSON = Field(default_factory=dict)
    """Further fields of a request."""
    default_headers: dict[str, str] = Field(default_factory=dict, repr=False)
    """Further headers, such as organisation and project."""
    _endpoint: Endpoint = PrivateAttr()

    model_config = ConfigDict(populate_by_name=True, protected_namespaces=())

    def model_post_init(self, context: Any, /) -> None:
        """Prepare the endpoint; no request is sent."""
        super().model_post_init(context)
        self._endpoint = Endpoint.with_key(
            self.base_url, self.api_key.get_secret_value(), **self.default_headers
        )

    @property
    def _llm_type(self) -> str:
        return "openai-chat"

    @property
    def _identifying_params(self) -> JSON:
        return {
            "model_name": self.model_name,
            "base_url": self.base_url,
        } | self._sampling()

    async def about(self) -> JSON:
        """Return this model's entry in the server's list of models; {} if there is no entry. The list is requested
        once.
        """
        return await self._endpoint.about(self.model_name)

    async def owner(self) -> str:
        """Return "owned_by" of the model's entry in the server's list, such as "vllm" or "llamacpp"; "" if it is
        missing.
        """
        entry = await self.about()
        return str(entry.get("owned_by") or "")

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: str | JSON | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with tools that it may call.

        Args:
            tools: in any form that LangChain converts to OpenAI's.
            tool_choice: "auto", "none", "any", or the name of a tool that must be called.
        """
        strict = kwargs.pop("strict", None)
        known = [convert_to_openai_tool(tool, strict=strict) for tool in tools]
        if tool_choice:
            kwargs["tool_choice"] = _tool_choice(tool_choice)
        return super().bind(tools=known, **kwargs)

    async def ainvoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: Any = None,
        **kwargs: Any,
    ) -> AIMessage:
        """Return the reply. If there are no callbacks, LangChain's bookkeeping for them is skipped."""
        listening = AsyncCallbackManager.configure(
            ensure_config(config).get("callbacks"), self.callbacks, self.verbose
        )
        plain = (
            self.cache in (None, False)
            and get_llm_cache() is None
            and self.rate_limiter is None
            and self.output_version != "v1"
        )
        if listening.handlers or not plain:
            return await super().ainvoke(input, config, stop=stop, **kwargs)
        body = self._body(self._convert_input(input).to_messages(), stop, kwargs)
        return await self._whole(body)

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return run(self._agenerate(*args, **kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        *_: Any,
        **kwargs: Any,
    ) -> ChatResult:
        body = self._body(messages, stop, kwargs)
        generation = ChatGeneration(message=await self._whole(body))
        return ChatResult(generations=[generation])

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        yield from run_iterator(self._astream(*args, **kwargs))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        *_: Any,
        **kwargs: Any,
    ) -> AsyncGenerator[ChatGenerationChunk, None]:
        body = self._body(messages, stop, kwargs) | {"stream": True}
        if self.stream_usage:
            body["stream_options"] = {"include_usage": True}
        async for piece in self._pieces(body):
            yield ChatGenerationChunk(message=piece)

    async def _pieces(self, body: JSON) -> AsyncGenerator[AIMessageChunk]:
        """Yield a reply's pieces, the last of which has the usage. A reply that is not streamed has two pieces."""
        reading = _Reading()
        async for event in self._endpoint.events(self.path, body, self.timeout):
            piece = reading.piece_in(event)
            if piece is not None:
                yield piece
        yield reading.last()

    async def _whole(self, body: JSON) -> AIMessage:
        """Return the whole reply to a request that does not ask for a stream; some servers stream it anyway."""
        first, *others = [piece async for piece in self._pieces(body)]
        gathered = first.__add__(others)
        message = cast(AIMessage, message_chunk_to_message(gathered))
        if gathered.tool_call_chunks:
            # LangChain would accept incomplete arguments as whole
            calls, unread = calls_in_message({"tool_calls": gathered.tool_call_chunks})
            message.tool_calls = [
                tool_call(name=call.name, args=call.arguments, id=call.id)
                for call in calls
            ]
            message.invalid_tool_calls = [
                invalid_tool_call(
                    name=call.name, args=call.arguments["raw"], id=call.id, error=None
                )
                for call in unread
            ]
        return message

    def _body(
        self,
        messages: Sequence[BaseMessage],
        stop: list[str] | None,
        options: JSON,
    ) -> JSON:
        """Return the JSON body of a request."""
        sent = {name: value for name, value in options.items() if name not in _NOT_SENT}
        if stop:
            sent["stop"] = stop
        return {
            "model": self.model_name,
            "messages": _as_sent(messages),
            **self._sampling(),
            **sent,
        }

    def _sampling(self) -> JSON:
        given: JSON = dict(self.model_kwargs)
        if self.temperature is not None:
            given["temperature"] = self.temperature
        if self.max_tokens is not None and self.limit_name:
            given[self.limit_name] = self.max_tokens
        return given


def _tool_choice(choice: str | JSON | bool) -> str | JSON:
    """Return the value of "tool_choice" in a request."""
    if choice is True or choice == "any":
        return "required"
    if isinstance(choice, str) and choice not in ("auto", "none", "required"):
        return {"type": "function", "function": {"name": choice}}
    return choice if isinstance(choice, dict) else str(choice)


def _as_sent(messages: Sequence[BaseMessage]) -> list[JSON]:
    """Return messages in the form of OpenAI's protocol."""
    sent = convert_to_openai_messages(messages)
    for message, told in zip(messages, sent, strict=True):
        if thoughts := message.additional_kwargs.get(THOUGHTS_KEY):
            told[THOUGHTS_KEY] = thoughts
    return sent


# ---- replies


class _Reading:
    """Reads a reply's events: the pieces of a stream, or a whole reply as one event.

    Events without the first choice are ignored, and so are errors after the reply's end. Usage is returned once, from
    the last event that has it, since each such event counts from the beginning. Raises BrokenReply for a malformed
    reply and RefusedReply if an account is exhausted.
    """

    def __init__(self) -> None:
        self._begun = self._ended = False
        self._usage: UsageMetadata | None = None
        self._text = ""
        # index of the choice that is read; a server may send several
        self._first: Any = None

    def piece_in(self, event: Any) -> AIMessageChunk | None:
        """Return the piece that an event adds to the reply; None if it adds nothing."""
        if isinstance(event, list) and len(event) == 1:
            event = event[0]
        if not isinstance(event, dict):
            return None
        if not self._ended:
            _check_error(event)
        self._usage = _usage(event.get("usage")) or self._usage
        for choice in choices_in(event):
            index = choice.get("index")
            if index is None or self._first in (None, index):
                return self._piece_of(event, choice)
        return None

    def last(self) -> AIMessageChunk:
        """Return the piece after the last event, which has the usage. Raises BrokenReply if the reply never began."""
        if not self._begun:
            raise BrokenReply(f"{_NO_REPLY}: it has no choices with a message")
        return AIMessageChunk(content="", usage_metadata=self._usage)

    def _piece_of(self, event: JSON, choice: JSON) -> AIMessageChunk | None:
        said = choice.get("delta") or choice.get("message") or choice.get("text")
        ends_now = ends(choice) and not self._ended
        if said is None and not ends_now:
            return None
        try:
            text = self._new_text(_text_in(said), choice)
            piece = AIMessageChunk(
                content=text,
                tool_call_chunks=list(_call_pieces(said)),
                additional_kwargs=_beside_text(said),
            )
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise BrokenReply(f"{_NO_REPLY}: {error}") from error
        if ends_now:
            piece.response_metadata = _metadata(event, choice)
        if choice.get("logprobs"):
            piece.response_metadata["logprobs"] = choice["logprobs"]
        if said is not None and not self._begun:
            self._begun = True
            self._first = choice.get("index")
        self._ended |= ends_now
        self._text += text
        return piece

    def _new_text(self, text: str, choice: JSON) -> str:
        """Return a piece's text, without the text so far if the piece repeats that.

        A server may repeat it in a whole message at the end, or in a long last piece.
        """
        if not self._begun:
            return text
        if choice.get("message") and not choice.get("delta"):
            return text[len(self._text) :] if text.startswith(self._text) else ""
        is_last = self._ended or ends(choice)
        repeats = is_last and len(text) >= _LONG_PIECE and text == self._text
        return "" if repeats else text


def _check_error(reply: JSON) -> None:
    """Raise for an error that came with status 200; an error object whose values are all empty is ignored."""
    error = reply.get("error")
    if isinstance(error, dict):
        if not any(error.values()):
            return
        kind = (
            RefusedReply if error.get("code") == "insufficient_quota" else BrokenReply
        )
        raise kind(f"the server replied with an error: {error.get('message', error)}")
    if error:
        raise BrokenReply(f"{_NO_REPLY}: {error}")


def _text_in(said: Any) -> str:
    """Return the text of a message or a part of one: a string, a list of parts, or an object that contains these.

    Return "" for tool calls and thoughts. Raises TypeError for another form.
    """
    if said is None:
        return ""
    if isinstance(said, str):
        return said
    if isinstance(said, list):
        return "".join(map(_text_in, said))
    if not isinstance(said, dict):
        raise TypeError(f"its text is {type(said).__name__}")
    if str(said.get("type")).startswith(_THOUGHTS):
        return ""
    text = next(
        (said[name] for name in ("content", "text", "value") if said.get(name)), ""
    )
    return _text_in(text)


def _beside_text(said: Any) -> dict[str, str]:
    """Return a message's refusal and its thoughts, which servers send under one of two names."""
    if not isinstance(said, dict):
        return {}
    texts = {
        "refusal": said.get("refusal"),
        THOUGHTS_KEY: said.get(THOUGHTS_KEY) or said.get("reasoning"),
    }
    return {
        name: text for name, text in texts.items() if isinstance(text, str) and text
    }


def _call_pieces(said: Any) -> Iterator[ToolCallChunk]:
    """Yield the pieces of tool calls in a message or in a streamed part of one."""
    for place, raw in enumerate(raw_calls(said)):
        name, arguments = name_and_arguments(raw)
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        identity = raw.get("id")
        yield tool_call_chunk(
            name=name or None,
            args=arguments,
            id=None if identity is None else str(identity),
            index=raw.get("index", place),
        )


def _usage(usage: Any) -> UsageMetadata | None:
    """Return a call's token counts in LangChain's form; None if the server does not report them."""
    read = _number(usage, "prompt_tokens")
    written = _number(usage, "completion_tokens")
    if not read and not written:
        return None
    counted = UsageMetadata(
        input_tokens=read, output_tokens=written, total_tokens=read + written
    )
    if cached := _number(usage.get("prompt_tokens_details"), "cached_tokens"):
        counted["input_token_details"] = {"cache_read": cached}
    if thought := _number(usage.get("completion_tokens_details"), "reasoning_tokens"):
        counted["output_token_details"] = {"reasoning": thought}
    return counted


def _number(usage: Any, name: str) -> int:
    """Return a token count; 0 if it is missing or not a positive number."""
    value = usage.get(name) if isinstance(usage, dict) else None
    if isinstance(value, (int, float)) and 0 < value < inf:  # False for NaN
        return int(value)
    return 0


def _metadata(reply: JSON, choice: JSON) -> JSON:
    about = {
        "finish_reason": choice.get("finish_reason"),
        "model_name": reply.get("model"),
        "id": reply.get("id"),
    }
    return {"model_provider": "openai"} | {
        name: value for name, value in about.items() if value is not None
    }

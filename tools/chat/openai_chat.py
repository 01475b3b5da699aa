"""A chat model behind any address that speaks OpenAI's protocol, as a model of LangChain's."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManager, AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.globals import get_llm_cache
from langchain_core.language_models.base import LangSmithParams, LanguageModelInput
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, convert_to_openai_messages
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCallChunk, invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field, PrivateAttr, SecretStr

from ras_agent.prompts.templates import THOUGHTS_KEY
from ras_agent.tools.chat.http import BrokenReply, Endpoint, RefusedReply, run, run_iterator
from ras_agent.tools.chat.tool_calls import calls_in_message

_PATH = "/chat/completions"
_ROLES = {"human": "user", "ai": "assistant", "system": "system"}
# what a caller may bind or give with a call, beside what the model's fields say
_NOT_SENT = frozenset(("ls_structured_output_format", "structured_output_format", "strict_tools"))


class OpenAIChat(BaseChatModel):
    """Chat model that asks a server over HTTP, with one small layer between LangChain's and the connection.

    model_name: the server's name of the model. base_url: up to /v1. timeout: seconds of a whole reply. limit_name: by
    which name a request limits its reply, "" for none. stream_usage: whether a stream is asked for its usage.
    model_kwargs: further fields of a request. default_headers: further headers, as of organisation and project.

    in_any_loop: no connection of one event loop is used by another, so every loop may ask. Retries are the caller's: an
    error is raised as it comes (ras_agent.tools.chat.http says which there are).
    """

    in_any_loop: ClassVar[bool] = True

    model_name: str = Field(alias="model")
    base_url: str
    api_key: SecretStr = SecretStr("")
    temperature: float | None = None
    max_tokens: int | None = None
    limit_name: str = "max_tokens"
    timeout: float | None = None
    stream_usage: bool = True
    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    default_headers: dict[str, str] = Field(default_factory=dict)
    _endpoint: Endpoint = PrivateAttr()

    model_config = ConfigDict(populate_by_name=True, protected_namespaces=())

    def model_post_init(self, context: Any, /) -> None:
        """Prepare for the server; nothing is asked."""
        super().model_post_init(context)
        self._endpoint = Endpoint.with_key(self.base_url, self.api_key.get_secret_value(), **self.default_headers)

    @property
    def _llm_type(self) -> str:
        return "openai-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name, "base_url": self.base_url} | self._sampling()

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return LangSmithParams(**{**super()._get_ls_params(stop, **kwargs), "ls_provider": "openai"})

    async def about(self) -> Mapping[str, Any]:
        """Return what the server's list says of this model, such as "owned_by"; {} for nothing. It is asked once."""
        return await self._endpoint.about(self.model_name)

    async def owner(self) -> str:
        """Return what the server's list says in "owned_by", such as "vllm" or "llamacpp"; "" for nothing."""
        return str((await self.about()).get("owned_by") or "")

    async def takes_continuation(self) -> bool:
        """Return whether a request can say that the reply goes on with its last message, as to vLLM and SGLang."""
        return await self.owner() in ("vllm", "sglang")

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | dict[str, Any] | bool | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with tools that it may call. tool_choice: "auto", "none", "any", or the name of one."""
        strict = kwargs.pop("strict", None)
        known = [convert_to_openai_tool(tool, strict=strict) for tool in tools]
        if tool_choice:
            kwargs["tool_choice"] = _tool_choice(tool_choice)
        return super().bind(tools=known, **kwargs)

    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, stop: Any = None, **kwargs: Any
    ) -> AIMessage:
        """Return the reply. Where no callback listens, LangChain's bookkeeping for them is left out."""
        config = ensure_config(config)
        plain = self.cache in (None, False) and get_llm_cache() is None and self.rate_limiter is None
        if not plain or self.output_version == "v1" or self._callbacks(config):
            return await super().ainvoke(input, config, stop=stop, **kwargs)
        body = self._body(self._convert_input(input).to_messages(), stop, kwargs)
        return _message(await self._endpoint.post(_PATH, body, self.timeout))

    def _callbacks(self, config: RunnableConfig) -> list[Any]:
        """Return the handlers that a call would tell of itself: those of the caller, and those of the process."""
        return AsyncCallbackManager.configure(config.get("callbacks"), self.callbacks, self.verbose).handlers

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return run(self._agenerate(messages, stop, **kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = await self._endpoint.post(_PATH, self._body(messages, stop, kwargs), self.timeout)
        return ChatResult(generations=[ChatGeneration(message=_message(reply))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield from run_iterator(self._astream(messages, stop, **kwargs))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[ChatGenerationChunk, None]:
        body = self._body(messages, stop, kwargs) | {"stream": True}
        if self.stream_usage:
            body["stream_options"] = {"include_usage": True}
        begun = False
        async for event in self._endpoint.events(_PATH, body, self.timeout):
            piece = _piece(event)
            begun |= bool(event["choices"])
            yield piece
        if not begun:
            raise BrokenReply("the reply does not have the form of one: it has no choices")

    def _body(
        self, messages: Sequence[BaseMessage], stop: list[str] | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return a request."""
        sent = {name: value for name, value in options.items() if name not in _NOT_SENT}
        if stop:
            sent["stop"] = stop
        return {"model": self.model_name, "messages": _as_sent(messages), **self._sampling(), **sent}

    def _sampling(self) -> dict[str, Any]:
        given: dict[str, Any] = dict(self.model_kwargs)
        if self.temperature is not None:
            given["temperature"] = self.temperature
        if self.max_tokens is not None and self.limit_name:
            given[self.limit_name] = self.max_tokens
        return given


def _tool_choice(choice: str | dict[str, Any] | bool) -> str | dict[str, Any]:
    """Return which tool a request says to call."""
    if choice is True or choice == "any":
        return "required"
    if isinstance(choice, str) and choice not in ("auto", "none", "required"):
        return {"type": "function", "function": {"name": choice}}
    return choice if isinstance(choice, dict) else str(choice)


def _as_sent(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return messages as OpenAI's protocol has them."""
    if all(type(message.content) is str and message.type in _ROLES for message in messages) and not any(
        getattr(message, "tool_calls", None) or message.name or message.additional_kwargs for message in messages
    ):
        return [{"role": _ROLES[message.type], "content": message.content} for message in messages]
    sent = convert_to_openai_messages(messages)
    for message, told in zip(messages, sent, strict=True):
        if thoughts := message.additional_kwargs.get(THOUGHTS_KEY):
            told[THOUGHTS_KEY] = thoughts
    return sent


# ---- replies


def _message(reply: Any) -> AIMessage:
    """Return the message of a whole reply.

    Raises BrokenReply for one of another form, RefusedReply where an account is used up.
    """
    _check_error(reply)
    try:
        choice = reply["choices"][0]
        said = choice["message"]
        calls, unread = calls_in_message(said)
        return AIMessage(
            content=_text(said),
            tool_calls=[tool_call(name=call.name, args=call.arguments, id=call.id) for call in calls],
            invalid_tool_calls=[
                invalid_tool_call(name=call.name, args=call.arguments["raw"], id=call.id, error="no JSON object")
                for call in unread
            ],
            usage_metadata=_usage(reply.get("usage")),
            response_metadata=_metadata(reply, choice),
            additional_kwargs=_beside_text(said),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BrokenReply(f"the reply does not have the form of one: {error}") from error


def _piece(event: Any) -> ChatGenerationChunk:
    """Return a piece of a streamed reply, or a whole one as a piece. Raises as `_message` does."""
    _check_error(event)
    if any("message" in choice for choice in event["choices"] or () if isinstance(choice, dict)):
        whole = _message(event)
        return ChatGenerationChunk(message=AIMessageChunk(**whole.model_dump(exclude={"type"})))
    try:
        choice = event["choices"][0] if event["choices"] else {}
        said = choice.get("delta") or {}
        message = AIMessageChunk(
            content=_text(said),
            tool_call_chunks=list(_call_pieces(said)),
            additional_kwargs=_beside_text(said),
            usage_metadata=_usage(event.get("usage")),
            response_metadata=_metadata(event, choice) if choice.get("finish_reason") else {},
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BrokenReply(f"the reply does not have the form of one: {error}") from error
    if choice.get("logprobs"):
        message.response_metadata["logprobs"] = choice["logprobs"]
    return ChatGenerationChunk(message=message)


def _check_error(reply: Any) -> None:
    """Raise for an error under a good status."""
    if not isinstance(reply, dict):
        raise BrokenReply(f"the reply does not have the form of one: it is {type(reply).__name__}")
    error = reply.get("error")
    if isinstance(error, dict):
        kind = RefusedReply if error.get("code") == "insufficient_quota" else BrokenReply
        raise kind(f"the server replied with an error: {error.get('message', error)}")
    if error or "choices" not in reply:
        raise BrokenReply(f"the reply does not have the form of one: {error or 'it has no choices'}")


def _text(said: Mapping[str, Any]) -> str:
    """Return the text of a message; "" where it only calls tools. Raises TypeError for another form."""
    text = said.get("content") or ""
    if isinstance(text, list):  # some servers send blocks
        text = "".join(block.get("text") or "" for block in text)
    if not isinstance(text, str):
        raise TypeError(f"its text is {type(text).__name__}")
    return text


def _beside_text(said: Mapping[str, Any]) -> dict[str, str]:
    """Return a message's refusal, and its thoughts, which servers have under one of two names."""
    texts = {"refusal": said.get("refusal"), THOUGHTS_KEY: said.get(THOUGHTS_KEY) or said.get("reasoning")}
    return {name: text for name, text in texts.items() if isinstance(text, str) and text}


def _call_pieces(said: Mapping[str, Any]) -> Iterator[ToolCallChunk]:
    """Yield the pieces of calls in a streamed part of a message."""
    raw_calls = said.get("tool_calls") or said.get("function_call") or ()
    if isinstance(raw_calls, Mapping):
        raw_calls = [raw_calls]
    for place, raw in enumerate(raw_calls):
        function = raw.get("function") or raw
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments)
        identity = raw.get("id")
        yield tool_call_chunk(
            name=function.get("name"),
            args=arguments,
            id=None if identity is None else str(identity),
            index=raw.get("index", place),
        )


def _usage(usage: Any) -> UsageMetadata | None:
    """Return the tokens of a call as LangChain has them. Raises TypeError for what are no numbers."""
    if usage is None:
        return None
    if not isinstance(usage, dict):
        raise TypeError(f"its usage is {type(usage).__name__}")
    read, written = _number(usage, "prompt_tokens"), _number(usage, "completion_tokens")
    counted = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
    if cached := _number(usage.get("prompt_tokens_details") or {}, "cached_tokens"):
        counted["input_token_details"] = {"cache_read": cached}
    if thought := _number(usage.get("completion_tokens_details") or {}, "reasoning_tokens"):
        counted["output_token_details"] = {"reasoning": thought}
    return counted


def _number(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name) or 0
    if not isinstance(value, (int, float)):
        raise TypeError(f"its {name} are {type(value).__name__}")
    return int(value)


def _metadata(reply: Mapping[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    about = {"finish_reason": choice.get("finish_reason"), "model_name": reply.get("model"), "id": reply.get("id")}
    if choice.get("logprobs"):
        about["logprobs"] = choice["logprobs"]
    return {"model_provider": "openai"} | {name: value for name, value in about.items() if value is not None}

"""Runs a GraphLLM with its language model on vLLM: the graph is encoded here, and the text is generated there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr, SecretStr

from ras_agent.contracts.errors import MissingExtra, ModelRefused
from ras_agent.contracts.records import Triple
from ras_agent.tools.chat.endings import kind_of, shortfall
from ras_agent.tools.chat.http import (
    BrokenReply,
    Endpoint,
    ErrorStatus,
    run,
    run_iterator,
)
from ras_agent.tools.chat.secrets import printable
from ras_agent.tools.graph_tokens.chat import GraphLLMChat, usage_of

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.graph_llm import Generated, GraphLLM

_PATH = "/completions"
_FLAG = "--enable-prompt-embeds"
_TIMEOUT = 60.0  # seconds, as for other models built from a string


class ServedGraphLLM(GraphLLMChat):
    """Replies like a GraphLLM whose language model is on a server, as a LangChain chat model.

        chat = ServedGraphLLM.at("/path", "http://host:8000/v1", "model")
        chat.invoke("Who was born where?", graph=[[Triple("Bell", "was born in", "Edinburgh")]])

    The server is `vllm serve MODEL --enable-prompt-embeds`, where MODEL is the language model of the folder. This
    process has the encoder, the projector and the language model's word vectors; it sends prompt embeddings. The
    other fields are GraphLLMChat's.
    """

    in_any_loop: ClassVar[bool] = True
    """True, since the model may be used from any event loop: each loop has its own connections."""

    base_url: str
    served: str
    """The name under which the server serves the model, or its adapter."""
    api_key: SecretStr
    timeout: float | None = _TIMEOUT
    _endpoint: Endpoint = PrivateAttr()

    def __init__(
        self,
        graph_llm: GraphLLM,
        model: str,
        base_url: str,
        served: str,
        key: str,
        **options: Any,
    ) -> None:
        """Take the GraphLLM that computes the prompts.

        Args:
            model: the model's name in traces.
            base_url: the server's address, up to /v1.
            served: the name under which the server serves the model, or its adapter.
            key: the server's API key.
        """
        super().__init__(
            graph_llm,
            model,
            base_url=base_url,
            served=served,
            api_key=SecretStr(key),
            **options,
        )
        if find_spec("aiohttp") is None:
            raise MissingExtra("a served GraphLLM", "openai")
        self._endpoint = Endpoint.with_key(base_url, key)

    @classmethod
    def at(
        cls,
        folder: str | Path,
        base_url: str,
        served: str,
        key: str = "EMPTY",
        **options: Any,
    ) -> ServedGraphLLM:
        """Load the encoder, projector and word vectors in a folder, once per process, for a language model on a
        server.

        Raises WeightsError for a folder without a GraphLLM, and MissingExtra without the packages of the extras
        `llm` and `openai`.

        Args:
            base_url: the server's address, up to /v1.
            served: the name under which the server serves the model, or its adapter.
            key: the server's API key.
        """
        return cls(
            _load_client(Path(folder).expanduser().resolve()),
            str(folder),
            base_url,
            served,
            key,
            **options,
        )

    async def about(self) -> Mapping[str, Any]:
        """Return the model's entry in the server's list of models; {} if there is no entry."""
        return await self._endpoint.about(self.served)

    async def owner(self) -> str:
        """Return "vllm", since only vLLM accepts prompt embeddings."""
        return "vllm"

    @property
    def model_name(self) -> str:
        """Return the server's name of the model, by which rate limits are counted together with the address."""
        return self.served

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        graph: Iterable[Sequence[Triple]] = (),
        **kwargs: Any,
    ) -> ChatResult:
        """Return a reply to messages.

        Args:
            graph: the facts of each sub-query.
        """
        return run(self._agenerate(messages, stop, graph=graph, **kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        graph: Iterable[Sequence[Triple]] = (),
        **kwargs: Any,
    ) -> ChatResult:
        """Return a reply like `_generate`, as a coroutine; the graph is encoded in a thread."""
        request = await asyncio.to_thread(self._request, messages, graph, stop) | _form(
            kwargs
        )
        with self._refusals_named():
            return self._result(
                _generated(await self._endpoint.post(_PATH, request, self._limit()))
            )

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        graph: Iterable[Sequence[Triple]] = (),
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        """Yield the pieces of a reply as they are generated."""
        yield from run_iterator(self._astream(messages, stop, graph=graph, **kwargs))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        graph: Iterable[Sequence[Triple]] = (),
        **kwargs: Any,
    ) -> AsyncGenerator[ChatGenerationChunk, None]:
        """Yield the pieces of a reply like `_stream`, asynchronously."""
        request = await asyncio.to_thread(
            self._request, messages, graph, stop, stream=True
        ) | _form(kwargs)
        pieces = _Pieces(self.model)
        with self._refusals_named():
            async for piece in self._endpoint.events(_PATH, request, self._limit()):
                yield pieces.chunk(piece)

    def _request(
        self,
        messages: list[BaseMessage],
        graph: Iterable[Sequence[Triple]],
        stop: list[str] | None,
        *,
        stream: bool = False,
    ) -> dict[str, Any]:
        """Return the body of a request."""
        from ras_agent.tools.graph_tokens.prompt_embeds import completion_request

        vectors = self.graph_llm.prompt_embeddings(*self._inputs(messages, graph))
        limits: dict[str, Any] = {
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
        }
        return completion_request(
            self.served, vectors, **limits, stop=stop or (), stream=stream
        )

    def _limit(self) -> float | None:
        """Return the seconds that a reply may take; None for no limit."""
        seconds = self._seconds()
        if seconds == inf:
            return None
        return seconds

    @contextmanager
    def _refusals_named(self) -> Iterator[None]:
        """Raise ModelRefused, with advice, for an error that any other request would meet too."""
        try:
            yield
        except ErrorStatus as error:
            where = f"{printable(self.base_url)}#{self.served}"
            why = str(error)
            if error.status_code != 400:
                raise
            if _FLAG in why:
                remedy = f"start it with `vllm serve MODEL {_FLAG}`"
                raise ModelRefused(
                    f"the server at {where} does not accept prompt embeddings; {remedy}"
                ) from error
            if "hidden_size" in why:
                remedy = f"let it serve {self.graph_llm.config.language_model}"
                raise ModelRefused(
                    f"{where} is not the language model of {self.model}: {why}; {remedy}"
                ) from error
            raise


def _form(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options of a request that enforce its reply's form."""
    return {
        name: value for name, value in options.items() if name == "structured_outputs"
    }


class _Pieces:
    """Converts a streamed reply's pieces to LangChain's chunks, without white space around the reply."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._has_text = False
        self._space = ""

    def chunk(self, piece: Any) -> ChatGenerationChunk:
        """Return a piece as a chunk. Raises BrokenReply for a piece of another form."""
        try:
            choice = next(iter(piece["choices"]), None)
            usage = piece.get("usage")
            text = self._space + (choice["text"] if choice else "")
            ending = choice.get("finish_reason") if choice else None
            if usage:
                tokens = (
                    usage.get("prompt_tokens") or 0,
                    usage.get("completion_tokens") or 0,
                )
            else:
                tokens = None
        except (AttributeError, LookupError, TypeError) as error:
            raise BrokenReply(
                f"a piece of the reply does not have the form of OpenAI's protocol: {error}"
            ) from error
        text = text if self._has_text else text.lstrip()
        stripped = text.rstrip()
        self._has_text = self._has_text or bool(stripped)
        self._space = text[len(stripped) :]
        message = AIMessageChunk(content=stripped)
        if ending:
            message.response_metadata = {
                "finish_reason": ending,
                "model_name": self._model,
            }
        if tokens:
            message.usage_metadata = usage_of(*tokens)
        return ChatGenerationChunk(message=message)


def _generated(completion: Any) -> Generated:
    """Return a server's completion as a Generated. Raises BrokenReply if it has another form or was broken off."""
    from ras_agent.tools.graph_tokens.graph_llm import Generated

    try:
        (choice,), usage = completion["choices"], completion.get("usage") or {}
        input_tokens = usage.get("prompt_tokens") or 0
        output_tokens = usage.get("completion_tokens") or 0
        ending = choice.get("finish_reason") or ""
        if kind_of(ending) == "broken off":
            raise BrokenReply(shortfall(ending))
        return Generated(
            choice["text"].strip(), input_tokens, output_tokens, ending == "length"
        )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise BrokenReply(
            f"the reply does not have the form of OpenAI's protocol: {error}"
        ) from error


@cache
def _load_client(folder: Path) -> GraphLLM:
    try:
        from ras_agent.tools.graph_tokens.graph_llm import GraphLLM
    except ImportError as error:
        raise MissingExtra("a GraphLLM", "llm") from error
    return GraphLLM.load(folder, words_only=True)

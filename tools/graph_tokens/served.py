"""Runs a GraphLLM with its language model on vLLM: the graph is encoded here, and the text is generated there.

vLLM (`vllm serve ... --enable-prompt-embeds`) reads vectors in place of a prompt's tokens in the field `prompt_embeds`
of its Completions API. tests/tools/graph_tokens/vllm_requests.json lists the versions of vLLM that were checked.
"""

from __future__ import annotations

import asyncio
import io
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from langchain_core.messages import AIMessageChunk, BaseMessage
from pydantic import PrivateAttr, SecretStr

from ras_agent.contracts.errors import MissingExtra, ModelRefused, needs_extra
from ras_agent.contracts.records import JSON, without_none
from ras_agent.tools.chat.http import ErrorStatus
from ras_agent.tools.chat.openai_chat import OpenAIChat
from ras_agent.tools.chat.secrets import printable
from ras_agent.tools.graph_tokens.chat import MOST_TOKENS, model_inputs

if TYPE_CHECKING:
    from torch import Tensor

    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

_FLAG = "--enable-prompt-embeds"
_TIMEOUT = 60.0  # seconds, as for other models built from a string
_FORM = "structured_outputs"


class ServedGraphLLM(OpenAIChat):
    """Replies like a GraphLLM whose language model is on a server, as a LangChain chat model.

        chat = ServedGraphLLM.at("/path", "http://host:8000/v1", "model")
        chat.invoke("Who was born where?", graph=[[Triple("Bell", "was born in", "Edinburgh")]])

    The server is `vllm serve MODEL --enable-prompt-embeds`, where MODEL is the language model of the folder. This
    process has the encoder, the projector and the language model's word vectors; it sends prompt embeddings.
    """

    path: ClassVar[str] = "/completions"

    folder: str
    """The folder of the GraphLLM."""
    max_tokens: int | None = MOST_TOKENS
    """The maximum number of tokens of a reply."""
    temperature: float | None = 0.0
    timeout: float | None = _TIMEOUT
    reads_graphs: bool = True
    """Whether the graph tokens are used; if not, the model sees only the text."""
    _graph_llm: Any = PrivateAttr()

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
        graph_llm = _load_client(Path(folder).expanduser().resolve())
        if find_spec("aiohttp") is None:
            raise MissingExtra("a served GraphLLM", "openai")
        # a cache distinguishes replies of different weights in a folder by model_kwargs, which is not sent
        fields = {
            "model_name": served,
            "base_url": base_url,
            "api_key": SecretStr(key),
            "folder": str(folder),
            "profile": {"max_input_tokens": graph_llm.window},
            "model_kwargs": {
                "graphllm": str(folder),
                "weights": graph_llm.fingerprint,
            },
            **options,
        }
        chat = cls(**fields)
        chat._graph_llm = graph_llm
        return chat

    @property
    def graph_llm(self) -> GraphLLM:
        """Return the GraphLLM that computes the prompts."""
        return cast("GraphLLM", self._graph_llm)

    async def owner(self) -> str:
        """Return "vllm", since only vLLM accepts prompt embeddings."""
        return "vllm"

    def _body(
        self, messages: Sequence[BaseMessage], stop: list[str] | None, options: JSON
    ) -> JSON:
        """Return a request's fields. In place of the prompt's vectors it has `messages` and `graph`, of which
        `_pieces` computes them.
        """
        fields = {
            "model": self.model_name,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "stop": stop or None,
            _FORM: options.get(_FORM),
        }
        graph = options.get("graph", ()) if self.reads_graphs else None
        return {**without_none(fields), "messages": messages, "graph": graph}

    async def _pieces(self, body: JSON) -> AsyncGenerator[AIMessageChunk]:
        messages = body.pop("messages")
        graph = body.pop("graph")

        def vectors() -> str:
            inputs = model_inputs(self.graph_llm, messages, graph)
            return encoded(self.graph_llm.prompt_embeddings(*inputs))

        body["prompt_embeds"] = await asyncio.to_thread(vectors)
        with self._refusals_named():
            async for piece in _stripped(super()._pieces(body)):
                yield piece

    @contextmanager
    def _refusals_named(self) -> Iterator[None]:
        """Raise ModelRefused, with advice, for an error that any other request would meet too."""
        try:
            yield
        except ErrorStatus as error:
            where = f"{printable(self.base_url)}#{self.model_name}"
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
                    f"{where} is not the language model of {self.folder}: {why}; {remedy}"
                ) from error
            raise


async def _stripped(
    pieces: AsyncIterable[AIMessageChunk],
) -> AsyncGenerator[AIMessageChunk]:
    """Yield a reply's pieces without the white space around the reply."""
    begun = False
    space = ""
    async for piece in pieces:
        text = f"{space}{piece.text}"
        if not begun:
            text = text.lstrip()
        piece.content = text.rstrip()
        space = text[len(piece.content) :]
        begun = begun or bool(piece.content)
        yield piece


def encoded(vectors: Tensor) -> str:
    """Return a prompt's vectors, shape (tokens, width), in vLLM's form: the base64 string of a tensor that
    `torch.save` wrote, and that vLLM loads with `weights_only=True`.

    The string has width x bytes per number x 4/3 characters for each token.
    """
    import torch

    # vLLM before 0.22 accepts no others
    if vectors.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        vectors = vectors.float()
    buffer = io.BytesIO()
    # cloned, as torch.save would write the whole storage of a view
    own = vectors.detach().cpu().clone(memory_format=torch.contiguous_format)
    torch.save(own, buffer)
    return b64encode(buffer.getvalue()).decode("ascii")


@cache
def _load_client(folder: Path) -> GraphLLM:
    with needs_extra("a GraphLLM", "llm"):
        from ras_agent.tools.graph_tokens.graph_llm import GraphLLM
    return GraphLLM.load(folder, words_only=True)

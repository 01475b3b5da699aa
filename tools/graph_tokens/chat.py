"""Wraps a GraphLLM as a LangChain chat model, which takes the facts of a question's graph with the messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import inf
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, cast

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from ras_agent.contracts.errors import needs_extra
from ras_agent.contracts.records import Triple
from ras_agent.prompts import Turn
from ras_agent.running.budget import current_ledger

if TYPE_CHECKING:
    from ras_agent.contracts.graph_batch import GraphFeatures
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "human": "user",
    "ai": "assistant",
}
MOST_TOKENS = 512


class GraphLLMChat(BaseChatModel):
    """Runs a GraphLLM in this process, as a LangChain chat model.

        chat = GraphLLMChat.in_folder("/path")
        chat.invoke("Who was born where?", graph=[[Triple("Bell", "was born in", "Edinburgh")]])

    Calls run one after another; for many users at once, serve the language model with vLLM.
    """

    model: str
    """The folder, which is also the model's name."""
    max_tokens: int = MOST_TOKENS
    """The maximum number of tokens of a reply."""
    temperature: float = 0.0
    timeout: float | None = None
    """The maximum number of seconds of a reply; None for no limit."""
    reads_graphs: bool = True
    """Whether the graph tokens are used; if not, the model sees only the text."""
    _graph_llm: Any = PrivateAttr()
    _lock: Any = PrivateAttr()

    def __init__(
        self, graph_llm: GraphLLM, model: str = "graphllm", **options: Any
    ) -> None:
        """Wrap a GraphLLM under a name."""
        fields = {
            "model": model,
            "profile": {"max_input_tokens": graph_llm.window},
            **options,
        }
        super().__init__(**fields)
        self._graph_llm = graph_llm
        self._lock = Lock()

    @classmethod
    def in_folder(cls, folder: str | Path, **options: Any) -> GraphLLMChat:
        """Load the GraphLLM in a folder as a chat model, on a GPU if there is one. It is loaded once per process.

        Raises WeightsError for a folder without one, and MissingExtra without the packages of the extra `llm`.
        """
        graph_llm, lock = _load_once(Path(folder).expanduser().resolve())
        chat = cls(graph_llm, str(folder), **options)
        chat._lock = lock
        return chat

    @property
    def graph_llm(self) -> GraphLLM:
        """Return the wrapped GraphLLM."""
        return cast("GraphLLM", self._graph_llm)

    @property
    def folder(self) -> str:
        """Return the folder of the GraphLLM."""
        return self.model

    @property
    def model_kwargs(self) -> dict[str, Any]:
        """Return the folder and a digest of the weights, so that a cache distinguishes replies of different weights in
        a folder.
        """
        return {"graphllm": self.model, "weights": self.graph_llm.fingerprint}

    @property
    def _llm_type(self) -> str:
        return "graphllm"

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
            stop: not supported; the model itself ends its replies.
        """
        turns, features = model_inputs(
            self.graph_llm, messages, graph if self.reads_graphs else None
        )
        seconds = min(self.timeout or inf, current_ledger().seconds_left())
        # generating in two threads at once would take twice the memory
        with self._lock:
            (reply,) = self.graph_llm.generate(
                [turns],
                [features],
                self.max_tokens,
                self.temperature,
                None if seconds == inf else seconds,
            )
        usage = UsageMetadata(
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            total_tokens=reply.input_tokens + reply.output_tokens,
        )
        message = AIMessage(
            reply.text,
            usage_metadata=usage,
            response_metadata={
                "finish_reason": "length" if reply.truncated else "stop",
                "model_name": self.model,
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def model_inputs(
    graph_llm: GraphLLM,
    messages: Sequence[BaseMessage],
    graph: Iterable[Sequence[Triple]] | None,
) -> tuple[list[Turn], GraphFeatures | None]:
    """Return messages and facts in the form in which a GraphLLM takes them.

    Args:
        graph: the facts of each sub-query; None for a prompt without graph tokens.
    """
    turns = [
        Turn(_ROLES.get(message.type, "user"), str(message.text))
        for message in messages
    ]
    if graph is None:
        return turns, None
    return turns, graph_llm.vectors.of_steps(map(_texts, graph))


def _texts(facts: Sequence[Triple]) -> list[tuple[str, str, str]]:
    return [(fact.subject, fact.predicate, fact.object) for fact in facts]


@cache
def _load_once(folder: Path) -> tuple[GraphLLM, Lock]:
    with needs_extra("a GraphLLM", "llm"):
        import torch

        from ras_agent.tools.graph_tokens.graph_llm import GraphLLM
    return GraphLLM.load(folder).to(
        "cuda" if torch.cuda.is_available() else "cpu"
    ), Lock()

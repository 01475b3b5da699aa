"""Fixtures that tests of several folders use."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pytest

from ras_agent.tools.encode.chat import ChatSettings
from ras_agent.tools.encode.chat_limits import Clock
from ras_agent.tools.encode.chat_retry import RetryPolicy


class ScriptedLLM:
    """A test's own corner of the loopback server; see tests/loopback_llm.py for what a script can say."""

    def __init__(self, port: int) -> None:
        self.root = f"http://127.0.0.1:{port}/{uuid4().hex}"
        self.base_url = f"{self.root}/v1"
        self.spec = f"vllm:{self.base_url}#scripted"

    def script(self, *entries: dict[str, Any]) -> None:
        """Add entries to the script."""
        self._http("PUT", json.dumps(entries).encode())

    def requests(self) -> list[dict[str, Any]]:
        """The JSON bodies received so far, in order."""
        received: list[dict[str, Any]] = self._http("GET")
        return received

    def _http(self, method: str, body: bytes | None = None) -> Any:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(urllib.request.Request(self.root, data=body, method=method)) as response:
            return json.load(response)


@pytest.fixture(scope="session")
def loopback_port() -> Iterator[int]:
    """The port of a loopback_llm.py process that lives as long as the session."""
    command = [sys.executable, str(Path(__file__).parent / "loopback_llm.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.stdin.close()


class PassingTime:
    """A clock that waits by moving on."""

    def __init__(self) -> None:
        self.time = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


@pytest.fixture
def passing_time() -> PassingTime:
    """Time that passes at once; `waits` lists how much of it did."""
    return PassingTime()


@pytest.fixture
def settings(passing_time: PassingTime) -> ChatSettings:
    """Settings of model calls with which nothing really waits, and backoff has no jitter."""
    clock = Clock(passing_time.now, passing_time.sleep, passing_time.asleep)
    return ChatSettings(timeout=5.0, retry=RetryPolicy(attempts=3, jitter=lambda: 1.0), clock=clock)


@pytest.fixture(scope="session")
def scripted_model() -> Callable[..., Any]:
    """`scripted_model(*replies)`: a chat model that gives the replies in order, or by what they answer.

    A reply is a text, an exception to raise, or a pair (text in the prompt, reply) that may be used many times; the
    reply of a pair may be a function of the prompt. The prompts it was sent, each turn "role: text", are in `prompts`.
    """
    from langchain_core.language_models.chat_models import BaseChatModel  # here, for it takes most of a second
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class ScriptedModel(BaseChatModel):
        replies: list[Any]
        prompts: list[str]
        model: str = "scripted"

        @property
        def _llm_type(self) -> str:
            return "scripted"

        def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
            prompt = "\n".join(f"{message.type}: {message.text}" for message in messages)
            self.prompts.append(prompt)
            reply = next(reply for reply in self.replies if not isinstance(reply, tuple) or reply[0] in prompt)
            if isinstance(reply, tuple):
                reply = reply[1](prompt) if callable(reply[1]) else reply[1]
            else:
                self.replies.remove(reply)
            if isinstance(reply, Exception):
                raise reply
            words = len(prompt.split()), len(reply.split())
            usage = {"input_tokens": words[0], "output_tokens": words[1], "total_tokens": sum(words)}
            return ChatResult(generations=[ChatGeneration(message=AIMessage(reply, usage_metadata=usage))])

    return lambda *replies: ScriptedModel(replies=list(replies), prompts=[])


@pytest.fixture
def scripted_llm(loopback_port: int, monkeypatch: pytest.MonkeyPatch) -> ScriptedLLM:
    """A chat model behind real HTTP, to be scripted by the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return ScriptedLLM(loopback_port)


class HashEmbedder:
    """Bags of words, each hashed to a direction: texts that share words are near each other. Counts what it embeds."""

    name = "hash"
    dimension = 64

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.texts.extend(texts)
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.lower().split():
                vector += _direction(word.strip(".,"), self.dimension)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def _direction(word: str, dimension: int) -> npt.NDArray[np.float32]:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=dimension // 8).digest()
    return np.unpackbits(np.frombuffer(digest, dtype=np.uint8)).astype(np.float32) * 2 - 1


@pytest.fixture
def hash_embedder() -> HashEmbedder:
    """An embedder without a model."""
    return HashEmbedder()

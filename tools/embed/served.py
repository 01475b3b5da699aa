"""Embeds texts by servers that speak OpenAI's protocol, as OpenAI, vLLM, TEI and Ollama do.

Texts are sent as texts, not as tokens, so no tokenizer is downloaded and every server understands them.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from pydantic import SecretStr

from ras_agent.contracts.arrays import Floats, unit_rows
from ras_agent.contracts.errors import IndexMismatch, SettingsError
from ras_agent.tools.chat.deadline import Clock
from ras_agent.tools.chat.http import MOST_BYTES_OF_VECTORS, BrokenReply
from ras_agent.tools.chat.model_server import ModelServer
from ras_agent.tools.chat.models import server_address
from ras_agent.tools.chat.retry import RetryPolicy
from ras_agent.tools.chat.secrets import printable

PROVIDERS = ("openai", "vllm", "ollama")
_OPENAI = "https://api.openai.com/v1"
_OLLAMA = "http://127.0.0.1:11434"
# TEI accepts 32 texts in a request unless it is configured otherwise; OpenAI accepts 300,000 tokens
_MOST_TEXTS = 32
_MOST_CHARACTERS = 200_000
_AT_ONCE = 4
# status codes for a batch that is too large
_SPLIT = frozenset((400, 413, 422))
_TOO_LONG = (
    "context length",
    "maximum input length",
    "max_seq_len",
    "too long",
    "too many tokens",
    "must have less than",
)


@dataclass(frozen=True, slots=True)
class Server:
    """Holds a model's address: the URL up to /v1, the model's name, the key, and the environment variables that set key
    and address.
    """

    url: str
    model: str
    key: SecretStr
    key_variable: str
    address_variable: str


def is_served(spec: str) -> bool:
    """Return whether an embedder's name belongs to a model on a server."""
    return spec.partition(":")[0] in PROVIDERS


def same_model(name: str, other: str) -> bool:
    """Return whether two names of embedders refer to the same model, wherever it is served."""
    if name == other:
        return True
    return (
        is_served(name)
        and is_served(other)
        and _model_in(name) == _model_in(other) != ""
    )


def server_of(spec: str, index: str = "") -> Server:
    """Return the server that an embedder's name and the environment define.

        openai:NAME                 OPENAI_BASE_URL, else OpenAI; OPENAI_API_KEY
        vllm:http://HOST/v1#NAME    that server; VLLM_API_KEY, if it needs one
        ollama:NAME                 OLLAMA_HOST, else this machine

    Args:
        spec: the name of the embedder.
        index: the path or address of the index, if the name was read from an index and not given by the user. The
            address of vllm in such a name is not trusted with VLLM_API_KEY: set VLLM_BASE_URL, which replaces it.

    Raises:
        SettingsError: if the server is not defined, or its address may not be used.
    """
    provider, _, name = spec.partition(":")
    if provider == "openai":
        url = os.environ.get("OPENAI_BASE_URL", "")
        key = os.environ.get("OPENAI_API_KEY", "")
        if not url and not key:
            raise SettingsError(
                f"embedder {spec!r} needs a key or a server: set OPENAI_API_KEY, or OPENAI_BASE_URL to your server's address"
            )
        return Server(
            url or _OPENAI,
            name,
            SecretStr(key or "EMPTY"),
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
        )
    if provider == "ollama":
        return Server(
            ollama_url(os.environ.get("OLLAMA_HOST", "")),
            name,
            SecretStr("ollama"),
            "OLLAMA_API_KEY",
            "OLLAMA_HOST",
        )
    moved = os.environ.get("VLLM_BASE_URL", "") if index else ""
    url, name, key = server_address(
        f"{moved}#{_model_in(spec)}" if moved else name, "vllm:"
    )
    if "@" in urlsplit(url).netloc or urlsplit(url).query:
        raise SettingsError(
            f"embedder {printable(spec)!r}: the address is stored in the index, so it must hold no password: put the "
            "key into VLLM_API_KEY"
        )
    if index and not moved and os.environ.get("VLLM_API_KEY"):
        raise SettingsError(
            f"{index} names the server {url}, and VLLM_API_KEY is not sent to a server that only an index names: set "
            f"VLLM_BASE_URL={url} if you trust it, or unset VLLM_API_KEY"
        )
    return Server(
        url, name, SecretStr(key), "VLLM_API_KEY", "VLLM_BASE_URL" if index else ""
    )


class ServedEmbedder:
    """Embeds texts by a model on a server. Thread safe; nothing is sent before the first text."""

    def __init__(
        self,
        server: Server,
        *,
        name: str,
        unit_length: bool = True,
        dimension: int | None = None,
        retry: RetryPolicy | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Prepare to call a server. Raises MissingExtra if the package `aiohttp` is not installed.

        Args:
            name: the name that indexes store.
            unit_length: whether vectors are scaled to length 1.
            dimension: the vectors' width if it is known, as from an index; otherwise a word is embedded to find
                out.
            retry: when a failed call is tried again; by default `RetryPolicy()`.
        """
        self.name = name
        self._server = server
        self._unit_length = unit_length
        self._width = dimension
        self._retry = retry
        self._clock = clock
        address_remedy = ""
        if server.address_variable:
            address_remedy = f"{server.address_variable} says where it is"
        self._asked = ModelServer(
            f"embedder {name!r}",
            server.url,
            server.key,
            retry=retry,
            clock=clock,
            key_remedy=f"set {server.key_variable} to a key that the server accepts",
            address_remedy=address_remedy,
        )

    def scaled(self) -> ServedEmbedder:
        """Return an embedder of this model with vectors of length 1."""
        if self._unit_length:
            return self
        name = self.name.partition("unscaled:")[2]
        return ServedEmbedder(
            self._server,
            name=name,
            dimension=self._width,
            retry=self._retry,
            clock=self._clock,
        )

    @property
    def dimension(self) -> int:
        """Return the width of the vectors; if it is not known, the first call embeds a word. Raises as `embed` does."""
        if self._width is None:
            self._width = len(self._batch_vectors(["dimension"])[0])
        return self._width

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return vectors, shape (len(texts), dimension), float32.

        Raises:
            ModelCallError: if a call fails.
            ModelRefused: if the server cannot be reached, refuses the key or does not know the model.
            IndexMismatch: for vectors of another width than before.
        """
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        batches = _batches(texts)
        if len(batches) == 1:
            parts = [self._batch_vectors(batches[0])]
        else:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                parts = list(pool.map(self._batch_vectors, batches))
        vectors = np.concatenate(parts)
        return scaled_rows(vectors, self._unit_length)

    def _batch_vectors(self, texts: list[str]) -> Floats:
        """Return the vectors of one batch; if the server refuses so many texts, halve the batch."""
        try:
            vectors = self._request(texts)
        except Exception as error:
            if len(texts) > 1 and getattr(error, "status_code", None) in _SPLIT:
                half = len(texts) // 2
                return np.concatenate(
                    [
                        self._batch_vectors(texts[:half]),
                        self._batch_vectors(texts[half:]),
                    ]
                )
            raise self._asked.error_of(error, partial(_remedy, texts)) from None
        width = self._width = self._width or vectors.shape[1]
        if vectors.shape[1] != width:
            raise IndexMismatch(
                f"{self._asked.label} makes vectors of {vectors.shape[1]} numbers, and made vectors of {width} before: "
                "serve the model that the index was built with, or build the index again"
            )
        return vectors

    def _request(self, texts: list[str]) -> Floats:
        body = {
            "model": self._server.model,
            "input": [text or " " for text in texts],  # servers refuse empty texts
            "encoding_format": "float",
        }
        read = partial(_vectors, count=len(texts))
        return self._asked.ask("/embeddings", body, read, MOST_BYTES_OF_VECTORS)


def _remedy(texts: list[str], message: str) -> str:
    """Return advice if a message says that a text is too long, or ""."""
    if any(words in message for words in _TOO_LONG):
        return f"the text that begins {texts[0][:40]!r} is too long for the model: cut shorter chunks, --chunk-size"
    return ""


def _vectors(reply: Any, count: int) -> Floats:
    """Return the vectors in a reply, in the order of the texts. Raises BrokenReply unless there is one for each text."""
    rows = {}
    try:
        for item in reply["data"]:
            rows[item["index"]] = _numbers(item["embedding"])
        if len(reply["data"]) != count or set(rows) != set(range(count)):
            raise BrokenReply(
                f"the reply has {len(reply['data'])} vectors for {count} texts"
            )
        vectors = np.array([rows[place] for place in range(count)], dtype=np.float32)
    except (LookupError, TypeError, ValueError) as error:
        raise BrokenReply(f"the reply holds no vectors: {error}") from error
    if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
        raise BrokenReply(
            "the reply holds vectors of different widths, or with values that are not numbers"
        )
    return vectors


def _numbers(embedding: Any) -> Any:
    """Return the numbers of a vector; some servers always send OpenAI's base64."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding), dtype="<f4")
    return embedding


def _batches(texts: Sequence[str]) -> list[list[str]]:
    batches: list[list[str]] = [[]]
    characters = 0
    for text in texts:
        if batches[-1] and (
            len(batches[-1]) == _MOST_TEXTS or characters + len(text) > _MOST_CHARACTERS
        ):
            batches.append([])
            characters = 0
        batches[-1].append(text)
        characters += len(text)
    return batches


def _model_in(spec: str) -> str:
    provider, _, name = spec.partition(":")
    if provider == "vllm":
        return name.partition("#")[2]
    return name


def scaled_rows(vectors: Any, unit_length: bool) -> Floats:
    """Return vectors as float32, scaled to length 1 if `unit_length`; a row of zeros stays zero."""
    rows: Floats = np.asarray(vectors, dtype=np.float32)
    if not unit_length:
        return rows
    return unit_rows(rows)


def ollama_url(address: str) -> str:
    """Return the address up to /v1 for a value of OLLAMA_HOST, which may be just a host. Raises SettingsError for an
    invalid one.
    """
    address = address.strip() or _OLLAMA
    parts = urlsplit(address if "://" in address else f"http://{address}")
    try:
        port = parts.port or 11434
    except ValueError as error:
        raise SettingsError(
            f"OLLAMA_HOST={address!r}: {error}; write it as 127.0.0.1:11434"
        ) from None
    host = parts.hostname or "127.0.0.1"
    # servers listen on 0.0.0.0, but clients cannot connect to it
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(
        host, f"[{host}]" if ":" in host else host
    )
    return (
        f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/').removesuffix('/v1')}/v1"
    )

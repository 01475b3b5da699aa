"""Embedders by name or object: the packaged MiniLM, any sentence-transformers model, any LangChain Embeddings.

An embedder may add `embed_query(text)`, a unit vector of shape (dimension,), where its model treats queries and
passages differently; `query_vector` uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.errors import MissingExtra, ModelCallError, SettingsError, UnknownName
from ras_agent.protocols import Embedder
from ras_agent.tools.chat.http import openai_clients
from ras_agent.tools.chat.models import without_secrets
from ras_agent.tools.chat.retry import diagnosis

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.embeddings import Embeddings

_SECONDS = 60.0  # for a request of an embedder behind an API
_KNOWN = ("minilm", "st:<model or path>", "<provider>:<model>")


def resolve_embedder(spec: object) -> Embedder:
    """Return the embedder that `spec` names.

    spec: an Embedder; a LangChain Embeddings object; a SentenceTransformer; or a name: "minilm" (packaged, extra
        `offline`), "st:all-mpnet-base-v2" or "st:/path" (sentence-transformers, extra `embeddings`),
        "openai:text-embedding-3-small" and whatever else LangChain's init_embeddings takes.
    Raises UnknownName, MissingExtra, SettingsError, or TypeError for an object that does not embed.
    """
    if isinstance(spec, str):
        return _named(spec)
    if _is_instance(spec, "langchain_core.embeddings", "Embeddings"):
        return LangChainEmbedder(cast("Embeddings", spec))
    if _is_instance(spec, "sentence_transformers", "SentenceTransformer"):
        return SentenceTransformerEmbedder(spec)
    if isinstance(spec, type) or not (hasattr(spec, "name") and hasattr(spec, "embed")):
        raise TypeError(f"an embedder has a name, a dimension and the method `embed(texts)`, got {spec!r:.200}")
    return cast(Embedder, spec)


def query_vector(embedder: Embedder, query: str) -> Floats:
    """Return a query's unit vector, shape (dimension,), by `embed_query` if the embedder has it."""
    embed_query = getattr(embedder, "embed_query", None)
    vector = embed_query(query) if embed_query else embedder.embed([query])[0]
    return np.asarray(vector, dtype=np.float32)


class SentenceTransformerEmbedder:
    """Embeds with a sentence-transformers model and its query and document prompts. Loads at the first text."""

    def __init__(self, model: str | Path | Any, *, name: str = "", batch_size: int = 64) -> None:
        """Take a model's name, a folder, or a SentenceTransformer; `name` is the name that indexes store."""
        named = isinstance(model, str) or hasattr(model, "__fspath__")
        self._path = str(model) if named else _path_of(model)
        self._model: Any = None if named else model
        self._batch_size = batch_size
        self.name = name or f"st:{self._path}"
        self._lock = Lock()  # its tokenizer serves one thread at a time
        self._width: int | None = None

    @property
    def dimension(self) -> int:
        """Return the width of the vectors; the first call loads the model and embeds a word."""
        if self._width is None:
            with self._lock:
                self._width = len(self._encode("encode_document", ["dimension"])[0])
        return self._width

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors of passages, shape (len(texts), dimension), float32."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        with self._lock:
            return self._encode("encode_document", list(texts))

    def embed_query(self, text: str) -> Floats:
        """Return the unit vector of a query, shape (dimension,)."""
        with self._lock:
            vector: Floats = self._encode("encode_query", [text])[0]
            return vector

    def _encode(self, method: str, texts: list[str]) -> Floats:
        if self._model is None:
            self._model = _load(self._path)
        encode = getattr(self._model, method, self._model.encode)  # before version 5 there is only `encode`
        clean = [text.encode("utf-8", "replace").decode() for text in texts]  # tokenizers take no lone surrogates
        return _unit(encode(clean, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True))


class LangChainEmbedder:
    """Embeds with any LangChain Embeddings object."""

    def __init__(self, embeddings: Embeddings, *, name: str = "") -> None:
        """Wrap the object; `name` is the name that indexes store, by default its class and model."""
        self._embeddings = embeddings
        self._width: int | None = None
        model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
        self.name = name or ":".join(filter(None, (type(embeddings).__name__, model if isinstance(model, str) else "")))

    @property
    def dimension(self) -> int:
        """Return the width of the vectors; the first call embeds a word to find out."""
        if self._width is None:
            self._width = len(self.embed_query("dimension"))
        return self._width

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors of passages, shape (len(texts), dimension), float32. Raises ModelCallError."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return _unit(self._call("embed_documents", list(texts)))

    def embed_query(self, text: str) -> Floats:
        """Return the unit vector of a query, shape (dimension,). Raises ModelCallError."""
        vector: Floats = _unit([self._call("embed_query", text)])[0]
        return vector

    def _call(self, method: str, argument: object) -> Any:
        try:
            return getattr(self._embeddings, method)(argument)
        except Exception as error:
            why = diagnosis(error)
            shown = without_secrets(f"{error}: {why}" if why else str(error), self._embeddings)
            raise ModelCallError(f"embedder {self.name!r} failed: {type(error).__name__}: {shown}") from None


def _named(spec: str) -> Embedder:
    provider, _, model = spec.partition(":")
    if spec == "minilm":
        from ras_agent.tools.embed.minilm import MiniLMEmbedder

        return MiniLMEmbedder()
    if not model:
        raise UnknownName("embedder", spec, _KNOWN)
    if provider == "st":
        return SentenceTransformerEmbedder(model, name=spec)
    try:
        from langchain.embeddings import init_embeddings

        return LangChainEmbedder(init_embeddings(spec, **_client_options(provider)), name=spec)
    except ImportError as error:
        raise SettingsError(f"embedder {spec!r} needs its provider's package: {error}") from error
    except Exception as error:
        raise SettingsError(f"cannot set up the embedder {spec!r}: {without_secrets(str(error))}") from None


def _client_options(provider: str) -> dict[str, Any]:
    """Return the options by which OpenAI's embedder bounds its replies; those of others are left to their packages."""
    if provider != "openai" or not (clients := openai_clients()):
        return {}
    return {
        "timeout": _SECONDS,
        "http_client": clients["http_client"],
        "http_async_client": clients["http_async_client"],
    }


def _is_instance(thing: object, module: str, name: str) -> bool:
    """Tell whether `thing` is of a class whose module may not be loaded; if it is not, nothing is one."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(thing, getattr(loaded, name))


def _path_of(model: Any) -> str:
    """Return the name or folder that a SentenceTransformer was loaded from."""
    return str(getattr(getattr(model[0], "auto_model", None), "name_or_path", "") or type(model).__name__)


def _load(path: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtra(f"embedder 'st:{path}'", "embeddings") from error
    try:
        return SentenceTransformer(path)
    except Exception as error:
        raise SettingsError(f"cannot load the sentence-transformers model {path!r}: {error}") from error


def _unit(vectors: Any) -> Floats:
    """Scale rows to length 1; a row of zeros stays zero."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Floats = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled

"""Resolves embedders from names or objects: the packaged MiniLM, sentence-transformers, servers, any LangChain Embeddings.

An embedder may also have `embed_query(text)`, which returns a unit vector of shape (dimension,), if its model treats
queries and passages differently; `query_vector` uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ras_agent.config.registry import check_call, find, is_registered, names
from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import (
    ModelCallError,
    SettingsError,
    UnknownName,
    needs_extra,
)
from ras_agent.running.protocols import Embedder
from ras_agent.text.normal_form import encodable
from ras_agent.tools.chat.retry import diagnosis
from ras_agent.tools.chat.secrets import without_secrets
from ras_agent.tools.embed.served import (
    PROVIDERS,
    ServedEmbedder,
    is_served,
    scaled_rows,
    server_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.embeddings import Embeddings

UNSCALED = "unscaled:"
"""Prefix of the name of an embedder whose vectors are not scaled to length 1."""
_KNOWN = (
    *(
        "minilm",
        "st:<model or path>",
        "openai:<model>",
        "vllm:http://<host>:<port>/v1#<model>",
        "ollama:<model>",
    ),
    *("<provider>:<model>", f"{UNSCALED}st:<model or path>"),
)


def resolve_embedder(spec: object) -> Embedder:
    """Return the embedder that `spec` describes.

    Args:
        spec: an Embedder; a LangChain Embeddings object; a SentenceTransformer; or a name:
            - "minilm" (packaged, extra `offline`);
            - "st:all-mpnet-base-v2" or "st:/path" (sentence-transformers, extra `embeddings`);
            - "openai:text-embedding-3-small", "vllm:http://host:port/v1#model" or "ollama:model" (any server that
              speaks OpenAI's protocol, extra `openai`; see tools/embed/served.py);
            - any other name that LangChain's init_embeddings takes.
            The prefix "unscaled:", which all but "minilm" may have, leaves the vectors' lengths as the model makes
                them, so that passages are ranked by inner products.

    Raises:
        UnknownName, MissingExtra, SettingsError: if the embedder cannot be built.
        TypeError: for an object that does not embed.
    """
    if isinstance(spec, str):
        return _embedder_of(spec)
    if _is_instance(spec, "langchain_core.embeddings", "Embeddings"):
        return LangChainEmbedder(cast("Embeddings", spec))
    if _is_instance(spec, "sentence_transformers", "SentenceTransformer"):
        return SentenceTransformerEmbedder(spec)
    if isinstance(spec, type) or not (hasattr(spec, "name") and hasattr(spec, "embed")):
        raise TypeError(
            f"an embedder has a name, a dimension and the method `embed(texts)`, got {spec!r:.200}"
        )
    return cast(Embedder, spec)


def reopened_embedder(name: str, dimension: int, index: str) -> Embedder:
    """Return the embedder with the name that an index stores. Nothing is sent to it before the first text.

    Raises the errors of `resolve_embedder`, and SettingsError for a server that would get a key although only the
    index names it.

    Args:
        dimension: the width of the index's vectors.
        index: the path or address of the index, for messages.
    """
    plain = name.removeprefix(UNSCALED)
    if not is_served(plain):
        return resolve_embedder(name)
    return ServedEmbedder(
        server_of(plain, index),
        name=name,
        unit_length=plain == name,
        dimension=dimension,
    )


def of_unit_length(embedder: Embedder) -> Embedder:
    """Return an embedder with vectors of length 1: `embedder`, or a scaled form of it."""
    if isinstance(
        embedder, SentenceTransformerEmbedder | LangChainEmbedder | ServedEmbedder
    ):
        return embedder.scaled()
    return embedder


def query_vector(embedder: Embedder, query: str) -> Floats:
    """Return a query's vector, shape (dimension,), from `embed_query` if the embedder has it.

    Raises ModelCallError for a vector of zeros.
    """
    embed_query = getattr(embedder, "embed_query", None)
    if embed_query is not None:
        vector = embed_query(query)
    else:
        vector = embedder.embed([query])[0]
    found = np.asarray(vector, dtype=np.float32)
    check_not_zeros(embedder, [query], found[None])
    return found


def check_not_zeros(embedder: Embedder, texts: Sequence[str], vectors: Floats) -> None:
    """Raise ModelCallError for a vector of zeros, which would be equally near to all texts.

    A text without letters and digits may have one, as bag-of-words models have nothing to count in it.
    """
    for row in np.flatnonzero(~vectors.any(axis=1)).tolist():
        text = texts[row]
        if any(map(str.isalnum, text)):
            raise ModelCallError(
                f"embedder {embedder.name!r} gave a vector of zeros for the text {text!r:.80}: "
                "check that its model is loaded and is a model of embeddings"
            )


class SentenceTransformerEmbedder:
    """Embeds texts by a sentence-transformers model, with its prompts for queries and documents. It is loaded at the
    first text.
    """

    def __init__(
        self,
        model: str | Path | Any,
        *,
        name: str = "",
        batch_size: int = 64,
        unit_length: bool = True,
    ) -> None:
        """Take a model's name, its folder, or a SentenceTransformer.

        Args:
            name: the name that indexes store; by default made from the model's.
            batch_size: the number of texts that the model reads at once.
            unit_length: whether vectors are scaled to length 1.
        """
        self._model: Any = None
        if isinstance(model, str) or hasattr(model, "__fspath__"):
            self._path = str(model)
        else:
            self._model = model
            self._path = _path_of(model)
        self._batch_size = batch_size
        self._unit_length = unit_length
        self.name = name or _named(f"st:{self._path}", unit_length)
        self._lock = Lock()  # the tokenizer is not thread safe
        self._width: int | None = None

    def scaled(self) -> SentenceTransformerEmbedder:
        """Return an embedder of this model with vectors of length 1."""
        if self._unit_length:
            return self
        name = self.name.removeprefix(UNSCALED)
        return SentenceTransformerEmbedder(
            self._model or self._path, name=name, batch_size=self._batch_size
        )

    @property
    def dimension(self) -> int:
        """Return the width of the vectors; the first call loads the model and embeds a word."""
        if self._width is None:
            with self._lock:
                self._width = len(self._encode("encode_document", ["dimension"])[0])
        return self._width

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of passages, shape (len(texts), dimension), float32."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        with self._lock:
            return self._encode("encode_document", list(texts))

    def embed_query(self, text: str) -> Floats:
        """Return the vector of a query, shape (dimension,)."""
        with self._lock:
            vector: Floats = self._encode("encode_query", [text])[0]
            return vector

    def _encode(self, method: str, texts: list[str]) -> Floats:
        if self._model is None:
            self._model = _load(self._path)
        # versions before 5 have only `encode`
        encode = getattr(self._model, method, self._model.encode)
        vectors = encode(
            list(map(encodable, texts)),
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return scaled_rows(vectors, self._unit_length)


class LangChainEmbedder:
    """Embeds texts by any LangChain Embeddings object."""

    def __init__(
        self, embeddings: Embeddings, *, name: str = "", unit_length: bool = True
    ) -> None:
        """Wrap the object.

        Args:
            name: the name that indexes store; by default its class and model.
            unit_length: whether vectors are scaled to length 1.
        """
        self._embeddings = embeddings
        self._unit_length = unit_length
        self._width: int | None = None
        default_name = type(embeddings).__name__
        model = getattr(embeddings, "model", None) or getattr(
            embeddings, "model_name", None
        )
        if isinstance(model, str):
            default_name = f"{default_name}:{model}"
        self.name = name or _named(default_name, unit_length)

    def scaled(self) -> LangChainEmbedder:
        """Return an embedder of this model with vectors of length 1."""
        if self._unit_length:
            return self
        return LangChainEmbedder(
            self._embeddings, name=self.name.removeprefix(UNSCALED)
        )

    @property
    def dimension(self) -> int:
        """Return the width of the vectors; the first call embeds a word to find out."""
        if self._width is None:
            self._width = len(self.embed_query("dimension"))
        return self._width

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of passages, shape (len(texts), dimension), float32. Raises ModelCallError."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        vectors = self._call("embed_documents", list(texts))
        return scaled_rows(vectors, self._unit_length)

    def embed_query(self, text: str) -> Floats:
        """Return the vector of a query, shape (dimension,). Raises ModelCallError."""
        vector = self._call("embed_query", text)
        scaled: Floats = scaled_rows([vector], self._unit_length)[0]
        return scaled

    def _call(self, method: str, argument: object) -> Any:
        try:
            return getattr(self._embeddings, method)(argument)
        except Exception as error:
            why = diagnosis(error)
            message = without_secrets(
                f"{error}: {why}" if why else str(error), self._embeddings
            )
            raise ModelCallError(
                f"embedder {self.name!r} failed: {type(error).__name__}: {message}"
            ) from None


def _named(name: str, unit_length: bool) -> str:
    """Return an embedder's name, with the prefix UNSCALED if its vectors are not scaled to length 1."""
    return name if unit_length else f"{UNSCALED}{name}"


def _embedder_of(spec: str) -> Embedder:
    plain = spec.removeprefix(UNSCALED)
    unit_length = plain == spec
    provider, _, model = plain.partition(":")
    if unit_length and is_registered("encoder", provider):
        return _registered(provider, model, spec)
    if not model:
        known = dict.fromkeys((*names("encoder"), *_KNOWN))
        raise UnknownName("embedder", spec, tuple(known))
    if provider == "st":
        return SentenceTransformerEmbedder(model, name=spec, unit_length=unit_length)
    if provider in PROVIDERS:
        return ServedEmbedder(server_of(plain), name=spec, unit_length=unit_length)
    try:
        from langchain.embeddings import init_embeddings

        embeddings = init_embeddings(plain)
        return LangChainEmbedder(embeddings, name=spec, unit_length=unit_length)
    except ImportError as error:
        raise SettingsError(
            f"embedder {spec!r} needs its provider's package ({error}): install it"
        ) from error
    except Exception as error:
        raise SettingsError(
            f"cannot set up the embedder {spec!r} ({without_secrets(str(error))}): correct its name, or set its key"
        ) from None


def _registered(name: str, argument: str, spec: str) -> Embedder:
    """Return the embedder of a plug-in.

    Raises TypeError unless its name is `spec`, by which an index opens it again.
    """
    make = find("encoder", name)
    check_call("encoder", name, make, argument=argument)
    embedder = make(argument)
    own = getattr(embedder, "name", None)
    if own != spec or not hasattr(embedder, "embed"):
        raise TypeError(
            f"the encoder {name!r} must make an embedder with the name {spec!r}, by which an index opens it again, a "
            f"dimension and the method `embed(texts)`, got {embedder!r:.200} with the name {own!r:.80}"
        )
    return cast(Embedder, embedder)


def _is_instance(thing: object, module: str, name: str) -> bool:
    """Return whether `thing` is an instance of module.name; a module that is not loaded yet is not imported for it."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(thing, getattr(loaded, name))


def _path_of(model: Any) -> str:
    """Return the name or folder from which a SentenceTransformer was loaded."""
    network = getattr(model[0], "auto_model", None)
    path = getattr(network, "name_or_path", "")
    return str(path or type(model).__name__)


def _load(path: str) -> Any:
    with needs_extra(f"embedder 'st:{path}'", "embeddings"):
        from sentence_transformers import SentenceTransformer
    try:
        return SentenceTransformer(path)
    except Exception as error:
        raise SettingsError(
            f"cannot load the sentence-transformers model {path!r} ({error}): give its folder, or its name on the hub"
        ) from error

"""Scores texts by a sentence encoder, plain or with a trained head, or by a cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import WeightsError, needs_extra
from ras_agent.running.protocols import Embedder, Scored
from ras_agent.running.recent import RecentResults
from ras_agent.text.normal_form import encodable
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.store.card import read_card, write_card
from ras_agent.tools.subgraph.graph import plain_name
from ras_agent.tools.subgraph.scoring import NO_SCORES


class EncoderScorer:
    """Scores texts by the cosine with the question. The vectors of texts are cached, since the facts of a graph recur."""

    def __init__(
        self,
        embedder: object = "minilm",
        head: PathHead | None = None,
        *,
        cached: int = 200_000,
    ) -> None:
        """Load the encoder. Raises WeightsError for a head that was trained over another one, and the errors of
        resolve_embedder.

        Args:
            embedder: a name or an object.
            head: trained maps over the encoder's vectors; None for the plain encoder.
            cached: the maximum number of text vectors in the cache.
        """
        self._embedder: Embedder = resolve_embedder(embedder)
        if head is not None:
            head.check(self._embedder)
        self._head = head
        self._cache: RecentResults[str, Floats] = RecentResults(cached)
        # cached, as a beam search embeds the question at every length and start
        self._question = remembering(self._embedder, 256).embed_query

    @property
    def name(self) -> str:
        """Return the encoder's name, and whether a head is applied."""
        if self._head:
            return f"{self._embedder.name}+path head"
        return self._embedder.name

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        """Return the cosine of each text with the question."""
        if not texts:
            return NO_SCORES
        vector = self._question(plain_name(question))
        if self._head is not None:
            (vector,) = self._head.question(vector[None])
        vectors = self._cache.of(texts, self._embedded)
        cosines = np.stack(vectors) @ vector
        return Scored(cosines.astype(np.float32))

    def _embedded(self, texts: Sequence[str]) -> Floats:
        vectors = self._embedder.embed(texts)
        if self._head is None:
            return vectors
        return self._head.text(vectors)


FORM = "path encoder"
VERSION = 1
PARTS = ("question_down", "question_up", "text_down", "text_up")
_WEIGHTS = "path_encoder.safetensors"
_ABOUT = "path_encoder.json"


@dataclass(frozen=True, slots=True)
class PathHead:
    """Maps vectors x to x + (x down) up, scaled to unit length: the fine-tuned part of the scorer "st-ft".

    There is one pair of down (d, r) and up (r, d) for questions, and one for texts.
    """

    embedder: str
    """The name of the encoder whose vectors it maps."""
    question_down: Floats
    question_up: Floats
    text_down: Floats
    text_up: Floats
    about: dict[str, Any]
    """How it was trained, as plain JSON."""

    def question(self, vectors: Floats) -> Floats:
        """Return unit vectors (n, d) for the encoder's vectors of questions."""
        down = self.question_down
        return _map_vectors(vectors, down, self.question_up)

    def text(self, vectors: Floats) -> Floats:
        """Return unit vectors (n, d) for the encoder's vectors of facts and paths."""
        down = self.text_down
        return _map_vectors(vectors, down, self.text_up)

    def check(self, embedder: Embedder) -> None:
        """Raise WeightsError for another encoder than the one over which the head was trained."""
        width = len(self.question_down)
        if embedder.name != self.embedder or embedder.dimension != width:
            raise WeightsError(
                f"the path encoder was trained with vectors of {self.embedder!r} ({width} numbers each), and the embedder is "
                f"{embedder.name!r} ({embedder.dimension}): use {self.embedder!r}, or train another path encoder with "
                "`python -m ras_agent.train.paths.train`"
            )

    def save(self, folder: str | Path) -> None:
        """Write the weights and their description into `folder`, which is created."""
        from safetensors.numpy import save_file

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        weights = {}
        for part in PARTS:
            weights[part] = np.ascontiguousarray(getattr(self, part))
        save_file(weights, folder / _WEIGHTS)
        card = {
            "format": f"ras-agent {FORM}",
            "version": VERSION,
            "embedder": self.embedder,
            "about": self.about,
        }
        write_card(folder / _ABOUT, card)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load the head in a folder.

        Raises WeightsError if a file is missing or damaged, and MissingExtra without safetensors.
        """
        with needs_extra("a fine-tuned path encoder", "offline"):
            from safetensors import SafetensorError
            from safetensors.numpy import load_file
        folder = Path(folder)
        card = read_card(
            folder / _ABOUT, FORM, VERSION, "python -m ras_agent.train.paths.train"
        )
        try:
            weights = load_file(folder / _WEIGHTS)
        except (SafetensorError, ValueError, OSError) as error:
            raise WeightsError(
                f"{folder} holds no readable path encoder ({error}): train it again"
            ) from error
        if set(weights) != set(PARTS) or not _fits(**weights):
            raise WeightsError(
                f"{folder / _WEIGHTS}: the path encoder's weights do not fit together: train it again"
            )
        return cls(
            embedder=str(card["embedder"]),
            about=dict(card.get("about") or {}),
            **weights,
        )


def _map_vectors(vectors: Floats, down: Floats, up: Floats) -> Floats:
    moved = vectors + (vectors @ down) @ up
    lengths = np.linalg.norm(moved, axis=1, keepdims=True)
    unit = moved / np.maximum(lengths, 1e-12)
    result: Floats = unit.astype(np.float32)
    return result


def _fits(question_down: Any, question_up: Any, text_down: Any, text_up: Any) -> bool:
    arrays = (question_down, question_up, text_down, text_up)
    for array in arrays:
        if array.dtype != np.float32 or array.ndim != 2:
            return False
    if question_down.shape != question_up.T.shape:
        return False
    if text_down.shape != text_up.T.shape:
        return False
    return len(question_down) == len(text_down)


class CrossEncoderScorer:
    """Scores texts by a sentence-transformers CrossEncoder, which reads a question and a text together.

    Higher scores are better; their scale depends on the model. The paper uses BAAI/bge-reranker-v2-m3.
    """

    def __init__(self, model: str | Path | Any, *, batch_size: int = 64) -> None:
        """Take a CrossEncoder, or a model's name or folder, which is loaded at the first text.

        Args:
            batch_size: the number of texts that the model reads at once.
        """
        self._path = ""
        self._model: Any = None
        if isinstance(model, str | Path):
            self._path = str(model)
        else:
            self._model = model
        self._batch_size = batch_size
        # the tokeniser is not thread safe
        self._lock = Lock()

    @property
    def name(self) -> str:
        """Return "rerank", with the model's name or folder if it was given."""
        if self._path:
            return f"rerank:{self._path}"
        return "rerank"

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        """Return the score of each text.

        Raises MissingExtra without sentence-transformers, and WeightsError if the model cannot be loaded.
        """
        if not texts:
            return NO_SCORES
        query = encodable(plain_name(question))
        pairs = [(query, encodable(text)) for text in texts]
        with self._lock:
            if self._model is None:
                self._model = _load_model(self._path)
            predicted = self._model.predict(
                pairs, batch_size=self._batch_size, show_progress_bar=False
            )
        values = np.asarray(predicted, dtype=np.float32)
        return Scored(values.reshape(len(texts)))


def _load_model(path: str) -> Any:
    with needs_extra("a cross-encoder", "embeddings"):
        from sentence_transformers import CrossEncoder
    try:
        return CrossEncoder(path, num_labels=1, model_kwargs={"use_safetensors": True})
    except (OSError, ValueError) as error:
        raise WeightsError(
            f"the cross-encoder {path!r} cannot be loaded ({str(error).splitlines()[0]}): "
            "give a model's name or a folder with safetensors weights"
        ) from error

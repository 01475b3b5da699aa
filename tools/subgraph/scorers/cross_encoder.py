"""A cross-encoder (reranker): question and text read together, one relevance out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ras_agent.errors import MissingExtra, WeightsError
from ras_agent.tools.subgraph.graph import plain_name
from ras_agent.tools.subgraph.scoring import Scored

__all__ = ["CrossEncoderScorer"]


class CrossEncoderScorer:
    """Any sentence-transformers CrossEncoder with one output, such as BAAI/bge-reranker-v2-m3, the paper's."""

    def __init__(self, model: str | Path | Any, *, batch_size: int = 64) -> None:
        """model: a name, a folder, or a CrossEncoder; a name or folder is loaded at the first text."""
        named = isinstance(model, str | Path)
        self._path = str(model) if named else ""
        self._model: Any = None if named else model
        self._batch_size, self._lock = batch_size, Lock()  # its tokeniser cannot be borrowed by two threads

    @property
    def name(self) -> str:
        return f"rerank:{self._path}" if self._path else "rerank"

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        """Raises MissingExtra without sentence-transformers, WeightsError for a model that cannot be loaded."""
        if not texts:
            return Scored(np.empty(0, dtype=np.float32))
        with self._lock:
            if self._model is None:
                self._model = _loaded(self._path)
            pairs = [(_clean(plain_name(question)), _clean(text)) for text in texts]
            values = self._model.predict(pairs, batch_size=self._batch_size, show_progress_bar=False)
        return Scored(np.asarray(values, dtype=np.float32).reshape(len(texts)))


def _clean(text: str) -> str:
    """Tokenisers take no lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def _loaded(path: str) -> Any:
    try:
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise MissingExtra("a cross-encoder", "embeddings") from error
    try:
        return CrossEncoder(path, num_labels=1, model_kwargs={"use_safetensors": True})
    except (OSError, ValueError) as error:
        raise WeightsError(
            f"the cross-encoder {path!r} cannot be loaded ({str(error).splitlines()[0]}): "
            "give a model's name or a folder with safetensors weights"
        ) from error

"""A sentence encoder, as it is or fine-tuned: which texts mean what the question means?"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.protocols import Embedder
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.subgraph.graph import plain_name
from ras_agent.tools.subgraph.scorers.path_head import PathHead
from ras_agent.tools.subgraph.scoring import Scored

__all__ = ["EncoderScorer"]


class EncoderScorer:
    """The cosine of question and text. Texts' vectors are kept, for the facts of a graph come again and again."""

    def __init__(self, embedder: object = "minilm", head: PathHead | None = None, *, kept: int = 200_000) -> None:
        """head: what fine-tuning learnt, laid over the encoder's vectors; kept: how many texts' vectors at most.

        Raises WeightsError for a head over another encoder, and what resolve_embedder raises.
        """
        self._embedder: Embedder = resolve_embedder(embedder)
        if head is not None:
            head.check(self._embedder)
        self._head, self._size = head, kept
        self._kept: OrderedDict[str, Floats] = OrderedDict()
        self._lock = Lock()
        # a beam asks at every length and start
        self._question = remembering(self._embedder, 256).embed_query

    @property
    def name(self) -> str:
        return f"{self._embedder.name}{'+path head' if self._head else ''}"

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        if not texts:
            return Scored(np.empty(0, dtype=np.float32))
        asked = self._question(plain_name(question))
        if self._head is not None:
            asked = self._head.question(asked[None])[0]
        return Scored((self._vectors(texts) @ asked).astype(np.float32))

    def _vectors(self, texts: Sequence[str]) -> Floats:
        """(len(texts), d) unit vectors."""
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._kept]
            here = {text: self._kept[text] for text in texts if text in self._kept}
        if missing:
            fresh = self._embedder.embed(missing)
            if self._head is not None:
                fresh = self._head.text(fresh)
            here.update(zip(missing, fresh, strict=True))
            with self._lock:
                self._kept.update({text: here[text] for text in missing})
                while len(self._kept) > self._size:
                    self._kept.popitem(last=False)
        return np.stack([here[text] for text in texts])

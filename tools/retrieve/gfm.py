"""GFM retrieval: which passages name the entities that a graph neural network finds relevant? (GFM-RAG, 2502.01113)"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats
from ras_agent.errors import MissingExtra, SettingsError, WeightsError
from ras_agent.protocols import Embedder
from ras_agent.records import Passage
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.gfm.choose import GFMScorer, gfm_scorer
from ras_agent.tools.gfm.cpu import CACHE_BYTES
from ras_agent.tools.gfm.graph import GFMStart
from ras_agent.tools.gfm.paths import best_paths
from ras_agent.tools.gfm.weights import GFMConfig, load_gfm
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker, LinkedEntity, Linking, Mentions
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.retrieve.document_ranker import PACKAGED, DocumentRanker, contributions, document_scores
from ras_agent.tools.retrieve.gfm_paths import FactPath, fact_path
from ras_agent.tools.retrieve.gfm_start import messages_of, start_of
from ras_agent.tools.retrieve.ranker import ExplainedRetriever
from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["GFMRetriever", "gfm", "weights_of"]

Doubles = npt.NDArray[np.float64]
_AT_ONCE = 8  # questions whose scores are remembered while their hits are explained, one a thread


class GFMRetriever(ExplainedRetriever):
    """Ranks passages by the entities they name, entities by the network's probability that they help.

    A question that names no entity of the graph has no hits.
    """

    name = "gfm"

    def __init__(
        self,
        passages: Sequence[Passage],
        graph: KGIndex,
        rows: npt.NDArray[np.int64],
        linker: EntityLinker,
        network: GFMScorer,
        embedder: Embedder,
        *,
        ranker: DocumentRanker | None = None,
        toward: str = "head",
        paths: int = 0,
        cache_size: int = 1024,
    ) -> None:
        """rows: (D,) the place in `passages` of each of the graph's documents, -1 for none.

        toward: of the network's GFMConfig. paths: how many chains of facts each hit of `retrieve` is explained by.
        embedder: what the graph's vectors were made with. The vectors of `cache_size` queries are remembered.
        """
        if paths < 0:
            raise SettingsError(f"a hit has 0 or more paths, got {paths}")
        self.passages, self.graph, self.network = passages, graph, network
        self._linker, self._ranker, self._rows = linker, ranker or DocumentRanker(), rows
        self._toward, self._paths = toward, paths
        self._embed = remembering(embedder, cache_size).embed_query
        # what explains a question's hits starts from what ranked them
        self._asked = lru_cache(_AT_ONCE)(partial(_scored, linker, graph, network, self._embed))

    def linked(self, query: str) -> tuple[LinkedEntity, ...]:
        """The entities that the network starts from."""
        return self._linker.link(query)

    def vector(self, query: str) -> Floats:
        """The query's sentence vector (text width,)."""
        return self._embed(query)

    def entity_scores(self, query: str) -> Doubles | None:
        """Eq. 10: every entity's probability (N,); None if the query leads to no entity."""
        return self._asked(query)[1]

    def rank(self, query: str, k: int) -> Ranking:
        """The `k` best rows. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        entities = self.entity_scores(query)
        if entities is None:
            return Ranking.empty()
        found = document_scores(entities, self.graph.mentions, self._ranker)
        scores = np.zeros(len(self.passages), dtype=np.float32)
        there = self._rows >= 0
        scores[self._rows[there]] = found[there]
        return top_k(scores, k)

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """`explain` as lines to read; one line with the error where there is not the memory for it."""
        try:
            return [tuple(path.to_text() for path in paths) for paths in self.explain(query, passage_ids)]
        except (MemoryError, RuntimeError) as error:
            # gradients of a large graph take gigabytes; a hit is worth more than its reasons
            return [(f"not explained: {error}",)] * len(passage_ids)

    def explain(
        self, query: str, passage_ids: Sequence[str], count: int | None = None, beam: int = 10
    ) -> list[list[FactPath]]:
        """Eq. 19: for each passage the `count` (`paths`, or 3) chains of facts that its rank depends on most.

        Heaviest first, they lead from the question's entities to the entity that adds most to the passage's score and
        is none of them; none where the passage names nothing else. Takes a plain pass of the network, and a gradient
        for each entity that they lead to.
        """
        start, entities = self._asked(query)
        if entities is None:
            return [[] for _ in passage_ids]
        adds = np.zeros(len(entities))
        counted, added = contributions(entities, self.graph.mentions, self._ranker)
        adds[counted] = added
        of_passage = [self._target(passage, start, entities, adds) for passage in passage_ids]
        targets = [target for target in dict.fromkeys(of_passage) if target is not None]
        network, wanted = self.network, count or self._paths or 3
        given = network.weights, network.graph, self.vector(query), start, targets
        found = best_paths(*given, relation_states=network.relation_states, count=wanted, beam=beam) if targets else []
        known = dict(zip(targets, found, strict=True))
        paths = [known[target] if target is not None else [] for target in of_passage]
        return [[fact_path(self.graph, network.graph, path, self._toward) for path in some] for some in paths]

    def _target(self, passage_id: str, start: GFMStart, entities: Doubles, adds: Doubles) -> int | None:
        """The entity that a passage's chains lead to; None for a passage that names none but the question's."""
        document = self.graph.document_id(passage_id)
        named = self.graph.documents_to_entities.row(document) if document is not None else np.zeros(0, dtype=np.int32)
        others = named[~np.isin(named, start.entities)]
        # where none of them counts, the likeliest
        return int(others[np.lexsort((-entities[others], -adds[others]))[0]]) if len(others) else None


def _scored(
    linker: EntityLinker, graph: KGIndex, network: GFMScorer, vector: Callable[[str], Floats], query: str
) -> tuple[GFMStart, Doubles | None]:
    """Where the network starts, and every entity's probability, read-only."""
    start = start_of(linker.link(query), graph.document_frequency)
    if not len(start.entities):
        return start, None
    # in float32, logits above 16 would all be certain
    logits = network.scores(vector(query)[None], [start])[0].astype(np.float64)
    if not np.isfinite(logits).all():
        raise WeightsError("the GFM network's scores are not finite: its weights are too large for the graph")
    with np.errstate(over="ignore"):
        probabilities: Doubles = 1 / (1 + np.exp(-logits))
    probabilities.flags.writeable = False
    return start, probabilities


def gfm(
    index: PassageIndex,
    *,
    graph: KGIndex | LinkedGraph | None = None,
    weights: str | Path | None = None,
    linking: Linking | None = None,
    mentions: Mentions | None = None,
    ranker: DocumentRanker | None = None,
    paths: int = 0,
    device: str = "auto",
    cache_bytes: int = CACHE_BYTES,
    half_cache: bool | None = None,
    half_products: bool = False,
) -> GFMRetriever:
    """The retriever registered as "gfm", over the graph beside the index, or `graph`.

    weights: a folder of weights, this package's or published ones; by default those that come with the package, which
        read vectors of the packaged MiniLM.
    ranker: by default the paper's, and PACKAGED with the package's own weights.
    paths: see GFMRetriever. device: "auto", "cpu", "cuda", "cuda:<number>". cache_bytes, half_cache, half_products: see
        ras_agent.tools.gfm.choose.gfm_scorer.
    Raises IndexMismatch where there is no graph, or its vectors are not of the network's encoder; WeightsError;
    MissingExtra; SettingsError for a device that is not there.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtra("retriever 'gfm'", "gnn") from error
    linked = LinkedGraph.of(index, graph, linking, mentions)
    config, tensors = weights_of(weights)
    ranker = ranker or (PACKAGED if weights is None else DocumentRanker())
    messages = messages_of(linked.graph, config)
    precision: dict[str, Any] = {"half_cache": half_cache, "half_products": half_products}
    network = gfm_scorer(tensors, messages, device, cache_bytes=cache_bytes, **precision)
    assert linked.embedder is not None  # messages_of has checked that the graph holds vectors
    return GFMRetriever(
        index.snapshot.passages,
        linked.graph,
        linked.rows,
        linked.linker,
        network,
        linked.embedder,
        ranker=ranker,
        toward=config.toward,
        paths=paths,
    )


def weights_of(folder: str | Path | None = None) -> tuple[GFMConfig, dict[str, Tensor]]:
    """Configuration and weights of a folder, or of the network that comes with the package. Raises WeightsError."""
    return load_gfm(Path(str(files("ras_agent.data"))) / "gfm" if folder is None else Path(folder))

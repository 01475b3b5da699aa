"""GFM retrieval: rank passages by the entities they name, as a graph neural network scores them (arXiv:2502.01113).

A query is linked to entities of the knowledge graph, where the network starts; it gives every entity a probability,
from which DocumentRanker scores passages. A hit can be explained by the chains of facts that its score depends on most.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.address import as_argument
from ras_agent.arrays import Doubles, Floats, Ints
from ras_agent.errors import IndexMismatch, MissingExtra, SettingsError, WeightsError
from ras_agent.protocols import Embedder
from ras_agent.records import Passage
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.gfm.choose import GFMScorer, gfm_scorer, with_room
from ras_agent.tools.gfm.cpu import CACHE_BYTES, TOLERANCE
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import isolated_scores
from ras_agent.tools.gfm.paths import MessagePath, best_paths
from ras_agent.tools.gfm.weights import PACKAGED_NAME, GFMConfig, load_gfm, same_encoder, weights_folder
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.arrays import Vectors
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker, LinkedEntity, Linking, Mentions
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.text_vectors import stored_vectors
from ras_agent.tools.retrieve.document_ranker import PACKAGED, DocumentRanker, contributions, document_scores
from ras_agent.tools.retrieve.ranker import ExplainedRetriever
from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k
from ras_agent.tools.retrieve.registered import takes

if TYPE_CHECKING:
    from torch import Tensor

_REMEMBERED = 8  # queries whose scores are remembered while their hits are explained, one a thread


@dataclass(frozen=True, slots=True)
class FactPath:
    """Chain of facts (subject, relation, object), and how much the score depends on it.

    A fact that is walked from its object to its subject has its ends swapped and "^-1" after its relation.
    """

    facts: tuple[tuple[str, str, str], ...]
    weight: float

    def to_text(self) -> str:
        """Write one line, in the paper's form: "1.095  (a | sings | b) → (b | owned by^-1 | c)"."""
        return f"{self.weight:.3f}  " + " → ".join(f"({' | '.join(fact)})" for fact in self.facts)


class PathExplainedRetriever(ExplainedRetriever):
    """Retriever that explains hits by chains of facts."""

    @abstractmethod
    def explain(self, query: str, passage_ids: Sequence[str]) -> list[list[FactPath]]:
        """Return for each passage the chains of facts that its rank depends on most, heaviest first."""

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the chains of `explain` as lines of text; one line with the error if there is too little memory."""
        try:
            return [tuple(path.to_text() for path in paths) for paths in self.explain(query, passage_ids)]
        except (MemoryError, RuntimeError) as error:
            # gradients of a large graph take gigabytes; a hit is worth more than its reasons
            return [(f"not explained: {error}",)] * len(passage_ids)


class GFMRetriever(PathExplainedRetriever):
    """Retriever that ranks passages by their entities, and entities by the network's probability that they help.

    A query that is linked to no entity of the graph has no hits.
    """

    name = "gfm"
    walks_graph = True

    def __init__(
        self,
        passages: Sequence[Passage],
        graph: KGIndex,
        rows: Ints,
        linker: EntityLinker,
        network: GFMScorer,
        embedder: Embedder,
        *,
        ranker: DocumentRanker | None = None,
        config: GFMConfig | None = None,
        paths: int = 0,
        cache_size: int = 1024,
    ) -> None:
        """Put the parts together.

        rows: (D,), the place in `passages` of each of the graph's documents, -1 for none.
        embedder: made the graph's vectors; it remembers those of `cache_size` queries.
        config: the network's. paths: the number of chains of facts that explain each hit of `retrieve`.
        """
        config = config or GFMConfig()
        if paths < 0:
            raise SettingsError(f"a hit has 0 or more paths, got {paths}")
        self.passages, self.graph, self.network = passages, graph, network
        self._linker, self._ranker, self._rows = linker, ranker or DocumentRanker(), rows
        self._message_target, self._paths = config.message_target, paths
        self._embed = question_vectors(embedder, config, cache_size)
        # explaining a query's hits starts from the scores that ranked them
        scores = partial(_score_entities, linker, graph, network, self._embed, config.idf_start_weights)
        self._scored = lru_cache(_REMEMBERED)(scores)

    def linked(self, query: str) -> tuple[LinkedEntity, ...]:
        """Return the entities that the network starts from."""
        return self._linker.link(query)

    def vector(self, query: str) -> Floats:
        """Return the query's sentence vector (text width,)."""
        return self._embed(query)

    def entity_scores(self, query: str) -> Doubles | None:
        """Return every entity's probability (N,), eq. 10; None if the query is linked to no entity."""
        return self._scored(query)[1]

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        entities = self.entity_scores(query)
        if entities is None:
            return Ranking.empty()
        by_document = document_scores(entities, self.graph.mentions, self._ranker, self._others(query))
        scores = np.zeros(len(self.passages), dtype=np.float32)
        in_corpus = self._rows >= 0
        scores[self._rows[in_corpus]] = by_document[in_corpus]
        return top_k(scores, k)

    def _others(self, query: str) -> Doubles | None:
        """Return the probabilities of the nodes of an imported graph that are no entities; None for one of our own.

        The published code has documents and all others in its graph, where no message leads to them. So they may be
        among the best nodes.
        """
        if not self.graph.manifest.exact:
            return None
        import torch

        weights = self.network.weights
        device = next(iter(weights.values())).device
        with torch.inference_mode():
            logit = isolated_scores(weights, torch.from_numpy(self.vector(query)[None]).to(device))
        count = len(self.graph.documents) + len(self.graph.others.nodes)
        return np.full(count, _probabilities(logit.cpu().numpy())[0])

    def explain(
        self,
        query: str,
        passage_ids: Sequence[str],
        count: int | None = None,
        beam: int = 10,
        published: bool = False,
    ) -> list[list[FactPath]]:
        """Return for each passage the chains of facts that its rank depends on most, heaviest first (eq. 19).

        They lead from the query's entities to the entity that adds most to the passage's score and is none of these; a
        passage that names no other has no chains. Takes a plain pass of the network, and a gradient for each entity
        that chains lead to.

        count: chains a passage; by default `paths`, or 3. beam: see heaviest_paths. published: chains are ranked by the
        mean of their derivatives, as the published code does (see published_paths).
        """
        start, entities = self._scored(query)
        if entities is None:
            return [[] for _ in passage_ids]
        adds = np.zeros(len(entities))
        counting, added_scores = contributions(entities, self.graph.mentions, self._ranker, self._others(query))
        adds[counting] = added_scores
        of_passage = [self._target(passage, start, entities, adds) for passage in passage_ids]
        targets = [target for target in dict.fromkeys(of_passage) if target is not None]
        vector, path_count = self.vector(query), count or self._paths or 3

        def best_on(network: GFMScorer) -> list[list[MessagePath]]:
            arguments = network.weights, network.graph, vector, start, targets
            options: dict[str, Any] = {"relation_states": network.relation_states, "count": path_count, "beam": beam}
            return best_paths(*arguments, **options, published=published)

        best = with_room(self.network, best_on) if targets else []
        paths_to = dict(zip(targets, best, strict=True))
        paths = [paths_to[target] if target is not None else [] for target in of_passage]
        names, relations, target = self.graph.entities, self.graph.relations, self._message_target
        graph = self.network.graph
        return [[fact_path(names, relations, graph, path, target) for path in some] for some in paths]

    def _target(self, passage_id: str, start: GFMStart, entities: Doubles, adds: Doubles) -> int | None:
        """Return the entity that a passage's chains lead to; None for a passage that names none but the query's."""
        document = self.graph.document_id(passage_id)
        entities_of_passage = (
            self.graph.documents_to_entities.row(document) if document is not None else np.zeros(0, dtype=np.int32)
        )
        others = entities_of_passage[~np.isin(entities_of_passage, start.entities)]
        # where none of them counts, the likeliest
        return int(others[np.lexsort((-entities[others], -adds[others]))[0]]) if len(others) else None


def question_vectors(embedder: Embedder, config: GFMConfig, cache_size: int = 1024) -> Callable[[str], Floats]:
    """Return a function from a question to its sentence vector (text width,) for these weights.

    The vectors of the last `cache_size` questions are cached.
    """
    prefix = config.question_prefix
    if prefix is None:
        return remembering(embedder, cache_size).embed_query

    def vector(question: str) -> Floats:
        return np.asarray(embedder.embed([f"{prefix}{question}"])[0], dtype=np.float32)

    return lru_cache(cache_size)(vector)


def _score_entities(
    linker: EntityLinker,
    graph: KGIndex,
    network: GFMScorer,
    vector: Callable[[str], Floats],
    idf_start_weights: bool,
    query: str,
) -> tuple[GFMStart, Doubles | None]:
    """Return the entities of the query, from which the network starts, and how relevant it holds each of all N to be.

    vector: embeds the query. idf_start_weights: whether an entity that many documents name weighs less as a start. The
    relevance is a probability for each entity, shape (N,), an array that cannot be written to; None where the query
    names no entity of the graph. Raises WeightsError for a network whose scores are not finite.
    """
    start = start_of(linker.link(query), graph.document_frequency, idf_start_weights)
    if not len(start.entities):
        return start, None
    logits = network.scores(vector(query)[None], [start])[0]
    if not np.isfinite(logits).all():
        raise WeightsError("the GFM network's scores are not finite: its weights are too large for the graph")
    probabilities = _probabilities(logits)
    probabilities.flags.writeable = False
    return start, probabilities


def _probabilities(logits: Floats) -> Doubles:
    # in float32, logits above 16 would all be certain
    with np.errstate(over="ignore"):
        probabilities: Doubles = 1 / (1 + np.exp(-logits.astype(np.float64)))
    return probabilities


def fact_path(
    names: Sequence[str], relations: Sequence[str], graph: GFMGraph, path: MessagePath, message_target: str = "head"
) -> FactPath:
    """Return a path of messages as a path of facts.

    names, relations: of the graph's nodes, and of its relations without inverses. message_target: see GFMConfig.
    """

    def fact(message: int) -> tuple[str, str, str]:
        number = int(graph.relation[message])
        target = int(graph.indptr.searchsorted(message, side="right")) - 1
        # toward the head, a relation's own message goes from object to subject
        backwards = (number < len(relations)) == (message_target == "head")
        name = relations[number % len(relations)]
        return names[int(graph.source[message])], f"{name}^-1" if backwards else name, names[target]

    return FactPath(tuple(map(fact, path.messages)), path.weight)


def _checked_vectors(graph: KGIndex, config: GFMConfig) -> Vectors:
    """Return the relations' vectors (R, text width) as the graph holds them.

    Raises IndexMismatch for a graph without vectors, or with another encoder's.
    """
    if graph.relation_vectors is None:
        raise IndexMismatch(
            "the knowledge graph holds no vectors, which the GFM network reads: "
            "build it with an embedder, `ras-agent kg build --embedder minilm`"
        )
    identity, encoder = graph.manifest.embedder, config.text_model
    if identity is not None and encoder and not same_encoder(encoder, identity.name):
        spec = encoder if ":" in encoder or encoder == "minilm" else f"st:{encoder}"
        raise IndexMismatch(
            f"the GFM network reads vectors of {encoder}, the knowledge graph holds those of {identity.name}: build it "
            f"with that encoder, `ras-agent kg build {as_argument(graph.where)} --embedder {spec}`, or give other "
            "weights"
        )
    vectors = graph.relation_vectors
    if vectors.shape[1] != config.text_width:
        raise IndexMismatch(
            f"the GFM network reads vectors of width {config.text_width}{f' of {encoder}' if encoder else ''}, the "
            f"knowledge graph has width {vectors.shape[1]} ({identity}): build it with that encoder, or give other "
            "weights"
        )
    return vectors


def inverse_vectors(graph: KGIndex, config: GFMConfig, embedder: Embedder | None = None) -> Floats | None:
    """Return the vectors of the inverse relations (R, text width), None where they are the relations' times -1.

    Raises IndexMismatch as `gfm` does.

    Vectors that are embedded from texts are stored in the graph's database. embedder: the one that made the graph's
    vectors, if it is at hand; by default the one that the graph names.
    """
    _checked_vectors(graph, config)
    if config.inverse == "negated":
        return None
    embedder = embedder or graph.embedder
    assert embedder is not None  # vectors come with the embedder that made them
    texts = [f"{config.relation_prefix}inverse_{name}" for name in graph.relations]
    return stored_vectors(graph.database, "inverse", embedder, texts, graph.relations, part=graph.is_part)


def relation_vectors(graph: KGIndex, config: GFMConfig, embedder: Embedder | None = None) -> Vectors:
    """Return the vectors of the relations (R, text width).

    A graph holds them in 16 bits, for which published weights were not made. So for these they are embedded once more,
    and stored. embedder: the one that made the graph's vectors; by default the one that the graph names. Raises
    IndexMismatch as `gfm` does.
    """
    vectors = _checked_vectors(graph, config)
    if config.question_prefix is None and not config.relation_prefix:
        return vectors
    embedder = embedder or graph.embedder
    assert embedder is not None
    texts = [f"{config.relation_prefix}{name}" for name in graph.relations]
    return stored_vectors(graph.database, "relations", embedder, texts, graph.relations, part=graph.is_part)


def messages_of(graph: KGIndex, config: GFMConfig, embedder: Embedder | None = None) -> GFMGraph:
    """Make the network's graph, its nodes and messages, of a knowledge graph. Raises IndexMismatch as `gfm` does.

    embedder: see `inverse_vectors`.
    """
    vectors = relation_vectors(graph, config, embedder)
    inverse = inverse_vectors(graph, config, embedder)
    return GFMGraph.from_edges(len(graph.entities), np.asarray(graph.edges), vectors, inverse, config.message_target)


def start_of(links: Sequence[LinkedEntity], frequency: Ints, idf_start_weights: bool = True) -> GFMStart:
    """Return a question's entities, ascending, each weighted by its link and by 1 / the number of its documents.

    frequency: (N,), the number of documents that name an entity; one that none names is left out, as it is by the
    published code. idf_start_weights: False to weight by the link alone.
    """
    weights: dict[int, float] = {}
    for link in links:
        weights[link.entity] = weights.get(link.entity, 0.0) + link.weight
    named_entities = [entity for entity in sorted(weights) if not idf_start_weights or frequency[entity]]
    entities = np.array(named_entities, dtype=np.int64)
    shares = np.array([weights[entity] for entity in named_entities], dtype=np.float32)
    if idf_start_weights:
        shares = (shares / frequency[entities]).astype(np.float32)
    return GFMStart(entities, shares)


@takes("graph", "linking", "mentions", "weights")
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
    tolerance: float = TOLERANCE,
) -> GFMRetriever:
    """Make the retriever registered as "gfm", over the index's own graph or `graph`.

    weights: a folder of weights, this package's or published ones, or their id on the Hugging Face hub; by default
        those that come with the package, which read vectors of the packaged MiniLM.
    ranker: by default what the weights' configuration names, else the paper's, and PACKAGED with the package's own.
    paths: see GFMRetriever.
    device: "auto", "cpu", "cuda", "cuda:<number>".
    cache_bytes, half_cache, half_products: see ras_agent.tools.gfm.choose.gfm_scorer.
    tolerance: how far a probability may be off, because changes of the graph's states that matter less are not
        computed; 0 computes all of them.
    Raises IndexMismatch where there is no graph, or its vectors are not of the network's encoder; WeightsError;
    MissingExtra; SettingsError for a device that is absent, or a tolerance that is no probability.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtra("retriever 'gfm'", "gnn") from error
    linked = LinkedGraph.of(index, graph, linking, mentions)
    config, tensors = weights_of(weights)
    if ranker is None and weights in (None, PACKAGED_NAME):
        ranker = PACKAGED
    elif ranker is None and config.ranker:
        ranker = DocumentRanker(**config.ranker)
    messages = messages_of(linked.graph, config, linked.embedder)
    network = gfm_scorer(
        tensors,
        messages,
        device,
        cache_bytes=cache_bytes,
        half_cache=half_cache,
        half_products=half_products,
        tolerance=tolerance,
    )
    assert linked.embedder is not None  # messages_of has checked that the graph holds vectors
    return GFMRetriever(
        index.snapshot.passages,
        linked.graph,
        linked.rows,
        linked.linker,
        network,
        linked.embedder,
        ranker=ranker,
        config=config,
        paths=paths,
    )


def weights_of(folder: str | Path | None = None) -> tuple[GFMConfig, dict[str, Tensor]]:
    """Read configuration and weights of a folder, of the hub, or those that come with the package.

    Raises what `weights_folder` and `load_gfm` raise.
    """
    return load_gfm(weights_folder(PACKAGED_NAME if folder is None else folder))

"""GFM retrieval ranks passages by their entities, which a graph neural network scores (arXiv:2502.01113).

The query is linked to entities of the knowledge graph, at which the network starts. The network gives every entity
a probability, from which DocumentRanker scores passages. A hit can be explained by the chains of facts that its
score depends on most.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.config.address import as_argument
from ras_agent.contracts.arrays import Doubles, Floats, Ints
from ras_agent.contracts.errors import (
    IndexMismatch,
    SettingsError,
    WeightsError,
    needs_extra,
)
from ras_agent.contracts.records import Passage
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.gfm.choose import GFMScorer, gfm_scorer, with_room
from ras_agent.tools.gfm.cpu import CACHE_BYTES, TOLERANCE
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import isolated_scores
from ras_agent.tools.gfm.paths import MessagePath, best_paths
from ras_agent.tools.gfm.weights import (
    PACKAGED_NAME,
    GFMConfig,
    load_gfm,
    same_encoder,
    weights_folder,
)
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.arrays import Vectors
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker, LinkedEntity, Linking, Mentions
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.text_vectors import stored_vectors
from ras_agent.tools.retrieve.document_ranker import (
    PACKAGED,
    DocumentRanker,
    contributions,
    document_scores,
)
from ras_agent.tools.retrieve.ranker import ExplainedRetriever
from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k
from ras_agent.tools.retrieve.registered import takes

if TYPE_CHECKING:
    from torch import Tensor

# queries whose scores are kept until their hits are explained, about one for each thread
_REMEMBERED = 8


@dataclass(frozen=True, slots=True)
class FactPath:
    """Holds a chain of facts (subject, relation, object), and how much a score depends on it.

    A fact that is followed from object to subject has its ends swapped and "^-1" after its relation.
    """

    facts: tuple[tuple[str, str, str], ...]
    weight: float

    def to_text(self) -> str:
        """Return the chain as a line in the paper's form: "1.095  (a | sings | b) → (b | owned by^-1 | c)"."""
        facts = [f"({' | '.join(fact)})" for fact in self.facts]
        return f"{self.weight:.3f}  {' → '.join(facts)}"


class PathExplainedRetriever(ExplainedRetriever):
    """Explains hits by chains of facts. Subclasses implement `explain`."""

    @abstractmethod
    def explain(self, query: str, passage_ids: Sequence[str]) -> list[list[FactPath]]:
        """Return, for each passage, the chains of facts that its rank depends on most, heaviest first."""

    def why(self, query: str, passage_ids: Sequence[str]) -> list[tuple[str, ...]]:
        """Return, for each passage, the chains of `explain` as lines of text.

        If explaining fails, for example because memory runs out, every passage gets one line with the error.
        """
        try:
            explanations = self.explain(query, passage_ids)
        except (MemoryError, RuntimeError) as error:
            # gradients of a large graph take gigabytes; the hits are returned even without reasons
            return [(f"not explained: {error}",)] * len(passage_ids)
        return [tuple(map(FactPath.to_text, paths)) for paths in explanations]


class GFMRetriever(PathExplainedRetriever):
    """Ranks passages by their entities, and entities by the network's probability that they are relevant.

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
        """Combine the parts of the retriever; `gfm` builds them for an index. Raises SettingsError for negative
        `paths`.

        Args:
            rows: (D,), the position in `passages` of each of the graph's documents, -1 for a document that is not
                there.
            linker: finds the query's entities in the graph.
            embedder: the encoder that made the graph's vectors.
            ranker: scores passages by their entities; by default as in the paper.
            config: the network's configuration; by default `GFMConfig()`.
            paths: the number of chains of facts that explain each hit of `retrieve`; 0 for no explanations.
            cache_size: the number of recent queries whose vectors are kept.
        """
        config = config or GFMConfig()
        if paths < 0:
            raise SettingsError(f"paths must be 0 or more, got {paths}")
        self.passages = passages
        self.graph = graph
        self.network = network
        self._linker = linker
        self._ranker = ranker or DocumentRanker()
        self._rows = rows
        self._config = config
        self._paths = paths
        self._embed = question_vectors(embedder, config, cache_size)
        # explaining a query's hits reuses the scores that ranked them
        scores = partial(
            _score_entities,
            linker,
            graph,
            network,
            self._embed,
            config.idf_start_weights,
        )
        self._scored = lru_cache(_REMEMBERED)(scores)

    def linked(self, query: str) -> tuple[LinkedEntity, ...]:
        """Return the entities of the query, at which the network starts."""
        return self._linker.link(query)

    def vector(self, query: str) -> Floats:
        """Return the query's sentence vector, shape (text width,)."""
        return self._embed(query)

    def entity_scores(self, query: str) -> Doubles | None:
        """Return every entity's probability of being relevant (N,), eq. 10; None if the query is linked to no entity."""
        _, probabilities = self._scored(query)
        return probabilities

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows of `passages`. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        entities = self.entity_scores(query)
        if entities is None:
            return Ranking.empty()
        by_document = document_scores(
            entities, self.graph.mentions, self._ranker, self._others(query)
        )
        return top_k(scores_in(self.passages, self._rows, by_document), k)

    def _others(self, query: str) -> Doubles | None:
        """Return the probabilities of an imported graph's nodes that are not entities; None for our own graphs.

        The published code has documents and all other nodes in its graph, although no message leads to them, so they
        may be among the best nodes.
        """
        if not self.graph.manifest.exact:
            return None
        import torch

        weights = self.network.weights
        device = next(iter(weights.values())).device
        vector = torch.from_numpy(self.vector(query)[None])
        with torch.inference_mode():
            logit = isolated_scores(weights, vector.to(device))
        probability = _probabilities(logit.cpu().numpy())[0]
        count = len(self.graph.documents) + len(self.graph.others.nodes)
        return np.full(count, probability)

    def explain(
        self,
        query: str,
        passage_ids: Sequence[str],
        count: int | None = None,
        beam: int = 10,
        published: bool = False,
    ) -> list[list[FactPath]]:
        """Return, for each passage, the chains of facts that its rank depends on most, heaviest first (eq. 19).

        A chain leads from an entity of the query to the entity that adds most to the passage's score and is not in
        the query. A passage that names no such entity has no chains. Explaining takes one more forward pass, and
        one gradient for each entity to which chains lead.

        Args:
            count: the number of chains for each passage; by default the `paths` of the retriever, or 3 if that is
                0.
            beam: the number of partial chains that are continued from each entity at every layer.
            published: whether to rank chains by the mean of their derivatives, as the published code does (see
                published_paths), instead of by the sum.
        """
        start, entities = self._scored(query)
        if entities is None:
            return [[] for _ in passage_ids]
        counting, added = contributions(
            entities, self.graph.mentions, self._ranker, self._others(query)
        )
        adds = np.zeros(len(entities))
        adds[counting] = added
        targets = [
            self._target(passage, start, entities, adds) for passage in passage_ids
        ]

        writer = FactWriter(
            self.graph.entities,
            self.graph.relations,
            self.network.graph,
            self._config.message_target,
        )
        return fact_paths(
            targets,
            self.network,
            writer,
            question=self.vector(query),
            start=start,
            count=count or self._paths or 3,
            beam=beam,
            published=published,
        )

    def _target(
        self, passage_id: str, start: GFMStart, entities: Doubles, adds: Doubles
    ) -> int | None:
        """Return the entity to which a passage's chains lead; None if the passage names only entities of the query."""
        document = self.graph.document_id(passage_id)
        if document is None:
            return None
        named = self.graph.documents_to_entities.row(document)
        others = named[~np.isin(named, start.entities)]
        if not len(others):
            return None
        # if none of them adds to the score, take the likeliest
        order = np.lexsort((-entities[others], -adds[others]))
        return int(others[order[0]])


def question_vectors(
    embedder: Embedder, config: GFMConfig, cache_size: int = 1024
) -> Callable[[str], Floats]:
    """Return a function that embeds a question as the network's weights expect it: str -> (text width,).

    Args:
        config: its `question_prefix`, if there is one, is put before the question.
        cache_size: the number of recent questions whose vectors are kept.
    """
    prefix = config.question_prefix
    if prefix is None:
        return remembering(embedder, cache_size).embed_query

    def vector(question: str) -> Floats:
        (embedded,) = embedder.embed([f"{prefix}{question}"])
        return np.asarray(embedded, dtype=np.float32)

    return lru_cache(cache_size)(vector)


def _score_entities(
    linker: EntityLinker,
    graph: KGIndex,
    network: GFMScorer,
    vector: Callable[[str], Floats],
    idf_start_weights: bool,
    query: str,
) -> tuple[GFMStart, Doubles | None]:
    """Return the query's entities, at which the network starts, and the probability that each entity is relevant.

    The probabilities, shape (N,), are a read-only array; None if the query names no entity of the graph.

    Args:
        vector: embeds the query.
        idf_start_weights: whether an entity that many documents name weighs less as a start.

    Raises:
        WeightsError: if the network's scores are not finite.
    """
    start = start_of(linker.link(query), graph.document_frequency, idf_start_weights)
    if not len(start.entities):
        return start, None
    logits = network.scores(vector(query)[None], [start])[0]
    probabilities = _probabilities(finite(logits, "gfm"))
    probabilities.flags.writeable = False
    return start, probabilities


def finite(logits: Floats, retriever: str) -> Floats:
    """Return the logits of a retriever's network. Raises WeightsError if one of them is not finite."""
    if not np.isfinite(logits).all():
        raise WeightsError(
            f"the scores of retriever {retriever!r} are not finite, because the numbers in its --weights are too large "
            "for this knowledge graph: give other --weights"
        )
    return logits


def scores_in(passages: Sequence[Passage], rows: Ints, by_document: Floats) -> Floats:
    """Return one score for each passage (len(passages),), given the scores of a graph's D documents. Others score 0.

    Args:
        rows: (D,), the position of each document in `passages`, -1 for a document that is not there.
        by_document: (D,), the documents' scores.
    """
    scores = np.zeros(len(passages), dtype=np.float32)
    in_corpus = rows >= 0
    scores[rows[in_corpus]] = by_document[in_corpus]
    return scores


def _probabilities(logits: Floats) -> Doubles:
    wide = logits.astype(np.float64)  # float32 rounds logits above 16 to 1
    with np.errstate(over="ignore"):
        probabilities: Doubles = 1 / (1 + np.exp(-wide))
    return probabilities


@dataclass(frozen=True, slots=True)
class FactWriter:
    """Converts paths of messages in the network's graph to paths of facts.

    Attributes:
        names: the names of the graph's nodes.
        relations: the names of the graph's relations, without inverses.
        graph: the network's graph, whose messages the paths refer to.
        message_target: see GFMConfig.
    """

    names: Sequence[str]
    relations: Sequence[str]
    graph: GFMGraph
    message_target: str = "head"

    def path(self, path: MessagePath) -> FactPath:
        """Return a path of messages as a path of facts, with the same weight."""
        facts = map(self._fact, path.messages)
        return FactPath(tuple(facts), path.weight)

    def _fact(self, message: int) -> tuple[str, str, str]:
        number = int(self.graph.relation[message])
        name = self.relations[number % len(self.relations)]
        # if messages go to the head, a relation's message goes from object to subject
        is_own = number < len(self.relations)
        if is_own == (self.message_target == "head"):
            name = f"{name}^-1"
        source = int(self.graph.source[message])
        target = int(self.graph.indptr.searchsorted(message, side="right")) - 1
        return self.names[source], name, self.names[target]


def fact_paths(
    targets: Sequence[int | None],
    network: GFMScorer,
    writer: FactWriter,
    **asked: Any,
) -> list[list[FactPath]]:
    """Return the best paths of facts to each target node; an empty list for a target that is None.

    Args:
        targets: node numbers.
        network: scores the nodes.
        writer: converts paths of messages to facts.
        asked: the question and further arguments of `best_paths`.
    """
    nodes = [node for node in dict.fromkeys(targets) if node is not None]

    def best(network: GFMScorer) -> list[list[MessagePath]]:
        return best_paths(
            network.weights,
            network.graph,
            targets=nodes,
            relation_states=network.relation_states,
            **asked,
        )

    written: dict[int | None, list[FactPath]] = {}
    if nodes:
        for node, paths in zip(nodes, with_room(network, best), strict=True):
            written[node] = list(map(writer.path, paths))
    return [written.get(target, []) for target in targets]


def _checked_vectors(graph: KGIndex, config: GFMConfig) -> Vectors:
    """Return the graph's vectors of the relations (R, text width).

    Raises IndexMismatch if the graph has no vectors, or those of another encoder or width.
    """
    if graph.relation_vectors is None:
        raise IndexMismatch(
            f"the knowledge graph {graph.where} holds no vectors, which the GFM network reads: build the graph with an "
            f"embedder, `ras-agent kg build {as_argument(graph.where)} --embedder minilm`"
        )
    identity = graph.manifest.embedder
    encoder = config.text_model
    if identity is not None and encoder and not same_encoder(encoder, identity.name):
        spec = encoder if ":" in encoder or encoder == "minilm" else f"st:{encoder}"
        raise IndexMismatch(
            f"the GFM network reads vectors of {encoder}, and the knowledge graph holds vectors of {identity.name}: "
            f"build the graph with {spec}, `ras-agent kg build {as_argument(graph.where)} --embedder {spec}`, or "
            "give other weights"
        )
    vectors = graph.relation_vectors
    if vectors.shape[1] != config.text_width:
        of_encoder = f" of {encoder}" if encoder else ""
        raise IndexMismatch(
            f"the GFM network reads vectors of width {config.text_width}{of_encoder}, and the knowledge graph "
            f"{graph.where} holds vectors of width {vectors.shape[1]} ({identity}): build the graph with the "
            "network's encoder, or give other weights"
        )
    return vectors


def inverse_vectors(
    graph: KGIndex, config: GFMConfig, embedder: Embedder | None = None
) -> Floats | None:
    """Return the vectors of the inverse relations (R, text width); None if they are the relations' vectors times -1.

    Vectors that are embedded from texts are stored in the graph's database. Raises IndexMismatch as `gfm` does.

    Args:
        embedder: the one that made the graph's vectors; by default the one that the graph names.
    """
    _checked_vectors(graph, config)
    if config.inverse == "negated":
        return None
    return _vectors_of_relations(
        graph, "inverse", f"{config.relation_prefix}inverse_", embedder
    )


def _vectors_of_relations(
    graph: KGIndex, use: str, prefix: str, embedder: Embedder | None
) -> Floats:
    embedder = embedder or graph.embedder
    assert embedder is not None  # vectors come with the embedder that made them
    texts = [f"{prefix}{name}" for name in graph.relations]
    return stored_vectors(
        graph.database, use, embedder, texts, graph.relations, part=graph.is_part
    )


def relation_vectors(
    graph: KGIndex, config: GFMConfig, embedder: Embedder | None = None
) -> Vectors:
    """Return the vectors of the graph's relations (R, text width). Raises IndexMismatch as `gfm` does.

    A graph stores vectors in 16 bits. Published weights were made for more precise ones, so for these the relations
    are embedded again, and stored in the graph's database.

    Args:
        embedder: the one that made the graph's vectors; by default the one that the graph names.
    """
    vectors = _checked_vectors(graph, config)
    if config.question_prefix is None and not config.relation_prefix:
        return vectors
    return _vectors_of_relations(graph, "relations", config.relation_prefix, embedder)


def messages_of(
    graph: KGIndex, config: GFMConfig, embedder: Embedder | None = None
) -> GFMGraph:
    """Return a knowledge graph as the nodes and messages of the network. Raises IndexMismatch as `gfm` does.

    Args:
        embedder: the one that made the graph's vectors; by default the one that the graph names.
    """
    return GFMGraph.from_edges(
        len(graph.entities),
        np.asarray(graph.edges),
        relation_vectors(graph, config, embedder),
        inverse_vectors(graph, config, embedder),
        config.message_target,
    )


def start_of(
    links: Sequence[LinkedEntity], frequency: Ints, idf_start_weights: bool = True
) -> GFMStart:
    """Return a question's linked entities, ascending, with the weights at which the network starts.

    Args:
        links: the entities that the question was linked to; the weights of repeated links are added.
        frequency: (N,), the number of documents that name each entity.
        idf_start_weights: whether to divide a link's weight by that number, and to leave out entities that no
            document names, as the published code does.
    """
    weights: dict[int, float] = {}
    for link in links:
        if frequency[link.entity] or not idf_start_weights:
            weights[link.entity] = weights.get(link.entity, 0.0) + link.weight
    named = sorted(weights)
    entities = np.array(named, dtype=np.int64)
    shares = np.array([weights[entity] for entity in named], dtype=np.float32)
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
    """Build the retriever registered as "gfm", over the index's own graph or `graph`.

    Args:
        weights: a folder of weights, this package's or published ones, or their id on the Hugging Face hub; by
            default those that come with the package, which read vectors of the packaged MiniLM.
        linking, mentions: how the query's names are found in the graph.
        ranker: scores passages by their entities; by default that of the weights' configuration, else the paper's;
            PACKAGED for the package's weights.
        paths: the number of chains of facts that explain each hit; 0 for no explanations.
        device: "auto", "cpu", "cuda", "cuda:<number>".
        cache_bytes, half_cache, half_products: see ras_agent.tools.gfm.choose.gfm_scorer.
        tolerance: the greatest error of a probability. Changes of the graph's states that matter less are skipped;
            0 computes everything.

    Raises:
        IndexMismatch: if there is no graph, or its vectors are not by the network's encoder.
        WeightsError: if the weights cannot be read.
        MissingExtra: if torch is not installed.
        SettingsError: for a device that does not exist, or a tolerance that is not a probability.
    """
    with needs_extra("retriever 'gfm'", "gnn"):
        import torch  # noqa: F401
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
    # messages_of has checked that the graph holds vectors
    assert linked.embedder is not None
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
    """Return the network's configuration and weights. Raises the errors of `weights_folder` and `load_gfm`.

    Args:
        folder: a folder, or an id on the Hugging Face hub; None for the weights that come with the package.
    """
    if folder is None:
        folder = PACKAGED_NAME
    return load_gfm(weights_folder(folder))

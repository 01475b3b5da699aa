"""G-reasoner retrieval ranks passages as nodes of the graph, by a network that reads every node's text.

The graph has a node for each entity and each document, and for the nodes of other types in an imported graph, such
as attributes and communities. It has a message in each direction for each fact, equivalence, mention and other
edge. The texts of nodes and relations are embedded once, by the weights' encoder, and stored with the graph. A
query starts at the entities it names and at the documents nearest to it, or at the nodes to which it was linked
beforehand. A hit can be explained by the chains of facts that its node's score depends on most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from ras_agent.contracts.arrays import Floats, Ints, unit_rows
from ras_agent.contracts.errors import (
    IndexMismatch,
    SettingsError,
    WeightsError,
    needs_extra,
)
from ras_agent.contracts.records import Passage
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.gfm.cpu import CACHE_BYTES, TOLERANCE
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.reasoner import FastReasoner, ReasonerConfig, load_reasoner
from ras_agent.tools.gfm.weights import same_encoder, weights_folder
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.ties import TIE
from ras_agent.tools.kg.formats.gfm_csv import MENTIONED
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker, LinkedEntity, Linking, Mentions
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.other_nodes import DOCUMENT, ENTITY, Node, node_text
from ras_agent.tools.kg.text_vectors import stored_vectors
from ras_agent.tools.retrieve.gfm import (
    FactPath,
    FactWriter,
    PathExplainedRetriever,
    fact_paths,
    finite,
    scores_in,
)
from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k
from ras_agent.tools.retrieve.registered import takes
from ras_agent.tools.store.database import Database

NEAREST_DOCUMENTS = 5
"""The number of documents, nearest to the question, that are start nodes; as in the published evaluation."""


class GReasonerRetriever(PathExplainedRetriever):
    """Ranks passages by the network's logits of their nodes; a hit's score is log(1 + exp(logit))."""

    name = "greasoner"

    def __init__(
        self,
        passages: Sequence[Passage],
        graph: KGIndex,
        rows: Ints,
        linker: EntityLinker,
        network: FastReasoner,
        config: ReasonerConfig,
        embedder: Embedder,
        *,
        nearest: int = NEAREST_DOCUMENTS,
        paths: int = 0,
        cache_size: int = 1024,
    ) -> None:
        """Combine the parts of the retriever; `greasoner` builds them for an index. Raises SettingsError for negative
        numbers.

        Args:
            rows: (D,), the position in `passages` of each document of the graph, -1 for a document that is not
                there.
            linker: finds the query's entities in the graph.
            network: the network over `messages_of_nodes(graph, ...)`.
            embedder: the encoder that made the vectors of the texts that the network reads.
            nearest: the number of documents at which a query starts.
            paths: the number of chains of facts that explain each hit of `retrieve`; 0 for no explanations.
            cache_size: the number of recent queries whose vectors are kept.
        """
        if nearest < 0:
            raise SettingsError(
                f"nearest, the number of documents at which a query starts, must be 0 or more, got {nearest}"
            )
        if paths < 0:
            raise SettingsError(f"paths must be 0 or more, got {paths}")
        self.passages = passages
        self.graph = graph
        self._rows = rows
        self._linker = linker
        self._network = network
        self._numbers = NodeNumbers(graph)
        self._nearest = nearest
        self._paths = paths
        self._documents = network.texts[self._numbers.documents :]

        def embed(query: str) -> Floats:
            texts = [config.query_instruct + query]
            vectors = text_vectors(None, "query", embedder, texts, config)
            vector: Floats = vectors[0]
            return vector

        self._embed: Callable[[str], Floats] = lru_cache(cache_size)(embed)

    def vector(self, query: str) -> Floats:
        """Return the query's vector, shape (text width,), embedded with the instruction that the weights were trained
        with.
        """
        return self._embed(query)

    def start(self, query: str) -> GFMStart:
        """Return the nodes at which the network starts for a query, ascending, each with weight 1.

        These are the nodes, of any type, to which the query was linked beforehand. Without such links they are the
        best entity for each name in the query, and the documents nearest to the query.
        """
        nodes = start_nodes(
            query,
            self._linker,
            self._numbers,
            self._documents,
            self.vector(query),
            self._nearest,
        )
        weights = np.ones(len(nodes), dtype=np.float32)
        return GFMStart(nodes, weights)

    def node_scores(self, query: str) -> Floats:
        """Return the logit of every node (N,), in the order of NodeNumbers. Raises WeightsError if a logit is not
        finite.
        """
        logits: Floats = self._network.scores(
            self.vector(query)[None], [self.start(query)]
        )[0]
        return finite(logits, "greasoner")

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows of `passages`. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        if not len(self._documents):
            return Ranking.empty()
        logits = self.node_scores(query)[self._numbers.documents :]
        # ascends with the logit and is positive, as hits' scores have to be; many probabilities would round to 1
        by_document = np.logaddexp(0, logits.astype(np.float64))
        return top_k(scores_in(self.passages, self._rows, by_document), k)

    def explain(
        self,
        query: str,
        passage_ids: Sequence[str],
        count: int | None = None,
        beam: int = 10,
        published: bool = False,
    ) -> list[list[FactPath]]:
        """Return, for each passage, the chains of facts that the score of its node depends on most, heaviest first.

        A chain leads from a node of the query to the node of the passage, which may be the same. The label of a
        node that is not an entity ends with its type. Explaining takes one more forward pass, and one gradient for
        each passage.

        Args:
            count: the number of chains for each passage; by default the `paths` of the retriever, or 3 if that is
                0.
            beam, published: see GFMRetriever.explain.
        """
        network = self._network
        targets = [self._numbers.of(Node(DOCUMENT, passage)) for passage in passage_ids]
        writer = FactWriter(self._labels, relation_names(self.graph), network.graph)
        return fact_paths(
            targets,
            network,
            writer,
            question=self.vector(query),
            start=self.start(query),
            nodes=network.texts,
            count=count or self._paths or 3,
            beam=beam,
            published=published,
        )

    @cached_property
    def _labels(self) -> list[str]:
        """Return each node's name for explanations."""
        labels = list(self.graph.entities)
        for node in self.graph.others.nodes:
            labels.append(f"{node.name} ({node.type})")
        for name, row in zip(self.graph.documents, self._rows.tolist(), strict=True):
            title = self.passages[row].title if row >= 0 else ""
            labels.append(f"{title or name} ({DOCUMENT})")
        return labels


def start_nodes(
    query: str,
    linker: EntityLinker,
    numbers: NodeNumbers,
    documents: Floats,
    vector: Floats,
    nearest: int,
) -> Ints:
    """Return the nodes at which the network starts for a query, ascending; see GReasonerRetriever.start.

    Args:
        numbers: the numbers of the graph's nodes.
        documents: (D, text width), the vectors of the documents' texts.
        vector: (text width,), the query's vector.
        nearest: the number of nearest documents to start at.
    """
    nodes: set[int | None] = set()
    for kind, names in linker.starts(query).items():
        for name in names:
            nodes.add(numbers.of(Node(kind, name)))
    nodes.discard(None)
    if not nodes:
        found = nearest_documents(documents, vector, nearest) + numbers.documents
        nodes.update(found.tolist())
        nodes.update(link.entity for link in _likeliest(linker.link(query)))
    numbered = np.array(list(nodes), dtype=np.int64)
    return np.sort(numbered)


def nearest_documents(documents: Floats, query: Floats, count: int) -> Ints:
    """Return the numbers of the `count` documents whose vectors are nearest to the query's, ascending.

    All documents that tie with the last one are included, so that equal documents get equal scores.

    Args:
        documents: (D, text width).
        query: (text width,).
    """
    count = min(count, len(documents))
    if not count:
        return np.zeros(0, dtype=np.int64)
    cosines = documents @ query
    last = np.partition(cosines, -count)[-count]
    return np.flatnonzero(cosines >= last - TIE)


def _likeliest(links: Sequence[LinkedEntity]) -> Iterable[LinkedEntity]:
    """Return, for each mention, the link with the largest weight."""
    best: dict[str, LinkedEntity] = {}
    for link in links:
        other = best.setdefault(link.mention, link)
        if link.weight > other.weight:
            best[link.mention] = link
    return best.values()


class NodeNumbers:
    """Numbers the nodes of a graph for the network: first entities, then nodes of other types, then documents.

    The attribute `documents` is the number of the first document.
    """

    def __init__(self, graph: KGIndex) -> None:
        """Number the nodes of `graph`."""
        self._graph = graph
        entities = len(graph.entities)
        others = enumerate(graph.others.nodes, start=entities)
        self._others = {node: number for number, node in others}
        self.documents = entities + len(self._others)

    def of(self, node: Node) -> int | None:
        """Return the number of a node; None if the graph does not contain it."""
        if node in self._others:
            return self._others[node]
        if node.type == DOCUMENT:
            document = self._graph.document_id(node.name)
            return None if document is None else self.documents + document
        if node.type != ENTITY or not node.name.strip():
            return None
        return self._graph.entity_id(node.name)


def node_texts(graph: KGIndex, passages: Sequence[Passage], rows: Ints) -> list[str]:
    """Return the text of each node, in the order of NodeNumbers: its name, type and content, as in the weights'
    training.

    A document is named by its title, not by its id, which means nothing to an encoder. The text of a node in an
    imported graph includes its attributes.

    Args:
        passages: the passages of the index, which contain the documents' titles and texts.
        rows: (D,), the position in `passages` of each document, -1 for a document that is not there.
    """
    others = graph.others
    texts = [
        node_text(others.about.get(name, {}), name=name, type=ENTITY)
        for name in graph.entities
    ]
    texts += [
        node_text(about, name=node.name, type=node.type)
        for node, about in others.nodes.items()
    ]
    for row in rows.tolist():
        lines = [f"type: {DOCUMENT}"]
        if row >= 0 and passages[row].title:
            lines.insert(0, f"name: {passages[row].title}")
        if row >= 0:
            lines.append(f"content: {passages[row].text}")
        texts.append("\n".join(lines).strip())
    return texts


def node_owners(graph: KGIndex) -> list[str]:
    """Return the name of each entity and other node, and the id of each document, in the order of NodeNumbers."""
    others = [node.name for node in graph.others.nodes]
    return [*graph.entities, *others, *graph.documents]


def relation_names(graph: KGIndex) -> list[str]:
    """Return the names of the network's relations: those of facts, the one of mentions, and those of an imported
    graph's edges.
    """
    known = [*graph.relations, MENTIONED]
    others = {link.relation for link in graph.others.links}
    return known + sorted(others.difference(known))


def relation_texts(graph: KGIndex) -> tuple[list[str], list[str]]:
    """Return the texts that are embedded for the relations, and for their inverses, in the order of `relation_names`."""
    texts = []
    inverses = []
    for name in relation_names(graph):
        attributes = graph.others.relations.get(name, {})
        texts.append(node_text(attributes, name=name))
        inverses.append(node_text(attributes, name=f"inverse_{name}"))
    return texts, inverses


def text_vectors(
    database: Database | None,
    use: str,
    embedder: Embedder,
    texts: Sequence[str],
    config: ReasonerConfig,
    owners: Sequence[str] | None = None,
    *,
    part: bool = False,
) -> Floats:
    """Embed texts, or read their vectors from `database`. Returns unit vectors (len(texts), text width).

    Vectors of more numbers are cut to the first ones, as the published code does (`truncate_dim`). Raises
    IndexMismatch if the embedder's vectors are shorter.

    Args:
        database: where the vectors are stored; None to store nothing.
        use: the name under which they are stored.
        config: sets the text width.
        owners, part: see `stored_vectors`.
    """
    vectors = stored_vectors(database, use, embedder, texts, owners, part=part)
    if vectors.shape[1] < config.text_width:
        raise IndexMismatch(
            f"the network of 'greasoner' reads vectors of width {config.text_width} of "
            f"{config.text_model or 'its encoder'}, and {embedder.name!r} makes vectors of width "
            f"{vectors.shape[1]}: give the retriever the network's encoder, embedder='st:NAME'"
        )
    if vectors.shape[1] == config.text_width:
        return vectors
    return unit_rows(vectors[:, : config.text_width])


def edges_of_nodes(graph: KGIndex) -> Ints:
    """Return the edges (E, 3) of the network's graph: head, relation and tail, numbered by NodeNumbers and
    `relation_names`.

    The edges are facts, equivalences, mentions (from entity to document), and the other edges of an imported graph.
    """
    numbers = NodeNumbers(graph)
    mentioned = len(graph.relations)
    number_of: dict[str, int] = {MENTIONED: mentioned}
    for number, name in enumerate(relation_names(graph)):
        number_of.setdefault(name, number)
    links = []
    for link in graph.others.links:
        head = numbers.of(link.source)
        tail = numbers.of(link.target)
        if head is not None and tail is not None:
            links.append((head, number_of[link.relation], tail))
    linked = np.array(links, dtype=np.int64).reshape(-1, 3)
    mentions = graph.mentions
    entities = mentions.entry_rows()
    documents = mentions.columns.astype(np.int64) + numbers.documents
    relations = np.full(len(entities), mentioned)
    stated = np.column_stack((entities, relations, documents))
    # where another edge joins an entity and a document, that edge replaces the mention
    width = numbers.documents + len(graph.documents)
    joined = np.isin(entities * width + documents, linked[:, 0] * width + linked[:, 2])
    facts = np.asarray(graph.edges, dtype=np.int64)
    return np.concatenate((facts, stated[~joined], linked))


def messages_of_nodes(
    graph: KGIndex, vectors: Floats, inverse: Floats | None
) -> GFMGraph:
    """Return a knowledge graph as the nodes and messages of the network.

    Args:
        vectors, inverse: (R, text width), the vectors of the relations, in the order of `relation_names`, and of
            their inverses; see GFMGraph.from_edges.
    """
    nodes = NodeNumbers(graph).documents + len(graph.documents)
    edges = edges_of_nodes(graph)
    return GFMGraph.from_edges(nodes, edges, vectors, inverse)


@dataclass(frozen=True, slots=True)
class NodeVectors:
    """Holds the vectors of a graph's texts."""

    nodes: Floats
    """(N, text width), in the order of NodeNumbers."""
    relations: Floats
    """(R, text width), in the order of `relation_names`."""
    inverses: Floats | None
    """(R, text width); None if they are the relations' vectors times -1."""

    @classmethod
    def of(
        cls,
        graph: KGIndex,
        passages: Sequence[Passage],
        rows: Ints,
        embedder: Embedder,
        config: ReasonerConfig,
    ) -> NodeVectors:
        """Return the vectors of a graph's texts, embedded by the weights' encoder or read from the graph's database.

        Args:
            passages, rows: see `node_texts`.
        """

        def vectors_of(use: str, texts: Sequence[str], owners: Sequence[str]) -> Floats:
            instructed = [config.passage_instruct + text for text in texts]
            return text_vectors(
                graph.database,
                use,
                embedder,
                instructed,
                config,
                owners,
                part=graph.is_part,
            )

        texts = node_texts(graph, passages, rows)
        nodes = vectors_of("nodes", texts, node_owners(graph))
        names = relation_names(graph)
        texts, inverse_texts = relation_texts(graph)
        relations = vectors_of("relations", texts, names)
        inverses = None
        if config.inverse != "negated":
            inverses = vectors_of("inverses", inverse_texts, names)
        return cls(nodes, relations, inverses)


def encoder_of(
    linked: LinkedGraph, embedder: object, config: ReasonerConfig
) -> Embedder:
    """Return the embedder for the texts that the network reads. Raises IndexMismatch if it is not the weights'
    encoder.

    Args:
        embedder: a name or object of the user's choice; None for the embedder of the graph.
    """
    encoder = resolve_embedder(embedder) if embedder is not None else linked.embedder
    name = encoder.name if encoder else "no embedder"
    if encoder is None or (
        config.text_model and not same_encoder(config.text_model, name)
    ):
        raise IndexMismatch(
            f"the weights of 'greasoner' read vectors of {config.text_model or 'their encoder'}, not of {name!r}: give it "
            f"that encoder, embedder='st:{config.text_model}', or build index and graph with "
            f"--embedder st:{config.text_model}"
        )
    return encoder


@takes("graph", "linking", "mentions", "weights")
def greasoner(
    index: PassageIndex,
    *,
    weights: str | Path | None = None,
    graph: KGIndex | LinkedGraph | None = None,
    linking: Linking | None = None,
    mentions: Mentions | None = None,
    embedder: object = None,
    nearest: int = NEAREST_DOCUMENTS,
    paths: int = 0,
    cache_bytes: int = CACHE_BYTES,
    half_cache: bool | None = None,
    tolerance: float = TOLERANCE,
) -> GReasonerRetriever:
    """Build the retriever registered as "greasoner", over the index's own graph or `graph`. It runs on the CPU.

    The first call embeds the text of every node and relation, and stores the vectors with the graph. With the
    published encoder on a CPU this takes minutes for a thousand passages.

    Args:
        weights: a folder of published weights (config.json and model.pth or model.safetensors), or their name on
            the Hugging Face hub. The package includes no weights for this retriever.
        linking, mentions: how the query's names are found in the graph.
        embedder: the weights' encoder; by default that of the graph, which has to be the same.
        nearest: the number of documents at which a query starts, in addition to the entities it names.
        paths: the number of chains of facts that explain each hit; 0 for no explanations.
        cache_bytes, half_cache, tolerance: see ras_agent.tools.gfm.cpu.FastGFM.

    Raises:
        IndexMismatch: if there is no graph, or for another encoder.
        WeightsError: without weights, or if they cannot be read.
        MissingExtra: if torch is not installed.
    """
    with needs_extra("retriever 'greasoner'", "gnn"):
        import torch  # noqa: F401
    linked = LinkedGraph.of(index, graph, linking, mentions)
    if weights is None:
        raise WeightsError(
            "retriever 'greasoner' needs weights, and the package includes no weights for it: give published ones, "
            "weights='rmanluo/G-reasoner-34M'"
        )
    config, tensors = load_reasoner(weights_folder(weights))
    encoder = encoder_of(linked, embedder, config)
    passages = index.snapshot.passages
    vectors = NodeVectors.of(linked.graph, passages, linked.rows, encoder, config)
    network = FastReasoner(
        tensors,
        messages_of_nodes(linked.graph, vectors.relations, vectors.inverses),
        vectors.nodes,
        cache_bytes=cache_bytes,
        half_cache=half_cache,
        tolerance=tolerance,
    )
    return GReasonerRetriever(
        passages,
        linked.graph,
        linked.rows,
        linked.linker,
        network,
        config,
        encoder,
        nearest=nearest,
        paths=paths,
    )

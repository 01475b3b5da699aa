"""G-reasoner retrieval: rank passages as nodes of the graph, by a network that reads every node's text.

The graph has a node for each entity and each document, those of other types that an imported graph has, such as
attributes and communities, and a message each way for each fact, equivalence, mention and other edge. Texts of nodes
and relations are embedded once, by the encoder of the weights, and stored beside the graph. A query starts at the
entities it names and at the documents nearest to it, or at the nodes that it was linked to before. A hit can be
explained by the chains of facts that its node's score depends on most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import IndexMismatch, MissingExtra, SettingsError, WeightsError
from ras_agent.protocols import Embedder
from ras_agent.records import Passage
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.gfm.cpu import CACHE_BYTES, TOLERANCE
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.paths import best_paths
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
from ras_agent.tools.retrieve.gfm import FactPath, PathExplainedRetriever, fact_path
from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k
from ras_agent.tools.retrieve.registered import takes
from ras_agent.tools.store.database import Database

NEAREST_DOCUMENTS = 5
"""So many documents, those nearest to the question, are start nodes in the published evaluation."""


class GReasonerRetriever(PathExplainedRetriever):
    """Retriever that ranks passages by the network's logits of their nodes; a hit's score is log(1 + exp(logit))."""

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
        """Put the parts together.

        rows: (D,), the place in `passages` of each document of the graph, -1 for none.
        network: over `messages_of_nodes(graph, ...)`. embedder: made the vectors of the texts that it reads.
        nearest: the number of documents that a query starts from.
        paths: the number of chains of facts that explain each hit of `retrieve`.
        """
        if nearest < 0:
            raise SettingsError(f"a query starts from 0 or more documents, got {nearest}")
        if paths < 0:
            raise SettingsError(f"a hit has 0 or more paths, got {paths}")
        self.passages, self.graph, self._rows, self._linker, self._network = passages, graph, rows, linker, network
        self._numbers, self._nearest, self._paths = NodeNumbers(graph), nearest, paths
        self._documents = network.texts[self._numbers.documents :]
        self._embed: Callable[[str], Floats] = lru_cache(cache_size)(
            lambda query: text_vectors(None, "query", embedder, [config.query_instruct + query], config)[0]
        )

    def vector(self, query: str) -> Floats:
        """Return the query's vector (text width,), encoded with the weights' instruction."""
        return self._embed(query)

    def start(self, query: str) -> GFMStart:
        """Return the nodes that the network starts from, ascending, each of weight 1.

        They are those that the query was linked to before, of any type; else the likeliest entity of each name in the
        query, and the documents nearest to it.
        """
        vector = self.vector(query)
        nodes = start_nodes(query, self._linker, self._numbers, self._documents, vector, self._nearest)
        return GFMStart(nodes, np.ones(len(nodes), dtype=np.float32))

    def node_scores(self, query: str) -> Floats:
        """Return the logit of every node (N,), in the order of NodeNumbers. Raises WeightsError for one not finite."""
        logits: Floats = self._network.scores(self.vector(query)[None], [self.start(query)])[0]
        if not np.isfinite(logits).all():
            raise WeightsError("the network's scores are not finite: its weights are too large for the graph")
        return logits

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        if not len(self._documents):
            return Ranking.empty()
        logits = self.node_scores(query)[self._numbers.documents :]
        scores = np.zeros(len(self.passages), dtype=np.float32)
        in_corpus = self._rows >= 0
        # ascends as the logit does and is positive, as the scores of hits are; a probability would be 1 for many
        scores[self._rows[in_corpus]] = np.logaddexp(0, logits[in_corpus].astype(np.float64))
        return top_k(scores, k)

    def explain(
        self,
        query: str,
        passage_ids: Sequence[str],
        count: int | None = None,
        beam: int = 10,
        published: bool = False,
    ) -> list[list[FactPath]]:
        """Return for each passage the chains of facts that the score of its node depends on most, heaviest first.

        They lead from the query's nodes to that of the passage, which may be one of them. A node that is no entity has
        its type behind its name. Takes a plain pass of the network, and a gradient for each passage.
        count: chains a passage; by default `paths`, or 3. beam, published: see GFMRetriever.explain.
        """
        network, start = self._network, self.start(query)
        found = [self._numbers.of(Node(DOCUMENT, passage)) for passage in passage_ids]
        targets = [node for node in dict.fromkeys(found) if node is not None]
        arguments = network.weights, network.graph, self.vector(query), start, targets
        options: dict[str, Any] = {"relation_states": network.relation_states, "nodes": network.texts, "beam": beam}
        best = best_paths(*arguments, **options, count=count or self._paths or 3, published=published)
        relations = relation_names(self.graph)
        paths_to = dict(zip(targets, best, strict=True))
        return [
            [fact_path(self._labels, relations, network.graph, path) for path in paths_to.get(node, [])]
            if node is not None
            else []
            for node in found
        ]

    @cached_property
    def _labels(self) -> list[str]:
        """Return what an explanation calls each node."""
        titles = [
            self.passages[row].title or name if row >= 0 else name
            for name, row in zip(self.graph.documents, self._rows.tolist(), strict=True)
        ]
        others = [f"{node.name} ({node.type})" for node in self.graph.others.nodes]
        return [*self.graph.entities, *others, *(f"{title} ({DOCUMENT})" for title in titles)]


def start_nodes(
    query: str, linker: EntityLinker, numbers: NodeNumbers, documents: Floats, vector: Floats, nearest: int
) -> Ints:
    """Return the nodes that a query starts from, ascending; see GReasonerRetriever.start.

    documents: (D, text width), the vectors of the documents' texts. vector: the query's.
    """
    listed = (numbers.of(Node(kind, name)) for kind, names in linker.starts(query).items() for name in names)
    nodes = {number for number in listed if number is not None}
    if not nodes:
        entities = {link.entity for link in _likeliest(linker.link(query))}
        nodes = {*entities, *(nearest_documents(documents, vector, nearest) + numbers.documents).tolist()}
    return np.array(sorted(nodes), dtype=np.int64)


def nearest_documents(documents: Floats, query: Floats, count: int) -> Ints:
    """Return which `count` documents, of vectors (D, text width), are nearest to a query, ascending.

    All that tie with the last are among them, so that equal documents have equal scores.
    """
    cosines, count = documents @ query, min(count, len(documents))
    if not count:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(cosines >= np.partition(cosines, -count)[-count] - TIE)


def _likeliest(links: Sequence[LinkedEntity]) -> list[LinkedEntity]:
    """Return the link of the largest weight for each mention."""
    best: dict[str, LinkedEntity] = {}
    for link in links:
        if link.mention not in best or link.weight > best[link.mention].weight:
            best[link.mention] = link
    return list(best.values())


class NodeNumbers:
    """Numbers of a graph's nodes as the network has them: entities, then other nodes, then documents.

    documents: the number of the first document.
    """

    def __init__(self, graph: KGIndex) -> None:
        """Number the nodes of `graph`."""
        self._graph, first = graph, len(graph.entities)
        self._others = {node: first + place for place, node in enumerate(graph.others.nodes)}
        self.documents = first + len(self._others)

    def of(self, node: Node) -> int | None:
        """Return the number of a node, None for one that the graph lacks."""
        if (number := self._others.get(node)) is not None:
            return number
        if node.type == DOCUMENT:
            document = self._graph.document_id(node.name)
            return None if document is None else self.documents + document
        return self._graph.entity_id(node.name) if node.type == ENTITY and node.name.strip() else None


def node_texts(graph: KGIndex, passages: Sequence[Passage], rows: Ints) -> list[str]:
    """Return the text of each node in the order of NodeNumbers, as the weights were trained on: name, type, content.

    A document's name is its title; its id, which means nothing to an encoder, is not in the text. A node of an imported
    graph has its attributes there.
    """
    others, documents = graph.others, []
    for row in rows.tolist():
        name = f"name: {passages[row].title}\n" if row >= 0 and passages[row].title else ""
        content = f"\ncontent: {passages[row].text}" if row >= 0 else ""
        documents.append(f"{name}type: {DOCUMENT}{content}".strip())
    return [
        *(node_text(others.about.get(name, {}), name=name, type=ENTITY) for name in graph.entities),
        *(node_text(about, name=node.name, type=node.type) for node, about in others.nodes.items()),
        *documents,
    ]


def node_owners(graph: KGIndex) -> list[str]:
    """Return the name or the id that each node's text is about, in the order of NodeNumbers."""
    return [*graph.entities, *(node.name for node in graph.others.nodes), *graph.documents]


def relation_names(graph: KGIndex) -> list[str]:
    """Return the relations as the network has them: the graph's own, that of mentions, and those of other edges."""
    known = [*graph.relations, MENTIONED]
    return [*known, *sorted({link.relation for link in graph.others.links}.difference(known))]


def relation_texts(graph: KGIndex) -> tuple[list[str], list[str]]:
    """Return the texts of the relations, in the order of `relation_names`, and those of their inverses."""
    about = [(name, graph.others.relations.get(name, {})) for name in relation_names(graph)]
    return (
        [node_text(attributes, name=name) for name, attributes in about],
        [node_text(attributes, name=f"inverse_{name}") for name, attributes in about],
    )


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
    """Return unit vectors (len(texts), text width), stored in `database`; `owners`, `part` as in `stored_vectors`.

    Of longer vectors the first numbers are taken, as the published `truncate_dim` does. Raises IndexMismatch for
    shorter ones.
    """
    vectors = stored_vectors(database, use, embedder, texts, owners, part=part)
    if vectors.shape[1] < config.text_width:
        raise IndexMismatch(
            f"the network reads vectors of width {config.text_width} of {config.text_model or 'its encoder'}, and "
            f"{embedder.name!r} makes vectors of width {vectors.shape[1]}: give the retriever the former"
        )
    if vectors.shape[1] == config.text_width:
        return vectors
    vectors = vectors[:, : config.text_width]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalised: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return normalised


def edges_of_nodes(graph: KGIndex) -> Ints:
    """Return the edges (E, 3) of the network's graph: head, relation, tail, by NodeNumbers and `relation_names`.

    They are facts and equivalences, mentions from entity to document, and the other edges of an imported graph.
    """
    numbers, relations = NodeNumbers(graph), relation_names(graph)
    mentions, mentioned = graph.mentions, len(graph.relations)
    entities = np.repeat(np.arange(len(graph.entities)), mentions.row_sizes())
    documents = mentions.columns.astype(np.int64) + numbers.documents
    number_of = {name: number for number, name in reversed(list(enumerate(relations)))}
    links = [
        (head, mentioned if link.relation == MENTIONED else number_of[link.relation], tail)
        for link in graph.others.links
        if (head := numbers.of(link.source)) is not None and (tail := numbers.of(link.target)) is not None
    ]
    linked = np.array(links, dtype=np.int64).reshape(-1, 3)
    # what other edges join has its mentions among them
    width = numbers.documents + len(graph.documents)
    implied = ~np.isin(entities * width + documents, linked[:, 0] * width + linked[:, 2])
    stated = np.column_stack((entities, np.full(len(entities), mentioned), documents))[implied]
    return np.concatenate((np.asarray(graph.edges, dtype=np.int64), stated, linked))


def messages_of_nodes(graph: KGIndex, vectors: Floats, inverse: Floats | None) -> GFMGraph:
    """Make the network's graph of all nodes and edges.

    vectors, inverse: (relations, text width), of the relations in the order of `relation_names`, and of their inverses;
        see GFMGraph.from_edges.
    """
    nodes = NodeNumbers(graph).documents + len(graph.documents)
    return GFMGraph.from_edges(nodes, edges_of_nodes(graph), vectors, inverse)


@dataclass(frozen=True, slots=True)
class NodeVectors:
    """Vectors of a graph's texts: nodes (N, text width), relations and inverses (R, text width).

    inverses: None where they are the relations' times -1.
    """

    nodes: Floats
    relations: Floats
    inverses: Floats | None

    @classmethod
    def of(
        cls, graph: KGIndex, passages: Sequence[Passage], rows: Ints, embedder: Embedder, config: ReasonerConfig
    ) -> NodeVectors:
        """Embed the texts of a graph with the encoder of the weights; what is stored with the graph is read."""

        def vectors_of(use: str, texts: Sequence[str], owners: Sequence[str]) -> Floats:
            instructed = [config.passage_instruct + text for text in texts]
            return text_vectors(graph.database, use, embedder, instructed, config, owners, part=graph.is_part)

        nodes = vectors_of("nodes", node_texts(graph, passages, rows), node_owners(graph))
        names, inverses = relation_texts(graph)
        relations = vectors_of("relations", names, relation_names(graph))
        if config.inverse == "negated":
            return cls(nodes, relations, None)
        return cls(nodes, relations, vectors_of("inverses", inverses, relation_names(graph)))


def encoder_of(linked: LinkedGraph, embedder: object, config: ReasonerConfig) -> Embedder:
    """Return the embedder of the network's texts. Raises IndexMismatch for one that is not the weights' encoder."""
    encoder = resolve_embedder(embedder) if embedder is not None else linked.embedder
    if encoder is None or (config.text_model and not same_encoder(config.text_model, encoder.name)):
        raise IndexMismatch(
            f"the weights read vectors of {config.text_model or 'their encoder'}, not of "
            f"{encoder.name if encoder else 'no embedder'!r}: give the retriever that encoder, "
            f"embedder='st:{config.text_model}', or build index and graph with --embedder st:{config.text_model}"
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
    """Make the retriever registered as "greasoner", over the index's own graph or `graph`. It computes on the CPU.

    The first call embeds the text of every node and relation, which is stored with the graph: with the published
    encoder on a CPU that takes minutes for a thousand passages.

    weights: a folder of published weights, config.json and model.pth or model.safetensors, or their name on the Hugging
        Face hub. None come with the package.
    embedder: the weights' encoder; by default that of the graph, which has to be the same.
    nearest: the number of documents that a query starts from, besides the entities it names. paths: see
        GReasonerRetriever.
    cache_bytes, half_cache, tolerance: see ras_agent.tools.gfm.cpu.FastGFM.
    Raises IndexMismatch where there is no graph, or for another encoder; WeightsError; MissingExtra.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtra("retriever 'greasoner'", "gnn") from error
    linked = LinkedGraph.of(index, graph, linking, mentions)
    if weights is None:
        raise WeightsError(
            "retriever 'greasoner' comes without weights: give published ones, weights='rmanluo/G-reasoner-34M'"
        )
    config, tensors = load_reasoner(weights_folder(weights))
    encoder, kg, passages = encoder_of(linked, embedder, config), linked.graph, index.snapshot.passages

    vectors = NodeVectors.of(kg, passages, linked.rows, encoder, config)
    messages = messages_of_nodes(kg, vectors.relations, vectors.inverses)
    network = FastReasoner(
        tensors, messages, vectors.nodes, cache_bytes=cache_bytes, half_cache=half_cache, tolerance=tolerance
    )
    return GReasonerRetriever(
        passages, kg, linked.rows, linked.linker, network, config, encoder, nearest=nearest, paths=paths
    )

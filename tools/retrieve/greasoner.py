"""G-reasoner retrieval: rank passages as nodes of the graph, by a network that reads every node's text.

The graph has a node for each entity and each document, and a message each way for each fact, equivalence and mention.
Texts of nodes and relations are embedded once, by the encoder of the weights, and stored beside the graph. A query
starts at the entities it names and at the documents nearest to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import IndexMismatch, MissingExtra, SettingsError, WeightsError
from ras_agent.protocols import Embedder
from ras_agent.records import Passage
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
from ras_agent.tools.kg.text_vectors import stored_vectors
from ras_agent.tools.retrieve.ranker import RankedRetriever
from ras_agent.tools.retrieve.ranking import Ranking, check_query, top_k
from ras_agent.tools.retrieve.registered import takes
from ras_agent.tools.store.database import Database

NEAREST_DOCUMENTS = 5
"""So many documents, those nearest to the question, are start nodes in the published evaluation."""


class GReasonerRetriever(RankedRetriever):
    """Retriever that ranks passages by the network's logits of their nodes; a hit's score is log(1 + exp(logit))."""

    name = "greasoner"

    def __init__(
        self,
        passages: Sequence[Passage],
        rows: Ints,
        linker: EntityLinker,
        network: FastReasoner,
        documents: Floats,
        config: ReasonerConfig,
        embedder: Embedder,
        *,
        nearest: int = NEAREST_DOCUMENTS,
        cache_size: int = 1024,
    ) -> None:
        """Put the parts together.

        rows: (D,), the place in `passages` of each document of the graph, -1 for none.
        documents: (D, text width), the vectors of the documents' texts; their nodes follow those of the entities.
        embedder: made these vectors. nearest: the number of documents that a query starts from.
        """
        if nearest < 0:
            raise SettingsError(f"a query starts from 0 or more documents, got {nearest}")
        self.passages, self._rows, self._linker, self._network = passages, rows, linker, network
        self._documents, self._nearest = documents, nearest
        self._embed: Callable[[str], Floats] = lru_cache(cache_size)(
            lambda query: text_vectors(None, "query", embedder, [config.query_instruct + query], config)[0]
        )

    def vector(self, query: str) -> Floats:
        """Return the query's vector (text width,), encoded with the weights' instruction."""
        return self._embed(query)

    def start(self, query: str) -> GFMStart:
        """Return the nodes that the network starts from, ascending, each of weight 1.

        They are the likeliest entity of each name in the query, and the documents nearest to it.
        """
        entities = {link.entity for link in _likeliest(self._linker.link(query))}
        cosines = self._documents @ self.vector(query)
        first, count = self._network.graph.entities - len(cosines), min(self._nearest, len(cosines))
        # all that tie with the last, so that equal documents have equal scores
        documents = (
            np.flatnonzero(cosines >= np.partition(cosines, -count)[-count] - TIE) if count else np.zeros(0, int)
        )
        nodes = np.array(sorted({*entities, *(documents + first).tolist()}), dtype=np.int64)
        return GFMStart(nodes, np.ones(len(nodes), dtype=np.float32))

    def rank(self, query: str, k: int) -> Ranking:
        """Return the `k` best rows. Raises ValueError for a blank query or k < 1."""
        check_query(query, k)
        if not len(self._documents):
            return Ranking.empty()
        logits = self._network.scores(self.vector(query)[None], [self.start(query)])[0][-len(self._documents) :]
        if not np.isfinite(logits).all():
            raise WeightsError("the network's scores are not finite: its weights are too large for the graph")
        scores = np.zeros(len(self.passages), dtype=np.float32)
        in_corpus = self._rows >= 0
        # ascends as the logit does and is positive, as the scores of hits are; a probability would be 1 for many
        scores[self._rows[in_corpus]] = np.logaddexp(0, logits[in_corpus].astype(np.float64))
        return top_k(scores, k)


def _likeliest(links: Sequence[LinkedEntity]) -> list[LinkedEntity]:
    """Return the link of the largest weight for each mention."""
    best: dict[str, LinkedEntity] = {}
    for link in links:
        if link.mention not in best or link.weight > best[link.mention].weight:
            best[link.mention] = link
    return list(best.values())


def node_texts(graph: KGIndex, passages: Sequence[Passage], rows: Ints) -> list[str]:
    """Return the text of each node, entities before documents, as the weights were trained on: name, type, content.

    A document's name is its title; its id, which means nothing to an encoder, is not in the text.
    """
    documents = []
    for row in rows.tolist():
        name = f"name: {passages[row].title}\n" if row >= 0 and passages[row].title else ""
        content = f"\ncontent: {passages[row].text}" if row >= 0 else ""
        documents.append(f"{name}type: document{content}".strip())
    return [*(f"name: {name}\ntype: entity" for name in graph.entities), *documents]


def relation_texts(graph: KGIndex) -> tuple[list[str], list[str]]:
    """Return the texts of the relations and those of their inverses; the relation of mentions is the last of each."""
    names = [*graph.relations, MENTIONED]
    return [f"name: {name}" for name in names], [f"name: inverse_{name}" for name in names]


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


def messages_with_documents(graph: KGIndex, vectors: Floats, inverse: Floats) -> GFMGraph:
    """Make the network's graph: nodes are the entities, then the documents; messages are edges and mentions.

    vectors, inverse: (relations + 1, text width), of the relations, that of mentions last, and of their inverses.
    """
    mentions, count = graph.mentions, len(graph.entities)
    entities = np.repeat(np.arange(count), mentions.row_sizes())
    relation = np.full(len(entities), len(vectors) - 1)
    edges = np.concatenate((np.asarray(graph.edges), np.column_stack((entities, relation, mentions.columns + count))))
    return GFMGraph.from_edges(count + len(graph.documents), edges, vectors, inverse)


def _encoder(linked: LinkedGraph, embedder: object, config: ReasonerConfig) -> Embedder:
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
    nearest: the number of documents that a query starts from, besides the entities it names.
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
    encoder, kg, passages = _encoder(linked, embedder, config), linked.graph, index.snapshot.passages

    def vectors_of(use: str, texts: Sequence[str], owners: Sequence[str]) -> Floats:
        instructed = [config.passage_instruct + text for text in texts]
        return text_vectors(kg.database, use, encoder, instructed, config, owners, part=kg.is_part)

    nodes = vectors_of("nodes", node_texts(kg, passages, linked.rows), [*kg.entities, *kg.documents])
    names, inverses = relation_texts(kg)
    of_relations = [*kg.relations, MENTIONED]
    relations = vectors_of("relations", names, of_relations)
    inverse = -relations if config.inverse == "negated" else vectors_of("inverses", inverses, of_relations)
    messages = messages_with_documents(kg, relations, inverse)
    network = FastReasoner(
        tensors, messages, nodes, cache_bytes=cache_bytes, half_cache=half_cache, tolerance=tolerance
    )
    documents = nodes[len(kg.entities) :]
    return GReasonerRetriever(
        passages, linked.rows, linked.linker, network, documents, config, encoder, nearest=nearest
    )

"""What retrievers that look for structures in a knowledge graph share."""

from __future__ import annotations

import csv
import hashlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ras_agent.errors import ModelCallError
from ras_agent.records import Failure, Hit, Passage, Triple
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import LinkedEntity
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.passage_facts import STATED, sentence_of
from ras_agent.tools.subgraph.graph import Graph, Subgraph, plain_name
from ras_agent.tools.subgraph.paths import RankedPath

Finder = TypeVar("Finder")


class GraphRetriever(Generic[Finder]):
    """A graph, a finder of structures in it, and the passages that state its facts."""

    def __init__(
        self,
        passages: Sequence[Passage],
        linked: LinkedGraph,
        finder: Finder,
    ) -> None:
        """linked: the graph that `finder` looks through, with `passages`' rows."""
        self.passages, self.index, self.finder = passages, linked.graph, finder
        self._passage_of, self._linker = passages_of(linked.graph, passages, linked.rows), linked.linker

    def linked(self, query: str) -> tuple[LinkedEntity, ...]:
        """The entities that the finder starts from."""
        return self._linker.link(query)


def tell(failures: Sequence[Failure], judging: str, found: bool) -> None:
    """Warn of what went wrong while a chat model was judging. Raises ModelCallError if it `found` nothing for it."""
    if not failures:
        return
    told = f"{len(failures)} failures while {judging} judged, the first: {failures[0].message}"
    if not found:
        raise ModelCallError(told)
    warnings.warn(told, RuntimeWarning, stacklevel=3)


PassageOf = Callable[[str], tuple[int, Passage] | None]
"""A passage with its place in the corpus, by its id; None where it is gone."""

_BEHIND = 1 << 60  # a place behind all passages of a corpus
_REASONS = 3  # paths told of a passage


def passages_of(index: KGIndex, passages: Sequence[Passage], rows: npt.NDArray[np.int64]) -> PassageOf:
    """Finds the passages of a graph; rows: (D,) the place in `passages` of each of its documents, -1 for none."""

    def passage_of(passage_id: str) -> tuple[int, Passage] | None:
        document = index.document_id(passage_id)
        row = -1 if document is None else int(rows[document])
        return None if row < 0 else (row, passages[row])

    return passage_of


@dataclass(slots=True)
class _Found:
    row: int
    passage: Passage
    score: float = 0.0
    why: list[str] = field(default_factory=list)


def by_path(graph: Graph, paths: Sequence[RankedPath], passage_of: PassageOf, k: int) -> list[Hit]:
    """At most `k` passages, best first; each scores as the best path that has a fact from it, ties in corpus order.

    Its best paths are told as reasons. A path none of whose facts is in a passage at hand is a passage of its own,
    behind others of its score.
    """
    found: dict[str, _Found] = {}
    for one in paths:
        placed = _placed(one.path.triples(graph), passage_of)
        if not placed and one.path.edges:
            placed = [(len(found) + _BEHIND, path_passage(graph, one))]
        for row, passage in placed:
            known = found.setdefault(passage.id, _Found(row, passage, one.score))
            known.score = max(known.score, one.score)
            if len(known.why) < _REASONS and row < _BEHIND:
                known.why.append(f"{one.score:.3f}  {one.path.text(graph)}")
    return _hits(found.values(), k)


def by_fact(subgraph: Subgraph, values: Sequence[float], passage_of: PassageOf, k: int) -> list[Hit]:
    """At most `k` passages, best first; each scores as the facts of the subgraph that it states, `values` in the order
    of its edges; ties in corpus order. These facts are its reasons.

    Behind them stands, where there is room, the subgraph written out: a passage that states all of its facts.
    """
    found: dict[str, _Found] = {}
    for triple, value in zip(subgraph.triples, values, strict=True):
        for row, passage in _placed([triple], passage_of):
            known = found.setdefault(passage.id, _Found(row, passage))
            known.score += value
            known.why.append(f"{triple.subject} → {triple.predicate} → {triple.object}")
    hits = _hits(found.values(), k)
    if len(hits) < k and len(subgraph.edges):
        hits.append(Hit(subgraph_passage(subgraph), min((hit.score for hit in hits), default=0.0)))
    return hits


def path_passage(graph: Graph, ranked: RankedPath) -> Passage:
    """A path as text that extractors and answerers read. The same path has the same id."""
    title = plain_name(graph.nodes[ranked.path.start])
    return _written("path", title, ranked.path.triples(graph), {"path": ranked.path.text(graph)})


def subgraph_passage(subgraph: Subgraph) -> Passage:
    """A subgraph as text that extractors and answerers read, titled after its best connected node; under "subgraph" of
    its metadata are its CSV blocks. The same subgraph has the same id."""
    ends = subgraph.graph.edges[subgraph.edges][:, [0, 2]].ravel().tolist()
    title = plain_name(subgraph.graph.nodes[max(dict.fromkeys(ends), key=ends.count)])
    return _written("subgraph", title, subgraph.triples, {"subgraph": textualise(subgraph)})


def _written(kind: str, title: str, triples: Sequence[Triple], about: dict[str, str]) -> Passage:
    """A sentence for each fact. The facts come with the passage, so that no extractor needs to read it; each says the
    passage that stated it first. Equivalences, which none stated, are left out."""
    facts = []
    for triple in [triple for triple in triples if triple.sources] or triples:
        parts = map(plain_name, (triple.subject, triple.predicate, triple.object))
        facts.append([*parts, triple.sources[0].passage_id if triple.sources else kind])
    text = " ".join(sentence_of(*fact[:3]) for fact in facts)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Passage(f"{kind}:{digest}", text, title, metadata={**about, STATED: facts})


def _placed(triples: Iterable[Triple], passage_of: PassageOf) -> list[tuple[int, Passage]]:
    sources = [source.passage_id for triple in triples for source in triple.sources]
    return [place for place in map(passage_of, dict.fromkeys(sources)) if place is not None]


def _hits(found: Iterable[_Found], k: int) -> list[Hit]:
    ranked = sorted(found, key=lambda one: (-one.score, one.row))
    return [Hit(one.passage, one.score, tuple(one.why)) for one in ranked[:k]]


def textualise(subgraph: Subgraph) -> str:
    """`node_id,node_attr` and `src,edge_attr,dst`, a blank line between; nodes are numbered from 0 in their order.

    Names with commas, quotes or line ends are quoted as CSV wants it.
    """
    graph = subgraph.graph
    numbers = {int(node): number for number, node in enumerate(subgraph.nodes)}
    nodes, edges = StringIO(), StringIO()
    writer = csv.writer(nodes, lineterminator="\n")
    writer.writerow(["node_id", "node_attr"])
    writer.writerows([number, graph.nodes[node]] for node, number in numbers.items())
    writer = csv.writer(edges, lineterminator="\n")
    writer.writerow(["src", "edge_attr", "dst"])
    for head, relation, tail in graph.edges[subgraph.edges].tolist():
        writer.writerow([numbers[head], graph.relations[relation], numbers[tail]])
    return f"{nodes.getvalue()}\n{edges.getvalue()}"

"""From paths and subgraphs of a knowledge graph to hits: the passages that state their facts.

Facts that no passage states are written out as passages of their own.
"""

from __future__ import annotations

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ras_agent.errors import FilterError, ModelCallError
from ras_agent.filters import Filter
from ras_agent.protocols import Retriever
from ras_agent.records import Failure, Hit, Passage, Triple
from ras_agent.tools.index.stated_facts import STATED, sentence_of
from ras_agent.tools.index.ties import level
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import LinkedEntity
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.retrieve.copies import without_copies
from ras_agent.tools.retrieve.ranking import check_query
from ras_agent.tools.subgraph.graph import Graph, Subgraph, plain_name, textualise
from ras_agent.tools.subgraph.paths import RankedPath

Finder = TypeVar("Finder")


class GraphRetriever(ABC, Generic[Finder]):
    """Retriever with a finder of paths or subgraphs in a graph, and the passages that state the graph's facts."""

    filtered: Callable[[Filter], Retriever] | None = None

    def __init__(
        self,
        passages: Sequence[Passage],
        linked: LinkedGraph,
        finder: Finder,
    ) -> None:
        """Take the finder and the linked graph that it searches, whose rows are places in `passages`."""
        self.passages, self.index, self.finder = passages, linked.graph, finder
        self._passage_of, self._linker = passages_of(linked.graph, passages, linked.rows), linked.linker

    def linked(self, query: str) -> tuple[LinkedEntity, ...]:
        """Return the entities that the finder starts from."""
        return self._linker.link(query)

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits, best first, ties in corpus order.

        Raises ValueError for a blank query or k < 1, ModelCallError if a chat model scored nothing, and FilterError for
        a filter if the retriever was not made by name. A RuntimeWarning reports that a model scored only a part.
        """
        check_query(query, k)
        if not (restriction := Filter.of(filter)):
            return self._best(query, k)
        if self.filtered is None:
            raise FilterError(
                f"{type(self).__name__} cannot apply a filter, since it was made by hand: make it by its name, "
                "retriever_over(index, name)"
            )
        return self.filtered(restriction).retrieve(query, k)

    def _best(self, query: str, k: int) -> list[Hit]:
        """Return at most `k` hits; those behind take the places of copies."""
        wanted = k
        while True:
            found = self.retrieve_unfiltered(query, wanted)
            best = without_copies(found)
            if len(best) >= k or len(found) < wanted:
                return best[:k]
            wanted *= 2

    @abstractmethod
    def retrieve_unfiltered(self, query: str, k: int) -> list[Hit]:
        """Return what `retrieve` returns without a filter."""


def warn_of(failures: Sequence[Failure], scored: str, any_hit: bool) -> None:
    """Warn that a chat model failed while it scored. Raises ModelCallError if there is no hit for that reason."""
    if not failures:
        return
    count = "1 failure" if len(failures) == 1 else f"{len(failures):,} failures"
    message = f"{count} while {scored} scored, the first: {failures[0].message}"
    if not any_hit:
        raise ModelCallError(message)
    warnings.warn(message, RuntimeWarning, stacklevel=3)


PassageOf = Callable[[str], tuple[int, Passage] | None]
"""Finds a passage and its place in the corpus by id; None if it was deleted."""

_AFTER_ALL = 1 << 60  # a place after all passages of a corpus
_REASONS = 3  # paths listed per passage


def passages_of(index: KGIndex, passages: Sequence[Passage], rows: npt.NDArray[np.int64]) -> PassageOf:
    """Make the function that finds a graph's passages; rows: (D,) each document's place in `passages`, -1 for none."""

    def passage_of(passage_id: str) -> tuple[int, Passage] | None:
        document = index.document_id(passage_id)
        row = -1 if document is None else int(rows[document])
        return None if row < 0 else (row, passages[row])

    return passage_of


@dataclass(slots=True)
class _Candidate:
    row: int
    passage: Passage
    score: float = 0.0
    why: list[str] = field(default_factory=list)


def by_path(graph: Graph, paths: Sequence[RankedPath], passage_of: PassageOf, k: int) -> list[Hit]:
    """Return at most `k` passages; each scores as the best path that has a fact from it, ties in corpus order.

    Its best paths are its reasons. A path none of whose facts is in a passage becomes a passage of its own, after
    others of its score.
    """
    candidates: dict[str, _Candidate] = {}
    for ranked_path in paths:
        places = _places(ranked_path.path.triples(graph), passage_of)
        if not places and ranked_path.path.edges:
            places = [(len(candidates) + _AFTER_ALL, path_passage(graph, ranked_path))]
        for row, passage in places:
            candidate = candidates.setdefault(passage.id, _Candidate(row, passage, ranked_path.score))
            candidate.score = max(candidate.score, ranked_path.score)
            if len(candidate.why) < _REASONS and row < _AFTER_ALL:
                candidate.why.append(f"{ranked_path.score:.3f}  {ranked_path.path.text(graph)}")
    return _hits(candidates.values(), k)


def by_fact(subgraph: Subgraph, values: Sequence[float], passage_of: PassageOf, k: int) -> list[Hit]:
    """Return at most `k` passages, best first, ties in corpus order; the facts that a passage states are its reasons.

    A passage's score is the sum of the values of these facts; `values` has one per edge of the subgraph. If there is
    room, the subgraph itself follows as a passage that states all of its facts.
    """
    candidates: dict[str, _Candidate] = {}
    for triple, value in zip(subgraph.triples, values, strict=True):
        for row, passage in _places([triple], passage_of):
            candidate = candidates.setdefault(passage.id, _Candidate(row, passage))
            candidate.score += value
            candidate.why.append(f"{triple.subject} → {triple.predicate} → {triple.object}")
    hits = _hits(candidates.values(), k)
    if len(hits) < k and len(subgraph.edges):
        hits.append(Hit(subgraph_passage(subgraph), min((hit.score for hit in hits), default=0.0)))
    return hits


def path_passage(graph: Graph, ranked: RankedPath) -> Passage:
    """Write a path as a passage. The same path has the same id."""
    title = plain_name(graph.nodes[ranked.path.start])
    return _as_passage("path", title, ranked.path.triples(graph), {"path": ranked.path.text(graph)})


def subgraph_passage(subgraph: Subgraph) -> Passage:
    """Write a subgraph as a passage, titled after its best connected node. The same subgraph has the same id.

    Its metadata has the CSV form under "subgraph".
    """
    ends = subgraph.graph.edges[subgraph.edges][:, [0, 2]].ravel().tolist()
    title = plain_name(subgraph.graph.nodes[max(dict.fromkeys(ends), key=ends.count)])
    # names as they are: passages that state a fact of it are hits too, and the fact is to be the same one
    return _as_passage("subgraph", title, subgraph.triples, {"subgraph": textualise(subgraph)}, name_of=str)


def _as_passage(
    kind: str, title: str, triples: Sequence[Triple], about: dict[str, str], name_of: Callable[[str], str] = plain_name
) -> Passage:
    """Write one sentence per fact. Equivalences, which no passage stated, are left out.

    The facts are in the metadata, so that no extractor needs to read the text; each names the passage that stated it
    first.
    """
    facts = []
    for triple in [triple for triple in triples if triple.sources] or triples:
        parts = (triple.subject, triple.predicate, triple.object)
        facts.append([*map(name_of, parts), triple.sources[0].passage_id if triple.sources else kind])
    text = " ".join(sentence_of(*fact[:3]) for fact in facts)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Passage(f"{kind}:{digest}", text, title, metadata={**about, STATED: facts})


def _places(triples: Iterable[Triple], passage_of: PassageOf) -> list[tuple[int, Passage]]:
    sources = [source.passage_id for triple in triples for source in triple.sources]
    return [place for place in map(passage_of, dict.fromkeys(sources)) if place is not None]


def _hits(candidates: Iterable[_Candidate], k: int) -> list[Hit]:
    ranked = sorted(candidates, key=lambda candidate: -candidate.score)
    scores = level(np.array([candidate.score for candidate in ranked]), relative=True).tolist()
    order = sorted(range(len(ranked)), key=lambda place: (-scores[place], ranked[place].row))
    return [Hit(ranked[place].passage, scores[place], tuple(ranked[place].why)) for place in order[:k]]

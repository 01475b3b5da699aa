"""Turns paths and subgraphs of a knowledge graph into hits: the passages that state their facts.

Facts that no passage states are written out as new passages.
"""

from __future__ import annotations

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ras_agent.config.filters import Filter
from ras_agent.contracts.errors import FilterError, ModelCallError
from ras_agent.contracts.records import Failure, Hit, Passage, Triple
from ras_agent.running.protocols import Retriever
from ras_agent.tools.index.stated_facts import STATED, sentence_of
from ras_agent.tools.index.ties import level
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import LinkedEntity
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.retrieve.copies import best_without_copies
from ras_agent.tools.retrieve.ranking import check_query
from ras_agent.tools.retrieve.retrieval import (
    Retrieval,
    current_retrieval,
    retrieving,
)
from ras_agent.tools.subgraph.graph import Graph, Subgraph, plain_name, textualise
from ras_agent.tools.subgraph.paths import RankedPath

Finder = TypeVar("Finder")


class GraphRetriever(ABC, Generic[Finder]):
    """Finds paths or subgraphs in a knowledge graph, and returns the passages that state their facts.

    Subclasses implement `retrieve_unfiltered` by means of a finder of paths or subgraphs.
    """

    filtered: Callable[[Filter], Retriever] | None = None

    def __init__(
        self, passages: Sequence[Passage], linked: LinkedGraph, finder: Finder
    ) -> None:
        """Take the passages, the graph with its linker, and the finder that searches the graph.

        Args:
            linked: its `rows` are positions in `passages`.
        """
        self.passages = passages
        self.index = linked.graph
        self.finder = finder
        self._linker = linked.linker
        self._passage_of = passages_of(linked.graph, passages, linked.rows)

    def linked(self, query: str) -> tuple[LinkedEntity, ...]:
        """Return the entities of the query, at which the finder starts."""
        return self._linker.link(query)

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits, best first; hits with equal scores are in corpus order.

        Warns (RuntimeWarning) if a chat model failed to score some of the candidates.

        Raises:
            ValueError: for a blank query or k < 1.
            ModelCallError: if a chat model failed and there are no hits.
            FilterError: for a filter, if the retriever was not built by its name (`retriever_over`).
        """
        check_query(query, k)
        retrieval = current_retrieval()
        restriction = retrieval.filter.both(Filter.of(filter))
        retrieval.is_filtered = True
        if not restriction:
            return self._best(query, k)
        if self.filtered is None:
            raise FilterError(
                f"a {type(self).__name__} that was not built by name cannot apply a filter: build it with "
                "retriever_over(index, name)"
            )
        with retrieving(Retrieval()):
            return self.filtered(restriction).retrieve(query, k)

    def _best(self, query: str, k: int) -> list[Hit]:
        """Return at most `k` hits; further hits fill the places of copies."""

        def find(wanted: int) -> tuple[list[Hit], bool]:
            found = self.retrieve_unfiltered(query, wanted)
            return found, len(found) >= wanted

        return best_without_copies(find, k)

    @abstractmethod
    def retrieve_unfiltered(self, query: str, k: int) -> list[Hit]:
        """Return at most `k` hits, among which may be duplicates. `retrieve` applies the filter and removes them."""


def warn_of(failures: Sequence[Failure], scored: str, any_hit: bool) -> None:
    """Warn that a chat model failed while it scored. Raises ModelCallError instead if there are no hits at all.

    Args:
        failures: the model's failures; nothing happens without any.
        scored: names the things scored, with a verb, such as "paths were".
    """
    if not failures:
        return
    count = "1 failure" if len(failures) == 1 else f"{len(failures):,} failures"
    message = f"{count} while {scored} scored, the first: {failures[0].message}"
    if not any_hit:
        raise ModelCallError(message)
    warnings.warn(message, RuntimeWarning, stacklevel=3)


PassageOf = Callable[[str], tuple[int, Passage] | None]
"""Returns a passage, with its position in the corpus, by its id; None if it was deleted."""

_AFTER_ALL = 1 << 60  # a position after all passages of a corpus
_REASONS = 3  # most paths listed for a passage


def passages_of(
    index: KGIndex, passages: Sequence[Passage], rows: npt.NDArray[np.int64]
) -> PassageOf:
    """Return a function that looks up a passage of the graph by its id.

    Args:
        rows: (D,), the position in `passages` of each of the graph's documents, -1 for a document that is not
            there.
    """

    def passage_of(passage_id: str) -> tuple[int, Passage] | None:
        document = index.document_id(passage_id)
        if document is None or rows[document] < 0:
            return None
        row = int(rows[document])
        return row, passages[row]

    return passage_of


@dataclass(slots=True)
class _Candidate:
    row: int
    passage: Passage
    score: float = 0.0
    why: list[str] = field(default_factory=list)


def by_path(
    graph: Graph, paths: Sequence[RankedPath], passage_of: PassageOf, k: int
) -> list[Hit]:
    """Return at most `k` passages that state facts of the paths, best first, with equal scores in corpus order.

    A passage has the score of the best path with a fact from it, and its best paths as reasons. A path whose facts
    are in no passage is written out as a new passage, which comes after others of the same score.
    """
    candidates: dict[str, _Candidate] = {}
    for ranked in paths:
        path = ranked.path
        places = _places(path.triples(graph), passage_of)
        if not places and path.edges:
            place = len(candidates) + _AFTER_ALL
            places = [(place, path_passage(graph, ranked))]
        for row, passage in places:
            candidate = candidates.setdefault(
                passage.id, _Candidate(row, passage, ranked.score)
            )
            candidate.score = max(candidate.score, ranked.score)
            if len(candidate.why) < _REASONS and row < _AFTER_ALL:
                candidate.why.append(f"{ranked.score:.3f}  {path.text(graph)}")
    return _hits(candidates.values(), k)


def by_fact(
    subgraph: Subgraph,
    values: Sequence[float],
    passage_of: PassageOf,
    k: int,
    shares: npt.NDArray[np.float32] | None = None,
) -> list[Hit]:
    """Return at most `k` passages that state facts of a subgraph, best first, with equal scores in corpus order.

    A passage scores the sum of the values of its facts, which are its reasons. If fewer than `k` passages are
    found, a new passage that states all facts of the subgraph comes last.

    Args:
        values: one value for each edge of the subgraph.
        shares: the share of the question's terms in each passage of the corpus, which is added to the passage's
            score.
    """
    candidates: dict[str, _Candidate] = {}
    for triple, value in zip(subgraph.triples, values, strict=True):
        reason = f"{triple.subject} → {triple.predicate} → {triple.object}"
        for row, passage in _places([triple], passage_of):
            candidate = candidates.setdefault(passage.id, _Candidate(row, passage))
            candidate.score += value
            candidate.why.append(reason)
    if shares is not None:
        for candidate in candidates.values():
            share = shares[candidate.row]
            candidate.score += float(share)
    hits = _hits(candidates.values(), k)
    if len(hits) < k and len(subgraph.edges):
        least = hits[-1].score if hits else 0.0
        hits.append(Hit(subgraph_passage(subgraph), least))
    return hits


def path_passage(graph: Graph, ranked: RankedPath) -> Passage:
    """Return a new passage that states the facts of a path. The same path always gets the same id."""
    path = ranked.path
    title = plain_name(graph.nodes[path.start])
    about = {"path": path.text(graph)}
    return _as_passage("path", title, path.triples(graph), about)


def subgraph_passage(subgraph: Subgraph) -> Passage:
    """Return a new passage that states the facts of a subgraph, under the name of its best connected node.

    The same subgraph always gets the same id. The metadata has the subgraph in CSV form under "subgraph".
    """
    edges = subgraph.graph.edges[subgraph.edges]
    ends = Counter(edges[:, [0, 2]].ravel().tolist())
    [(centre, _)] = ends.most_common(1)
    title = plain_name(subgraph.graph.nodes[centre])
    about = {"subgraph": textualise(subgraph)}
    # names stay unchanged, so that a fact is the same as in the passages that state it, which are hits too
    return _as_passage("subgraph", title, subgraph.triples, about, name_of=str)


def _as_passage(
    kind: str,
    title: str,
    triples: Sequence[Triple],
    about: dict[str, str],
    name_of: Callable[[str], str] = plain_name,
) -> Passage:
    """Return a passage with one sentence for each fact. Equivalences, which no passage states, are left out.

    The metadata contains the facts, so that no extractor needs to read the text; each names the first passage that
    stated it.
    """
    facts = []
    stated = [triple for triple in triples if triple.sources]
    for triple in stated or triples:
        names = map(name_of, (triple.subject, triple.predicate, triple.object))
        stated_in = triple.sources[0].passage_id if triple.sources else kind
        fact: list[Any] = [*names, stated_in]
        if triple.attributes:
            fact.append(dict(triple.attributes))
        facts.append(fact)
    text = " ".join(sentence_of(*fact[:3]) for fact in facts)
    data = text.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(data, digest_size=6).hexdigest()
    metadata = {**about, STATED: facts}
    return Passage(f"{kind}:{digest}", text, title, metadata=metadata)


def _places(
    triples: Iterable[Triple], passage_of: PassageOf
) -> list[tuple[int, Passage]]:
    sources = dict.fromkeys(
        source.passage_id for triple in triples for source in triple.sources
    )
    places = map(passage_of, sources)
    return [place for place in places if place is not None]


def _hits(candidates: Iterable[_Candidate], k: int) -> list[Hit]:
    ranked = sorted(candidates, key=lambda candidate: -candidate.score)
    scores = np.array([candidate.score for candidate in ranked])
    levels = level(scores, relative=True).tolist()
    for candidate, score in zip(ranked, levels, strict=True):
        candidate.score = score
    ranked.sort(key=lambda candidate: (-candidate.score, candidate.row))
    hits = []
    for candidate in ranked[:k]:
        why = tuple(candidate.why)
        hits.append(Hit(candidate.passage, candidate.score, why))
    return hits

"""From found paths to hits: the passages that state their facts, or, where there is no text, the paths written out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from ras_agent.records import Hit, Passage, Triple
from ras_agent.tools.subgraph.graph import Graph, plain_name
from ras_agent.tools.subgraph.refine import RankedPath

__all__ = ["PassageOf", "hits_of", "path_passage"]

PassageOf = Callable[[str], tuple[int, Passage] | None]
"""A passage with its place in the corpus, by its id; None where it is gone."""


def hits_of(graph: Graph, paths: Sequence[RankedPath], passage_of: PassageOf, k: int) -> list[Hit]:
    """At most `k` passages, best first; each scores as the best path that has a fact from it, ties in corpus order.

    A path none of whose facts is in a passage at hand is a passage of its own, behind others of its score.
    """
    found: dict[str, tuple[float, int, Passage]] = {}
    for one in paths:
        sources = [source.passage_id for triple in one.path.triples(graph) for source in triple.sources]
        placed = [place for place in map(passage_of, dict.fromkeys(sources)) if place is not None]
        if not placed and one.path.edges:
            placed = [(len(found) + (1 << 60), path_passage(graph, one))]
        for row, passage in placed:
            known = found.get(passage.id)
            if known is None or known[0] < one.score:
                found[passage.id] = (one.score, row, passage)
    ranked = sorted(found.values(), key=lambda entry: (-entry[0], entry[1]))
    return [Hit(passage, score) for score, _, passage in ranked[:k]]


def path_passage(graph: Graph, ranked: RankedPath) -> Passage:
    """A path as text that extractors and answerers read: a sentence for each fact. The same path has the same id."""
    triples = ranked.path.triples(graph)
    text = " ".join(f"{_sentence(triple)}." for triple in triples)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return Passage(
        f"path:{digest}",
        text,
        plain_name(graph.nodes[ranked.path.start]),
        metadata={"path": ranked.path.text(graph), "facts": [triple.id for triple in triples]},
    )


def _sentence(triple: Triple) -> str:
    return " ".join(map(plain_name, (triple.subject, triple.predicate, triple.object)))

"""Compares two knowledge graphs: part by part, and by the scores of PageRank over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

import numpy as np

from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.ppr import ppr


def content_differences(one: KGIndex, other: KGIndex) -> dict[str, int]:
    """Count the items of each part that are in only one of two graphs; 0 for equal graphs. Vectors are left out.

    Parts: entities, relations, documents, facts (with their places), mentions (the inverted index with its
    counts), equivalences (with their cosines). Names are compared as they are written.
    """
    return {
        name: _apart(part, there) for (name, part), there in zip(_parts(one), dict(_parts(other)).values(), strict=True)
    }


def score_difference(one: Path, other: Path, queries: Sequence[str], k: int = 20) -> float:
    """Return the largest difference between the scores that `ppr` gives a passage over two indexes.

    For each query the `k` best passages of either index count; a passage that an index does not rank scores 0 there.
    """
    first, second = (ppr(PassageIndex.open(path)) for path in (one, other))
    largest = 0.0
    for query in queries:
        scores = [
            {hit.passage.id: hit.score for hit in side.retrieve(query, len(side.passages))} for side in (first, second)
        ]
        best = {name for side in scores for name in list(side)[:k]}
        largest = max([largest, *(abs(scores[0].get(name, 0.0) - scores[1].get(name, 0.0)) for name in best)])
    return largest


def _parts(graph: KGIndex) -> Iterable[tuple[str, Iterable[Hashable]]]:
    entities, relations, documents = list(graph.entities), list(graph.relations), list(graph.documents)
    yield "entities", entities
    yield "relations", relations
    yield "documents", documents
    edges = [(entities[head], relations[relation], entities[tail]) for head, relation, tail in graph.edges.tolist()]
    starts, sources = graph.arrays.source_starts, graph.arrays.sources
    places = list(
        zip(
            (documents[number] for number in sources["document"].tolist()),
            sources["start"].tolist(),
            sources["end"].tolist(),
            strict=True,
        )
    )
    yield "facts", [(edges[edge], *places[starts[edge] : starts[edge + 1]]) for edge in graph.facts]
    named = graph.mentions
    rows = np.repeat(np.arange(named.shape[0]), named.row_sizes())
    yield (
        "mentions",
        [
            (entities[row], documents[column], count)
            for row, column, count in zip(rows.tolist(), named.columns.tolist(), named.values.tolist(), strict=True)
        ],
    )
    yield "equivalences", list(zip(edges[graph.equivalences.start :], graph.similarities.tolist(), strict=True))


def _apart(one: Iterable[Hashable], other: Iterable[Hashable]) -> int:
    left, right = Counter(one), Counter(other)
    return (left - right).total() + (right - left).total()

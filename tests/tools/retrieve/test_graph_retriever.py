"""From paths to the passages that state them."""

from __future__ import annotations

from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.tools.retrieve.graph_retriever import by_path
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.paths import Path, RankedPath

PASSAGE = Passage("bell", "Bell knew many.", "Bell")
GRAPH = Graph.from_triples(
    [
        Triple("Bell", "knew", name, (Source("bell"),))
        for name in ("Edison", "Tesla", "Watson", "Gray")
    ]
)


def ranked(*scores: float) -> list[RankedPath]:
    return [
        RankedPath(Path((0, edge + 1), (edge,)), score)
        for edge, score in enumerate(scores)
    ]


def test_a_passage_scores_as_the_best_path_that_has_a_fact_from_it() -> None:
    for paths in (ranked(0.75, 0.5), ranked(0.5, 0.75)):
        (hit,) = by_path(GRAPH, paths, lambda name: (0, PASSAGE), 5)
        assert (hit.passage.id, hit.score) == ("bell", 0.75)


def test_three_paths_are_told_of_a_passage() -> None:
    (hit,) = by_path(
        GRAPH, ranked(0.75, 0.5, 0.25, 0.125), lambda name: (0, PASSAGE), 5
    )
    assert hit.why == (
        "0.750  Bell → knew → Edison",
        "0.500  Bell → knew → Tesla",
        "0.250  Bell → knew → Watson",
    )

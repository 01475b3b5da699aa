"""Triplets for the path encoder: a question, a fact or path that leads to its answer, and one beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from ras_agent.eval.question import Question
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.subgraph.graph import Graph, Subgraph, plain_name
from ras_agent.tools.subgraph.paths import Path, PathLimits, complete
from ras_agent.tools.subgraph.pipeline import without_names
from ras_agent.tools.subgraph.scoring import Wording

__all__ = ["PathExample", "path_examples"]


@dataclass(frozen=True, slots=True)
class PathExample:
    """What scorers will see: plain texts. Negatives are of the same kind as the positive, facts or paths."""

    question: str
    positive: str
    negatives: tuple[str, ...]


def path_examples(
    graph: Graph, questions: Iterable[Question], negatives: int = 8, seed: int = 0, wording: Wording = "facts"
) -> list[PathExample]:
    """For each question its gold path against other paths from the same start, and each gold fact against other facts
    that touch the gold path. Paths that end in an answer and gold facts are never negatives.

    Questions whose gold path is not in the graph are left out.
    """
    whole, dice, known = Subgraph.whole(graph), Random(seed), dict[tuple[int, ...], list[tuple[str, tuple[str, ...]]]]()
    found = []
    for question in questions:
        path = _gold(graph, question.metadata.get("path") or ())
        if path is None:
            continue
        if path.edges not in known:  # many questions ask for one path in other words
            right = {canonical_key(answer) for answer in question.answers}
            others = [
                other.scored_text(graph, wording)
                for other in complete(whole, [path.start], PathLimits(len(path), 2000)).paths
                if canonical_key(graph.nodes[other.end]) not in right and other.edges != path.edges[: len(other)]
            ]
            beside = {edge for node in path.nodes for edge in graph.incident.row(node).tolist()} - set(path.edges)
            gold = [graph.edge_text(edge, wording) for edge in path.edges]
            facts = [graph.edge_text(edge, wording) for edge in sorted(beside)]
            whole_path = path.scored_text(graph, wording)
            known[path.edges] = [
                (whole_path, _some(others, {whole_path}, negatives, dice)),
                *((fact, _some(facts, set(gold), negatives, dice)) for fact in gold),
            ]
        text = plain_name(question.question)
        if wording == "relations":
            text = without_names(text, [graph.nodes[path.start]])
        found += [PathExample(text, positive, wrong) for positive, wrong in known[path.edges] if wrong]
    return found


def _some(texts: Sequence[str], but: set[str], most: int, dice: Random) -> tuple[str, ...]:
    distinct = [text for text in dict.fromkeys(texts) if text not in but]
    return tuple(dice.sample(distinct, min(most, len(distinct))))


def _gold(graph: Graph, triples: Sequence[Sequence[str]]) -> Path | None:
    """The path of these facts, in their order and directions; None if the graph has it not."""
    path = None
    for head, relation, tail in triples:
        start, end = graph.find(head), graph.find(tail)
        if start is None or end is None or (path is not None and path.end != start):
            return None
        edges = [
            edge
            for edge in graph.incident.row(start).tolist()
            if graph.edges[edge, [0, 2]].tolist() == [start, end]
            and canonical_key(graph.relations[int(graph.edges[edge, 1])]) == canonical_key(relation)
        ]
        if not edges:
            return None
        path = path or Path((start,))
        path = Path((*path.nodes, end), (*path.edges, edges[0]))
    return path

"""Triples against gold triples, and what an answer says about a graph against that graph (G-Retriever, appendix F)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from ras_agent.eval.metrics.answer_sets import SetScore, set_score
from ras_agent.eval.metrics.answers import rouge_scorer
from ras_agent.eval.metrics.registry import Outcome, metric
from ras_agent.eval.question import Question
from ras_agent.marks import OBJECT, PREDICATE, SUBJECT, Mark
from ras_agent.text.canonical import canonical_key

TripleTexts = Sequence[str]
"""The three texts of a triple: subject, predicate, object."""
_Part = Literal["precision", "recall", "f1"]
_TripleScore = Callable[[Iterable[TripleTexts], Iterable[TripleTexts]], SetScore]

# from a parenthesis to the next, so a text is read once; the fields' white space and marks are taken off afterwards
_EDGE = re.compile(r"\(([^()|;]*+)([|;])([^()|;]*+)\2([^()|;]*+)\)")
_COMMA_EDGE = re.compile(r"\(([^(),|;]*+),([^(),|;]*+),([^(),|;]*+)\)")
_NODES = re.compile(r"^\W*nodes?\W*:(?P<inline>.*)$", re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+(?P<item>.+)$")


class CitedGraph(NamedTuple):
    """The nodes and edges that an answer refers to; an edge is its (head, relation, tail) texts."""

    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GraphValidity:
    """Counts of the `nodes` and `edges` that an answer cites, and of those among them that exist in its graph."""

    nodes: int
    valid_nodes: int
    edges: int
    valid_edges: int

    @property
    def cites(self) -> bool:
        """Tell whether anything is cited."""
        return self.nodes + self.edges > 0

    @property
    def fully_valid(self) -> bool:
        """Tell whether something is cited, and all of it exists."""
        return self.cites and (self.nodes, self.edges) == (self.valid_nodes, self.valid_edges)


def triple_score(predicted: Iterable[TripleTexts], gold: Iterable[TripleTexts]) -> SetScore:
    """Return precision, recall and F1 of triples; two are the same if all three parts have the same canonical key."""
    return set_score(map(_key, predicted), map(_key, gold))


def ends_score(predicted: Iterable[TripleTexts], gold: Iterable[TripleTexts]) -> SetScore:
    """Return precision, recall and F1 of (subject, object) pairs by canonical key, whatever their predicate."""
    return set_score(map(_ends, predicted), map(_ends, gold))


def soft_triple_score(predicted: Iterable[TripleTexts], gold: Iterable[TripleTexts]) -> SetScore:
    """Return precision, recall and F1 where a triple is worth the token F1 of its words with those of a gold triple.

    Each triple is matched at most once; the best pairs are taken first (as CaRB does for precision), ties in order of
    the predicted, then of the gold triples. A repeated triple counts once.
    """
    predictions, references = list(dict.fromkeys(map(_words, predicted))), list(dict.fromkeys(map(_words, gold)))
    pairs = sorted(
        (
            (-worth, i, j)
            for i, prediction in enumerate(predictions)
            for j, reference in enumerate(references)
            if (worth := _f1(prediction, reference))
        )
    )
    taken_found, taken_wanted, total = set[int](), set[int](), 0.0
    for worth, i, j in pairs:
        if i not in taken_found and j not in taken_wanted:
            taken_found.add(i)
            taken_wanted.add(j)
            total -= worth
    precision, recall = total / len(predictions) if predictions else 0.0, total / len(references) if references else 0.0
    both = precision + recall
    return SetScore(precision, recall, 2 * precision * recall / both if both else 0.0)


def triple_rouge(kind: str, predicted: Iterable[TripleTexts], gold: Iterable[TripleTexts]) -> float:
    """Return ROUGE's F-measure of the triples' words against those of the gold ones, in their orders, in 0..1.

    kind: "rouge1", "rouge2" or "rougeL". RAS measures text-to-triples so; the marks between the parts, which any two
    lists of triples share, do not count here. Raises MissingExtra without the rouge-score package.
    """
    prediction, reference = (" ".join(" ".join(triple) for triple in triples) for triples in (predicted, gold))
    return float(rouge_scorer(kind).score(reference, prediction)[kind].fmeasure)


def entity_score(triples: Iterable[TripleTexts], answers: Iterable[str]) -> SetScore:
    """Score gold answers against the entities (heads and tails) of a retrieved graph, as LEGO-GraphRAG does."""
    entities = {canonical_key(triple[end]) for triple in triples for end in (0, 2)}
    return set_score(entities, set(map(canonical_key, answers)))


def read_cited_graph(reply: str) -> CitedGraph:
    """Return the nodes and edges that a reply refers to, each once.

    Edges are (head; relation; tail), (S> head | P> relation | O> tail) or (head, relation, tail), anywhere. Nodes are
    what a line "Nodes: a, b" lists, or the bullets below "Nodes:". An edge's ends count as nodes only if they are
    listed.
    """
    edges = [
        (_bare(head, SUBJECT), _bare(relation, PREDICATE), _bare(tail, OBJECT))
        for head, _, relation, tail in _EDGE.findall(reply)
    ]
    boxed = ((head.strip(), relation.strip(), tail.strip()) for head, relation, tail in _COMMA_EDGE.findall(reply))
    edges += [edge for edge in boxed if not _is_box(edge[0])]
    nodes: list[str] = []
    listing = False
    for line in reply.splitlines():
        if heading := _NODES.match(line):
            inline = heading["inline"].strip(" *_")
            listing = not inline
            nodes += [part.strip() for part in re.split(r"[,;]", inline)]
        elif listing and (item := _ITEM.match(line)):
            nodes.append(item["item"].strip())
        elif line.strip():
            listing = False
    return CitedGraph(tuple(dict.fromkeys(node for node in nodes if node)), tuple(dict.fromkeys(filter(all, edges))))


def graph_validity(cited: CitedGraph, nodes: Iterable[str], edges: Iterable[TripleTexts]) -> GraphValidity:
    """Count which of the cited nodes and edges the graph has.

    Texts are compared by canonical key, edges with their direction. A node is a whole text or, of a scene graph's
    "name: banana; attribute: ...", its name.
    """
    names = {key for node in nodes for key in (canonical_key(node), canonical_key(_name(node)))}
    graph_edges = {key for edge in edges for key in (_key(edge), _key((_name(edge[0]), edge[1], _name(edge[2]))))}
    return GraphValidity(
        len(cited.nodes),
        sum(canonical_key(node) in names for node in cited.nodes),
        len(cited.edges),
        sum(_key(edge) in graph_edges for edge in cited.edges),
    )


def _triple_part(rule: _TripleScore, part: _Part, question: Question, outcome: Outcome) -> float | None:
    gold = question.metadata.get("triples") or question.metadata.get("path")
    return float(getattr(rule(outcome.triples(), gold), part)) if gold else None


def _entity_part(part: _Part, question: Question, outcome: Outcome) -> float | None:
    golds = question.metadata.get("answer_entities") or question.answers
    return float(getattr(entity_score(outcome.triples(), golds), part)) if golds else None


def _rouge(kind: str, question: Question, outcome: Outcome) -> float | None:
    gold = question.metadata.get("triples") or question.metadata.get("path")
    return triple_rouge(kind, outcome.triples(), gold) if gold else None


for _kind in ("rouge1", "rouge2", "rougeL"):
    metric(f"triple_{_kind.lower()}")(partial(_rouge, _kind))
_PARTS: tuple[_Part, ...] = ("precision", "recall", "f1")
for _part in _PARTS:
    metric(f"triple_{_part}")(partial(_triple_part, triple_score, _part))
    metric(f"triple_ends_{_part}")(partial(_triple_part, ends_score, _part))
    metric(f"triple_soft_{_part}")(partial(_triple_part, soft_triple_score, _part))
metric("entity_recall")(partial(_entity_part, "recall"))
metric("entity_f1")(partial(_entity_part, "f1"))


@metric("valid_nodes")
def _valid_nodes(question: Question, outcome: Outcome) -> float | None:
    validity = _validity(question, outcome)
    return validity.valid_nodes / validity.nodes if validity and validity.nodes else None


@metric("valid_edges")
def _valid_edges(question: Question, outcome: Outcome) -> float | None:
    validity = _validity(question, outcome)
    return validity.valid_edges / validity.edges if validity and validity.edges else None


@metric("fully_valid")
def _fully_valid(question: Question, outcome: Outcome) -> float | None:
    validity = _validity(question, outcome)
    return float(validity.fully_valid) if validity and validity.cites else None


def _validity(question: Question, outcome: Outcome) -> GraphValidity | None:
    """Count what the answer cites of the question's own graph, or else of the graph that the agent built.

    Returns None without either.
    """
    if question.metadata.get("graph"):
        nodes, edges = question.graph.nodes, question.graph.triples()
    elif edges := tuple(outcome.triples()):
        nodes = tuple(end for edge in edges for end in (edge[0], edge[2]))
    else:
        return None
    return graph_validity(read_cited_graph(outcome.answer), nodes, edges)


def _key(triple: TripleTexts) -> tuple[str, str, str]:
    head, relation, tail = triple
    return canonical_key(head), canonical_key(relation), canonical_key(tail)


def _ends(triple: TripleTexts) -> tuple[str, str]:
    return canonical_key(triple[0]), canonical_key(triple[2])


def _words(triple: TripleTexts) -> tuple[str, ...]:
    return tuple(canonical_key(" ".join(triple)).split())


def _f1(words: tuple[str, ...], gold: tuple[str, ...]) -> float:
    common = sum((Counter(words) & Counter(gold)).values())
    return 2 * common / (len(words) + len(gold)) if common else 0.0


def _name(node: str) -> str:
    bare = node.partition(";")[0]
    return bare.removeprefix("name:").strip() if bare.startswith("name:") else node


def _bare(field: str, mark: Mark) -> str:
    """Return the text of an edge's field without the mark in front of it, if there is one."""
    return field.strip().removeprefix(str(mark)).strip()


def _is_box(head: str) -> bool:
    """Tell whether a triple in commas is a box (x,y,w) of a scene graph and no edge."""
    return head == "x" or head.lstrip("-").isdigit()

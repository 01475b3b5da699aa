"""Makes training examples of a GraphLLM from questions with graphs: the part of the graph to show, and the
reply to learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ras_agent.contracts.graph_batch import GraphFeatures
from ras_agent.eval.benchmarks import Benchmark
from ras_agent.eval.metrics.cited_graph import apart, name_in_edges
from ras_agent.eval.metrics.registry import Outcome
from ras_agent.eval.question import Question
from ras_agent.prompts import Turn
from ras_agent.tools.graph_tokens.features import GraphVectors
from ras_agent.tools.graph_tokens.graph_reader import GraphInput, GraphPrompts
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.train.data import names_any


@dataclass(frozen=True, slots=True)
class GraphQAExample:
    """Holds a question about a graph, with its prompt and the reply to learn."""

    question: Question
    input: GraphInput
    reply: str
    scored_by: Benchmark
    cites: bool = False

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return the prompt."""
        return self.input.turns

    def features(self, vectors: GraphVectors) -> GraphFeatures:
        """Return the part of the graph that is shown, as arrays for a graph encoder."""
        return self.input.features(vectors)

    def scores(self, reply: str) -> Mapping[str, float]:
        """Return the score of a reply by the set's first metric."""
        if self.cites:
            outcome = apart(Outcome(reply))
        else:
            outcome = Outcome(reply)
        return {
            "answers": self.scored_by.score(self.question, outcome).get(
                self.scored_by.headline, 0.0
            )
        }


def example_of(
    question: Question, set_: Benchmark, prompts: GraphPrompts, *, cite: bool = False
) -> GraphQAExample:
    """Return the example of a question.

    Args:
        question: The question with its graph.
        set_: The benchmark of the question, which scores replies.
        prompts: The maker of prompts.
        cite: Whether a reply lists its evidence; see `reply_of`.
    """
    item = prompts.input(question.question, graph_of(question))
    reply = reply_of(question, item, cite=cite)
    return GraphQAExample(question, item, reply, set_, cite)


def graph_of(question: Question) -> Graph:
    """Return the graph that comes with a question."""
    return Graph.of_texts(question.graph.nodes, question.graph.edges)


def reply_of(question: Question, item: GraphInput, *, cite: bool = False) -> str:
    """Return the reply to learn: the answers, one per line.

    With `cite`, the nodes and edges that support the answers follow, in the form that `answer_citing` asks for. The
    edges are those of `item` that mention an answer, or all of them if no edge does. The nodes are the ends of these
    edges, and all others that mention an answer. In an edge, an object of a scene is written as its name, because its
    full text contains the semicolon that separates the parts of an edge.
    """
    reply = "\n".join(question.answers)
    if not cite:
        return reply
    edges = [
        (item.nodes[source], text, item.nodes[target])
        for source, text, target in item.edges
    ]
    naming = [
        edge
        for edge in edges
        if any(names_any(text, question.answers) for text in edge)
    ]
    ends = set[str]()
    for source, _, target in naming or edges:
        ends |= {source, target}
    lines = [reply, "Nodes:"]
    for node in item.nodes:
        if node in ends or names_any(node, question.answers):
            lines.append(f"- {node}")
    lines.append("Edges:")
    for source, text, target in naming or edges:
        lines.append(f"- ({name_in_edges(source)}; {text}; {name_in_edges(target)})")
    return "\n".join(lines)

"""The knowledge graph of a question: triples merged from the passages that were read."""

from ras_agent.question_graph.graph import QuestionGraph

__all__ = ["QuestionGraph"]

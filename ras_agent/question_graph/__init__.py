"""Merges the triples that are read in passages into the knowledge graph of one question."""

from ras_agent.question_graph.export import to_graphml, to_mermaid
from ras_agent.question_graph.graph import QuestionGraph
from ras_agent.question_graph.merge import Entity

__all__ = ["Entity", "QuestionGraph", "to_graphml", "to_mermaid"]

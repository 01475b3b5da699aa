"""The knowledge graph of a question: the triples that were read in passages, merged into facts."""

from ras_agent.question_graph.export import to_graphml, to_mermaid
from ras_agent.question_graph.graph import QuestionGraph
from ras_agent.question_graph.merge import Entity

__all__ = ["Entity", "QuestionGraph", "to_graphml", "to_mermaid"]

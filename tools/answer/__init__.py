"""Answers from the graph and the passages, with citations, by a chat model."""

from ras_agent.tools.answer.citations import NumberedEvidence, read_citations
from ras_agent.tools.answer.llm import LLMAnswerer

__all__ = ["LLMAnswerer", "NumberedEvidence", "read_citations"]

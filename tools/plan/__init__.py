"""Planners, which decide the next search, and IRCoT's reasoner, both on a chat model."""

from ras_agent.tools.plan.grammar import parse_plan
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.tools.plan.llm_reasoner import LLMReasoner

__all__ = ["LLMPlanner", "LLMReasoner", "parse_plan"]

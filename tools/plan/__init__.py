"""Planners on a chat model, which decide the next search, and IRCoT's reasoner."""

from ras_agent.tools.plan.grammar import parse_plan
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.tools.plan.llm_reasoner import LLMReasoner

__all__ = ["LLMPlanner", "LLMReasoner", "parse_plan"]

"""Plans the next search by a chat model, and reasons as in IRCoT."""

from ras_agent.tools.plan.grammar import parse_plan
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.tools.plan.llm_reasoner import LLMReasoner

__all__ = ["LLMPlanner", "LLMReasoner", "parse_plan"]

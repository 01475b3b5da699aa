"""Trains GraphLLM, the planner and answerer that read the question graph through soft tokens (RAS)."""

from ras_agent.train.graphllm.examples import ExampleMaker, GraphLLMExample, RoleExample

__all__ = ["ExampleMaker", "GraphLLMExample", "RoleExample"]

"""Training of GraphLLM, the planner and answerer that read the question's graph through soft tokens (RAS)."""

from ras_agent.train.graphllm.examples import ExampleMaker, GraphLLMExample, RoleExample

__all__ = ["ExampleMaker", "GraphLLMExample", "RoleExample"]

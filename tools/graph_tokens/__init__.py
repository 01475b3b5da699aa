"""Defines models that read a graph through soft tokens: graph encoders, GraphLLM, and its planner and answerer."""

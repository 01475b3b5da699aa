"""Finds the part of a knowledge graph that a question is about, as a subgraph or as paths of facts."""

"""Models that read a graph through soft tokens: encoders, GraphLLM, and its planner and answerer."""

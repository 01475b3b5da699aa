"""Runs the offline mode: a planner, reasoner, extractor and answerer that need no language model."""

"""Evaluation runs: questions, systems, scores, and a folder that survives being killed."""

"""Evaluation of agents on question sets."""

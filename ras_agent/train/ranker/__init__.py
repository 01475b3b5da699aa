"""Ranker."""

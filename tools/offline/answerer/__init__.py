"""Answerer."""

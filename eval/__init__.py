"""Measurement of agents on question sets."""

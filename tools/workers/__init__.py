"""Spreads work over processes and machines, and stores shared results on disk."""
